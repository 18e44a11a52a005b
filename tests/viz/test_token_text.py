"""Nothing in a shown text is invisible, is a tag, or moves what is beside it."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from viz import sources, token_text
from viz.methods import SCREENS

ANYTHING = st.text(st.characters(), max_size=300)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (" the", "·the"),
        ("\n\n\t", "↵↵⇥"),
        ("", ""),
        ("a\u200bb", "a⟨U+200B⟩b"),
        ("\u202eabc", "⟨U+202E⟩abc"),
        ("\x00\x1b\x7f", "␀␛␡"),
        ("\u0301", "◌\u0301"),
        ("e\u0301", "e\u0301"),
        ("e\u0301\u0302\u0303", "e\u0301\u0302⟨U+0303⟩"),
        ("\u00a0", "⟨U+00A0⟩"),
        ("\u3164", "⟨U+3164⟩"),
        ("\ud800", "⟨U+D800⟩"),
        ("<0xE2>", "⟨E2⟩"),
        ("<0xF0><0x9F>", "⟨F09F⟩"),
        ("<0x20><0xF0><0x9F>", "·⟨F09F⟩"),
        ("<0x0A>", "↵"),
        ("x" * 10_000, "x" * 23 + "…"),
    ],
)
def test_a_text_is_shown_as_it_is(text: str, shown: str) -> None:
    """A learner must be able to tell a space from nothing and two line ends from one."""
    assert token_text.shown(text) == shown


@given(ANYTHING)
def test_everything_shown_can_be_seen(text: str) -> None:
    """Whatever a tokenizer holds: no hidden character, no tag, and a bounded length."""
    shown = token_text.shown(text)
    assert len(shown) <= token_text.LONGEST_SHOWN
    assert bool(shown) == bool(text)
    assert not any(unicodedata.category(char) in ("Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs") for char in shown)
    assert not unicodedata.combining(shown[:1] or "a")
    assert not {"<", ">"} & set(token_text.escaped(token_text.shown(text)))
    shown.encode()


@given(ANYTHING)
def test_a_quoted_text_cannot_turn_its_sentence_around(text: str) -> None:
    """A right-to-left token, or an override character, would otherwise reverse the words behind it."""
    quoted = token_text.quoted(text)
    assert quoted[0] == quoted[-1] == "'"
    inner = quoted[1:-1]
    turns = any(unicodedata.bidirectional(char) in ("R", "AL", "AN") for char in inner)
    assert turns == inner.startswith("\u2068") == inner.endswith("\u2069")
    assert not any(char in inner.strip("\u2068\u2069") for char in "\u202a\u202b\u202d\u202e\u2066\u2067\u2068\n\x00")


@given(ANYTHING)
def test_raw_texts_can_be_written_down(text: str) -> None:
    """A half of a character in a figure makes its export fail."""
    raw = token_text.raw(text)
    raw.encode()
    assert len(raw) <= token_text.LONGEST_RAW
    assert raw == text or len(text) > token_text.LONGEST_RAW or any("\ud800" <= char <= "\udfff" for char in text)


def test_width_counts_columns() -> None:
    """Wide letters take two columns, marks none."""
    assert [token_text.width(text) for text in ("abc", "日本", "e\u0301", "")] == [3, 4, 1, 0]


def all_words() -> dict[str, str]:
    """Return the templates of all methods."""
    return {kind: words for screen in SCREENS.values() for kind, words in screen.source_words.items()}


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("root", "the last token of the text"),
        ("window:2,5", "window, 2 below its top line, on the diagonal from +5"),
        ("pool:1,3", "n-gram 1 of the pool, token 3"),
        ("medusa:2,0", "Medusa head 2, rank 0"),
        ("prompt:17", "copied from position 17 of the prompt"),
        ("window:2", "window:2"),
        ("elsewhere:{0}", "elsewhere:{0}"),
        ("draft:{0.__class__}", "token {0.__class__} of the draft model"),
        ("x" * 99, "x" * 48),
    ],
)
def test_sources_in_words(source: str, words: str) -> None:
    """A source that nothing is known of, as from another program's trace, stands as it is."""
    assert sources.in_words(source, all_words()) == words


def test_every_kind_of_source_has_words() -> None:
    """The kinds are those that the vocabulary of drafts lists."""
    from decoding.types import Draft

    kinds = {word.strip('",').partition(":")[0] for word in (Draft.__doc__ or "").split() if word.startswith('"')}
    kinds -= {"kind"}
    assert kinds == all_words().keys()


def test_no_two_methods_mean_different_things_by_a_source() -> None:
    """A reader of many runs must not learn a kind twice; what methods share stands once."""
    kinds = [kind for screen in SCREENS.values() for kind in screen.sources]
    assert sorted({*kinds, *sources.SHARED_WORDS}) == sorted([*kinds, *sources.SHARED_WORDS])


def test_tokens_in_a_row_spell_whole_characters() -> None:
    """An emoji is several tokens of a byte-level tokenizer, and stood as their bytes."""
    assert token_text.joined(["An", " <0xF0>", "<0xF0><0x9F>", "<0x90>", "<0x8A>", "!"]) == "An <0xF0>🐊!"
    assert token_text.joined(["<0x9F>", "<0xE2><0x82><0xAC>", "<0xF0>", " "]) == "⟨9F⟩€⟨F0⟩ "
