"""The engine of all kinds: a phrase reads what it writes and nothing else, and says what is wrong with a pattern."""

from __future__ import annotations

import time
from random import Random

import pytest

from lab.pocket.language import phrases
from lab.pocket.language.phrases import (
    Capital,
    Concatenation,
    Filled,
    ValueSlot,
    ends,
    grammar,
    parse_template,
    read,
    write,
)
from lab.pocket.language.words import NAME


def test_a_phrase_reads_what_it_writes() -> None:
    phrase = parse_template("[a|b[c|]|] {x}[!|]")
    texts = {write(phrase, {"x": "y"}, Random(seed)) for seed in range(200)}
    assert texts == {f"{start} y{end}" for start in ("a", "b", "bc", "") for end in ("!", "")}
    assert all(read(phrase, {"x": "y"}, text) == () for text in texts)
    assert all(read(phrase, {"x": "y"}, text) is None for text in ("", "a y!!", "c y", "a x", "ab y"))
    assert set(ends(phrase, {"x": "y"}, "bc y!")) == {4, 5}
    assert read(phrase, {"x": "y"}, "no, bc y!", 4) == ()


def test_a_reader_finds_the_values_of_open_slots() -> None:
    rules = grammar({"colour": "[red*3|{colour}]", "rule": "[<Colour>|a <colour>] {thing}[|, {Thing}]!"})
    values = {"colour": ("blue", "green"), "thing": ("hat", "map")}
    texts = {write(rules["rule"], values, Random(seed)) for seed in range(300)}
    assert {"Red hat!", "a blue map!", "Green hat, Map!"} <= texts
    assert all(read(rules["rule"], values, text) is not None for text in texts)
    assert read(rules["rule"], values, "a blue hat, Map!") == (("colour", "blue"), ("thing", "hat"), ("thing", "map"))
    assert read(rules["rule"], values, "a blue hat, map!") is None
    assert read(parse_template("{place} is far"), {"place": NAME}, "Torafell is far") == (("place", "Torafell"),)
    assert read(parse_template("{unknown}"), {}, "x") is None


def test_a_value_may_be_a_phrase_and_a_phrase_may_have_values_of_its_own() -> None:
    phrase = parse_template("[a|b {k}|]c{them}")
    values = {"k": "4", "them": parse_template("[ d| e]")}
    for seed in range(30):
        drawn = write(phrase, values, Random(seed))
        assert read(phrase, values, drawn) is not None
        assert read(phrase, values, drawn + "x") is None
    assert read(phrase, values, "b 5c d") is None
    both = Concatenation((Filled(ValueSlot("k"), {"k": "1"}), ValueSlot("k")))
    assert write(both, {"k": "2"}, Random(1)) == "12"
    assert read(both, {"k": "2"}, "12") is not None and read(both, {"k": "2"}, "22") is None


def test_a_capital_is_wherever_the_text_begins() -> None:
    phrase = Capital(parse_template("[|well, ]{who} {n}"))
    values = {"who": ("she", "Ada"), "n": "7"}
    texts = {write(phrase, values, Random(seed)) for seed in range(50)}
    assert texts == {"She 7", "Ada 7", "Well, she 7", "Well, Ada 7"}
    assert all(read(phrase, values, text) is not None for text in texts)
    assert all(
        read(phrase, values, text) is None
        for text in ("she 7", "well, she 7", "Well, She 7", "ada 7", "\u017fhe 7", "")
    )
    assert read(Capital(ValueSlot("n")), values, "7") is not None


@pytest.mark.parametrize("pattern", ["[a|b", "a]", "a|b", "a[b]]", "a > b", "a <b", "{a", "<Empty>"])
def test_a_broken_pattern_is_an_error(pattern: str) -> None:
    with pytest.raises(ValueError, match="pattern|letter"):
        grammar({"empty": "[|x]", "rule": pattern})


def test_stars_and_arrows_may_be_text() -> None:
    assert write(parse_template("[{a} * {b} -> *2]"), {"a": "2", "b": "3"}, Random(0)) == "2 * 3 -> "


def test_options_are_drawn_by_their_weights() -> None:
    def shares(phrase: phrases.Template) -> list[float]:
        rng = Random(3)
        texts = [write(phrase, {}, rng) for _ in range(20_000)]
        return [texts.count(text) / len(texts) for text in "abc"]

    assert shares(parse_template("[a*6|b|c*3]")) == pytest.approx([0.6, 0.1, 0.3], abs=0.02)
    assert shares(parse_template("[a|b|c]")) == pytest.approx([1 / 3] * 3, abs=0.02)
    assert shares(parse_template("[a|b|c]", phrases.falling)) == pytest.approx([0.457, 0.32, 0.224], abs=0.02)
    assert shares(parse_template("[a|b|c]", phrases.harmonic)) == pytest.approx([0.493, 0.296, 0.211], abs=0.02)


def test_many_choices_are_read_quickly() -> None:
    phrase = parse_template("[a|[a|a]|aa]" * 60 + "b")
    started = time.process_time()
    assert read(phrase, {}, "a" * 90) is None
    assert read(phrase, {}, "a" * 90 + "b") == ()
    assert time.process_time() - started < 1
