"""Branches: a run that continues a recorded one with different tokens.

The branch's prompt is the other run's prompt, what that run had committed before the step, the step's tokens that are
kept, and the forced tokens. A method begins with it as with any prompt: windows, pools and tables of the other run are
not carried over. Draws continue at their positions among the uniform numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from .errors import ParamError
from .loaded import Loaded
from .params import check_count, shown
from .processor import LONGEST
from .request import DecodeOptions, Request, build_request
from .tree import path_to
from .types import Branch, Role, Step, Trace

_LONGEST_TEXT = 1024  # characters of a forced text
# Options that a branch takes from the other run, so that a caller cannot choose them.
_GIVEN = ("stop", "end_tokens", "reference", "prefill_chunk")


def build_branch(
    loaded: Loaded,
    trace: Trace,
    step: int,
    node: int | None,
    token: int | str | None,
    keep: int | None,
    name: str,
    options: DecodeOptions,
) -> Request:
    """Check the arguments of `Engine.branch`, and return the request of its run."""
    if not isinstance(trace, Trace):
        raise ParamError("give a trace: a result's, or one from decoding.trace.read_trace")
    header = trace.header
    if header.model.hash != loaded.model.card.hash or header.model.vocabulary != loaded.model.card.vocabulary:
        name_of = header.model.name[:80]
        raise ParamError(f"this run was written by {name_of!r}, not by {loaded.model.card.name!r}: load that model")
    if not isinstance(name, str) or len(name) > LONGEST or (name and not name.isprintable()):
        raise ParamError(f"the name of the run must have at most {LONGEST} printable characters")
    if taken := [option for option in _GIVEN if option in options]:
        raise ParamError(f"a branch has the {taken[0]} of the run that it comes from: leave it out")
    if not trace.steps:
        raise ParamError("this run has no steps: there is nothing to go on from")
    at_step = trace.steps[check_count("step", step, 0, len(trace.steps) - 1)]
    kept, forced = _forced(loaded, at_step, node, token, keep)
    at = at_step.start - len(header.prompt) + len(kept)
    budget = header.max_new_tokens - at - len(forced)
    if budget < 1:
        raise ParamError(
            f"the run ends after {header.max_new_tokens} tokens, and that is its last: force an earlier one"
        )
    prompt = [*header.prompt, *trace.ids[: at - len(kept)], *kept, *forced]
    if ending := set(header.end_tokens) & {*kept, *forced}:
        text = loaded.codec.piece(min(ending))
        raise ParamError(f"{shown(text)} ends the text, so nothing follows it: force another token")
    more: dict[str, Any] = {"memory": {}, **options, "stop": header.stop, "end_tokens": header.end_tokens}
    more |= {"reference": header.reference or None, "prefill_chunk": header.prefill_chunk}
    request = build_request(loaded, prompt, header.method, header.params, header.sampling, budget, more)  # type: ignore[arg-type]
    before = 0 if header.branch is None else header.branch.written + len(header.prompt) - header.branch.prompt
    return replace(request, branch=Branch(name, len(header.prompt), at_step.index, at, tuple(forced), before))


def _forced(
    loaded: Loaded, step: Step, node: int | None, token: int | str | None, keep: int | None
) -> tuple[Sequence[int], Sequence[int]]:
    """Return the step's tokens to keep, and the tokens to force after them."""
    if (node is None) == (token is None):
        raise ParamError("give either the node of a guess or a token")
    if token is not None:
        kept = len(step.emitted) - 1 if keep is None else check_count("keep", keep, 0, len(step.emitted))
        return step.emitted[:kept], _tokens(loaded, token)
    if keep is not None:
        raise ParamError("a node has its position in the tree: leave keep out")
    if not step.tokens:
        raise ParamError("the guesses of this run were not recorded: give a token, or record light or full")
    node = check_count("node", node, 1, len(step.tokens) - 1) if len(step.tokens) > 1 else 0
    if not node or step.roles[node] is not Role.VERIFY:
        raise ParamError("that node is no guess: choose one that the target was to verify, or give a token")
    path = path_to(step.parents, node)[1:]
    accepted = 0
    while accepted < len(path) - 1 and path[accepted] in step.path:
        accepted += 1
    tokens = [step.tokens[each] for each in path]
    return tokens[:accepted], tokens[accepted:]


def _tokens(loaded: Loaded, token: int | str) -> Sequence[int]:
    """Return the ids of the forced token or text."""
    if not isinstance(token, str):
        return [check_count("token", token, 0, loaded.model.card.vocabulary - 1)]
    if not token or len(token) > _LONGEST_TEXT:
        raise ParamError(f"the forced text must have 1 to {_LONGEST_TEXT} characters")
    ids = loaded.codec.encode_part(token)
    if not ids:
        raise ParamError("nothing is left of the forced text: write another one")
    return ids
