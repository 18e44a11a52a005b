"""The Isles: a small invented world that never changes, so that a model can learn its facts by heart.

No two names begin with the same letter, and no two values of a fact with the same word: the first word decides.
"""

from __future__ import annotations

from collections.abc import Mapping

from .words import listed

TOWNS = listed(
    """Ablow Birrock Cobmere Dunveil Elmsey Farrowen Glanmoth Harkstow Imberlo Jessom Kelderin Lambrey Mistlow
    Nethery Ostrel Pellimoor Quenby Rushel Stavring Tammerlo Umbry Vanemoor Wexlow Yarrowen"""
)
_GIVEN = listed(
    """Ada Bruno Carla Dario Edda Finn Greta Hugo Ida Jona Kira Lars Mara Nils Olga Paco Quin Rune Selma Timo Una Vito
    Wanda Yuri"""
)
_SURNAMES = listed(
    """Garrow Holm Lindell Dale Ivers Frost Alden Storm Umber Crane Weir Pike Jarrow Elder Marsh Norwood Birch Orme
    Kerr Quill Vale Tarrow Yarden Reed"""
)
PEOPLE = tuple(f"{given} {surname}" for given, surname in zip(_GIVEN, _SURNAMES, strict=True))

VALUES: Mapping[str, tuple[str, ...]] = {
    "river": listed("Arrin Brask Corrow Delm Emmer Fosk Ginnel Larrow Mirl Ossen Tavel Wend"),
    "mayor": PEOPLE,
    "dish": (
        *("barley soup", "onion pie", "smoked eel", "plum tart", "fish stew", "cheese bread"),
        *("apple cake", "roast duck", "honey cake", "crab soup", "pear jam", "bean stew"),
    ),
    "craft": (
        *("glass blowing", "rope making", "pottery", "weaving", "boat building", "wood carving"),
        *("lace making", "bell casting", "clock making", "leather work", "silver work", "book binding"),
    ),
    "birth": TOWNS,
    "job": listed("baker doctor farmer gardener hunter judge miller painter sailor tailor teacher writer"),
    "music": listed("flute harp fiddle drum horn lute organ cello trumpet piano guitar banjo"),
}
_STEPS = {"river": 11, "mayor": 7, "dish": 5, "craft": 7, "birth": 13, "job": 5, "music": 7}

TOWN_FACTS = ("river", "mayor", "dish", "craft")
PERSON_FACTS = ("birth", "job", "music")


def _fact(about: str, place: int) -> str:
    """Return a town's or person's value: steps prime to a table's length spread values without a visible pattern."""
    values = VALUES[about]
    step = _STEPS[about]
    return values[(place * step + place // len(values) * (step % 4) + 3) % len(values)]


FACTS: Mapping[str, Mapping[str, str]] = {
    **{town: {about: _fact(about, place) for about in TOWN_FACTS} for place, town in enumerate(TOWNS)},
    **{person: {about: _fact(about, place) for about in PERSON_FACTS} for place, person in enumerate(PEOPLE)},
}


def rivals(about: str, value: str) -> tuple[str, ...]:
    """Return the values that a wrong claim may name instead."""
    return tuple(other for other in VALUES[about] if other != value)
