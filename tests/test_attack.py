"""`make attack` in short: every attack with a few requests, and what the others must not notice. Times are measured
by the long one only."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tools.attack.attack import FLAGS, KEY, Attack
from tools.attack.attacks import ATTACKS
from tools.attack.files import make_models
from tools.attack.others import Others
from tools.page import serving

from .test_child_process import is_gone_within


@pytest.mark.long
@pytest.mark.slow  # a rehearsal of all attacks; tests/app holds the page to each of its bounds
def test_an_attacked_server_stays_up_private_and_fair(tmp_path: Path) -> None:
    temporary, statuses = tmp_path / "tmp", dict[str, Counter[int]]()
    temporary.mkdir()
    flags = (*FLAGS, "--bring-your-own", str(make_models(tmp_path / "models")))
    with serving(tmp_path / "log", *flags, TMPDIR=str(temporary), SPECSCOPE_API_KEY=KEY) as page:
        page.visitor().run(run_length=8)
        beside = Others(page)
        for attack in ATTACKS:
            means = Attack(page, 0.04)
            attack(means)
            statuses[attack.__name__] = means.statuses
        beside.stop()
        assert page.visitor().ask("GET", "/").status == 200 and page.process.poll() is None
        children = page.children
    assert children and all(is_gone_within(pid, 5.0) for pid in children)
    log = (tmp_path / "log").read_text()
    done, begun = beside.finished.split(" of ")
    assert done == begun
    assert not [status for each in statuses.values() for status in each if status >= 500 and status != 503], statuses
    assert set(statuses["fetch_and_inject"]) == {404}
    assert set(statuses["nested_bodies"]) <= {0, 413}
    for name in ("tiny_traces", "cancelled_runs", "hostile_queries", "half_characters", "brought_models"):
        assert statuses[name].keys() == {200}, name
    assert statuses["impossible_paths"].keys() == {404} and statuses["new_hosts"].keys() == {200}
    assert statuses["failing_events"].keys() == {200, 422} and statuses["sessions_of_others"].keys() == {404}
    assert set(statuses["many_keys"]) == {401} and set(statuses["large_calls"]) <= {0, 413}
    assert set(statuses["open_sessions"]) == {200} and set(statuses["unfilled_events"]) == {404}
    assert set(statuses["left_streams"]) <= {200, 429}
    assert not [path for path in temporary.rglob("*") if path.is_file()]
    assert len(log) < 100_000 and "Traceback" not in log and "\nforged" not in log
