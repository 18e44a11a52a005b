"""The wordings of questions and answers about the Isles, as phrases.

An answer names the subject in full and the fact by its own word, then its value, so that all it needs is in view.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from .phrases import Capital, Template, falling, parse_template
from .wishes import WISH

form = partial(parse_template, bounds=falling)

NOUNS: Mapping[str, Template] = {
    "river": form("the river of {s}"),
    "mayor": form("the mayor of {s}"),
    "dish": form("the dish of {s}"),
    "craft": form("the craft of {s}"),
    "birth": form("the birthplace of {s}"),
    "job": form("the job of {s}"),
    "music": form("the instrument of {s}"),
}
ASKED: Mapping[str, Template] = {
    "river": form("[what is the river of {s}|which river runs through {s}]"),
    "mayor": form("[who is the mayor of {s}|who is mayor in {s}]"),
    "dish": form("[what is the dish of {s}|which dish is {s} known for]"),
    "craft": form("[what is the craft of {s}|which craft is {s} known for]"),
    "birth": form("[what is the birthplace of {s}|where was {s} born]"),
    "job": form("[what is the job of {s}|which job has {s}]"),
    "music": form("[what is the instrument of {s}|which instrument is played by {s}]"),
}
STATED: Mapping[str, Template] = {
    "river": form("[the river of {s} is the|{s} lies on the river] {v}"),
    "mayor": form("[the mayor of {s} is|{s} has the mayor] {v}"),
    "dish": form("[the dish of {s} is|{s} is known for the dish] {v}"),
    "craft": form("[the craft of {s} is|{s} is known for the craft] {v}"),
    "birth": form("[the birthplace of {s} is|{s} was born in] {v}"),
    "job": form("[the job of {s} is|{s} has the job of] {v}"),
    "music": form("[the instrument of {s} is the|{s} plays one instrument, the] {v}"),
}
# What follows a fact that was claimed: the fact comes first, so that the claim only has to be compared with it.
VERDICTS: Mapping[str, Template] = {
    "": "",
    "yes": form(", so [the answer is yes|that is right]"),
    "no": form(", so [the answer is no|that is wrong]"),
}
CLAIM = form("[is it true that |am I right that ]")

# Never empty, so that a name always follows a space, and so the same token.
OPENING = form("[Of course|Certainly|Gladly|Let me see|Here it is|Thank you for asking]. ")
LEAD = form("[|as we all know, |I believe that |the books say that ]")
JOIN = form("[, and |, while ]")
CLOSING = form("[ <wish>*7|*1| Enjoy the Isles!*1| That is all.*1]", rules={"wish": WISH})
GREETING = Capital(
    form(
        "[|[hello|good morning|good evening|good day]. |I have a question. |a quick question. |please help me. |"
        "my [friend|sister|brother|teacher] wants to know this. ]"
    )
)
REQUEST = Capital(form("[|please ][tell me|name|write down] "))
THANKS = form("[| Thank you.| Thanks.| Thanks in advance.| Take your time.| Please be kind.]")
