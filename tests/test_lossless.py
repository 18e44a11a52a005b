"""Tier 1: whatever a method proposes, the text is the one that one-at-a-time decoding writes, token by token.

The default tier takes ten prompts for a setting of every method, which still are every budget once, and two prompts for
every kind of model, or one where a test is not of budgets; `--all` takes another setting. Of ends of a text it takes
all that five prompts have, one for every kind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decoding.engine import Engine
from decoding.methods import METHODS
from decoding.methods.autoregressive import Autoregressive
from decoding.tree import Builder
from decoding.types import Draft, Role
from tests.tiers import few, sampled
from tests.toys import CASES, COPYING, SETTINGS, cycle, engine, hashed, plain, prompt_for, tied, title, toy

SEEDS, ENDS, LONGEST, TOYS = 10, 5, 40, 25
Params = Mapping[str, Any]
# A method's settings lead to trees of other shapes: test_lossless_models.py has all of them.
every_method = pytest.mark.parametrize(("method", "params"), few(1, CASES), ids=title)
every_copying_method = pytest.mark.parametrize(("method", "params"), few(1, COPYING), ids=title)

SAMPLINGS: tuple[Mapping[str, Any], ...] = (
    {"temperature": 1.0},
    {"temperature": 0.6, "top_k": 4},
    {"temperature": 1.3, "top_p": 0.8},
    {"temperature": 0.9, "min_p": 0.1},
    {"temperature": 1.0, "repetition_penalty": 1.4},
    {"temperature": 1.5, "top_k": 6, "top_p": 0.9, "min_p": 0.05, "repetition_penalty": 0.8},
)


@pytest.fixture(scope="module")
def engines() -> list[Engine]:
    """Return engines on toys of all kinds, shared because a table fills as it is read."""
    return [engine(toy(kind, seed=kind)) for kind in range(TOYS)]


def test_every_method_has_settings() -> None:
    """A method that nobody wrote settings for would be in no test of this file."""
    assert set(METHODS) <= set(SETTINGS)


@every_method
def test_greedy_text_is_the_plain_one_for_every_budget(method: str, params: Params, engines: list[Engine]) -> None:
    """A wrong acceptance, a lost bonus token, a cut at the wrong place, a budget overrun by an accepted run."""
    met = Counter[int]()
    for seed in range(SEEDS):
        machine = engines[seed % TOYS]
        prompt = prompt_for(machine.model, seed)
        expected = plain(machine.model, prompt, LONGEST)
        for budget in range(1 + seed % 10, LONGEST + 1, 10):
            result = machine.generate(prompt, method, params=params, max_new_tokens=budget, record="off")
            assert result.ids == expected[:budget], f"seed {seed}, budget {budget}"
            assert result.summary.finish == "length"
            met[budget] += 1
    assert len(met) == LONGEST and min(met.values()) >= SEEDS // 10


@sampled
@every_method
def test_the_text_ends_at_the_end_token_wherever_it_stands(method: str, params: Params, engines: list[Engine]) -> None:
    """Tokens accepted together with an end of text, but after it, must not be written."""
    for seed in range(ENDS):
        machine = engines[seed % TOYS]
        prompt = prompt_for(machine.model, seed)
        text = plain(machine.model, prompt, 16)
        for end in sorted(set(text)):
            result = machine.generate(prompt, method, params=params, max_new_tokens=24, end_tokens=[end], record="off")
            assert result.ids == text[: text.index(end) + 1], f"seed {seed}, end {end}"
            assert result.summary.finish == "end_of_text"


@sampled
@every_method
def test_the_text_ends_at_a_stop_string_wherever_it_stands(method: str, params: Params, engines: list[Engine]) -> None:
    """A stop string completed inside an accepted run must end the run there, not at the step's end."""
    for seed in range(ENDS):
        machine = engines[seed % TOYS]
        prompt = prompt_for(machine.model, seed)
        ids = plain(machine.model, prompt, 16)
        for offset in range(seed % 4, 16, 4):
            stop = " ".join(map(str, ids[max(0, offset - 1) : offset + 1]))
            written = [" ".join(map(str, ids[:count])) for count in range(len(ids) + 1)]
            count = next(count for count, text in enumerate(written) if stop in text)
            result = machine.generate(prompt, method, params=params, max_new_tokens=24, stop=[stop], record="off")
            assert result.ids == ids[:count], f"seed {seed}, stop {stop!r}"
            assert result.summary.finish == "stop"
            assert result.text == written[count][: written[count].index(stop)]


def test_stops_really_fall_inside_accepted_runs() -> None:
    """The tests above would prove nothing about runs that are cut if no accepted run were ever cut."""
    machine = engine(cycle())
    prompt = tuple(range(7)) * 2
    for options in ({"end_tokens": [3]}, {"stop": ["3"]}, {"max_new_tokens": 4}):
        result = machine.generate(prompt, "prompt_lookup", **{"max_new_tokens": 9, **options})
        assert result.ids == (0, 1, 2, 3)
        assert [step.accepted for step in result.trace.steps] == [3 if "max_new_tokens" in options else 4]


@sampled
@every_method
def test_ties_go_to_the_lowest_id(method: str, params: Params) -> None:
    """Two places that break ties differently make methods diverge on models with coarse numbers."""
    for seed in range(4):
        machine = engine(tied(vocabulary=9, seed=seed), tied(vocabulary=9, seed=seed + 1))
        result = machine.generate((1, 2, 1), method, params=params, max_new_tokens=30, record="off")
        assert result.ids == plain(machine.model, (1, 2, 1), 30)


@sampled
@every_method
def test_greedy_text_under_a_repetition_penalty(method: str, params: Params, engines: list[Engine]) -> None:
    """A penalty that counts the committed text only, and not a node's own path, accepts wrong tokens."""
    for seed in range(ENDS):
        machine = engines[seed % TOYS]
        prompt, penalty = prompt_for(machine.model, seed), (1.3, 0.7)[seed % 2]
        sampling = {"repetition_penalty": penalty}
        result = machine.generate(prompt, method, params=params, sampling=sampling, max_new_tokens=25, record="off")
        assert result.ids == plain(machine.model, prompt, 25, penalty)


@every_copying_method
def test_sampled_text_is_that_of_autoregressive_sampling(method: str, params: Params, engines: list[Engine]) -> None:
    """A method whose guesses are no samples must not consume randomness, whatever is accepted or rejected."""
    for seed in range(SEEDS):
        machine = engines[seed % TOYS]
        sampling = {**SAMPLINGS[seed % len(SAMPLINGS)], "seed": seed}
        options: dict[str, Any] = {"sampling": sampling, "max_new_tokens": 1 + 3 * seed % LONGEST, "record": "off"}
        prompt = prompt_for(machine.model, seed)
        expected = machine.generate(prompt, "autoregressive", **options)
        assert machine.generate(prompt, method, params=params, **options).ids == expected.ids, f"seed {seed}"


@sampled
@every_method
def test_feeding_the_prompt_in_chunks_changes_nothing(method: str, params: Params) -> None:
    """A pending chain in front of a tree must not shift the tree's rows, parents or cache."""
    machine = engine(hashed(order=3, sharpness=4.0))
    for length in (1, 7, 30):
        prompt = prompt_for(machine.model, length, longest=length)
        expected = plain(machine.model, prompt, 20)
        for chunk in (1, 2, 512) if length < 30 else (7, 512):
            options: dict[str, Any] = {"params": params, "max_new_tokens": 20, "prefill_chunk": chunk, "record": "off"}
            result = machine.generate(prompt, method, **options)
            assert result.ids == expected


class Junk(Autoregressive):
    """Proposes whatever trees it is given, then nothing."""

    trees: tuple[tuple[tuple[int, int, bool], ...], ...] = ()  # per step: (token, which earlier node, explore)

    def propose(self) -> Draft:
        """Propose the next tree."""
        tree = Builder(self._context.text[-1])
        step = len(self._context.text) - self._context.prompt_length
        for token, parent, explore in self.trees[step % len(self.trees)]:
            tree.add(token, parent % len(tree), "junk", Role.EXPLORE if explore else Role.VERIFY)
        return tree.draft()


VOCABULARY = 5
nodes = st.tuples(st.integers(0, VOCABULARY - 1), st.integers(0, 40), st.booleans())
forests = st.lists(st.lists(nodes, max_size=24).map(tuple), min_size=1, max_size=4).map(tuple)
SMALL = engine(hashed(VOCABULARY, order=2, seed=5))


@given(
    forests,
    st.sampled_from([{}, {"repetition_penalty": 1.3}, {"temperature": 1.0}, {"temperature": 0.8, "top_p": 0.9}]),
)
def test_the_text_does_not_depend_on_the_draft(forest: Any, sampling: Mapping[str, Any]) -> None:
    """The strongest property: no tree, however odd, with whatever explore nodes and duplicates, changes a token."""
    options: dict[str, Any] = {"sampling": {**sampling, "seed": 3}, "max_new_tokens": 9}
    expected = SMALL.generate((1, 2), "autoregressive", **options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(METHODS, "autoregressive", type("Tried", (Junk,), {"trees": forest}))
        assert SMALL.generate((1, 2), "autoregressive", **options).ids == expected.ids


def test_junk_trees_do_get_accepted() -> None:
    """The property above would be empty if no junk tree ever held the right guess."""
    everything = tuple((token, parent, False) for parent in (0, 1, 2) for token in range(VOCABULARY))
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(METHODS, "autoregressive", type("Tried", (Junk,), {"trees": (everything,)}))
        result = SMALL.generate((1, 2), "autoregressive", max_new_tokens=12)
    assert all(step.accepted >= 1 for step in result.trace.steps[:-1])
