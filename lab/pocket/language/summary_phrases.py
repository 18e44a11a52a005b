"""The topics and wordings of reports and summaries: six kinds of event with values and clauses."""

from __future__ import annotations

from dataclasses import dataclass

from .phrases import grammar


@dataclass(frozen=True, slots=True)
class Story:
    """One kind of event: its own values for the shared slots, and its clauses."""

    roles: tuple[str, ...]
    things: tuple[str, ...]
    whys: tuple[str, ...]
    results: tuple[str, ...]
    what: str
    lead: str
    result: str
    count: str = "there were {n} {things}[*5| in all*3| altogether*2]"


DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
STORIES = {
    "meeting": Story(
        roles=("mayor", "judge", "teacher", "baker"),
        things=("farmers", "parents", "guests", "workers"),
        whys=("the bridge was unsafe", "the well was dry", "the school was too small", "the market was too loud"),
        results=("raise a small tax", "hire a builder", "write to the king", "meet again"),
        what="a [meeting*6|town meeting*4] [was held*6|took place*4] in {place} on {day}",
        lead="the {role} {person} [led*5|opened*3|ran*2] the [meeting*6|talks*4]",
        result="[people*5|they all*3|the town*2] [decided*5|agreed*3|voted*2] to {result}",
    ),
    "storm": Story(
        roles=("mayor", "captain", "doctor", "guard"),
        things=("roofs", "fences", "boats", "trees"),
        whys=(
            "cold air came from the north",
            "warm air rose from the sea",
            "the week before was hot",
            "the wind turned to the west",
        ),
        results=("school", "church", "library", "castle"),
        what="[there was a*6|people saw a*4] [storm*6|heavy storm*4] in {place} on {day}",
        lead="the {role} {person} [led*5|guided*3|directed*2] the [rescue*6|helpers*4]",
        count="[the storm*6|the wind*4] [damaged*6|destroyed*4] {n} {things}",
        result="[many people*5|the families*3|the neighbours*2] [found shelter*5|spent the night*3|stayed*2] in the"
        " {result}",
    ),
    "match": Story(
        roles=("captain", "keeper", "youngest player", "oldest player"),
        things=("goals", "points", "throws", "shots"),
        whys=("the field was ready", "the town had a feast", "the club needed money", "the cup was at stake"),
        results=("won the cup", "lost the cup", "won a new ball", "won first place"),
        what="a [match*6|game*4] [was held*5|was played*3|took place*2] in {place} on {day}",
        lead="the {role} {person} [played best*5|stood out*3|did best*2]",
        result="the [home team*5|home side*3|team*2] {result}",
    ),
    "fair": Story(
        roles=("mayor", "baker", "potter", "farmer"),
        things=("stalls", "guests", "tents", "riders"),
        whys=("the harvest was good", "the winter was over", "the town had a birthday", "the river was safe again"),
        results=("the school", "the library", "a new well", "a clean park"),
        what="a [fair*6|town fair*4] [was held*6|took place*4] in {place} on {day}",
        lead="the {role} {person} [organised*5|ran*3|opened*2] the [fair*6|event*4]",
        result="[the guests*5|people*3|they all*2] [raised*5|gave*3|collected*2] money for {result}",
    ),
    "trip": Story(
        roles=("teacher", "guide", "driver", "sailor"),
        things=("children", "students", "parents", "singers"),
        whys=("the school year was over", "the days were warm", "the train was free", "the choir needed rest"),
        results=("an old castle", "a deep cave", "a high tower", "a quiet island"),
        what="a [trip*6|group trip*4] [began*6|started*4] in {place} on {day}",
        lead="the {role} {person} [led*5|looked after*3|helped*2] the [group*6|others*4]",
        result="[the group*5|they all*3|everyone*2] [visited*5|saw*3|reached*2] {result}",
    ),
    "concert": Story(
        roles=("singer", "drummer", "pianist", "composer"),
        things=("players", "guests", "songs", "dancers"),
        whys=(
            "the new hall was ready",
            "the choir had a birthday",
            "the organ was repaired",
            "an old singer said goodbye",
        ),
        results=("a new piano", "the hospital", "a new stage", "young players"),
        what="a [concert*6|big concert*4] [was held*5|was given*3|took place*2] in {place} on {day}",
        lead="the {role} {person} [led*5|directed*3|opened*2] the [concert*6|evening*4]",
        result="[the guests*5|people*3|they all*2] [raised*5|gave*3|collected*2] money for {result}",
    ),
}
_SIDES = {
    "side_beast": "A [small|brown|black] [dog|cat|goat] waited [near the door|by the wall|under a tree].",
    "side_seller": "[A boy|A girl|An old man] sold [apples|tea|sweets] [near the door|by the wall|under a tree].",
    "side_sky": "The sky was [blue|grey|clear] [in the morning|at noon|in the evening].",
    "side_other": "{other}, a [visitor|neighbour|child], [lost|found] a [key|hat|coat].",
}
_FRAME = {
    "cause": "[This was|It happened|This happened] because {why}.",
    "task": "[sum up|summarise|retell] the report in two [|short ]sentences",
    "ask": "[Please <task>|<Task>]",
    "open": "[In short*5|In brief*4|To sum up*3|In summary*3|Briefly*2|In a few words*2]",
    "last": "[in the end*5|finally*4|later*3|afterwards*2|after that*2]",
}


def _all_rules() -> dict[str, str]:
    """Return the rules of all kinds: sentences of the report, and the summary with every fact in a fixed order."""
    rules = _SIDES | _FRAME
    for kind, story in STORIES.items():
        what, lead, count, result = (f"{kind}_{part}" for part in ("what", "lead", "count", "result"))
        rules |= {what: story.what, lead: story.lead, count: story.count, result: story.result}
        rules |= {f"tell_{rule}": f"<{rule.capitalize()}>." for rule in (what, lead, count, result)}
        rules[kind] = (
            f"[<open>, <{what}>*6|<{what.capitalize()}>*4] because {{why}}."
            f" <{lead.capitalize()}>[, <{count}>, and <last> <{result}>*6| and <{count}>; <last>, <{result}>*4]."
        )
    return rules


RULES = grammar(_all_rules())
SIDES = tuple(_SIDES)
