"""How reports and summaries are told: side remarks, requests, and summaries in two or three sentences."""

from __future__ import annotations

from .phrases import grammar
from .summary_words import PARTS, STORIES, Story

_SHARED = {
    "day": "[on {day}*6|last {day}*4]",
    "month": "[in {month}*5|this {month}*3|in the month of {month}*2]",
    "number": "[{n}*4|exactly {n}*2|a total of {n}*2|no fewer than {n}*2]",
    "leader": "[{person}, the {role},*4|the {role}, {person},*2|the {role} {person}*3|{person} the {role}]",
}
_SIDES = {
    "beast": "[dog|cat|goat|horse|duck]",
    "look": "[small|brown|black|wet|young|grey]",
    "somebody": "[someone|a boy|a girl|an old man|a woman]",
    "time": "[in the morning|at noon|all day|for a while|the whole time|until late]",
    "side_beast": "[A|One] <look> <beast> [slept|waited|sat|played] [under a bench|near the door|by the wall|in the"
    " shade] <time>.",
    "side_seller": "<Somebody> [sold|brought|dropped|shared] [warm buns|tea|lemonade|apples|a red hat|sweets] [near"
    " the door|by the wall|on the stairs|in the shade].",
    "side_sky": "The sky was [blue|grey|clear|full of birds] <time>, [and|but] [few|many|not all] people [saw"
    "|noticed] it.",
    "side_other": "{other}, a [visitor|neighbour|friend|child], [lost|found|wore|bought] a [|<look> ][hat|key|coat"
    "|bell|map|scarf] [near the door|by the road|on the stairs|in the mud].",
    "side_herd": "{Few} <look> <beast>s [walked|ran] [by|along the road|through the mud] <time>.",
    "side_talk": "Many people talked about [the price of bread|the weather|old times|their children] <time>.",
    "side_story": "<Somebody> [told|read|wrote] a [|long |short ]story [about a <beast>|about the sea|to a child].",
    "cause": "[The [reason|cause] [was|is] that|[This|It|All of this] was because|[This|It|All of this] happened"
    " because] {why}.",
}
_FRAME = {
    "ask_two": "two [|short |plain ]sentences",
    "ask_three": "three [|short |plain ]sentences",
    "ask_any": "[two or three|two to three] [|short |plain ]sentences",
    "task": "[sum up|summarise|shorten|retell|give a [|short ]summary of]",
    "before": "[Please <task>|<Task>] [the|this|the following] report in ",
    "after": "[[Please <task>|<Task>] [this|the] report in |Now <task> [this|it] in |What happened? Answer in ]",
    "open": "[In short, |In brief, |To sum up, |In a few words, |The report says that |The main facts: |In summary, "
    "|We read that ]",
    "because": "[ because*3| since*2| as*2|, for*2] {why}",
    "so": "[it|this|that|all this] [happened|was so|came about|took place]<because>",
    "link": "[, and *4|, while *3|; *3]",
    "then": "[, and *6|; *4]",
    "last": "[In the end, |At last, |Finally, |After that, |Later, |As a result, |So |At the end, ]",
}


def _tale(kind: str, story: Story) -> dict[str, str]:
    """The rules of one kind: its clauses, and its summaries in two and in three sentences, each with all the facts."""
    rules = {f"{kind}_{part}": getattr(story, part) for part in PARTS}
    what, count, lead, result, follow = (f"<{kind}_{part}>" for part in PARTS)
    upper = kind.capitalize()
    start = f"[<open>{what}*5|<{upper}_what>*5]"
    end = f"[<last>{result}*5|<{upper}_result>*5]<then>{follow}."
    middle = f"[<{upper}_count><link>{lead}|<{upper}_lead><link>{count}]."
    row = f"[, {result}, and |, {result}, and then |; {result}, and |, and {result}; ]{follow}."
    rules[f"{kind}_three"] = (
        f"[{start}<because>. {middle} {end}*4|{start}<because><link>{count}. <{upper}_lead><link>{result}."
        f" <{upper}_next>.*2|{start}<because><link>{lead}. <{upper}_count>. {end}*2|{start}<link>{lead}."
        f" <So><link>{count}. {end}*2]"
    )
    rules[f"{kind}_two"] = (
        f"[{start}<because><link>{count}. <{upper}_lead>{row}*4|{start}<because><link>{lead}. <{upper}_count>{row}*3"
        f"|{start}, {count}, and {lead}. <So>{row}*3]"
    )
    rules[f"{kind}_any"] = f"[<{kind}_two>*4|<{kind}_three>*6]"
    return rules


def _all_rules() -> dict[str, str]:
    rules = _SHARED | _SIDES | _FRAME
    for kind, story in STORIES.items():
        rules |= _tale(kind, story)
        rules |= {f"tell_{kind}_{part}": f"<{kind.capitalize()}_{part}>." for part in PARTS}
    return rules


RULES = grammar(_all_rules())
SIDES = tuple(rule for rule in _SIDES if rule.startswith("side_"))
