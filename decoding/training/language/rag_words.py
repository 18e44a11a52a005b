"""What passages tell, and the wordings of questions and answers about them, as phrases.

Every sentence of a passage begins with its subject's name, so that a quotation can be found again from that name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random

from .phrases import Capital, Phrase, falling, parse
from .words import PEOPLE, listed

form = partial(parse, bounds=falling)

THINGS: Mapping[str, str] = {  # a thing, and how it came to be
    "Bridge": "built",
    "Inn": "founded",
    "Garden": "planted",
    "Mill": "built",
    "Tower": "built",
    "Hall": "founded",
    "Chapel": "built",
    "Engine": "designed",
    "Clock": "designed",
    "Library": "founded",
    "Theatre": "founded",
    "Market": "founded",
}
_COLOURS = ("red", "green", "blue", "yellow", "white", "black", "brown", "grey", "orange", "purple", "silver", "pink")
_PARTS = ("doors", "walls", "gates", "railings", "lamps", "signs", "benches", "flags")
_USES = (
    *("concerts", "dances", "weddings", "lessons", "parties", "meetings", "fairs", "plays", "races", "feasts"),
    *("sales", "shows", "prayers", "games", "talks", "trials"),
)
_MATERIALS = listed("""oak slate brick iron marble pine copper clay granite steel cedar bronze""")


@dataclass(frozen=True, slots=True)
class Attribute:
    """One thing that a passage may tell: `{n}` is the subject, `{v}` the value, `{made}` how the thing came to be."""

    told: Phrase  # follows the name in a passage
    asked: Phrase
    short: Phrase  # tells it in the answer, after the quotation


def _short(text: str) -> Phrase:
    """A statement in an answer, where `@` is the subject: the quotation has just named it."""
    return form(text.replace("@", "[{n}|the {t}|this {t}]"))


ATTRIBUTES: Mapping[str, Attribute] = {
    "maker": Attribute(
        form("was {made} by {v}"),
        form("[who {made} {n}|by whom was {n} {made}|who was it that {made} {n}]"),
        _short("[@ was {made} by {v}|the [person|one] who {made} @ [was|is] {v}|it was {v} who {made} @]"),
    ),
    "year": Attribute(
        form("[opened in|dates from|was finished in] {v}"),
        form("[from [which|what] year does {n} date|how old is {n}|[in which year|when] was {n} [finished|opened]]"),
        _short("[@ [dates from|was finished in|opened in] {v}|the year of @ is {v}|@ is from [the year |]{v}]"),
    ),
    "colour": Attribute(
        form("[has {v}|is known for {v}|is proud of its {v}]"),
        form("[what does {n} have|what is {n} [known for|proud of]|what can be seen at {n}]"),
        _short("[@ [has|is known for|is proud of its] {v}|[people know|visitors see] {v} at @|at @ there are {v}]"),
    ),
    "material": Attribute(
        form("is [made of|built from] {v}"),
        form("[what is {n} made of|[of which|from what] material is {n} [made|built]|what was used to build {n}]"),
        _short("[@ is [made of|built from|all] {v}|the material of @ is {v}|what @ is made of is {v}]"),
    ),
    "owner": Attribute(
        form("[belongs to|is owned by] {v}"),
        form("[who owns {n}|to whom does {n} belong|who is the owner of {n}|whose is {n}]"),
        _short("[@ [belongs to|is owned by] {v}|the [owner|person who owns] @ is {v}|it is {v} who owns @]"),
    ),
    "keeper": Attribute(
        form("is [looked after|kept|cared for] by {v}"),
        form("[who [looks after|cares for|keeps] {n}|by whom is {n} [kept|cared for]|who is the keeper of {n}]"),
        _short(
            "[@ is [looked after|kept|cared for] by {v}|the keeper of @ is {v}|it is {v} who [looks after|keeps] @]"
        ),
    ),
    "use": Attribute(
        form("is [used|open|hired] for {v}"),
        form("[what is {n} [used|hired] for|for what is {n} [used|open]|what do people use {n} for]"),
        _short("[@ is [used|open|hired] for {v}|people [use|need|come to] @ for {v}|@ [serves|is meant] for {v}]"),
    ),
    "place": Attribute(
        form("[stands|can be found|is] in {v}"),
        form("[where is {n}|where can I find {n}|in which [town|place] is {n}|where is {n} to be found]"),
        _short(
            "[@ [stands|can be found|is] in {v}|you [can|will] find @ in {v}|the [town|place] where you find @ is {v}]"
        ),
    ),
}
_FIXED: Mapping[str, Sequence[str]] = {
    "use": _USES,
    "material": _MATERIALS,
    "maker": PEOPLE,
    "owner": PEOPLE,
    "keeper": PEOPLE,
}


def value(about: str, rng: Random, town: str) -> str:
    """A value for an attribute; a place is the town that was coined for it."""
    if about == "year":
        return str(rng.randrange(1500, 2000))
    if about == "colour":
        return f"{rng.choice(_COLOURS)} {rng.choice(_PARTS)}"
    return town if about == "place" else rng.choice(_FIXED[about])


ASK = form(
    "[|[please |]answer this[ question|]: |"
    "[please |]tell me[ this| from the passages|]: |I [want|would like|need] to know: |"
    "[look it up|find out]: |question: ]"
)
READ = Capital(
    form(
        "[[please |][read|use|look at|search] [these|the|my] [three |][passages|notes|texts][ below|]|"
        "here are [three |][passages|notes|texts][ from [a guide|my notes|the archive]|]|"
        "[these|the] [three |][passages|notes|texts] may help]"
    )
)
PLEA = form(
    "[| Quote the [line|sentence] that decides it.| Show me the line.| Please quote it.| Name the passage.| Thanks.]"
)
OPENING = Capital(
    form(
        "[|[sure|of course|gladly|certainly|with pleasure]. |[let me [see|look|check]|I [looked|searched]]. |"
        "[you asked|the question is] about {n}. |[good question|thanks for asking]. ]"
    )
)
FOUND = Capital(
    form(
        "[[passage|text|note|number] {p} [clearly |][says|reads|tells us|states][ this| so| the following|]|"
        "[the answer[ to this|]|what we need|the line|all we need] [is|stands|can be found|is given] [here, |]"
        "in [passage|text|note|number] {p}|"
        "in [passage|text|note|number] {p} [we [can |]read|it says|I find|there is] [this|the line|the "
        "sentence|the words]|the {o} [passage|text|note] [clearly |][says|reads|tells us|states|"
        "has the answer|helps]|[I [can |]find it|it stands|look|we see it] in the {o} [passage|text|note]]: "
        "[\"{q}\"|'{q}']"
    )
)
SHORT = form("[so|therefore|this means that|in short,|that is to say,|in other words,|hence|we learn that|clearly,] ")
SURE = form("[[, as [asked|quoted|we see]|, then|, no doubt|, it seems|, of course]|]")
SECOND = Capital(
    form("[|[now|next] [for|to] {n}. |[and|then] [there is|comes] {n}. |[the second question|one more]: ]")
)
OTHERS = form(
    "[ [Passages|Texts|Notes|Numbers] {a} and {b} [are about|describe|deal with|speak of] "
    "[other things|something else].| The [other two|others|other passages] [do not help|say nothing about "
    "it|are not needed|can be left out][ here|]."
    "|][| I hope [this|that] [helps|is clear|answers it]."
    "| [Ask again|Tell me] if [anything|something] is [not clear|missing].]"
)
LAST = form(
    "[| I hope [this|that] [helps|is clear|answers [it|both]]."
    "| [Ask again|Tell me] if [anything|something] is [not clear|missing].| That is [all|both].]"
)
ORDINALS = ("first", "second", "third")
WITHOUT: Mapping[str, str] = {"Garden": "material", "Market": "material", "Clock": "use", "Engine": "use"}
