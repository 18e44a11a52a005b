"""Names that the kinds share: people's, and names coined from syllables, so that they must be copied, not known."""

from __future__ import annotations

import re
from random import Random

NAME = re.compile(r"[A-Z][a-z]{2,15}(?![A-Za-z])")  # a coined one or a person's


def listed(text: str) -> tuple[str, ...]:
    """Split a text into its words."""
    return tuple(text.split())


PEOPLE = listed(
    """Ada Alba Amos Anja Arlo Bela Bruno Carla Cato Cleo Dario Dina Edda Elio Emil Enzo Esme Fara Fela Finn Flora
    Gita Greta Hana Hugo Ida Ilse Ines Ivo Jana Jona Juno Kaia Karl Kira Lars Lena Leo Lina Livia Luca Mara Maya Milo
    Mina Mira Nadia Nela Nils Nora Odo Olga Orla Oskar Otto Paco Petra Pia Quin Rafa Rita Romy Rosa Rune Sami Sara
    Selma Sven Tara Tess Theo Tilda Timo Tova Ugo Una Vera Vito Wanda Willa Xenia Yara Yuri Zara Zeno Zita"""
)

_FIRST = listed(
    "Bar Bel Cor Dal Dor Fen Gar Hal Jor Kel Lan Lor Mar Mel Nor Oda Pel Quo Ral Sel Tor Tav Ul Ver Wen Yar"
)
_MIDDLE = listed("a e i o u an en in on ar er ir or al el il ol")
_LAST = listed("bek dan dor fell gan lis mond nak rin ros sa tan ven vik wick zo")


def coin(rng: Random) -> str:
    """Coin the name of a place or thing that nobody knows: over seven thousand names of three syllables."""
    return rng.choice(_FIRST) + rng.choice(_MIDDLE) + rng.choice(_LAST)


def coins(rng: Random, count: int) -> list[str]:
    """Coin different names."""
    names: dict[str, None] = {}
    while len(names) < count:
        names[coin(rng)] = None
    return list(names)
