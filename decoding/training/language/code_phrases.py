"""What the kind "code" says around its functions, and what a chain of operations means and is called."""

from __future__ import annotations

from typing import Any

from .code_families import THEM
from .code_ops import Given, Op, pattern
from .phrases import Filled, Parts, Phrase, Slot

Chain = tuple[tuple[Op, Given], ...]  # one operation or two, the second on what the first gave

THEN = pattern("[, then |, and then | and then | then ]")
_SMALL = "[short |small |simple |little |plain |][Python |]function"
DOC_START = pattern("[||just |simply |only |here, |now |for the caller, |as asked, ]")
DOC_END = pattern(
    "[.|.|, as asked.|, nothing more.| and give it back.| for the caller.| in plain Python.| step by step.]"
)
DOC = Parts((DOC_START, Slot("do"), DOC_END))
BEFORE = pattern(
    f"[[Here is|This is|Below is|Sure, here is|I wrote|Have a look at] [a|one] {_SMALL} [that|which] {{does}}[:|.]"
    "|[The [function|code|[short |small |]program][ below| here|]|[This|My] [function|code|program]] {does}[:|.]"
    "|[To do [this|that|so]|For [this|that]|In Python], [we|you|I] [can |]{do}[:|.]]"
)
RESULT = pattern(
    "[[It|The call|The last line|Running it|This|The code] [prints|shows|gives|writes|puts out] {value}."
    "|[For|With|Given|On] {arg}[,|] [it|the function|this|the code] [gives|returns|prints|comes to] {value}."
    "|[The|Its|Our] [result|output|answer|value][ for {arg}| here| of the call|] is {value}."
    "|[So|Then|Now] [it|the call|the code] [prints|gives|shows] {value}.]"
)
REMARKS: dict[str, Phrase] = {  # by what must be so for them to be true
    "loop": pattern(
        "[[The|Its|This] [loop|for loop] [looks at|visits|goes through|takes|walks over] [each|every] [one|entry|part]"
        "[ once| in turn| in order|].]"
    ),
    "var": pattern(
        "[The name|The variable|Here|In the code|Inside,] {var} [holds|keeps|stores|carries] [the|our] "
        "[result|value|answer][ for us| here| at the end|]."
    ),
    **{
        takes: pattern(
            f"[[It|This|The function] works [for|with|on] [other|more|new] {many}[ too|]."
            "|[You can|Feel free to|You may|Please] [try|use|pass|give] [another|your own|any other] "
            f"{one}[ next| too|].]"
        )
        for takes, many, one in (
            ("numbers", "[lists|inputs]", "list"),
            ("words", "[lists|inputs]", "list"),
            ("number", "[numbers|inputs]", "number"),
            ("word", "[words|inputs]", "word"),
            ("pair", "[numbers|inputs]", "pair"),
        )
    },
}
NOTES: dict[str, Phrase] = {  # comments in the code, by where they stand
    "loop": pattern(
        "# [go through|look at|visit|take|walk over] [each|every] [one|entry|part][ in turn| in order| once|]"
    ),
    "end": pattern("# [hand back|give back|return|send back] [the|our|this] [result|answer|value|outcome]"),
    "call": pattern(
        "# [[a|one] [small |quick |short |][example|test|try]|try it[ out| now|]|call it[ now|]|now [call|run|try] it]"
    ),
}
STEPS = pattern("# [steps|working|by hand|in steps|so]: {work}")
PLAIN_STEPS = pattern("# {work}")
VALUE = pattern("# [|prints |gives |shows |-> |result: ]{value}")


def wording(chain: Chain, third: bool) -> Phrase:
    """What the chain does, as an order ("sort the items") or as a statement ("sorts the items")."""
    parts: list[Phrase] = []
    for number, (op, given) in enumerate(chain):
        parts += [THEN] * bool(number)
        parts.append(Filled(op.does if third else op.do, {**given, "them": THEM[op.takes][number]}))
    return Parts(tuple(parts))


def outcomes(chain: Chain, argument: Any) -> list[Any]:
    """What each operation of the chain gives."""
    values = []
    for op, given in chain:
        argument = op.apply(argument, given)
        values.append(argument)
    return values


def working(chain: Chain, argument: Any) -> str | None:
    """The steps by hand, "[4, 7], then 4 + 7 = 11"; None where there is only one step to show."""
    texts, shown = [], len(chain) > 1
    for (op, given), value in zip(chain, outcomes(chain, argument), strict=True):
        text = op.work(argument, given) if op.work else str(value)
        shown = shown or text != str(value)
        texts.append(text)
        argument = value
    return ", then ".join(texts) if shown else None


def written(takes: str, argument: Any) -> str:
    """The argument as it stands in the prompt and in the call."""
    if takes == "pair":
        return f"{argument[0]}, {argument[1]}"
    return f'"{argument}"' if takes == "word" else str(argument).replace("'", '"')
