"""The kind "code": a small Python function, its call and what the call prints."""

from __future__ import annotations

import re
from random import Random
from typing import Any

from .code_checker import right
from .code_families import AFTER, OPS
from .code_forms import Names, module, name_of
from .code_ops import Given, Op, favourite, pattern
from .code_phrases import BEFORE, REMARKS, RESULT, Chain, outcomes, wording, working, written
from .code_reader import parses
from .phrases import Values, write
from .sample import Sample, Turn

__all__ = ["make", "parses", "right"]

_WORDS = (
    *("plum", "fig", "pear", "apple", "lemon", "rice", "bread", "cake", "soup", "salt", "tree", "leaf", "rose", "moss"),
    *("lake", "river", "stone", "sand", "rain", "snow", "moon", "star", "sun", "hat", "coat", "boot", "ring", "rope"),
    *("boat", "train", "desk", "lamp", "book", "fox", "owl", "bear", "mouse", "frog", "goat", "duck", "crow", "egg"),
)
_LABELS = (("big", "small"), ("high", "low"), ("yes", "no"), ("large", "little"), ("hot", "cold"), ("much", "few"))
_ENDINGS = ("s", "y", "er", "ed", "ish", "ful", "ing", "let")
_TAKES = ("numbers", "number", "pair", "word", "words")
_SHARES = (46, 10, 14, 15, 15)
_TAKEN = {
    "numbers": "a list of [numbers|whole numbers|integers]",
    "number": "[a|one] [number|whole number]",
    "pair": "[two numbers|a pair of numbers]",
    "word": "[a|one] [word|text]",
    "words": "a list of [words|texts]",
}
_RETURNED = re.compile(r"(?m)^    ([a-z_]+) = (?s:.*)^    return \1$")
_FIRST = {takes: tuple(name for name, op in OPS.items() if op.takes == takes) for takes in _TAKES}
_PROMPTS = {
    takes: pattern(
        "[[Write|Please write|Give me|I need|Can you write|Make|Show me|I want|Could you write] a "
        "[|short |small |simple |little ][|Python ]function "
        f"[that takes|that gets|taking|with] {taken} [and|which|that] {{does}}"
        "[, and call|, then call|. Then call|. Call|, and run|. Run|, and try|. Try] it [with|on|for] {arg}."
        "|[How do I|How can I|How would you|How does one] {do} in [Python|code]? "
        "[Show|Try|Run|Call|Test] [it|a function|the function] [with|on|for] {arg}."
        f"|[Given|I have|We have|Take] {taken}, [namely |for example |such as |say |like ]{{arg}}. "
        "[Write|Please write|Make|I need] a [|short |small ][|Python ]function that {does}"
        "[, and show the result|, and call it|, and print what it gives|. Print the result|. Show the call]."
        "|[Write|I need|Please show me|Give me] [|some |short ][|Python ]code to {do}"
        "[, and|. Then] [use|run|try|call] it [with|on|for] {arg}.]"
    )
    for takes, taken in _TAKEN.items()
}


def _given(rng: Random, op: Op) -> Given:
    """The numbers and texts of an operation."""
    given: Given = {}
    for slot in op.slots:
        if slot == "k":
            given["k"] = str(rng.randint(2, 3) if op.name in ("repeat", "scale") else rng.randint(1, 7))
        elif slot == "yes":
            given["yes"], given["no"] = rng.choice(_LABELS)
        elif slot == "end":
            given["end"] = rng.choice(_ENDINGS)
        elif slot == "sep":
            given["sep"] = rng.choice("-+/:")
        elif slot == "letter":
            given["letter"] = rng.choice(rng.choice(_WORDS))
    return given


def _argument(rng: Random, takes: str, first: Op) -> Any:
    if takes == "numbers":
        return [rng.randint(0, 9) for _ in range(rng.choice((3, 3, 3, 4, 4)))]
    if takes == "number":
        return rng.randint(2, 5) if first.name == "up" else rng.randint(1, 9)
    if takes == "pair":
        return rng.randint(1, 9), rng.randint(1, 9)
    if takes == "word":
        return rng.choice(_WORDS)
    return rng.sample(_WORDS, rng.choice((2, 3, 3)))


def _aimed(rng: Random, chain: Chain, argument: Any) -> None:
    """Let a letter that is asked for occur in the argument more often than chance would."""
    for op, given in chain:
        if "letter" in given and (op.name == "starting" or rng.random() < 0.7):
            text = rng.choice(argument) if isinstance(argument, list) else argument
            given["letter"] = text[0] if op.name in ("starting", "starts") else rng.choice(text)


def _small(values: list[Any]) -> bool:
    """Whether a small model can reach all of these by copying and one-digit tables."""
    for value in values:
        numbers = value if isinstance(value, list) else [value]
        if not numbers or any(isinstance(n, int) and not 0 <= n <= 30 for n in numbers):
            return False
        if isinstance(value, str) and len(value) > 20:
            return False
    return True


def _task(rng: Random) -> tuple[Chain, Any]:
    """A chain of operations and an argument on which all its results are small."""
    takes = rng.choices(_TAKES, _SHARES)[0]
    ops = [OPS[rng.choice(_FIRST[takes])]]
    if ops[0].name in AFTER and rng.random() < 0.5:
        ops.append(OPS[rng.choice(AFTER[ops[0].name])])
    while True:
        chain = tuple((op, _given(rng, op)) for op in ops)
        argument = _argument(rng, takes, ops[0])
        _aimed(rng, chain, argument)
        if _small(outcomes(chain, argument)):
            return chain, argument


def _remark(rng: Random, chain: Chain, code: str) -> str:
    """A remark that is true of the code."""
    returned = _RETURNED.findall(code)
    kinds = [chain[0][0].takes] + ["loop"] * ("\n    for " in code) + ["var"] * bool(returned)
    return write(REMARKS[favourite(rng, kinds)], {"var": returned[-1] if returned else ""}, rng)


def _answer(rng: Random, chain: Chain, argument: Any) -> str:
    arg = written(chain[0][0].takes, argument)
    value = str(outcomes(chain, argument)[-1])
    names = Names(name_of(rng, chain), chain, rng)
    after = rng.random() < (0.55 if len(chain) == 1 else 0.35)
    code = module(rng, chain, names, arg, {"value": value, "work": working(chain, argument) or ""}, not after)
    texts = [code]
    roomy = code.count("\n") < 11 and len(code) < 300
    if rng.random() < (0.6 if roomy else 0.2):
        texts.insert(0, write(BEFORE, {"do": wording(chain, False), "does": wording(chain, True)}, rng))
    last = [write(RESULT, {"value": value, "arg": arg}, rng)] if after else []
    if rng.random() < (0.55 if roomy else 0.2):
        last.append(_remark(rng, chain, code))
    return "\n\n".join([*texts, " ".join(last)] if last else texts)


def make(rng: Random) -> Sample:
    """A request for a function and a call of it, and one way to write both."""
    chain, argument = _task(rng)
    takes = chain[0][0].takes
    values: Values = {"arg": written(takes, argument), "do": wording(chain, False), "does": wording(chain, True)}
    prompt = write(_PROMPTS[takes], values, rng)
    return Sample("code", (Turn(prompt, _answer(rng, chain, argument)),))
