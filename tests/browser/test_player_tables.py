"""Every view as a table, against the record that it comes from."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from decoding import tree
from decoding.types import Role, Step, Trace
from tests.browser.conftest import Shown
from tests.tiers import choose, sampled, slow
from tests.viz.records import HOSTILE, METHODS, hostile, record, timed
from viz.cache_slots import Use, cache_state, chunks
from viz.fates import node_fates
from viz.palette import MEANINGS, Fate
from viz.token_text import shown as visible

Show = Callable[..., Shown]
Row = dict[str, str]
READ = """(async (name) => {
  const view = player.record.view(name);
  await Specscope.showTable(player, player.cards.cards.get(name) ?? { view });
  const dialog = document.querySelector("dialog[open]");
  const cells = (row) => [...row.cells].map((cell) => cell.textContent);
  const got = [cells(dialog.querySelector("thead tr")), ...[...dialog.querySelectorAll("tbody tr")].map(cells)];
  const say = [...dialog.querySelectorAll(".ss-quiet")].map((p) => p.textContent);
  dialog.close();
  return [got, say];
})"""
USES = {
    "free": Use.EMPTY,
    "read": Use.READ,
    "not read": Use.UNTOUCHED,
    "unread text": Use.STORED,
    "last token of the text": Use.STORED,
    "accepted guesses": Use.STORED,
    "window cells": Use.REJECTED,
    "rejected guesses": Use.REJECTED,
    "left by accepted guesses": Use.REJECTED,
}
OUTCOMES = {"added": "new", "refreshed": "already held, now the newest", "evicted-oldest": "new, replacing the oldest"}


def read_tables(shown: Shown, views: list[str]) -> Iterator[tuple[str, list[Row], list[str]]]:
    """Of some views' tables: which view's, its rows by their headings, and the sentences around it."""
    shown.open(*(view for view in views if view in ("counters", "check")))  # the others need not be open
    read = (
        f"await (async (tables) => {{ for (const name of given) tables.push(await {READ}(name)); return tables; }})([])"
    )
    for view, ((headings, *rows), say) in zip(views, shown.run(read, views), strict=True):
        assert len({*headings}) == len(headings) >= 2
        yield view, [dict(zip(headings, row, strict=True)) for row in rows], say


def read_table(shown: Shown, view: str) -> tuple[list[Row], list[str]]:
    """The rows of a view's table by their headings, and the sentences around it."""
    _, rows, say = next(read_tables(shown, [view]))
    return rows, say


class Record:
    """A step of a trace, as the tables name what is in it."""

    def __init__(self, trace: Trace, k: int) -> None:
        self.trace, self.k, self.step, self.panel = trace, k, trace.steps[k], trace.steps[k].panel
        self.depths = tree.depths(self.step.parents)
        self.fates = [MEANINGS[fate].label for fate in node_fates(self.step)]
        self.method = trace.header.method

    def text(self, token: int) -> str:
        return visible(self.trace.texts[token])

    def words(self, tokens: Any) -> str:
        return " ".join(map(self.text, tokens))

    def chain(self, node: int) -> list[int]:
        return [*tree.path_to(self.step.parents, node)]


def mask(of: Record, rows: list[Row], say: list[str]) -> None:
    parts = chunks(of.trace.header, of.step)
    assert [row["Position"] for row in rows[: len(parts)]] == [f"{part.start} to {part.stop - 1}" for part in parts]
    start = of.step.start
    for node, row in enumerate(rows[len(parts) :]):
        assert (row["Token"], row["Node"]) == (of.text(of.step.tokens[node]), str(node))
        assert (row["Position"], row["Fate"]) == (str(start - 1 + of.depths[node]), of.fates[node])
        assert f"from position 0 to {start - 1 if node else start - 2}" in row["Sees"] and "itself" in row["Sees"]
        seen = " ".join(re.findall(r"\(([^)]*)\)", row["Sees"]))
        above = [of.text(of.step.tokens[other]) for other in of.chain(node)[1:-1]]
        assert seen.removesuffix("…").split() == above[:8] if of.method != "lookahead" else seen.split() == above
    assert len(rows) == len(parts) + len(of.step.tokens)


def cache(of: Record, rows: list[Row], say: list[str]) -> None:
    slots_state = cache_state(of.trace.header, of.trace.steps, of.k)
    uses, lost = list[Use](), list[int]()
    for row in rows:
        assert int(row["First slot"]) == len(uses) and int(row["Last slot"]) == len(uses) + int(row["Slots"]) - 1
        slots = range(len(uses), len(uses) + int(row["Slots"]))
        uses += [USES[re.split("[:,]", row["What"])[0]]] * len(slots)
        lost += slots if "overwritten" in row["Sign"] else []
    assert uses[: slots_state.slots] == [*slots_state.uses] and {*uses[slots_state.slots :]} <= {Use.EMPTY}
    ring = of.trace.header.slots or len(uses)
    assert lost == sorted(place % ring for place in slots_state.lost)
    begins = {row["First slot"]: row["Sign"] for row in rows}
    assert begins[str(slots_state.kept % ring)].startswith("written next")
    if len(parts := chunks(of.trace.header, of.step)) > 1:
        assert all(f"chunk {i}" in begins[str(part.start % ring)] for i, part in enumerate(parts, start=1))


def window(of: Record, rows: list[Row], say: list[str]) -> None:
    counted = Counter((row["Token"], row["Row"], row["Position"]) for row in rows if "pool" not in row["Row"])
    if of.method == "jacobi":
        wanted = Counter([(of.text(of.step.tokens[0]), "this pass", str(of.step.start - 1))])
        for age, step in enumerate(of.trace.steps[of.k :: -1]):
            name = "this pass" if not age else f"{age} pass{'es' * (age > 1)} ago"
            wanted.update((of.text(t), name, str(step.start + i)) for i, t in enumerate(step.tokens[1:]))
        answers = enumerate(of.panel["answers"])
        wanted.update((of.text(token), "answers", str(of.step.start + i)) for i, token in answers)
        assert not counted - wanted and all(counted[cell] for cell in wanted if "ago" not in cell[1])
        return
    cells, root = of.panel["rows"], of.step.start - 1
    levels = of.trace.header.params["N"] - 1
    names = ["oldest line", *(f"line {number}" for number in range(2, levels)), "new line"][-levels:][-len(cells) :]
    wanted = Counter([(of.text(of.step.tokens[0]), names[0], str(root))])
    for r, row in enumerate(cells):
        wanted.update((of.text(t), names[r], str(root + r + i + (r == 0))) for i, t in enumerate(row))
    wanted.update((of.text(t), "answers", str(root + len(cells) + i)) for i, t in enumerate(of.panel["new"]))
    assert counted == wanted
    events = of.panel["pool"]["inserted"] if of.panel["phase"] == "steady" else []
    harvest = [row["Harvested n-gram"] for row in rows if row["Harvested n-gram"] != "–"]
    assert harvest == [f"{of.words([key, *ngram])}: {OUTCOMES[outcome]}" for key, ngram, outcome in events]
    assert [row["Token"] for row in rows if "pool" in row["Row"]] == [
        of.text(token) for guess in of.panel["guesses"][-4:] for token in guess
    ]


def ngrams(of: Record, rows: list[Row], say: list[str]) -> None:
    held = [row for row in rows[1:] if row["Which"] == "held for the key"]
    learned = [(row["Tokens"], row["Outcome"]) for row in rows if row["Which"] == "learned"]
    assert f"N-grams in the pool: {of.panel['pool']['entries']}." in say
    if of.method == "ouroboros":
        assert [row["Tokens"] for row in held] == [of.words(suffix) for suffix in of.panel["suffixes"]]
        pairs = zip(of.panel["suffixes"], of.panel["refined"], strict=True)
        changed = [after for before, after in pairs if before != after]
        new = [ngram for _, ngram, outcome in of.panel["inspired"] if outcome != "refreshed"]
        kinds = ["refined"] * len(changed) + ["inspired"] * len(new)
        assert [text.split(maxsplit=1)[1] for text, _ in learned] == [of.words(ngram) for ngram in [*changed, *new]]
        assert [words for _, words in learned] == [f"{kind}, helped by the target" for kind in kinds]
        return
    assert [row["Tokens"] for row in held] == [of.words(guess) for guess in of.panel["guesses"][::-1]]
    events = of.panel["pool"]["inserted"]
    assert learned == [(of.words([key, *ngram]), OUTCOMES[outcome]) for key, ngram, outcome in events]
    refreshed = {of.words(ngram) for key, ngram, out in events if key == of.step.tokens[0] and out == "refreshed"}
    for row, guess in zip(held, of.panel["guesses"][::-1], strict=True):
        pool = [(step.index, event) for step in of.trace.steps[: of.k] for event in step.panel["pool"]["inserted"]]
        made = [k for k, (key, ngram, _) in pool if key == of.step.tokens[0] and ngram == guess]
        assert row["Since"] == (f"step {made[-1]}" if made else "prompt")
        entry = of.panel["guesses"].index(guess)
        nodes = [of.step.sources.index(f"pool:{entry},{place}") for place in range(len(guess))]
        assert row["Fates"] == ", ".join(of.fates[node] for node in nodes)
        taken = len({*nodes} & {*of.step.path})
        assert (f"{taken} accepted" in row["Outcome"]) == (taken > 0)
        assert (OUTCOMES["refreshed"] in row["Outcome"]) == (row["Tokens"] in refreshed)


def heads(of: Record, rows: list[Row], say: list[str]) -> None:
    written = [(row["Token"], row["Head"]) for row in rows if row["Rank"] == "written"]
    assert written == [(of.text(token), f"head {i}") for i, token in enumerate(of.step.emitted, start=1)]
    guesses = {(row["Token"], row["Head"], row["Rank"]): row for row in rows if row["Rank"] != "written"}
    wanted = set[tuple[str, str, str]]()
    for node, source in enumerate(of.step.sources[1:], start=1):
        head, rank = source.removeprefix("medusa:").split(",")
        wanted.add((of.text(of.step.tokens[node]), f"head {head}", f"rank {rank}"))
    assert {*guesses} == wanted
    ranks = enumerate(of.panel.get("hits", ()), start=1)
    hits = {(f"head {head}", f"rank {rank}") for head, rank in ranks if rank is not None}
    signed = {key[1:] for key, row in guesses.items() if row["Sign"] == "the target's own token"}
    assert signed == hits & {key[1:] for key in guesses}


def confidence(of: Record, rows: list[Row], say: list[str]) -> None:
    assert [row["Token"] for row in rows] == [of.text(token) for token in of.step.tokens]
    assert [row["Fate"] for row in rows] == of.fates
    assert [row["Guess"] for row in rows] == ["root", *map(str, range(1, len(rows)))]
    values = of.panel["confidence"] or of.step.q[1:]
    assert [row["Confidence"] for row in rows[1:]] == [f"{value:.2f}" for value in values[: len(rows) - 1]]


def found(of: Record, rows: list[Row], say: list[str]) -> None:
    guesses = [row for row in rows if row.get("From depth", "–") != "–"]
    if of.method == "prompt_lookup":
        text, target = ({row["Text"]: row for row in rows}[name] for name in ("the text now", "the target"))
        now = [*of.trace.header.prompt, *(token for step in of.trace.steps[: of.k] for token in step.emitted)]
        copied = of.words(of.step.tokens[1:])
        assert text["Tokens"] == of.words(now[-6:]) + f" {copied}" * bool(copied)
        assert target["Tokens"] == of.words(of.step.emitted)
        return
    if of.method == "ngrammys":
        assert [row["Tokens"] for row in guesses] == [of.words(row["tokens"]) for row in of.panel["rows"]]
        for row, given in zip(guesses, of.panel["rows"], strict=True):
            assert row["Strategy"].startswith(given["strategy"])
    else:
        counted = "Came next" if of.method == "suffix" else "Found"
        assert all(re.fullmatch(r"[\d,]+ ×", row[counted]) for row in guesses)
        assert not of.panel.get("hits") or f"found at {of.panel['hits']} position" in rows[0]["Outcome"]
        assert len(guesses) == len({*range(1, len(of.step.tokens))} - {*of.step.parents})
    accepted = sum(row["Fates"].split(", ").count("Accepted") for row in guesses)
    assert accepted == of.step.accepted


def recycled(of: Record, rows: list[Row], say: list[str]) -> None:
    assert any(part.startswith(f"{of.panel['known']:,} row") for part in say)
    changed = [(of.text(token), of.words(after)) for token, _, after, _ in of.panel["changed"]]
    assert [(row["Token"], row["Likeliest next"]) for row in rows[len(rows) - len(changed) :]] == changed
    read = {of.text(row["token"]): of.words(row["entries"]) for row in of.panel["rows"]}
    guessed = [(row["Token"], row["Likeliest next"]) for row in rows[: len(rows) - len(changed)]]
    assert all(read[token] == entries for token, entries in guessed)
    assert bool(guessed) == (of.step.drafted > 0)


def products(of: Record, rows: list[Row], say: list[str]) -> None:
    written = [row["Token"] for row in rows if row["Probability"] == "written"]
    assert written == [of.text(token) for token in of.step.emitted]
    guesses = Counter((row["Token"], row["Depth"], row["Fate"]) for row in rows if row["Probability"] != "written")
    nodes = range(1, len(of.step.tokens))
    wanted = ((of.text(of.step.tokens[node]), f"depth {of.depths[node]}", of.fates[node]) for node in nodes)
    assert guesses == Counter(wanted)


POOLS = {
    "lookahead": ngrams,
    "ouroboros": ngrams,
    "medusa": heads,
    "draft_model": confidence,
    "kangaroo": confidence,
    "prompt_lookup": found,
    "ngrammys": found,
    "rest": found,
    "suffix": found,
    "token_recycling": recycled,
    "eagle3": products,
    "dflash": products,
}


def pool(of: Record, rows: list[Row], say: list[str]) -> None:
    POOLS[of.method](of, rows, say)


def branches(of: Record, rows: list[Row], say: list[str]) -> None:
    step, guesses = of.step, [node for node, role in enumerate(of.step.roles) if role is not Role.EXPLORE]
    rest = rows[len(guesses) :]
    for row, node in zip(rows, guesses, strict=False):
        parent = str(step.parents[node]) if node else "–"
        assert (row["Token"], row["Node"], row["Parent node"]) == (of.text(step.tokens[node]), str(node), parent)
        assert (row["Depth"], row["Fate"]) == (str(of.depths[node]), of.fates[node])
        assert row["Target's next token"] == of.text(step.choices[node])
    wanted = [of.text(step.emitted[-1])] if len(step.emitted) > step.accepted else []
    assert [row["Token"] for row in rest] == wanted


def pair(of: Record, rows: list[Row], say: list[str]) -> None:
    parents = [n for n, top in enumerate(of.step.top) if {of.text(t) for t, _ in top} <= {row["Token"] for row in rows}]
    wanted = [{of.text(token): f"{p:.4f}" for token, p in of.step.top[parent]} for parent in parents]
    got = {row["Token"]: f"{float(row['p of the target']):.4f}" for row in rows}
    assert any(shares.items() <= got.items() for shares in wanted)
    taken = [row["Token"] for row in rows if "taken" in row["Sign"]]
    drawn_elsewhere = of.text(of.step.emitted[-1]) not in got  # sampled from outside the best that are recorded
    assert (len(taken) == 1 or not taken and drawn_elsewhere) and len(say) >= 1
    distribution = {
        node: q for node, q in enumerate(of.step.q) if node and q and of.method in ("draft_model", "kangaroo")
    }
    got = {row["Guessed at node"]: row["q of the drafter"] for row in rows}
    assert all(float(got[str(node)]) == round(q, 4) for node, q in distribution.items() if str(node) in got)


def timeline(of: Record, rows: list[Row], say: list[str]) -> None:
    assert [row["Step"] for row in rows] == [str(step.index) for step in of.trace.steps]
    for row, step in zip(rows, of.trace.steps, strict=True):
        chose = len(step.emitted) > step.accepted
        assert row["Accepted"] == str(step.accepted) and (row["The target's own"] != "none") == chose
        rejected = chose and any(step.parents[n] == step.path[-1] for n in _guesses(step))
        assert (row["A guess was rejected"], row["The target's own"] == "Correction") == (
            "yes" if rejected else "no",
            rejected,
        )
        for part in ("forward", "draft", "accept", "commit", "other", "total"):
            shown = row[f"{part.replace('total', 'whole').capitalize()} ms"]
            assert float(shown) == pytest.approx(getattr(step.timing, f"{part}_ms"), abs=0.001)


def _guesses(step: Step) -> list[int]:
    return [node for node, role in enumerate(step.roles) if role is Role.VERIFY]


def counters(of: Record, rows: list[Row], say: list[str]) -> None:
    written = sum(len(step.emitted) for step in of.trace.steps[: of.k + 1])
    values = {row["Number"]: row["Value"] for row in rows}
    assert values["New tokens"] == str(written)
    assert values["Tokens per step"] == f"{written / (of.k + 1):.2f}"


def check(of: Record, rows: list[Row], say: list[str]) -> None:
    assert [row["Value"] for row in rows] == ["Not checked yet."]


def text(of: Record, rows: list[Row], say: list[str]) -> None:
    assert [(row["Token"], row["Fate"]) for row in rows] == [
        (of.text(token), fate) for token, fate in zip(of.step.tokens, of.fates, strict=True)
    ]


CHECKS = {
    "mask": mask,
    "window": window,
    "pool": pool,
    "tree": branches,
    "pair": pair,
    "timeline": timeline,
    "counters": counters,
    "check": check,
    "cache": cache,
    "text": text,
    "stage": text,
}


# A method of each kind of pool.
POOLED = {"lookahead", "draft_model", "prompt_lookup", "ngrammys", "suffix", "token_recycling", "medusa", "eagle3"}


@sampled
@pytest.mark.parametrize("method", choose(METHODS, POOLED))
def test_tables_hold_what_the_record_holds(show: Show, method: str, everything: bool) -> None:
    """Whoever cannot see a picture gets all that it shows, a row for each thing."""
    trace = timed(record(method))
    shown = show(trace, height=2400)
    views = shown.run("player.record.views.map((view) => view.name)")
    every = range(len(trace.steps) - 1)
    for k in every if everything else (max(every, key=lambda k: trace.steps[k].drafted),):
        shown.do(f"player.goto({{ step: {k} }})")
        shown.at(f"{k}/commit")
        for name, rows, say in read_tables(shown, views):
            CHECKS[name](Record(trace, k), rows, say)


@slow  # some seconds in a browser
def test_a_ring_of_slots_is_shown_with_its_chunks_and_what_it_overwrote(show: Show) -> None:
    trace = record("ngrammys")
    trace = replace(trace, header=replace(trace.header, slots=20, prefill_chunk=3))
    shown, lost = show(trace, height=2400), 0
    for k in range(len(trace.steps)):
        shown.do(f"player.goto({{ step: {k} }})")
        rows, say = read_table(shown, "cache")
        lost += sum("overwritten" in row["Sign"] for row in rows)
        if cache_state(trace.header, trace.steps, k).first < cache_state(trace.header, trace.steps, k).stored:
            cache(Record(trace, k), rows, say)
    assert lost


@pytest.mark.parametrize(
    "method", choose(["lookahead", "medusa", "draft_model", "ouroboros"], ["lookahead", "draft_model"])
)
def test_tables_say_nothing_before_it_has_happened(show: Show, method: str) -> None:
    trace = record(method)
    k = next(k for k, step in enumerate(trace.steps) if step.accepted)
    shown = show(trace, step=k, height=2400)
    verdicts = [MEANINGS[fate].label for fate in (Fate.ACCEPTED, Fate.REJECTED, Fate.CORRECTION, Fate.BONUS, Fate.OWN)]
    views = shown.run("player.record.views.map((view) => view.name).filter((name) => name !== 'timeline')")
    shown.do("player.change({ phase: 'propose' })")
    for name, before, _ in read_tables(shown, views):
        cells = {cell for row in before for heading, cell in row.items() if heading not in ("Formula", "Number")}
        assert not [cell for cell in cells if any(word in cell.split(", ") for word in verdicts)], name
        assert all(row["Target's next token"] == "–" for row in before if "Target's next token" in row)
        assert all(row["p of the target"] == "–" for row in before if "p of the target" in row)


@pytest.mark.parametrize("method", choose(["lookahead", "ngrammys", "ouroboros"], ["ouroboros"]))
def test_hostile_texts_are_only_texts_in_tables(show: Show, method: str) -> None:
    """Each text stands in the tables as figures show it, and none becomes a part of the page."""
    trace = hostile(record(method))
    k = next(k for k, step in enumerate(trace.steps) if step.accepted)
    shown, texts = show(trace, step=k, height=2400), {visible(text) for text in HOSTILE}
    for name in ("mask", "tree", "pair"):
        rows, _ = read_table(shown, name)
        assert {row["Token"] for row in rows} <= texts | {"text"}
    for name in shown.run("player.record.views.filter((view) => view.kind !== 'numbers').map((view) => view.name)"):
        shown.do("await Specscope.showTable(player, { view: player.record.view(given) })", name)
        parts = shown.run('[...document.querySelectorAll("dialog[open] table *")].map((node) => node.tagName)')
        assert {*parts} <= {"THEAD", "TBODY", "TR", "TH", "TD", "BUTTON"}
        shown.do('document.querySelector("dialog[open]").close()')


def test_a_table_is_fetched_once_and_says_what_it_waits_for(show: Show) -> None:
    """While a run goes on, when its table is on the way, and when the server no longer has it."""
    trace = record("lookahead")
    shown = show(trace, step=6, views=("pool",))
    for _ in range(2):
        assert read_table(shown, "pool")[0]
    assert shown.run("asked.filter((each) => each === 'rows 6').length") == 1
    shown.do("player.goto({ step: 7 })")
    shown.at("7/commit")
    shown.do("player.source.rows = () => new Promise((done) => { globalThis.answer = done; })")
    shown.do("Specscope.showTable(player, player.cards.cards.get('pool'))")
    assert "Fetching this table" in shown.text("dialog[open]")
    shown.do("player.goto({ step: 2 }); answer(given)", shown.play.rows(7))
    shown.page.locator("dialog[open]").get_by_text("held for the key").first.wait_for()
    assert "step 7" in shown.text("dialog[open] h2")
    shown.do("document.querySelector('dialog[open]').close()")
    shown.do("player.source.rows = () => Promise.reject(new Error('gone'))")
    shown.do("await Specscope.showTable(player, player.cards.cards.get('pool'))")
    assert "This table could not be fetched." in shown.text("dialog[open]")


def test_a_run_that_goes_on_has_its_made_tables(show: Show) -> None:
    trace = record("lookahead")
    shown = show(trace, feed=False, step=None)
    shown.do("player.feed(given)", shown.play.begin(trace.texts) + shown.play.full(0))
    shown.at("0/commit")
    shown.open("pool")
    shown.do("await Specscope.showTable(player, player.cards.cards.get('pool'))")
    assert shown.run("[player.record.live, asked]") == [True, ["rows 0"]]
    assert "This table" not in shown.text("dialog[open]")


@slow  # some seconds in a browser
def test_rows_lead_to_their_token_or_step(show: Show) -> None:
    trace = record("lookahead")
    shown = show(trace, step=9, views=("window", "pool", "timeline"))
    for view in ("window", "pool"):
        shown.do(f"await Specscope.showTable(player, player.cards.cards.get('{view}'))")
        words = shown.text("dialog[open] tbody tr:nth-child(3) button")
        shown.page.click("dialog[open] tbody tr:nth-child(3) button")
        shown.wait("player.state.pin?.step === 9")
        node = shown.run("player.state.pin.node")
        assert node > 0 and words.startswith(visible(trace.texts[trace.steps[9].tokens[node]]))
        shown.press("Escape")
    shown.do("Specscope.showTable(player, player.cards.cards.get('timeline'))")
    shown.page.click("dialog[open] tbody tr:nth-child(3) button")
    shown.at("2/commit")


@slow  # some seconds in a browser
def test_a_long_table_says_how_many_rows_it_holds_back(show: Show) -> None:
    """Thousands of rows would stop the page; what is left out is counted."""
    shown = show(record("autoregressive"))
    shown.do(
        "const { record } = player, few = record.steps; "
        "record.steps = Array.from({ length: 1100 }, (_, k) => few[k % few.length])"
    )
    rows, say = read_table(shown, "timeline")
    assert (len(rows), say) == (1_000, ["The first 1000 of 1100 rows."])
