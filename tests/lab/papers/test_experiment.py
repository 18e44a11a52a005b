"""Runs over questions: what is counted, what is shared, and in which order the clock sees them."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest
import torch

from analysis.prompts.tasks import Task
from decoding.codec import Codec
from decoding.engine import Engine
from decoding.errors import ParamError
from decoding.model.decoder import Decoder
from decoding.model.draft_vocabulary import DraftVocabulary
from decoding.model.session import Model
from decoding.toy import toy
from lab.papers.distributions import measure_overlap
from lab.papers.experiment import (
    MEAN,
    PLAIN,
    SPEED,
    TOKENS,
    Experiment,
    Tally,
    answer_questions,
    compare_by_kind,
    compare_speeds,
    using,
)
from lab.papers.scaling import expected_steps
from lab.papers.tables import UnmeasuredError
from tests.families import machine
from tests.toys import correlated, counted_text, engine, hashed, plain

from .conftest import KINDS, make_experiment

COPY = using("prompt_lookup", K=4)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int, str]]:
    """Note every run that any engine is asked for: its method, budget and first prompt tokens."""
    made: list[tuple[str, int, str]] = []
    decode = Engine.decode

    def noted(self: Engine, prompt: Any, method: Any = "autoregressive", *rest: Any, **options: Any) -> Any:
        made.append((method, rest[2] if len(rest) > 2 else options["max_new_tokens"], str(prompt)))
        return decode(self, prompt, method, *rest, **options)

    monkeypatch.setattr(Engine, "decode", noted)
    return made


def test_autoregressive_decoding_writes_one_token_a_step(experiment: Experiment) -> None:
    [tally] = experiment.tally(PLAIN)
    assert tally.per_step() == tally.per_step("code") == 1.0
    assert tally.steps == 3 * 16 and tally.rows == tally.later == 3 * 15
    assert (tally.answers, tally.drafted, tally.acceptance) == (0, 0, 0.0)  # it is what answers are compared with


def test_a_tally_counts_what_the_steps_say(experiment: Experiment) -> None:
    seen: list[tuple[str, list[int]]] = []
    tally = experiment.watch(
        COPY, lambda question, steps: seen.append((question.kind, [len(s.emitted) for s in steps]))
    )
    lengths = [length for _, run in seen for length in run]
    assert [kind for kind, _ in seen] == list(KINDS)
    assert tally.steps == len(lengths) and tally.per_step() == sum(lengths) / len(lengths) > 1.0
    assert tally.per_step("chat") == sum(seen[1][1]) / len(seen[1][1])
    for w in (1, 2, 4):
        assert tally.consistent(w) == sum(length > w for length in lengths) / len(lengths)
    assert tally.lengths(["code", "chat"]) == Counter(seen[0][1]) + Counter(seen[1][1])
    assert 0.0 < tally.acceptance < 1.0 and tally.speed > 0.0
    assert experiment.identical == (3, 3, 0)


def test_a_run_is_made_once(experiment: Experiment, runs: list[tuple[str, int, str]]) -> None:
    """A setting that several claims ask for is measured for the first of them."""
    first = experiment.tally(COPY, PLAIN, COPY)
    assert first[0] is first[2] and len(runs) == 6
    assert experiment.tally(using("prompt_lookup", K=4)) == [first[0]] and len(runs) == 6
    experiment.tally(using("prompt_lookup", K=5), using("prompt_lookup", K=4, temperature=1.0))
    assert len(runs) == 12


def test_a_race_takes_turns_question_by_question(experiment: Experiment, runs: list[tuple[str, int, str]]) -> None:
    """Measured one after the other, settings would meet different drifts of the machine's speed."""
    experiment.race(PLAIN, COPY)
    warm, timed = runs[:2], runs[2:]
    assert [method for method, _, _ in timed] == ["autoregressive", "prompt_lookup"] * 3
    assert timed[0][2] == timed[1][2] != timed[2][2]
    assert [method for method, _, _ in warm] == ["autoregressive", "prompt_lookup"]
    experiment.race(PLAIN, COPY)
    experiment.tally(COPY)
    assert len(runs) == 8
    table = compare_speeds(experiment, "setting", {"copying": COPY})
    assert table.number("copying", SPEED) > 0.0 and table.number("copying", TOKENS) > 1.0
    assert len(runs) == 8


def test_sampling_takes_the_questions_number_as_its_seed() -> None:
    def lengths() -> dict[str, Counter[int]]:
        experiment = make_experiment(engine(hashed(7, 2)), 12)
        return experiment.tally(using("draft_model", temperature=1.0, gamma=3))[0].written

    first = lengths()
    assert first == lengths() and len({str(sorted(counts.items())) for counts in first.values()}) > 1


def test_sampled_answers_do_not_count_as_identical(experiment: Experiment) -> None:
    experiment.tally(using("draft_model", temperature=1.0, gamma=2))
    assert experiment.identical == (0, 0, 0)


def test_an_engine_of_ones_own_remembers_its_own_runs_only(experiment: Experiment) -> None:
    """A warm start measured on the engine of all other claims would begin with their phrases."""
    warm: dict[str, Any] = {"warm_start": "across", "N": 3, "W": 2, "G": 4}
    cold = using("ouroboros", N=3, W=2, G=4)
    one, again = experiment.tally(
        using("ouroboros", alone=True, **warm), using("ouroboros", alone=True, order=(0, 1, 2), **warm)
    )
    assert one.written == again.written
    backwards, _ = experiment.tally(using("ouroboros", alone=True, order=(2, 1, 0), **warm), cold)
    assert list(backwards.written) == list(KINDS)[::-1]
    assert all(not kept for kept in experiment.engine.memory.values())
    sizes: list[int] = []
    experiment.watch(
        using("ouroboros", alone=True, **warm),
        lambda question, steps: sizes.append(steps[0].panel["pool"]["entries"]),
    )
    assert sizes[0] < sizes[1] < sizes[2], "nothing was remembered from question to question"


def test_a_missing_part_is_told_before_anything_runs(runs: list[tuple[str, int, str]]) -> None:
    model = counted_text()
    experiment = make_experiment(Engine(model, Codec()), 4)
    runs.clear()
    with pytest.raises(UnmeasuredError, match="medusa needs Medusa heads: load the engine with"):
        experiment.race(PLAIN, using("medusa"))
    with pytest.raises(UnmeasuredError, match="draft_model needs a drafter"):
        measure_overlap(experiment, 1.0)
    with pytest.raises(UnmeasuredError, match="no questions of the kind 'opera'"):
        experiment.find_kind("opera", "ballet")
    assert runs == [] and experiment.find_kind("opera", "chat") == "chat"


def test_kinds_side_by_side(experiment: Experiment) -> None:
    table = compare_by_kind(experiment, "method", {"copying": COPY})
    values = [table.number("copying", kind) for kind in KINDS]
    assert table.number("copying", MEAN) == pytest.approx(sum(values) / 3)
    assert table.heads == ("method", MEAN, *KINDS)


def test_later_turns_hold_the_answers() -> None:
    machine = toy()
    tasks = [Task(1, "chat", ("Who is there?", "And then?")), Task(2, "lists", ("x " * 3000,))]
    shares: list[float] = []
    first, second = answer_questions(machine, tasks, 8, shares.append)
    assert first.kind == second.kind == "chat" and len(first.answer) == 8
    assert second.ids[: len(first.ids)] == first.ids
    assert machine.codec.decode(first.answer).strip() in machine.codec.decode(second.ids)
    assert shares == [0.0, 0.0, 0.5]
    with pytest.raises(ParamError, match="lower --max-new-tokens"):
        answer_questions(machine, tasks[1:], 8, shares.append)


def test_a_model_without_a_template_reads_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Any] = []
    monkeypatch.setattr(Engine, "encode", lambda self, prompt, name="prompt": read.append(prompt) or [1, 2])
    machine = Engine(counted_text(), Codec())
    answer_questions(machine, [Task(1, "a", ("one", "two"))], 2, lambda share: None)
    first, second = (prompt for prompt in read if isinstance(prompt, str))
    assert first == "one" and re.fullmatch(r"one\n\d+ \d+\ntwo", second)


def test_alpha_is_the_overlap_of_both_distributions() -> None:
    model = hashed(7, 2)
    experiment = make_experiment(
        engine(model), 10, length=1
    )  # a prompt of one token has nothing in front of its distribution
    met, drafter = measure_overlap(experiment, 1.0), correlated(model)
    for number, question in enumerate(experiment.questions):
        sampling = {"temperature": 1.0, "seed": number}
        text, answer = (
            list(question.ids),
            experiment.engine.generate(question.ids, sampling=sampling, max_new_tokens=10).ids,
        )
        for place, token in enumerate(answer):
            p, q = (torch.softmax(known.logits(text), -1) for known in (model, drafter))
            assert met.betas[number][place] == pytest.approx(float(torch.minimum(p, q).sum()), abs=1e-6)
            assert met.chances[number][place] == pytest.approx(min(1.0, float(q[token] / p[token])), abs=1e-6)
            text.append(token)
    every = [beta for answer in met.betas for beta in answer]
    assert met.alpha == pytest.approx(sum(every) / 30) and -1.0 <= met.correlation <= 1.0


def test_what_a_drafter_never_drafts_adds_nothing_to_alpha() -> None:
    """SmolLM2's drafter has logits of its commonest tokens only."""
    small = machine("llama")
    assert isinstance(small.draft, Decoder)
    width = small.model.card.vocabulary
    even = torch.arange(0, width, 2)
    narrow = Engine(small.model, small.codec, small.draft.narrowed(DraftVocabulary(even, width)))
    experiment = make_experiment(narrow, 6, kinds=("code",))
    whole = make_experiment(small, 6, kinds=("code",))
    [betas], [most] = measure_overlap(experiment, 1.0).betas, measure_overlap(whole, 1.0).betas
    [question] = experiment.questions
    answer = narrow.generate(question.ids, sampling={"temperature": 1.0, "seed": 0}, max_new_tokens=6).ids
    p, q = (all_logits(each, [*question.ids, *answer]).softmax(-1) for each in (small.model, small.draft))
    shares = q[:, even] / q[:, even].sum(-1, keepdim=True)
    assert betas == pytest.approx(torch.minimum(p[:, even], shares).sum(-1)[-7:-1].tolist(), abs=1e-5)
    assert most == pytest.approx(torch.minimum(p, q).sum(-1)[-7:-1].tolist(), abs=1e-5)


def all_logits(model: Model, ids: list[int]) -> torch.Tensor:  # (n, V)
    session = model.open(64, 64)
    session.reset(len(ids))
    return session.read(ids, tuple(range(-1, len(ids) - 1))).logits


def test_a_long_prompt_is_read_in_several_passes() -> None:
    experiment = make_experiment(engine(hashed(7, 2)), 6, kinds=("code",), length=600)
    met = measure_overlap(experiment, 0.0)
    assert [len(answer) for answer in met.betas] == [6]
    assert experiment.questions[0].answer == plain(hashed(7, 2), experiment.questions[0].ids, 6)


@pytest.mark.parametrize("gamma", [1, 2, 5])
def test_greedy_steps_are_predicted_to_the_last_one(gamma: int) -> None:
    """Without chance in it the prediction from each guess's own chance is no estimate."""
    experiment = make_experiment(engine(counted_text()), 30)
    [tally] = experiment.tally(using("draft_model", gamma=gamma))
    chances = measure_overlap(experiment, 0.0).chances
    assert {chance for answer in chances for chance in answer} == {0.0, 1.0}
    assert tally.steps == sum(expected_steps(answer, gamma) for answer in chances)


@pytest.mark.slow  # it measures
def test_sampled_steps_are_predicted_in_the_mean() -> None:
    """Ninety texts of 24 tokens: the standard error is about 1.5%."""
    experiment = make_experiment(engine(hashed(7, 2)), 24, kinds=("code",) * 90)
    [tally] = experiment.tally(using("draft_model", temperature=1.0, gamma=3))
    chances = measure_overlap(experiment, 1.0).chances
    predicted = sum(map(len, chances)) / sum(expected_steps(answer, 3) for answer in chances)
    assert tally.per_step() == pytest.approx(predicted, rel=0.06)


def test_an_empty_tally_has_no_speed() -> None:
    assert Tally().speed == 0.0 and Tally().acceptance == 0.0


def test_progress_is_told(experiment: Experiment) -> None:
    shares: list[float] = []
    experiment.progress = shares.append
    experiment.tally(PLAIN, COPY)
    assert shares == sorted(shares) and len(shares) == 6 and shares[-1] < 1.0
