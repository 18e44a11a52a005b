"""A run whose trees several processes read, on the page."""

from __future__ import annotations

from tests.browser.test_player_tables import Show, read_table
from tests.viz.records import divided, record, timed


def test_tables_details_and_footer_name_the_ranks(show: Show) -> None:
    """The picture is not for everybody: words say who read what."""
    trace = divided(timed(record("lookahead")), 2)
    k = max(range(len(trace.steps)), key=lambda k: len(trace.steps[k].tokens))
    step = trace.steps[k]
    shown = show(trace)
    shown.do(f"player.goto({{ step: {k} }})")
    words = [", ".join(map(str, readers)) for readers in step.ranks]
    rows, _ = read_table(shown, "mask")
    assert [row["Ranks that read it"] for row in rows[-len(words) :]] == words
    for node, of in ((0, "ranks 0, 1; the choice of 0 counts"), (len(words) - 1, f"rank {words[-1]}")):
        shown.do(f"player.pin({k}, {node})")
        assert of in shown.page.locator(".ss-detail").inner_text()
    assert "2 ranks" in shown.page.locator(".ss").inner_text()
