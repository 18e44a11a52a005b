"""N-Grammys on the stage: every row in one line with its source, and what the pass costs."""

from __future__ import annotations

import zlib
from typing import Any

import pytest

from decoding.types import Step, Trace
from tests.toys import counted_text, engine, hashed
from tests.viz.records import changed, record
from viz.sources import parse
from viz.wording import count

from .scenes import Scene, Shown, numbers, scenes

PROMPT = [1, 2, 3, 4, 5, 1, 2, 3, 4, 2, 3]


def run(**params: Any) -> Trace:
    """A run on a text that repeats itself."""
    return engine(counted_text()).generate(PROMPT, "ngrammys", params=params, max_new_tokens=40).trace


RUNS = {
    "recorded": record("ngrammys"),
    "few": run(k=3, w=2),
    "trie": run(k=5, w=3, layout="trie"),
    "many": run(k=12, w=6),
    "unigram": run(k=4, strategy="unigram"),
    "hashed": engine(hashed()).generate(PROMPT, "ngrammys", params={"k": 4, "w": 3}, max_new_tokens=30).trace,
}
each_run = pytest.mark.parametrize("trace", RUNS.values(), ids=RUNS)


def steps(trace: Trace) -> list[tuple[Step, Scene]]:
    """The steps that guess, with their scenes."""
    return [(step, scene) for step, scene in zip(trace.steps, scenes(trace), strict=True) if step.drafted]


def zone(scene: Scene, name: str, phase: str = "propose") -> list[Shown]:
    """The pieces of a zone, line by line."""
    return sorted((piece for piece in scene.pieces(phase) if piece.zone == name), key=lambda piece: (piece.y, piece.x))


def piece_id(name: str) -> int:
    """The number of a piece by its name."""
    return zlib.crc32(name.encode()) - 2**31


def places(scene: Scene) -> int:
    """Columns of the sources."""
    [columns] = [each["columns"] for each in scene.base["zones"] if each["name"] == "sources"]
    return int(columns)


@each_run
def test_every_row_has_its_source_in_the_same_line(trace: Trace) -> None:
    """A guess flies out of the piece with its token in a source; the first of its row in the very same line."""
    seen = 0
    for step, scene in steps(trace):
        sources = {piece.id: piece for piece in zone(scene, "sources")}
        guesses = zone(scene, "guesses")
        for guess in guesses:
            assert guess.token == step.tokens[guess.node]
            assert sources[guess.origin or 0].token == guess.token
        lines = {y: [piece for piece in guesses if piece.y == y] for y in {piece.y for piece in guesses}}
        assert {piece.y for piece in sources.values()} == lines.keys()
        assert all(sources[line[-1].origin or 0].y == y for y, line in lines.items())
        right = max(piece.x + 1 for piece in sources.values())
        assert right <= places(scene) + 1 and min(piece.x for piece in sources.values()) >= 1
        seen += len(guesses)
    assert seen > 20


@each_run
def test_a_copy_names_its_place_and_the_models_words_their_rank(trace: Trace) -> None:
    """What is in front of a source is what the record says of the row."""
    kinds = set[str]()
    for step, scene in steps(trace):
        words, rows = scene.words("propose"), step.panel["rows"]
        for guess in zone(scene, "guesses"):
            kind, indices = parse(step.sources[guess.node])
            if step.parents[guess.node]:
                continue
            if kind in ("prompt", "output"):
                [row] = [row for row in rows if row.get("place") == indices[0]]
                back = count(step.start - indices[0], "token") + " back"
                want = back if row["count"] == 1 else f"{row['count']} times, last {back}"
            else:
                want = f"{kind} rank {indices[0]}"
            assert any(word.startswith(want) for word in words)
            kinds.add(kind)
    assert len(kinds) > 1 or kinds == {"unigram"}


@each_run
def test_the_models_words_show_their_probability(trace: Trace) -> None:
    """The bar below a word is the probability that the record says."""
    bars = 0
    for step, scene in steps(trace):
        shares = dict(zip(*map(numbers, scene.patch.get("some", {}).get("share", ((), ()))), strict=True))
        nodes = numbers(scene.patch["pieces"]["nodes"])
        probabilities = {row["tokens"][0]: row["p"] for row in step.panel["rows"] if "p" in row}
        for number, p in shares.items():
            assert p == pytest.approx(probabilities[step.tokens[nodes[number]]], abs=0.001)
        bars += len(shares)
    assert bars > 0 or trace is RUNS["unigram"]


@each_run
def test_a_match_is_tied_to_the_text(trace: Trace) -> None:
    """The token in front of a copy is the text's last one, and tied to where it stood, if that is in sight."""
    for step, scene in steps(trace):
        pieces = {piece.id: piece for piece in scene.pieces("propose")}
        [root] = [piece.x for piece in pieces.values() if piece.zone == "text" and piece.node == 0]
        seen = {piece_id(f"s{row['place']}.q"): row["place"] for row in step.panel["rows"] if "place" in row}
        seen = {each: place for each, place in seen.items() if each in pieces}
        for each, place in seen.items():
            assert pieces[each].token == step.tokens[0]
            tied = (piece_id(f"t{place - 1}"), each) in scene.links("match", "propose")
            assert tied == (step.start - place <= root)
        if any(row["strategy"] == "context" for row in step.panel["rows"]):
            assert seen


@each_run
def test_the_cost_adds_up(trace: Trace) -> None:
    """Rows by guesses, less what is merged, and the last token: as many tokens as went through the target."""
    for step, scene in steps(trace):
        rows = [row["tokens"] for row in step.panel["rows"]]
        [cost] = [word for word in scene.words("propose") if "in one pass" in word]
        assert f"= {len(step.tokens)} tokens in one pass" in cost and f"{len(rows)} row" in cost
        less = sum(map(len, rows)) + 1 - len(step.tokens)
        assert (f"- {less} merged" in cost) == (less > 0)
        hidden = step.drafted - len(zone(scene, "guesses"))
        assert any(f"{hidden} guess" in word for word in scene.words("propose")) or not hidden


def test_a_word_behind_the_same_token_is_one_object() -> None:
    """Whenever the text comes back to a token, the model's words after it are the same pieces."""
    token_of, again = dict[int, int](), 0
    for _, scene in steps(RUNS["hashed"]):
        tokens = {piece.id: piece.token for piece in zone(scene, "sources")}
        again += len(token_of.keys() & tokens.keys())
        assert all(token_of.setdefault(each, token) == token for each, token in tokens.items())
    assert again > 5


def test_made_up_rows_are_not_drawn() -> None:
    """A file may name rows that the step does not have."""
    row = {"strategy": "context", "count": 2, "place": 2**30, "tokens": [1, 2, 3]}
    trace = RUNS["few"]
    for rows in ([row] * 40, [{}], [{"strategy": "bigram", "rank": 7, "p": 9.0, "tokens": []}], []):
        scene = scenes(changed(trace, 3, panel={"rows": rows}))[3]
        assert not zone(scene, "sources")
