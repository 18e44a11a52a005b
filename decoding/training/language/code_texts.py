"""The operations of the kind "code" on a word and on a list of words."""

from __future__ import annotations

from dataclasses import replace

from .code_lists import keeping, mapping, on_any_list
from .code_ops import CHECK, EACH, GIVE, k_of, op

WORD = (
    op(
        "upper",
        "word word",
        "[write~ {them} in [capitals|capital letters|upper case]|turn~ {them} into [capitals|upper case]]",
        "[upper|capitals|shout]",
        lambda x, g: x.upper(),
        "{x}.upper()",
    ),
    op(
        "backward",
        "word word",
        "[reverse~ {them}|write~ {them} [backward|in reverse]|turn~ {them} around]",
        "[reverse|backward|flip]",
        lambda x, g: x[::-1],
        "{x}[::-1]",
        '"".join(reversed({x}))',
    ),
    op(
        "repeat",
        "word word",
        "[repeat~|write~] {them} {k} times[ in a row|]",
        "[repeat|copy|many_times]",
        lambda x, g: x * k_of(g),
        "{x} * {k}",
        "{k} * {x}",
    ),
    op(
        "ending",
        "word word",
        '[add~|put~|append~] "{end}" [to|at] the end of {them}',
        "[extend|add_ending|lengthen]",
        lambda x, g: x + g["end"],
        '{x} + "{end}"',
    ),
    op(
        "first letter",
        "word word",
        f"{GIVE} the first letter of {{them}}",
        "[first_letter|initial|first_of]",
        lambda x, g: x[0],
        "{x}[0]",
    ),
    op(
        "last letter",
        "word word",
        f"{GIVE} the last letter of {{them}}",
        "[last_letter|final|last_of]",
        lambda x, g: x[-1],
        "{x}[-1]",
    ),
    replace(
        op(
            "length",
            "word number",
            "[count~ the letters [of|in] {them}|return~ the [length|number of letters] of {them}]",
            "[length|count_letters|size]",
            lambda x, g: len(x),
            "len({x})",
        ),
        loops=("{r} = 0\nfor {v} in {x}:\n    {r} += 1",),
    ),
    replace(
        op(
            "letter",
            "word number",
            '[count~ the letter "{letter}" in {them}|count~ how often "{letter}" [is|stands] in {them}]',
            "[count_letter|how_often|number_of]",
            lambda x, g: x.count(g["letter"]),
            '{x}.count("{letter}")',
        ),
        loops=('{r} = 0\nfor {v} in {x}:\n    if {v} == "{letter}":\n        {r} += 1',),
    ),
    op(
        "starts",
        "word truth",
        f'{CHECK} {{them}} [starts|begins] with "{{letter}}"',
        "[starts|begins|starts_with]",
        lambda x, g: x.startswith(g["letter"]),
        '{x}.startswith("{letter}")',
        '{x}[0] == "{letter}"',
    ),
    op(
        "holds",
        "word truth",
        f'{CHECK} [the letter |]"{{letter}}" is in {{them}}',
        "[has_letter|contains|holds]",
        lambda x, g: g["letter"] in x,
        '"{letter}" in {x}',
        '{x}.count("{letter}") > 0',
    ),
)
WORDS = (
    op(
        "join",
        "words word",
        '[join~|connect~|glue~] {them} with "{sep}"[ between them| in between|]',
        "[join|connect|glue]",
        lambda x, g: g["sep"].join(x),
        '"{sep}".join({x})',
    ),
    keeping(
        "starting",
        "words",
        '[starting|that start|that begin] with "{letter}"',
        "[starting|by_start|by_letter]",
        '{v}.startswith("{letter}")',
        lambda v, g: v.startswith(g["letter"]),
    ),
    mapping(
        "capitals",
        "words words",
        f"[write~ {EACH} in [capitals|upper case]|turn~ {EACH} into [capitals|upper case]]",
        "[upper|capitals|shout]",
        "{v}.upper()",
        lambda v, g: v.upper(),
    ),
    mapping(
        "lengths",
        "words numbers",
        f"[return~|list~|find~] the length of {EACH}",
        "[lengths|sizes|measure]",
        "len({v})",
        lambda v, g: len(v),
    ),
    *on_any_list("words", "word"),
)
