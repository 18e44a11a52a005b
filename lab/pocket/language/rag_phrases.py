"""The facts of passages, and the wordings of questions and answers about them, as phrases.

Every sentence of a passage states one thing, in words that the question and the answer repeat.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from .atlas import TOWNS
from .phrases import Capital, falling, parse_template
from .wishes import WISH
from .words import PEOPLE, listed

form = partial(parse_template, bounds=falling)

THINGS = listed("Bridge Inn Garden Mill Tower Hall Chapel Clock Library Market")


@dataclass(frozen=True, slots=True)
class Attribute:
    """One thing that a passage may state of its subject `{n}`; the value, one word, is last in its sentence."""

    predicate: str  # follows the name in a passage and in the answer
    asked: str
    values: Sequence[str]


_YEARS = tuple(str(year) for year in range(1500, 2000))
_COLOURS = listed("red green blue yellow white black brown grey orange purple silver pink")
_MATERIALS = listed("oak slate brick iron marble pine copper clay granite steel cedar bronze")
ATTRIBUTES: Mapping[str, Attribute] = {
    "builder": Attribute("was built by", "who built {n}", PEOPLE),
    "year": Attribute("was opened in", "when was {n} opened", _YEARS),
    "material": Attribute("is made of", "what is {n} made of", _MATERIALS),
    "colour": Attribute("is painted", "in which colour is {n} painted", _COLOURS),
    "place": Attribute("stands in", "where does {n} stand", TOWNS),
    "owner": Attribute("belongs to", "to whom does {n} belong", PEOPLE),
}

READ = Capital(form("[[read|use|look at] [these|my] [three |][passages|notes|texts]|here are three passages]"))
ASK = form("[|please tell me: |answer this: |I want to know: ]")
PLEA = form("[| Quote the sentence.| Cite the passage.| Thank you.| Thanks.]")

# No quotation marks: after a space, the sentence has the very tokens that it has in its passage.
OPENING = form("[|Of course. |Certainly. |Gladly. |Let me look. ][Here is the sentence|I found this|We read|Look]: ")
FOUND = form("{q} ")
SHORT = form("[so|therefore|in short,|this means that|we learn that] [{n}|it|this {t}] ")
CLOSING = form(
    "[ <wish>*7|*1| The [others|other passages] [do not help|are not needed].*1| That is all.*1]", rules={"wish": WISH}
)
