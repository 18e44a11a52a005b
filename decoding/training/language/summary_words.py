"""What reports are about: eight kinds of event, each with its values and its clauses."""

from __future__ import annotations

from dataclasses import dataclass

from .words import listed


@dataclass(frozen=True, slots=True)
class Story:
    """One kind of event: its own values for the shared slots, and its clauses."""

    roles: tuple[str, ...]
    things: tuple[str, ...]
    whys: tuple[str, ...]
    results: tuple[str, ...]
    what: str
    count: str
    lead: str
    result: str
    next: str
    objects: tuple[str, ...] = ()


DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = listed("""January February March April May June July August September October November December""")
PARTS = ("what", "count", "lead", "result", "next")
STORIES = {
    "meeting": Story(
        roles=("mayor", "judge", "teacher", "baker", "doctor", "miller"),
        things=("people", "farmers", "parents", "guests", "workers", "sailors"),
        whys=(
            "the old bridge was unsafe",
            "the well was dry",
            "the school was too small",
            "the market was too loud",
            "the bus was always late",
            "the park was full of mud",
        ),
        results=(
            "raise a small tax",
            "hire a builder",
            "write to the king",
            "form a team",
            "vote again",
            "wait a year",
        ),
        what="[{place} [held|had|saw] a [|town ]meeting <day>|[a [|town ]meeting was held|people [met|came together"
        "|gathered]|there was a [|town ]meeting] in {place} <day>*2|<day>, [{place} [held|had|saw] a [|town ]meeting"
        "|people [met|came together|gathered] in {place}]]",
        count="[<number> {things} [came|took part|were there|joined in|attended]*3|there were <number> {things}]",
        lead="<leader> [led|ran|chaired|headed] the [meeting|talks|evening]",
        result="[they|all of them|the [town|people]] [decided|agreed|chose|voted|resolved] to {result}",
        next="[the next meeting [will be|is|is planned|will be held]|they [will|want to|plan to|hope to] [meet|talk"
        "|come together] again] <month>",
    ),
    "storm": Story(
        roles=("mayor", "captain", "doctor", "baker", "guard", "pilot"),
        things=("roofs", "fences", "boats", "trees", "barns", "windows"),
        whys=(
            "cold air came from the north",
            "warm air rose from the sea",
            "the week before was hot",
            "the wind turned to the west",
            "dark clouds crossed the hills",
            "the air was too wet",
        ),
        results=("school", "church", "library", "castle", "mill", "station"),
        what="[a storm [hit|struck|reached|crossed] {place} <day>*2|<day>, a storm [hit|struck|reached|crossed]"
        " {place}|{place} [was [hit|struck] by|saw|had] a storm <day>|there was a storm in {place} <day>]",
        count="[<number> {things} were [damaged|broken|ruined|destroyed]|[the storm|it] [damaged|broke|ruined"
        "|destroyed] <number> {things}]",
        lead="<leader> [led|guided|directed|managed|headed] the [rescue|helpers|rescue team]",
        result="[people|the families|many|the neighbours] [took shelter|stayed|found shelter|spent the night] in the"
        " {result}",
        next="[the repairs|repairs|the work] [will [start|begin]|start|begin|should [start|begin]] <month>",
    ),
    "match": Story(
        roles=("captain", "keeper", "youngest player", "oldest player", "newest player", "tallest player"),
        things=("goals", "points", "throws", "hits", "runs", "shots"),
        whys=(
            "the new field was ready",
            "the town had a feast",
            "the club needed money",
            "the cup was at stake",
            "the school was closed",
            "an old player said goodbye",
        ),
        results=("won the cup", "lost the cup", "won a new ball", "lost its lead", "kept its lead", "won first place"),
        what="[a [match|game] was [held|played] in {place} <day>|{place} [had|saw|held|hosted] a [match|game] <day>"
        "|<day>, {place} [had|saw|held|hosted] a [match|game]|the team of {place} played a [match|game] <day>]",
        count="[[the home team|the team|the home side] [had|made|got|counted] <number> {things}*2|there were <number>"
        " {things}]",
        lead="<leader> [was the [best player|star]|played best|was the best of all|did best|stood out]",
        result="[the home team|the team|the home side|the town] {result}",
        next="[the next [match|game] [will be|is|is planned|will follow]|the [team|club] [will|wants to|plans to"
        "|hopes to] play again] <month>",
    ),
    "fair": Story(
        roles=("mayor", "baker", "potter", "singer", "miller", "farmer"),
        things=("stalls", "guests", "tents", "games", "riders", "cakes"),
        whys=(
            "the harvest was good",
            "the winter was over",
            "the new market was ready",
            "the town had a birthday",
            "the king was near",
            "the river was safe again",
        ),
        results=("the school", "the library", "a new well", "the poor", "a new roof", "a clean park"),
        what="[{place} [held|had|saw|hosted] a fair <day>|a fair was held in {place} <day>|there was a fair in"
        " {place} <day>|<day>, [{place} [held|had|saw|hosted] a fair|people held a fair in {place}]]",
        count="[there were <number> {things}|[the fair|it] [had|counted|drew|offered] <number> {things}*2]",
        lead="<leader> [managed|ran|led|organised] the [fair|day|feast]",
        result="[the [fair|day|feast] [made|earned|brought in|raised]|people [gave|raised|collected]] money for"
        " {result}",
        next="[the next fair [will be|is|is planned|will follow]|there will be [another|a new] fair|the town [will"
        "|wants to|plans to|hopes to] repeat it] <month>",
    ),
    "repair": Story(
        roles=("builder", "smith", "carpenter", "mason", "painter", "engineer"),
        things=("bolts", "stones", "planks", "bricks", "beams", "nails"),
        whys=(
            "the frost broke it",
            "lightning struck it",
            "a cart hit it",
            "the wood was old",
            "a flood shook it",
            "rust made it weak",
        ),
        results=("safe again", "open again", "as good as new", "stronger than before", "dry again", "in use again"),
        objects=("bridge", "clock", "mill", "tower", "gate", "fountain"),
        what="[[workers|a team|helpers] [repaired|fixed|mended] the {object} of {place} <day>*2|the {object} of"
        " {place} was [repaired|fixed|mended] <day>|<day>, [workers|a team|helpers] [repaired|fixed|mended] the"
        " {object} of {place}]",
        count="[[they|the workers|the helpers] [used|needed|took|fitted] <number> {things}*2|the work took <number>"
        " {things}]",
        lead="<leader> [led|headed|directed|managed] the [work|repair|team]",
        result="the {object} [is|was] [|now |soon ]{result}",
        next="[a [test|check|last check] [will follow|follows|is planned]|the [workers|helpers] [will|want to|plan to"
        "|hope to] [check|test] it] <month>",
    ),
    "trip": Story(
        roles=("teacher", "guide", "driver", "sailor", "doctor", "pilot"),
        things=("children", "guests", "parents", "students", "singers", "farmers"),
        whys=(
            "the school year was over",
            "the train was free",
            "the days were warm",
            "they had won a prize",
            "the choir needed rest",
            "the town had a feast",
        ),
        results=(
            "an old castle",
            "a deep cave",
            "a high tower",
            "a museum of ships",
            "a quiet island",
            "a field of roses",
        ),
        what="[a group from {place} [went on|made|took|set out on] a trip <day>|there was a trip from {place} <day>"
        "|<day>, [a group|people] from {place} [went on|made|took|set out on] a trip]",
        count="[<number> {things} [came along|took part|went along|joined in|were there]*3|there were <number>"
        " {things}]",
        lead="<leader> [led|guided|headed|looked after] the [group|others|whole group]",
        result="[they|all of them|the group] [saw|visited|reached|looked at|went to] {result}",
        next="[[another|the next|a new] trip [will follow|follows|is planned]|they [will|want to|plan to|hope to] [go"
        "|set out|leave] again] <month>",
    ),
    "harvest": Story(
        roles=("farmer", "miller", "gardener", "baker", "shepherd", "cook"),
        things=("carts", "baskets", "sacks", "barrels", "boxes", "barns"),
        whys=(
            "rain was near",
            "the apples were ripe",
            "the nights grew cold",
            "birds ate the grain",
            "the barn was ready",
            "the market was close",
        ),
        results=("bread", "juice", "jam", "cider", "flour", "soup"),
        what="[the [farmers|people] of {place} [brought in|finished|ended] the harvest <day>|the harvest [in|of]"
        " {place} [ended|was [over|finished|brought in]] <day>|<day>, [the harvest [in|of] {place} [ended|was over]"
        "|{place} [finished|ended|brought in] the harvest]]",
        count="[[they|the helpers] [filled|loaded|packed] <number> {things}|<number> {things} were [filled|loaded"
        "|packed|full]]",
        lead="<leader> [led|directed|managed|headed] the [work|helpers|harvest]",
        result="[most of it|much of it|the best part|the crop] [will become|is meant for|will be made into|turns"
        " into] {result}",
        next="[[they|the helpers|the farmers] [will|want to|plan to|hope to] [plant|sow|start] again|the [fields"
        "|farmers] [will|can|may] rest until the work [begins|starts]] <month>",
    ),
    "concert": Story(
        roles=("singer", "drummer", "teacher", "pianist", "composer", "organist"),
        things=("singers", "players", "guests", "songs", "dancers", "drums"),
        whys=(
            "the new hall was ready",
            "the choir had a birthday",
            "the organ was repaired",
            "the winter was over",
            "the school needed money",
            "an old singer said goodbye",
        ),
        results=("a new piano", "the school", "the hospital", "a new stage", "the choir", "young players"),
        what="[{place} [held|had|heard|hosted] a concert <day>|[a concert was [held|played|given]|there was a"
        " concert] in {place} <day>*2|<day>, [{place} [held|had|heard|hosted] a concert|people heard a concert in"
        " {place}]]",
        count="[there were <number> {things}|[the concert|it] [had|counted|offered|brought] <number> {things}*2]",
        lead="<leader> [led|directed|managed|headed] the [music|concert|evening]",
        result="[the guests|people|the crowd|all] [gave|left|raised|collected] money for {result}",
        next="[the next concert [will be|is|is planned|will follow]|there will be [another|a new] concert|the [choir"
        "|town] [will|wants to|plans to|hopes to] repeat it] <month>",
    ),
}
