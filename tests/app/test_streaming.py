"""The lines of live runs, of every method."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest

from decoding.engine import Engine
from decoding.methods import METHODS
from tests.families import machine
from tests.tiers import few, sampled
from tests.toys import CASES, title
from tests.viz.records import expanded, parsed
from viz.stream.lines import ids_in
from viz.stream.play import Play, lines

_UNNAMED = re.compile(r"#\d+")  # what stands for a token whose text is not known


@cache
def _engine() -> Engine:
    """Make an engine with every part, and a vocabulary of which a step sees only a little."""
    return machine("llama", vocab_size=997)


@sampled
@pytest.mark.parametrize(("method", "params"), few(1, CASES), ids=title)
def test_a_stream_names_no_token_without_its_text(method: str, params: Mapping[str, Any]) -> None:
    """Pools and tables hold tokens that are no node of the step, some of them from earlier runs."""
    memory = dict[str, Any]()
    reference = [*range(40, 80), 3, 1, 4, *range(80, 90)] if METHODS[method].takes_reference else None
    for prompt in ((3, 1, 4, 1, 5, 9, 2, 6, 3, 1, 4), (5, 3, 5, 8, 9, 7, 9, 3, 1, 4)):
        run = _engine().decode(
            prompt, method, params, None, 12, record="full", end_tokens=(), memory=memory, reference=reference
        )
        play = Play(run.header, "id", 10**9)
        _check(play.begin(run.texts()) + "".join(play.step(step, run.texts(step)) for step in run))
        assert not any(_UNNAMED.search(play.rows(k)) for k in range(len(run.steps)))
        _check(lines(run.trace, cap=None))


def _check(stream: str) -> None:
    """Assert that every token of a line has its text in a line before it."""
    named = set[int]()
    for line in expanded(parsed(stream)):
        if line["kind"] == "texts":
            named |= {int(token) for token in line["texts"]}
        elif line["kind"] == "step":
            assert {*ids_in(line), *line["emitted"]} <= named
            assert not _UNNAMED.search(json.dumps(line))
