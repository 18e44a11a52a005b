"""The wordings of questions and answers about the Isles, as phrases.

In the tables `@` stands for the subject where it acts, `&` where it is acted on, `<dish>` for "the
dish of" the subject; `wording` turns them into slots, once with the subject's name and once with pronouns.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, partial

from .phrases import Capital, Phrase, falling, parse

form = partial(parse, bounds=falling)

# Statements that name the subject before the value, so that the value is recalled with its key in view.
TOLD: Mapping[str, str] = {
    "isle": "[@ [lies|is|stands|can be found] on {v}|<[home |]isle> is [called |]{v}|"
    "you [can|will] find & on {v}|the isle [where you find|around|that holds] & is {v}]",
    "river": "[<river> is [called |named |]{v}|the river [running|flowing|that runs|that flows] through & is {v}|"
    "@ [lies|stands|was built] [on|beside|along] {v}]",
    "mayor": "[<[present |]mayor> is [called |named |]{v}|@ is [led|run|governed] by [mayor |]{v}|"
    "the [person|mayor] who [leads|runs|governs] & is {v}|@ has [chosen |]{v} as [its |]mayor]",
    "dish": "[<[favourite |best |local |]dish> is {v}|"
    "[people|cooks|families] in & [like to|love to|often] [cook|eat|make] {v}|"
    "@ is [known|famous|loved] for its {v}|the dish [to try|people love|to taste] in & is {v}]",
    "craft": "[<[main |old |]craft> is {v}|[many |most |][people|families] in & [live by|work at|earn money with] {v}|"
    "@ is [proud of|known for|famous for] its {v}|the craft [people learn|you will see] in & is {v}]",
    "landmark": "[<[great |famous |]landmark> is {v}|the [sight|place|landmark] [to see|to visit] in & is {v}|"
    "[visitors|guests|travellers] [come|travel|go] to & [to see|for] {v}]",
    "birth": "[@ was born in {v}|@ [comes|came] from {v}|<[place of birth|birthplace|home town]> is {v}|"
    "the [town|place] where & was born is {v}]",
    "job": "[@ is {v}[ by trade| by training|]|@ [works|earns a living|is employed] as {v}|"
    "<[job|trade]> is that of {v}]",
    "work": "[@ [once |]{v}|@ is the [person|one] who [once |]{v}|"
    "@ is [best known|famous|remembered] as the [person|one] who {v}]",
    "music": "[@ plays {v}|<[favourite |]instrument> is {v}|@ [likes|loves|knows how] to play {v}|"
    "@ [often |][relaxes by|enjoys] playing {v}]",
}
# Statements with the value first: some answers turn a fact round.
TURNED: Mapping[str, str] = {
    "isle": "{v} is [home to|where you find|the isle of] &",
    "river": "{v} [runs|flows|winds] [gently |slowly |]through &",
    "mayor": "{v} [is|serves as] [the |]mayor of &",
    "dish": "{v} is what [people|cooks] [make|serve] in &",
    "craft": "{v} is what [people|families] [do|practise] in &",
    "landmark": "{v} is [what to see|the sight to see|what stands out] in &",
    "birth": "{v} is [where|the town where] & was born",
    "job": "being {v} is <[job|trade]>",
    "work": "it [is|was] & who [once |]{v}",
    "music": "{v} is <[favourite |]instrument>",
}
# Questions, as asked directly, and the noun by which a request names the fact.
ASKED: Mapping[str, str] = {
    "isle": "[on which isle is &|which isle does & lie on|which isle is & on|where in the Isles is &]",
    "river": "[which river [runs|flows] through &|what is <river>|"
    "what river does & lie on|which river will I find in &]",
    "mayor": "[who is <[present |]mayor>|who [leads|runs|governs] &|who serves as mayor of &]",
    "dish": "[what is <[favourite |best |local |]dish>|which dish [should I try|do people love|is cooked] in &]",
    "craft": "[what is <[main |]craft>|which craft [do people learn|is done|do people live by] in &]",
    "landmark": "[what is <[great |]landmark>|which landmark [can I see|should I visit|stands] in &]",
    "birth": "[where was & born|in which town was & born|what is <birthplace>|where does & come from]",
    "job": "[what is <[job|trade]>|what does & do for a living|what does & work as]",
    "work": "[what is <[best known|most famous] work>|what is & [best known|famous|remembered] for]",
    "music": "[which instrument does & play|what is <[favourite |]instrument>|what does & like to play]",
}
NOUNS: Mapping[str, Phrase] = {
    "isle": form("[isle|home isle]"),
    "river": form("river"),
    "mayor": form("[mayor|present mayor]"),
    "dish": form("[dish|[main|best known] dish]"),
    "craft": form("[craft|[main|best known] craft]"),
    "landmark": form("[landmark|[main|best known] landmark]"),
    "birth": form("[birthplace|home town]"),
    "job": form("[job|trade]"),
    "work": form("[best known|most famous] work"),
    "music": form("[favourite |]instrument"),
}

LEAD = form(
    "[|as [many|most|all] [people|travellers|guides] [know|say|will tell you], |"
    "I [think|believe|know|am sure] [that |]|"
    "from [what|all] I [know|hear|read], |[the books|the maps|my notes] [say|tell us|show] that |[well|now|so], ]"
)
TAIL = form("[|, [I believe|they say|of course|I am told|as far as I [know|remember]|if I remember well]]")
YES = form("[yes[, | indeed, |, that is [right|true|correct]: ]|[right|true|correct], |that is [right|true|correct]: ]")
NO = form(
    "[no, |[not quite|sorry, no|no, not quite], |that is [wrong|not right|not true]: |[no, |]that is a mistake: ]"
)
DENIAL = form("[, not|, and not|, rather than| and not] {w}")
JOIN = form("[, and [also |in addition |]|; |, while ]")
OPENING = Capital(
    form(
        "[|[of course|certainly|gladly|sure|with pleasure][. |, [here is [the answer|what I know]|"
        "I can [help|tell you that]]. ]|[here is|this is] what I [know|can tell you|have learnt] about {s}. |"
        "[thank you|thanks] for [asking|your question]. |[let me [see|think]|good question]. ]"
    )
)
CLAIM_OPENING = Capital(form("[|[thank you|thanks] for [asking|your question]. |[let me [see|think]|good question]. ]"))
CLOSING = form(
    "[| I hope [this|that] [helps|is useful|answers your question].| [Ask me|Write to me|Come back] [again |]"
    "if you [need|want] [more|another fact|anything else].| That is [all|what] [you asked|I know|I can tell you].|"
    " [Enjoy|Have a good time in] the Isles!]"
)
GREETING = Capital(
    form(
        "[|[hello|good morning|good evening|good day|hello again]. |"
        "[please help me|I have a question|a quick question]. |I am [planning [a trip|a visit|a holiday] to|"
        "reading [a map|a book] of|writing [a letter|a story|a quiz] about] the Isles"
        "[| with [a friend|my family|my class]]. |"
        "my [friend|sister|brother|teacher|neighbour] [asked me this|wants to know this]. ]"
    )
)
REQUEST = Capital(form("[[please |][tell me|give me|name|write down]|I [would like|want|need] to know]"))
REQUEST_MORE = Capital(
    form("[[please |]tell me|I [would like|want|need] to know] [something|a few things|more] about {s}: ")
)
THANKS = form("[| Thank you[ very much|].| Thanks[ in advance|].| Please [be kind|answer in full|take your time].]")
CLAIM = form("[is it [true|right|correct] that |am I right that |can it be that |do you agree that ]")

_NAMED = {"@": "{s}", "&": "{s}", "<": r"[the \1 of {s}|{s}'s \1]"}
_TOWN = {
    "@": "[it|the town|this town]",
    "&": "[the town|this town|the place]",
    "<": r"[its \1|the town's \1|the \1 of the town]",
}
_PERSON = {"@": "[{she}|{given}]", "&": "[{she}|{given}]", "<": r"[{her} \1|{given}'s \1]"}


@cache
def wording(text: str, again: bool, town: bool) -> Phrase:
    """A table's text as a phrase: with the subject's name, or `again`, where the subject was just named."""
    marks = (_TOWN if town else _PERSON) if again else _NAMED
    text = re.sub("<([^>]*)>", marks["<"], text)
    return form(text.replace("@", marks["@"]).replace("&", marks["&"]))
