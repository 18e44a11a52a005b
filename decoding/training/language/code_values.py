"""The operations of the kind "code" on one number and on two."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from .code_ops import GIVE, Given, Op, k_of, op

_LABEL = '"{yes}" if {them} is [above|over|greater than] {k} [and|or] "{no}" [if not|otherwise]'


def _on_pair(
    name: str,
    say: str,
    call: str,
    apply: Callable[[int, int, int], tuple[int, str]],
    exprs: tuple[str, ...],
    ends: tuple[str, ...] = (),
) -> Op:
    """An operation on two numbers; `apply` takes them and k, and gives the result and the steps by hand."""

    def both(pair: Any, given: Given) -> tuple[int, str]:
        return apply(pair[0], pair[1], int(given.get("k", "1")))

    return replace(
        op(name, "pair number", say, call, lambda pair, given: both(pair, given)[0], *exprs),
        ends=ends,
        work=(lambda pair, given: both(pair, given)[1]) if both((1, 1), {})[1] else None,
    )


NUMBER = (
    replace(
        op(
            "plus",
            "number number",
            "[add~ {k} to {them}|increase~ {them} by {k}]",
            "[add|plus|increase]",
            lambda x, g: x + k_of(g),
            "{x} + {k}",
            "{k} + {x}",
        ),
        work=lambda x, g: f"{x} + {g['k']} = {x + k_of(g)}",
    ),
    replace(
        op(
            "times",
            "number number",
            "[multiply~ {them} by {k}|return~ {k} times {them}]",
            "[times|multiply|scale]",
            lambda x, g: x * k_of(g),
            "{x} * {k}",
            "{k} * {x}",
        ),
        work=lambda x, g: f"{x} * {g['k']} = {x * k_of(g)}",
    ),
    replace(
        op(
            "label",
            "number text",
            f"[return~|give~|say~|answer~] {_LABEL}",
            "[label|name|judge|describe]",
            lambda x, g: g["yes"] if x > k_of(g) else g["no"],
            '"{yes}" if {x} > {k} else "{no}"',
            '"{no}" if {x} <= {k} else "{yes}"',
        ),
        loops=(
            'if {x} > {k}:\n    {r} = "{yes}"\nelse:\n    {r} = "{no}"',
            '{r} = "{no}"\nif {x} > {k}:\n    {r} = "{yes}"',
        ),
        ends=(
            'if {x} > {k}:\n    return "{yes}"\nreturn "{no}"',
            'if {x} > {k}:\n    return "{yes}"\nelse:\n    return "{no}"',
        ),
    ),
    replace(
        op(
            "parity",
            "number text",
            '[return~|give~|say~|answer~] "even" [if|when] {them} is even [and|or] "odd" [if not|otherwise]',
            "[parity|even_or_odd|odd_or_even]",
            lambda x, g: "odd" if x % 2 else "even",
            '"even" if {x} % 2 == 0 else "odd"',
            '"odd" if {x} % 2 == 1 else "even"',
        ),
        ends=(
            'if {x} % 2 == 0:\n    return "even"\nreturn "odd"',
            'if {x} % 2 == 1:\n    return "odd"\nreturn "even"',
        ),
    ),
    replace(
        op(
            "up",
            "number numbers",
            "[list~|return~|collect~] the numbers from 1 to {them}",
            "[list_up_to|up_to|first_numbers]",
            lambda x, g: list(range(1, x + 1)),
            "list(range(1, {x} + 1))",
            "[{v} for {v} in range(1, {x} + 1)]",
        ),
        loops=("{r} = []\nfor {v} in range(1, {x} + 1):\n    {r}.append({v})",),
    ),
)
PAIR = (
    _on_pair(
        "sum",
        "[add~ the two numbers|return~ the sum of the two numbers|add~ the first number and the second]",
        "[add|plus|sum_of]",
        lambda a, b, k: (a + b, f"{a} + {b} = {a + b}"),
        ("{a} + {b}", "{b} + {a}"),
    ),
    _on_pair(
        "minus",
        "[take~ the second number [from|off] the first|return~ the first number minus the second]",
        "[minus|subtract|take]",
        lambda a, b, k: (a - b, f"{a} - {b} = {a - b}"),
        ("{a} - {b}",),
    ),
    _on_pair(
        "product",
        "[multiply~ the two numbers|return~ the product of the two numbers|return~ the first number times the second]",
        "[multiply|times|product]",
        lambda a, b, k: (a * b, f"{a} * {b} = {a * b}"),
        ("{a} * {b}", "{b} * {a}"),
    ),
    _on_pair(
        "plus times",
        "[add~ {k} times the second number to the first|return~ the first number plus {k} times the second]",
        "[mix|combine|plus_times]",
        lambda a, b, k: (a + k * b, f"{k} * {b} = {k * b}, {a} + {k * b} = {a + k * b}"),
        ("{a} + {k} * {b}", "{a} + {b} * {k}"),
    ),
    _on_pair(
        "times plus",
        "[add~ the second number to {k} times the first|return~ {k} times the first number plus the second]",
        "[mix|combine|times_plus]",
        lambda a, b, k: (k * a + b, f"{k} * {a} = {k * a}, {k * a} + {b} = {k * a + b}"),
        ("{k} * {a} + {b}", "{a} * {k} + {b}"),
    ),
    _on_pair(
        "larger",
        f"{GIVE} the [larger|bigger|greater] of the two numbers",
        "[larger|bigger|greater]",
        lambda a, b, k: (max(a, b), ""),
        ("max({a}, {b})", "{a} if {a} > {b} else {b}"),
        ("if {a} > {b}:\n    return {a}\nreturn {b}", "if {a} > {b}:\n    return {a}\nelse:\n    return {b}"),
    ),
    _on_pair(
        "smaller",
        f"{GIVE} the [smaller|lesser|lower] of the two numbers",
        "[smaller|lesser|lower]",
        lambda a, b, k: (min(a, b), ""),
        ("min({a}, {b})", "{a} if {a} < {b} else {b}"),
        ("if {a} < {b}:\n    return {a}\nreturn {b}", "if {a} < {b}:\n    return {a}\nelse:\n    return {b}"),
    ),
    _on_pair(
        "gap",
        f"{GIVE} the [gap|distance] between the two numbers",
        "[gap|distance|how_far]",
        lambda a, b, k: (abs(a - b), f"{max(a, b)} - {min(a, b)} = {abs(a - b)}"),
        ("abs({a} - {b})", "max({a}, {b}) - min({a}, {b})"),
        ("if {a} > {b}:\n    return {a} - {b}\nreturn {b} - {a}",),
    ),
)
