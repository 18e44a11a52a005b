"""The operations of the kind "code", what they work on, and which of them may follow which."""

from __future__ import annotations

from .code_lists import NUMBERS
from .code_ops import Op, pattern
from .code_texts import WORD, WORDS
from .code_values import NUMBER, PAIR

_RESULTS = pattern("[those|these|the results|the new ones]")
_RESULT = pattern("[the result|that|the outcome|what comes out]")
THEM = {  # what an operation works on, by its type: as the argument, and as what the operation before gave
    "numbers": (pattern("the [numbers|items|values|entries|given numbers]"), _RESULTS),
    "words": (pattern("the [words|texts|items|entries|given words]"), _RESULTS),
    "number": (pattern("the [number|value|given number|input]"), _RESULT),
    "word": (pattern("the [word|text|given word|input]"), _RESULT),
    "pair": (pattern("the two numbers"), _RESULT),
}
OPS: dict[str, Op] = {each.name: each for each in (*NUMBERS, *NUMBER, *PAIR, *WORD, *WORDS)}
KEEP = ("above", "below", "even", "odd")
MAP = ("shift", "scale", "double")
_SORT = ("sort up", "sort down", "reverse numbers")
_PICK = ("first numbers", "last numbers")
_BEST = ("largest", "smallest")
_CHANGE = ("plus", "times", "label", "parity")
_SPELL = ("upper", "backward", "repeat", "ending", "first letter", "last letter")
AFTER: dict[str, tuple[str, ...]] = {  # the operations that make sense after an operation
    **dict.fromkeys(KEEP, ("total", "total", "count numbers", "count numbers", *MAP, *_SORT)),
    **dict.fromkeys(MAP, ("total", "total", *_BEST, *_PICK, *_SORT, *KEEP)),
    "double": ("total", "total", *_BEST, *_PICK, *_SORT, *KEEP[:2]),  # none is odd
    **dict.fromkeys(_SORT[:2], (*MAP, *_PICK)),
    "reverse numbers": (*MAP, *KEEP),
    "lengths": ("total", *_BEST, *_SORT, *KEEP),
    "up": ("total", *MAP, *KEEP, "reverse numbers"),
    **dict.fromkeys((*_PICK, *_BEST, "count numbers", "sum", "minus", "product", "larger", "smaller"), _CHANGE),
    **dict.fromkeys(("total", "gap", "count words", "length", "letter"), ("plus", "label", "parity")),
    "plus": ("times", "label", "parity"),
    "times": ("plus", "label", "parity"),
    **dict.fromkeys(("upper", "backward"), ("repeat", "first letter", "last letter")),
    **dict.fromkeys(("repeat", "ending"), ("upper", "length")),
    **dict.fromkeys(("first letter", "last letter"), ("upper", "repeat")),
    **dict.fromkeys(("first words", "last words"), (*_SPELL, "length")),
    "join": ("upper",),
    "starting": ("join", "count words", "capitals", "lengths"),
    "capitals": ("join", "first words", "last words", "reverse words"),
    "reverse words": ("join", "capitals", "lengths"),
}
