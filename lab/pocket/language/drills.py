"""Drills in copying and looking up, before the kinds: every kind needs these, and few sentences teach them."""

from __future__ import annotations

from random import Random

from .sample import Sample, Turn
from .words import PEOPLE, coin, listed

_THINGS = listed("ink oak tin salt moss clay wool corn silk jade lead rice wax peat zinc hemp")


def make(rng: Random) -> Sample:
    """Make a row of items to write again, or a list of pairs and some of its keys to answer."""
    prompt, answer = (_copying if rng.random() < 0.4 else _looking_up)(rng)
    return Sample("drill", (Turn(prompt, answer),))


def _item(rng: Random) -> str:
    """Draw a name, a number or a word: what the kinds ask to be copied."""
    kind = rng.randrange(4)
    if kind == 0:
        return coin(rng)
    if kind == 1:
        return str(rng.randrange(10, 2000))
    return rng.choice(PEOPLE) if kind == 2 else rng.choice(_THINGS)


def _copying(rng: Random) -> tuple[str, str]:
    row = " ".join(_item(rng) for _ in range(rng.randrange(6, 30)))
    return f"Copy: {row}", row


def _looking_up(rng: Random) -> tuple[str, str]:
    count = rng.randrange(3, 11)
    keys: dict[str, str] = {}
    while len(keys) < count:
        keys[_item(rng)] = _item(rng)
    asked = rng.sample(list(keys), rng.randrange(2, min(6, count + 1)))
    pairs = ", ".join(f"{key} {value}" for key, value in keys.items())
    return f"Pairs: {pairs}. Look up: {', '.join(asked)}", ", ".join(f"{key} {keys[key]}" for key in asked)
