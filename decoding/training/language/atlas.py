"""The Isles: a small invented world that never changes, so that a model can learn its facts by heart."""

from __future__ import annotations

from collections.abc import Mapping

from .words import listed

TOWNS = listed(
    """Ablow Askeld Bramvey Birrock Cobmere Cranlow Dunveil Drayholm Elmsey Eskerin Farrowen Finmoor Glanmoth Grelby
    Harkstow Hollivane Imberlo Isklund Jessom Jorvale Kelderin Kirrowan Lambrey Mistlow Murvane Nethery Oakrun Ostrel
    Pellimoor Quenby Rushel Selkmoor Stavring Tammerlo Umbry Vanemoor Wexlow Yarrowen Zennick Lorrick"""
)
_WOMEN = listed(
    "Ada Carla Dina Greta Hana Ida Jana Kira Lena Mara Nora Olga Petra Rita Selma Tilda Una Vera Wanda Zara"
)
_MEN = listed("Arlo Bruno Cato Dario Emil Finn Hugo Ivo Karl Lars Milo Nils Otto Paco Rune Sven Timo Ugo Vito Yuri")
_SURNAMES = listed(
    """Alden Ames Birch Brook Calder Crane Dale Dorn Elder Everly Fenner Frost Garrow Glen Hart Holm Ingram Ivers
    Jarrow Keld Kerr Lindell Lowe Marsh Moor Nash Norwood Orme Pell Pike Quill Rand Reed Storm Tarrow Umber Vale Weir
    Wold Yarden"""
)

_ISLES = ("Amber Isle", "Gull Isle", "Heron Isle", "Lantern Isle", "Moss Isle", "Thistle Isle")
_RIVERS = tuple(
    f"the {name}" for name in listed("Arrin Brask Corrow Delm Emmer Fosk Ginnel Hask Larrow Mirl Ossen Tavel")
)
_DISHES = (
    *("barley soup", "onion pie", "smoked eel", "plum tart", "fish stew", "cheese bread", "pickled herring"),
    *("apple cake", "roast duck", "bean stew", "leek pie", "honey cake", "crab soup", "goat cheese", "pear jam"),
    *("mutton stew", "oat bread", "mussel soup", "nut cake", "baked trout"),
)
_CRAFTS = (
    *("glass blowing", "rope making", "pottery", "weaving", "boat building", "wood carving", "basket making"),
    *("candle making", "lace making", "bell casting", "paper making", "clock making", "leather work", "net making"),
    *("silver work", "tile painting", "hat making", "book binding", "kite making", "cloth dyeing"),
)
_LANDMARKS = (
    *("the clock tower", "the old lighthouse", "the stone bridge", "the round chapel", "the white windmill"),
    *("the glass hall", "the iron gate", "the whale statue", "the harbour wall", "the red castle", "the salt market"),
    *("the hanging garden", "the bell tower", "the moon fountain", "the giant oak", "the copper dome"),
    *("the long pier", "the ruined abbey", "the painted stairs", "the singing well"),
)
_INSTRUMENTS = tuple(
    f"the {name}"
    for name in listed("flute harp fiddle drum horn lute organ cello trumpet piano guitar bagpipe whistle banjo")
)
_WORKS = (  # a job, its verb, and what four people did
    ("a writer", "wrote", "The Salt Road", "The Blue Ladder", "The Quiet Harbour", "The Last Ferry"),
    ("a composer", "composed", "the Winter Waltz", "the Gull Song", "the Harvest March", "the Rain Suite"),
    ("a painter", "painted", "Morning Nets", "The Red Sail", "Girl with Geese", "Snow at Noon"),
    ("an engineer", "built", "the Heron Bridge", "the Foss Canal", "the North Dam", "the Cliff Railway"),
    ("an inventor", "invented", "the wind lamp", "the folding boat", "the tide clock", "the steam plough"),
    ("a botanist", "discovered", "the frost lily", "the sea rose", "the ghost fern", "the silver thistle"),
    ("an astronomer", "found", "the Crooked Comet", "the Twin Moons", "the Green Star", "the Lantern Cloud"),
    ("a sculptor", "carved", "the Sleeping Bear", "the Stone Swan", "the Laughing Fox", "the Marble Wave"),
    ("an explorer", "explored", "the Mist Caves", "the Ice Bay", "the Black Gorge", "the Sunken City"),
    ("a gardener", "planted", "the Rose Maze", "the Willow Walk", "the Cherry Avenue", "the Moss Park"),
)

TOWN_FACTS = ("isle", "river", "mayor", "dish", "craft", "landmark")
PERSON_FACTS = ("birth", "job", "work", "music")

_GIVEN = tuple(name for pair in zip(_WOMEN, _MEN, strict=True) for name in pair)
PEOPLE = tuple(f"{given} {surname}" for given, surname in zip(_GIVEN, _SURNAMES, strict=True))


def _town(place: int) -> dict[str, str]:
    """One town's facts: steps prime to the tables' lengths deal them out evenly and without a visible pattern."""
    half = place // 20
    return {
        "isle": _ISLES[(place * 5 + place // 6) % 6],
        "river": _RIVERS[(place * 5 + place // 12) % 12],
        "mayor": PEOPLE[(place * 7 + 3) % 40],
        "dish": _DISHES[(place * 3 + half * 11) % 20],
        "craft": _CRAFTS[(place * 9 + half * 3) % 20],
        "landmark": _LANDMARKS[(place * 11 + half * 7) % 20],
    }


def _person(place: int) -> dict[str, str]:
    """One person's facts; the work is that of the job."""
    row, column = divmod((place * 17 + 2) % 40, 4)
    job, verb, *works = _WORKS[row]
    return {
        "birth": TOWNS[(place * 13 + 5) % 40],
        "job": job,
        "work": f"{verb} {works[column]}",
        "music": _INSTRUMENTS[(place * 5 + place // 14) % 14],
    }


FACTS: Mapping[str, Mapping[str, str]] = {
    **{town: _town(place) for place, town in enumerate(TOWNS)},
    **{person: _person(place) for place, person in enumerate(PEOPLE)},
}


def _values(about: str) -> tuple[str, ...]:
    """All values of an attribute, each once."""
    return tuple(dict.fromkeys(facts[about] for facts in FACTS.values() if about in facts))


VALUES: Mapping[str, tuple[str, ...]] = {about: _values(about) for about in (*TOWN_FACTS, *PERSON_FACTS)}


def is_town(subject: str) -> bool:
    """Whether the subject is a town; else it is a person."""
    return "isle" in FACTS[subject]


def pronouns(person: str) -> tuple[str, str]:
    """ "she" and "her", or "he" and "his"."""
    return ("she", "her") if person.split()[0] in _WOMEN else ("he", "his")


def rivals(about: str, value: str) -> tuple[str, ...]:
    """The values that a wrong claim may name instead: all others, or for a work what that job's others did."""
    verb = value.split()[0] + " "
    return tuple(v for v in VALUES[about] if v != value and (about != "work" or v.startswith(verb)))


def bare(about: str, value: str) -> str:
    """The value as it stands after "not": a work without its verb."""
    return value.partition(" ")[2] if about == "work" else value
