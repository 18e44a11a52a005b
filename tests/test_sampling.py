"""From logits to a token: the distribution against transformers' own processors, the draws, and the extremes."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from decoding.errors import ModelError, ParamError
from decoding.model.download import fetch
from decoding.outlook import Outlook, largest_probability, surest_of_few
from decoding.ranking import checked, likeliest, likeliest_and_ranked, ranked
from decoding.sampling import Draws, Sampler, Sampling, draw, drawn_rows

CPU = torch.device("cpu")
WORDS, ROWS = 29, 40


def shaped(logits: torch.Tensor, text: tuple[int, ...] = (), **settings: float) -> torch.Tensor:
    """Return the distribution of the next token after `text`."""
    sampler = Sampler(Sampling(**settings), logits.shape[-1], CPU, text)
    return sampler.probabilities(sampler.penalise(logits, [()] * len(logits)))


def reference(logits: torch.Tensor, text: tuple[int, ...], settings: dict[str, float]) -> torch.Tensor:
    """Return the same distribution through transformers' processors, in the order in which `generate` applies them."""
    from transformers import (
        LogitsProcessorList,
        MinPLogitsWarper,
        RepetitionPenaltyLogitsProcessor,
        TemperatureLogitsWarper,
        TopKLogitsWarper,
        TopPLogitsWarper,
    )

    steps = LogitsProcessorList()
    if "repetition_penalty" in settings:
        steps.append(RepetitionPenaltyLogitsProcessor(settings["repetition_penalty"]))
    steps.append(TemperatureLogitsWarper(settings["temperature"]))
    if "top_k" in settings:
        steps.append(TopKLogitsWarper(int(settings["top_k"])))
    if "top_p" in settings:
        steps.append(TopPLogitsWarper(settings["top_p"]))
    if "min_p" in settings:
        steps.append(MinPLogitsWarper(settings["min_p"]))
    ids = torch.tensor([text] * len(logits))
    return torch.softmax(steps(ids, logits.clone()), -1)


def rows(kind: str, seed: int = 0) -> torch.Tensor:  # (ROWS, WORDS)
    """Return random logits of one kind."""
    noise = 3 * torch.randn(ROWS, WORDS, generator=torch.Generator().manual_seed(seed))
    if kind == "tied":
        return noise.round()
    if kind == "masked":
        return noise.masked_fill(noise < -1.0, -torch.inf)
    return noise * 1e30 if kind == "huge" else noise


SETTINGS = [
    dict(zip(("top_k", "top_p", "min_p", "repetition_penalty"), values, strict=True))
    for values in itertools.product((None, 1, 5), (None, 0.3, 0.9), (None, 0.2), (None, 1.3, 0.8))
]


@pytest.mark.parametrize("kind", ["plain", "masked", "huge", "tied"])
def test_the_distribution_is_that_of_transformers(kind: str) -> None:
    """Another order of filters, or another meaning of one, makes outputs incomparable with everyone else's."""
    text = (3, 5, 3, 28)
    for chosen, temperature in itertools.product(SETTINGS, (0.7, 1.6)):
        settings = {"temperature": temperature} | {name: value for name, value in chosen.items() if value is not None}
        ours, theirs = shaped(rows(kind), text, **settings), reference(rows(kind), text, settings)
        if kind == "tied" and "top_p" in settings:  # of equal tokens at the edge transformers keeps the higher ids
            ours, theirs = ours.sort(-1).values, theirs.sort(-1).values
        torch.testing.assert_close(ours, theirs, atol=2e-6, rtol=1e-4, msg=lambda text: f"{settings}: {text}")  # noqa: B023


@given(st.lists(st.floats(-30, 30), min_size=2, max_size=9), st.floats(0.05, 20), st.integers(0, 9), st.data())
def test_a_distribution_is_a_distribution(
    logits: list[float], temperature: float, top_k: int, data: st.DataObject
) -> None:
    """Probabilities that do not sum to one, or a filter that drops everything or prefers a less likely token."""
    top_p, min_p = data.draw(st.floats(0, 1)), data.draw(st.floats(0, 1))
    row = torch.tensor([logits], dtype=torch.float64)
    settings = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "min_p": min_p}
    p = shaped(row, **settings)[0]
    assert float(p.sum()) == pytest.approx(1.0) and (p >= 0).all()
    assert p[likeliest(row)[0]] == p.max() > 0
    order = data.draw(st.permutations(range(len(logits))))
    if len(set(logits)) == len(logits) and min(np.diff(sorted(logits))) > 1e-6:
        torch.testing.assert_close(shaped(row[:, order], **settings)[0], p[order])


@pytest.mark.parametrize("temperature", [1e-3, 1e-30, 1e-300, 5e-324])
def test_a_vanishing_temperature_takes_the_likeliest(temperature: float) -> None:
    """Dividing by a tiny number overflows to infinity, and infinity less infinity is no number."""
    logits = rows("plain")
    assert shaped(logits, temperature=temperature).argmax(-1).tolist() == likeliest(logits)
    torch.testing.assert_close(shaped(logits, temperature=temperature).max(-1).values, torch.ones(ROWS))


def test_temperature_zero_shows_the_models_own_distribution() -> None:
    """The record shows p also for greedy runs: one without filters."""
    logits = rows("plain")
    torch.testing.assert_close(shaped(logits, top_k=2), torch.softmax(logits, -1))


def test_the_lowest_id_wins_a_tie() -> None:
    """Two runs that break ties differently differ for ever after."""
    logits = torch.tensor([[0.0, 2.0, 2.0, 1.0], [5.0, 5.0, 5.0, 5.0], [-math.inf, -math.inf, 0.0, 0.0]])
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        assert likeliest(logits.to(dtype)) == [1, 0, 2]
    wide = torch.zeros(1, 4096)
    wide[0, [77, 1023, 4001]] = 1.0
    assert likeliest(wide) == [77]


def test_the_penalty_counts_the_text_and_the_nodes_own_path() -> None:
    """A penalty that forgets the guesses above a node lets a run repeat inside an accepted draft."""
    sampler = Sampler(Sampling(repetition_penalty=2.0), 4, CPU, (0,))
    logits = torch.tensor([[2.0, 2.0, -2.0, -2.0]] * 3)
    expected = [[1.0, 2.0, -2.0, -2.0], [1.0, 1.0, -2.0, -2.0], [1.0, 2.0, -4.0, -4.0]]
    assert sampler.penalise(logits, [(), (1,), (2, 3, 2)]).tolist() == expected
    sampler.extend((1,))
    assert sampler.penalise(logits[:1], [()]).tolist() == [[1.0, 1.0, -2.0, -2.0]]
    assert Sampler(Sampling(), 4, CPU, (0,)).penalise(logits, [(), (1,), ()]) is logits


weights = st.lists(st.sampled_from([0.0, 0.0, 1e-30, 1e-9, 0.1, 0.3, 1.0, 1e6]), min_size=1, max_size=12)


@given(weights, st.sampled_from([0.0, 5e-324, 1e-9, 0.25, 0.5, 0.999999, 1 - 2**-53]), st.booleans())
def test_a_draw_is_never_impossible(values: list[float], uniform: float, single: bool) -> None:
    """At the very ends of [0, 1) rounding can reach a token of probability zero, or run off the end."""
    p = torch.tensor(values, dtype=torch.float32 if single else torch.float64)
    if not p.sum() > 0:
        with pytest.raises(ModelError, match="not a number"):
            draw(p, uniform)
        with pytest.raises(ModelError, match="not a number"):
            checked(*drawn_rows(p[None], torch.tensor([uniform])))
        return
    assert p[draw(p, uniform)] > 0
    goals = torch.tensor([uniform, 0.5], dtype=torch.float64)
    assert checked(*drawn_rows(torch.stack((p, p)), goals)) == [draw(p, uniform), draw(p, 0.5)]


def test_draws_invert_the_running_sum() -> None:
    """A draw off by one token, or one that takes the sum for one."""
    p = torch.tensor([0.0, 1.0, 0.0, 3.0])
    assert [draw(p, u) for u in (0.0, 0.2499, 0.25, 0.9999)] == [1, 1, 3, 3]
    for broken in ([math.nan, 1.0], [math.inf, 1.0], [0.0, 0.0]):
        with pytest.raises(ModelError):
            draw(torch.tensor(broken), 0.5)


def test_a_positions_number_depends_on_seed_and_position_alone() -> None:
    """Asking in another order, or using the second stream in between, must not change what a position gets."""
    ahead, behind = Draws(5), Draws(5)
    late = ahead.at(200)
    for _ in range(3):
        behind.fresh()
    early = [behind.at(i) for i in range(201)]
    assert early[200] == late and early[7] == ahead.at(7)
    assert len(set(early)) == 201 and all(0.0 <= u < 1.0 for u in early)
    assert Draws(6).at(0) != early[0] and behind.fresh() not in early


def test_settings_are_checked() -> None:
    """A negative temperature or a share above one must never reach the arithmetic."""
    for wrong in ({"temperature": -0.1}, {"top_p": 1.1}, {"min_p": -1}, {"repetition_penalty": 0}, {"seed": -1}):
        with pytest.raises(ParamError, match=next(iter(wrong))):
            Sampling.parse(wrong)
    assert Sampling().greedy and not Sampling(temperature=0.1).greedy


def ids(rows: torch.Tensor, count: int) -> list[list[int]]:
    order: list[list[int]] = ranked(rows, count).tolist()
    return order


def test_the_best_come_first_and_the_lowest_id_wins_a_tie() -> None:
    """`topk` breaks ties as it likes, and then a tree's guesses would differ between devices."""
    infinity = float("inf")
    rows = torch.tensor([[1.0, 3.0, 3.0, -2.0, 3.0], [-0.0, -1.0, 0.0, -1.0, -5.0], [-infinity, -1, -infinity, -2, -3]])
    assert ids(rows, 5) == [[1, 2, 4, 0, 3], [0, 2, 1, 3, 4], [1, 3, 4, 0, 2]]
    assert ids(rows, 2) == [[1, 2], [0, 2], [1, 3]]
    assert ids(rows, 99) == ids(rows, 5), "there are no more tokens than the vocabulary has"
    source = torch.Generator().manual_seed(0)
    for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.float16):
        noise = (torch.randn(4, 50, generator=source) * 4).round().to(dtype)
        assert ids(noise, 50) == noise.sort(descending=True, stable=True).indices.tolist()
    assert sorted(ids(torch.full((1, 4), float("nan")), 4)[0]) == [0, 1, 2, 3]


@pytest.mark.parametrize("size", [50, 2000], ids=["read by torch", "read by compiled code"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_one_look_says_what_two_say(size: int, dtype: torch.dtype) -> None:
    """With ties, with more numbers asked for than there are, and where a number is none."""
    rows = (torch.randn(5, size, generator=torch.Generator().manual_seed(2)) * 4).round().to(dtype)
    for count in (1, 8, 60):
        assert likeliest_and_ranked(rows, count) == (likeliest(rows), ids(rows, count))
    rows[3, 4] = torch.nan
    with pytest.raises(ModelError):
        likeliest_and_ranked(rows, 8)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_the_largest_probability_is_that_of_the_softmax(dtype: torch.dtype) -> None:
    row = torch.randn(5000, generator=torch.Generator().manual_seed(1)).to(dtype) * 3
    row[7] = -torch.inf
    wanted = pytest.approx(float(torch.softmax(row.double(), -1).max()), rel=1e-5)
    assert float(largest_probability(row)) == wanted
    assert surest_of_few(row[None]) == (likeliest(row[None]), [wanted])


def test_numbers_that_are_fetched_rounded_are_rounded_as_python_does() -> None:
    """Another last digit would be another record."""
    torch.manual_seed(3)
    numbers = torch.cat((torch.rand(5000), torch.tensor([0.0, 1.0, 0.5e-6, 1.5e-6, 2.5e-6, 0.015625, 12.3456785])))
    fetched, ids = fetch(numbers, torch.tensor([70_000, 3]), decimals=6)
    assert fetched == [round(number, 6) for number in numbers.tolist()] and ids == [70_000, 3]


def test_an_outlook_and_greedy_decoding_name_the_same_tokens() -> None:
    """A full record must not change a text: these two numbers are one in float32."""
    scores = torch.tensor([[0.0, 1.0, 1.0 + 1e-12], [2.0, 2.0, 0.0]], dtype=torch.float64)
    assert Outlook(scores).likeliest() == likeliest(scores) == [2, 0]
    with pytest.raises(ModelError, match="not a number"):
        Outlook(torch.tensor([[0.0, torch.nan]])).likeliest()
