"""Why a step has no guess, in words: what the method looked for, and why that gave nothing."""

from __future__ import annotations

from collections.abc import Callable

from decoding.types import Header, Role, Step

from . import panel, visible
from .story import Story

_UNLIMITED = ("autoregressive", "jacobi", "lookahead")  # methods whose guesses do not depend on what is still asked for


def reason(story: Story, step: Step) -> str:
    """Words that follow "no guess"; none where the record does not tell."""
    header = story.header
    if header.method not in _UNLIMITED and _last(header, step):
        return "no more tokens are asked for"
    columns = zip(step.roles, step.sources, strict=True)
    fed = any(role is Role.EXPLORE and source[:6] != "window" for role, source in columns)
    if fed or not step.tokens or header.method not in _REASONS:
        return ""  # guesses that could not be taken yet, or a record without any
    return _REASONS[header.method](story, step)


def _last(header: Header, step: Step) -> bool:
    """Whether the step could write one token only, which the target writes itself."""
    return step.start - len(header.prompt) + 1 >= header.max_new_tokens


def _pool(story: Story, step: Step) -> str:
    if step.panel.get("phase") != "steady":
        return "the window is not full yet" if step.panel else ""
    return f"the pool holds nothing behind {visible.quoted(story.text(panel.root(step)))}"


def _copy(story: Story, step: Step) -> str:
    params = story.header.params
    if panel.whole(step.panel.get("n")):
        return "the copy begins with an end of text" if params.get("stop_at_end") is True else ""
    if params.get("tail") == "full":
        K = panel.setting(story.header, "K", 1, 128, 10)
        return f"no earlier place of the text's ending has {K} token{'s' * (K != 1)} behind it"
    return "the text's ending did not occur before"


def _rows(story: Story, step: Step) -> str:
    if "matches" not in step.panel:
        return ""
    if panel.whole(step.panel["matches"]) and story.header.params.get("tail") == "full":
        w = panel.whole(step.panel.get("w"))
        return f"no earlier place of the text's ending has {w} token{'s' * (w != 1)} behind it"
    return "the text's ending did not occur before"


def _store(story: Story, step: Step) -> str:
    if "span" not in step.panel:
        return ""
    found = panel.whole(step.panel["span"])
    return (
        "nothing follows the text's ending in the datastore" if found else "the text's ending is not in the datastore"
    )


_REASONS: dict[str, Callable[[Story, Step], str]] = {
    "lookahead": _pool,
    "prompt_lookup": _copy,
    "ngrammys": _rows,
    "medusa": lambda story, step: "" if step.index else "the heads have not read anything yet",
    "kangaroo": lambda story, step: "the prompt has to be read first" if step.panel.get("stopped") == "start" else "",
    "rest": _store,
}
