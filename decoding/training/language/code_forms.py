"""The Python of the kind "code": one of the many ways to write a chain of operations as a function and its call."""

from __future__ import annotations

from random import Random

from .code_families import KEEP, MAP
from .code_ops import Given, Op, favourite, pattern
from .code_phrases import DOC, NOTES, PLAIN_STEPS, STEPS, VALUE, Chain, wording
from .phrases import Values, write

HINT = {
    "numbers": "list[int]",
    "words": "list[str]",
    "number": "int",
    "word": "str",
    "text": "str",
    "pair": "int",
    "truth": "bool",
}
_PARAMS = {
    "numbers": ("items", "numbers", "values", "nums", "data", "row", "entries", "things", "many", "given"),
    "words": ("words", "texts", "items", "names", "parts", "entries", "things", "data", "given"),
    "number": ("number", "n", "value", "x", "num", "start", "given", "size"),
    "word": ("word", "text", "name", "string", "w", "given", "term"),
}
_PAIRS = (("a", "b"), ("x", "y"), ("first", "second"), ("left", "right"), ("one", "two"), ("m", "n"))
_LOOPS = {
    "numbers": ("item", "number", "value", "n", "x", "num", "entry", "one", "v", "each"),
    "words": ("word", "text", "item", "w", "entry", "name", "one", "each", "t"),
    "number": ("number", "step", "i", "n", "value", "k"),
    "word": ("letter", "char", "c", "sign", "mark", "one", "each"),
    "pair": ("i",),
}
_RESULTS = {
    "number": ("total", "result", "answer", "count", "amount", "found", "outcome", "output", "so_far"),
    "truth": ("found", "result", "answer", "seen", "check", "outcome", "output"),
}
_OTHER = ("result", "answer", "output", "found", "done", "made", "outcome", "ready", "so_far")
_MIDDLE = ("part", "step", "middle", "between", "inner", "half", "before", "kept", "stage")
_EXAMPLES = ("example", "sample", "given", "test", "case", "trial", "start", "source")
_OUTCOMES = ("outcome", "shown", "reply", "final", "printed", "answer", "got")
_PREFIX = pattern("[|||my_|do_|just_|quick_|run_]")
_AND = pattern("[_and_|_then_|_]")
_TAIL = {
    "numbers": pattern("_[numbers|items|values|all|list|them|entries|given|here]"),
    "words": pattern("_[words|items|texts|all|list|them|entries|given|here]"),
    "number": pattern("_[number|value|it|one|given|input|here]"),
    "word": pattern("_[word|text|it|given|input|here]"),
    "pair": pattern("_[two|both|pair|numbers|given|here|inputs]"),
}


def name_of(rng: Random, chain: Chain) -> str:
    """A name for the function."""
    names = [write(op.call, {}, rng) for op, _ in chain]
    names[0] = write(_PREFIX, {}, rng) + names[0]
    return names[0] + write(_AND if len(chain) > 1 else _TAIL[chain[0][0].takes], {}, rng) + "".join(names[1:])


class Names:
    """The names that a function uses, all different."""

    def __init__(self, function: str, chain: Chain, rng: Random) -> None:
        self.function = function
        self._used = [function]
        self._rng = rng
        takes = chain[0][0].takes
        self.params = list(favourite(rng, _PAIRS)) if takes == "pair" else [favourite(rng, _PARAMS[takes])]
        self._used += self.params

    def new(self, names: tuple[str, ...]) -> str:
        """A name that is not in use yet."""
        free = [name for name in names if name not in self._used]
        self._used.append(favourite(self._rng, free))
        return self._used[-1]


def _fill(form: str, op: Op, given: Given, x: str, names: Names) -> tuple[str, str]:
    """The form with its names in, and the name of its result."""
    result = names.new(_RESULTS.get(op.gives, _OTHER)) if "{r}" in form else ""
    loop = names.new(_LOOPS[op.takes]) if "{v}" in form else ""
    pair = {"a": names.params[0], "b": names.params[1]} if len(names.params) == 2 else {}
    return form.format(x=x, r=result, v=loop, **given, **pair), result


def _fused(rng: Random, chain: Chain, names: Names) -> list[str]:
    """A filter or a change, and a sum or a count, in one loop or one call."""
    (first, given), (second, _) = chain
    update, call = second.fold or ("", "")
    each = first.each or "{v}"
    if rng.random() < 0.5:
        loop = "{r} = 0\nfor {v} in {x}:\n"
        body = f"    if {first.cond}:\n        {update}" if first.cond else f"    {update}"
        text, result = _fill((loop + body).replace("{e}", each), second, given, names.params[0], names)
        return [*text.split("\n"), f"return {result}"]
    source = "for {v} in {x}" + (f" if {first.cond}" if first.cond else "")
    text, _ = _fill(call.replace("{e}", each).replace("{g}", source), second, given, names.params[0], names)
    return _returned(rng, text, second, names)


def _returned(rng: Random, text: str, op: Op, names: Names) -> list[str]:
    if rng.random() < 0.3:
        result = names.new(_RESULTS.get(op.gives, _OTHER))
        return [f"{result} = {text}", f"return {result}"]
    return [f"return {text}"]


def _last(rng: Random, op: Op, given: Given, x: str, names: Names) -> list[str]:
    """The lines of the last operation, down to the return."""
    forms = [("expr", form) for form in op.exprs]
    if x.isidentifier():
        forms += [("loop", form) for form in op.loops] + [("end", form) for form in op.ends]
    else:
        forms = [(kind, form) for kind, form in forms if form.count("{x}") == 1]
    kind, form = favourite(rng, forms)
    text, result = _fill(form, op, given, x, names)
    if kind == "expr":
        return _returned(rng, text, op, names)
    return [*text.split("\n"), *([f"return {result}"] if kind == "loop" else [])]


def _lines(rng: Random, chain: Chain, names: Names) -> list[str]:
    """The function's body."""
    (first, given), x = chain[0], names.params[0]
    if len(chain) == 1:
        return _last(rng, first, given, x, names)
    second, other = chain[1]
    if second.fold and (first.cond or first.each) and rng.random() < 0.5:
        return _fused(rng, chain, names)
    if first.loops and rng.random() < 0.3:
        text, result = _fill(favourite(rng, first.loops), first, given, x, names)
        return [*text.split("\n"), *_last(rng, second, other, result, names)]
    text, _ = _fill(favourite(rng, first.exprs), first, given, x, names)
    if rng.random() < 0.4 and not first.name.startswith(KEEP + MAP):
        return _last(rng, second, other, f"({text})" if first.infix else text, names)
    middle = names.new(_MIDDLE)
    return [f"{middle} = {text}", *_last(rng, second, other, middle, names)]


def _head(rng: Random, chain: Chain, names: Names) -> str:
    if rng.random() < 0.75:
        return f"def {names.function}({', '.join(names.params)}):"
    takes, gives = HINT[chain[0][0].takes], HINT[chain[-1][0].gives]
    return f"def {names.function}({', '.join(f'{name}: {takes}' for name in names.params)}) -> {gives}:"


def _noted(rng: Random, lines: list[str]) -> list[str]:
    """The body with at most one comment of each sort."""
    noted: list[str] = []
    looped = ended = False
    for number, line in enumerate(lines):
        if line.startswith("for ") and not looped and rng.random() < 0.35:
            noted.append(write(NOTES["loop"], {}, rng))
            looped = True
        if line.startswith("return ") and number and not ended and rng.random() < 0.25:
            noted.append(write(NOTES["end"], {}, rng))
            ended = True
        noted.append(line)
    return noted


def _call(rng: Random, names: Names, arg: str) -> list[str]:
    """The lines that call the function and print what it gives."""
    drawn = rng.random()
    if drawn < 0.2:
        outcome = names.new(_OUTCOMES)
        return [f"{outcome} = {names.function}({arg})", f"print({outcome})"]
    if drawn < 0.4 and len(names.params) == 1:
        example = names.new(_EXAMPLES)
        return [f"{example} = {arg}", f"print({names.function}({example}))"]
    return [f"print({names.function}({arg}))"]


def module(rng: Random, chain: Chain, names: Names, arg: str, values: Values, stated: bool) -> str:
    """The whole code; `stated` asks for the result in a comment, if nothing else will tell it."""
    body = _noted(rng, _lines(rng, chain, names))
    doc = write(DOC, {"do": wording(chain, False)}, rng)
    lines = _call(rng, names, arg)
    if values["work"] and rng.random() < 0.85:
        if rng.random() < 0.5:
            lines[-1] += "  " + write(PLAIN_STEPS, values, rng)
            stated = False
        else:
            lines.insert(0, write(STEPS, values, rng))
    elif rng.random() < 0.3:
        lines.insert(0, write(NOTES["call"], {}, rng))
    if "#" not in lines[-1] and (stated or rng.random() < 0.4):
        lines[-1] += "  " + write(VALUE, values, rng)
    inner = "\n".join(f"    {line}" for line in (f'"""{doc[0].upper()}{doc[1:]}"""', *body))
    return f"{_head(rng, chain, names)}\n{inner}\n\n{chr(10) if rng.random() < 0.7 else ''}" + "\n".join(lines)
