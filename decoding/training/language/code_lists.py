"""The operations of the kind "code" on lists of numbers, and those that lists of words share with them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from .code_ops import ABOVE, BELOW, CHECK, EACH, GIVE, Apply, Given, Op, adding, k_of, op


def keeping(name: str, takes: str, which: str, call: str, cond: str, test: Callable[[Any, Given], bool]) -> Op:
    """The operation that keeps some of a list."""
    return replace(
        op(
            name,
            f"{takes} {takes}",
            f"[keep~|pick~|select~|return~|take~|collect~] [only |just |]{{them}} {which}",
            f"[keep|pick|select|take|filter|get]_{call}",
            lambda items, given: [item for item in items if test(item, given)],
            f"[{{v}} for {{v}} in {{x}} if {cond}]",
        ),
        loops=(f"{{r}} = []\nfor {{v}} in {{x}}:\n    if {cond}:\n        {{r}}.append({{v}})",),
        cond=cond,
    )


def mapping(name: str, types: str, say: str, call: str, each: str, change: Apply) -> Op:
    """The operation that changes every entry of a list."""
    return replace(
        op(
            name,
            types,
            say,
            call,
            lambda items, given: [change(item, given) for item in items],
            f"[{each} for {{v}} in {{x}}]",
        ),
        loops=(f"{{r}} = []\nfor {{v}} in {{x}}:\n    {{r}}.append({each})",),
        each=each,
    )


def _asking(builtin: str, say: str, call: str, sign: str, apply: Apply) -> Op:
    """The operation that asks whether any number, or whether all numbers, pass a test."""
    found, other, stop = ("True", "False", "") if builtin == "any" else ("False", "True", "not ")
    test = f"{{v}} {sign} {{k}}"
    return replace(
        op(
            builtin,
            "numbers truth",
            say,
            call,
            apply,
            f"{builtin}({test} for {{v}} in {{x}})",
            f"{builtin}([{test} for {{v}} in {{x}}])",
        ),
        loops=(f"{{r}} = {other}\nfor {{v}} in {{x}}:\n    if {stop}{test}:\n        {{r}} = {found}",),
        ends=(f"for {{v}} in {{x}}:\n    if {stop}{test}:\n        return {found}\nreturn {other}",),
    )


def _extreme(name: str, which: str, call: str, builtin: str, sign: str, at: int) -> Op:
    """The operation that finds the largest or the smallest number."""
    return replace(
        op(
            name,
            "numbers number",
            f"{GIVE} the {which} of {{them}}",
            call,
            lambda items, given: sorted(items)[at],
            f"{builtin}({{x}})",
            f"sorted({{x}})[{at}]",
        ),
        loops=(f"{{r}} = {{x}}[0]\nfor {{v}} in {{x}}:\n    if {{v}} {sign} {{r}}:\n        {{r}} = {{v}}",),
    )


def on_any_list(takes: str, entry: str) -> tuple[Op, ...]:
    """The operations that lists of numbers and lists of words share."""
    turned = "[reverse~ {them}|return~ {them} in reverse[ order|]|turn~ {them} around|put~ {them} in reverse order]"
    counted = "[count~ {them}|return~ the [count|number] of {them}|find~ [out |]how many of {them} there are]"
    first, last = f"{GIVE} the first of {{them}}", f"{GIVE} the last of {{them}}"
    backward = op(
        f"reverse {takes}", f"{takes} {takes}", turned, "[reverse|flip|turn]", lambda x, g: x[::-1], "{x}[::-1]"
    )
    count = op(f"count {takes}", f"{takes} number", counted, "[count|number_of|size]", lambda x, g: len(x), "len({x})")
    return (
        op(f"first {takes}", f"{takes} {entry}", first, "[first|get_first|take_first]", lambda x, g: x[0], "{x}[0]"),
        op(f"last {takes}", f"{takes} {entry}", last, "[last|get_last|take_last]", lambda x, g: x[-1], "{x}[-1]"),
        replace(
            backward,
            exprs=(*backward.exprs, "list(reversed({x}))"),
            loops=("{r} = []\nfor {v} in {x}:\n    {r} = [{v}] + {r}",),
        ),
        replace(count, loops=("{r} = 0\nfor {v} in {x}:\n    {r} += 1",), fold=("{r} += 1", "sum(1 {g})")),
    )


NUMBERS = (
    keeping("above", "numbers", ABOVE, "[above|over|larger]", "{v} > {k}", lambda v, g: v > k_of(g)),
    keeping("below", "numbers", BELOW, "[below|under|smaller]", "{v} < {k}", lambda v, g: v < k_of(g)),
    keeping("even", "numbers", "that are even", "[even|evens]", "{v} % 2 == 0", lambda v, g: v % 2 == 0),
    keeping("odd", "numbers", "that are odd", "[odd|odds]", "{v} % 2 == 1", lambda v, g: v % 2 == 1),
    mapping(
        "shift",
        "numbers numbers",
        f"[add~ {{k}} to {EACH}|increase~ {EACH} by {{k}}]",
        "[add|increase|raise|shift]",
        "{v} + {k}",
        lambda v, g: v + k_of(g),
    ),
    mapping(
        "scale",
        "numbers numbers",
        f"[multiply~ {EACH} by {{k}}|scale~ {EACH} by {{k}}]",
        "[multiply|scale|times]",
        "{v} * {k}",
        lambda v, g: v * k_of(g),
    ),
    mapping("double", "numbers numbers", f"double~ {EACH}", "[double|twice]", "{v} * 2", lambda v, g: v * 2),
    replace(
        op(
            "total",
            "numbers number",
            "[add~ up {them}|add~ {them} up|return~ the [sum|total] of {them}|sum~ up {them}|find~ the sum of {them}]",
            "[add|total|sum_up|add_up]",
            lambda x, g: sum(x),
            "sum({x})",
        ),
        loops=("{r} = 0\nfor {v} in {x}:\n    {r} += {v}", "{r} = 0\nfor {v} in {x}:\n    {r} = {r} + {v}"),
        fold=("{r} += {e}", "sum({e} {g})"),
        work=lambda x, g: adding(x),
    ),
    _extreme("largest", "[largest|biggest|greatest|highest]", "[largest|biggest|highest]", "max", ">", -1),
    _extreme("smallest", "[smallest|least|lowest]", "[smallest|lowest|least]", "min", "<", 0),
    op(
        "sort up",
        "numbers numbers",
        "[sort~|order~] {them}[ from small to large| upward| in rising order]",
        "[sort|order|sort_up]",
        lambda x, g: sorted(x),
        "sorted({x})",
    ),
    op(
        "sort down",
        "numbers numbers",
        "[sort~|order~] {them}[ from large to small| downward| in falling order]",
        "[sort_down|falling|order_down]",
        lambda x, g: sorted(x)[::-1],
        "sorted({x}, reverse=True)",
        "sorted({x})[::-1]",
    ),
    op(
        "has",
        "numbers truth",
        f"{CHECK} {{k}} is [among|one of|in] {{them}}",
        "[has|holds|contains|find]",
        lambda x, g: k_of(g) in x,
        "{k} in {x}",
        "{x}.count({k}) > 0",
    ),
    _asking(
        "any",
        f"{CHECK} [any|at least one] of {{them}} is {ABOVE}",
        "[any_above|some_above|some_over]",
        ">",
        lambda x, g: any(v > k_of(g) for v in x),
    ),
    _asking(
        "all",
        f"{CHECK} [all of {{them}} are|every one of {{them}} is] {BELOW}",
        "[all_below|all_under|every_below]",
        "<",
        lambda x, g: all(v < k_of(g) for v in x),
    ),
    *on_any_list("numbers", "number"),
)
