"""What if: a run that goes on from a step of another one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from decoding import Engine, Result, Trace, load
from decoding.errors import ParamError, TraceError
from decoding.trace.file import dump_line, parse_trace
from decoding.types import Branch, Role
from tests.toys import CASES, COPYING, counted_text, engine, hashed, plain, title

PROMPT = (3, 1, 4, 1, 5, 9, 2, 6)
NEW = 20


@cache
def machine() -> Engine:
    return engine(counted_text())


def written(method: str, params: Mapping[str, Any], **options: Any) -> Result:
    return machine().generate(PROMPT, method, params, max_new_tokens=NEW, memory={}, **options)


def finish(run: Any) -> Trace:
    for _ in run:
        pass
    trace: Trace = run.trace
    return trace


@pytest.mark.sampled
@pytest.mark.parametrize(("method", "params"), CASES, ids=title)
def test_a_rejected_guess_goes_on_as_one_at_a_time(method: str, params: Mapping[str, Any]) -> None:
    """A branch whose text was not that of its forced prefix; a node whose way there was not written."""
    trace = written(method, params).trace
    model = counted_text()
    for step in trace.steps[:6]:
        guesses = [i for i, role in enumerate(step.roles) if role is Role.VERIFY and i not in step.path]
        for node in guesses[:1]:
            branch = finish(machine().branch(trace, step.index, node=node, name="first"))
            begun, about = branch.header.prompt, branch.header.branch
            assert about is not None and about.run == "first" and about.step == step.index
            assert begun == (*PROMPT, *trace.ids[: about.at], *about.forced) and begun[-1] == step.tokens[node]
            assert branch.ids == plain(model, begun, NEW - about.at - len(about.forced))
            assert (branch.header.method, branch.header.params) == (method, trace.header.params)


@pytest.mark.sampled
@pytest.mark.parametrize(("method", "params"), CASES, ids=title)
def test_the_chosen_token_writes_the_same_text_again(method: str, params: Mapping[str, Any]) -> None:
    """A branch that begins a place too early or too late, or ends elsewhere than the run that it comes from."""
    trace = written(method, params).trace
    step = trace.steps[len(trace.steps) // 2]
    for keep, token in enumerate(step.emitted):
        if (at := step.start - len(PROMPT) + keep) + 1 < NEW:
            branch = finish(machine().branch(trace, step.index, token=token, keep=keep))
            assert (*trace.ids[: at + 1], *branch.ids) == trace.ids
    for node in step.path[1:]:
        branch = finish(machine().branch(trace, step.index, node=node))
        about = branch.header.branch
        assert about is not None and about.forced == (step.tokens[node],)
        assert (*trace.ids[: about.at + 1], *branch.ids) == trace.ids


@pytest.mark.sampled
@pytest.mark.parametrize(("method", "params"), COPYING, ids=title)
def test_draws_go_on_at_their_place_in_the_seed(method: str, params: Mapping[str, Any]) -> None:
    """A branch that draws the first numbers of the seed again; and a branch of a branch that does."""
    trace = written(method, params, sampling={"temperature": 0.9, "seed": 5}).trace
    branch = finish(machine().branch(trace, 0, token=trace.ids[0], keep=0))
    assert (trace.ids[0], *branch.ids) == trace.ids
    again = finish(machine().branch(branch, 0, token=branch.ids[0], keep=0))
    assert (*trace.ids[:2], *again.ids) == trace.ids


def test_without_a_place_the_steps_last_token_is_another() -> None:
    """`token` alone corrects what the target corrected."""
    trace = written("prompt_lookup", {}).trace
    step = trace.steps[1]
    branch = machine().branch(trace, 1, token=7)
    about = branch.header.branch
    assert about is not None and about.at == step.start - len(PROMPT) + len(step.emitted) - 1
    assert branch.request.max_new_tokens == NEW - about.at - 1


def test_a_text_is_forced_as_its_tokens() -> None:
    """A text with special tokens around it, as a prompt has them."""
    pocket = load("toy")
    trace = pocket.generate("On Thursday", max_new_tokens=8).trace
    branch = pocket.branch(trace, 2, token=" Monday")
    about = branch.header.branch
    assert about is not None and "".join(map(pocket.codec.piece, about.forced)) == " Monday"


def test_the_record_says_where_it_comes_from() -> None:
    """A branch that a file forgets; one by hand whose prompt is another's."""
    trace = finish(machine().branch(written("jacobi", {}).trace, 1, token=4, keep=0, name="run-1"))
    lines = dump_line("header", trace.header)
    assert parse_trace(lines).header == trace.header
    about = trace.header.branch
    assert about is not None
    for wrong in (
        replace(about, forced=(5,)),
        replace(about, at=about.at + 1),
        replace(about, prompt=0, at=about.at + about.prompt),
        replace(about, forced=()),
        replace(about, run="x" * 81),
        replace(about, run="\u202e"),
        replace(about, written=about.prompt),
        replace(about, step=-1),
    ):
        with pytest.raises(TraceError, match=r"branch"):
            parse_trace(dump_line("header", replace(trace.header, branch=wrong)))


@pytest.mark.parametrize(
    ("step", "choice", "sentence"),
    [
        (99, {"token": 1}, "step must be"),
        (0, {}, "either the node"),
        (0, {"token": 1, "node": 1}, "either the node"),
        (0, {"token": 99}, "token must be"),
        (0, {"token": True}, "token must be"),
        (0, {"token": 1, "keep": 50}, "keep must be"),
        (0, {"token": "a"}, "no tokenizer"),
        (0, {"token": ""}, "forced text"),
        (0, {"node": 0}, "node must be"),
        (0, {"node": 500}, "node must be"),
        (0, {"node": 1, "keep": 0}, "leave keep out"),
        (0, {"token": 1, "name": "\n"}, "name of the run"),
        (0, {"token": 1, "stop": ["a"]}, "leave it out"),
        (0, {"token": 1, "spelling": 1}, "no option"),
        (-1, {"token": 1}, "step must be"),
    ],
)
def test_what_is_no_branch_is_refused_in_a_sentence(step: int, choice: dict[str, Any], sentence: str) -> None:
    trace = written("jacobi", {"n": 3}).trace
    with pytest.raises(ParamError, match=sentence):
        machine().branch(trace, step, **choice)


def test_a_branch_needs_its_model_and_room() -> None:
    """Another model's run; a run without steps; after the last token; after the end of the text."""
    trace = written("autoregressive", {}).trace
    with pytest.raises(ParamError, match="not by"):
        engine(hashed(31)).branch(trace, 0, token=1)
    with pytest.raises(ParamError, match="no steps"):
        machine().branch(replace(trace, steps=()), 0, token=1)
    with pytest.raises(ParamError, match="its last"):
        machine().branch(trace, NEW - 1, token=1)
    with pytest.raises(ParamError, match="ends the text"):
        machine().branch(replace(trace, header=replace(trace.header, end_tokens=(4,))), 0, token=4)
    with pytest.raises(ParamError, match="not recorded"):
        machine().branch(written("jacobi", {}, record="off").trace, 0, node=1)
    with pytest.raises(ParamError, match="give a trace"):
        machine().branch(Branch("", 1, 0, 0, (1,)), 0, token=1)  # type: ignore[arg-type]
