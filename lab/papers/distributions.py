"""Measures how well a drafter's distributions fit the target's, before every token that the target writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from decoding.model.session import Model
from decoding.parts.draft_vocabulary import drafted_by
from decoding.ranking import likeliest
from decoding.sampling import Sampler, Sampling
from decoding.trace.rescore import ROWS, plain_passes

from .experiment import Experiment
from .tables import UnmeasuredError


@dataclass(slots=True)
class Overlap:
    """Lists over the tokens of every answer."""

    betas: list[list[float]] = field(default_factory=list)  # chance that a draft is accepted here: sum of min(p, q)
    chances: list[list[float]] = field(default_factory=list)  # the same, given the token that was written in the end

    @property
    def alpha(self) -> float:
        """The mean chance of acceptance."""
        every = [beta for answer in self.betas for beta in answer]
        return sum(every) / len(every)

    @property
    def correlation(self) -> float:
        """The correlation of neighbouring tokens' chances; 0 where they do not vary."""
        mean = self.alpha
        pairs = [((a - mean), (b - mean)) for answer in self.betas for a, b in zip(answer, answer[1:], strict=False)]
        spread = (sum(a * a for a, _ in pairs) * sum(b * b for _, b in pairs)) ** 0.5
        return sum(a * b for a, b in pairs) / spread if spread > 0 else 0.0


def measure_overlap(experiment: Experiment, temperature: float) -> Overlap:
    """Compare both models' distributions along the answers that the target writes at this temperature."""
    engine = experiment.engine
    if engine.draft is None:
        raise UnmeasuredError(f"draft_model needs {engine.lacks('draft_model')}")
    overlap = Overlap()
    for number, question in enumerate(experiment.questions):
        experiment.progress(number / len(experiment.questions))
        sampling = Sampling(temperature=temperature, seed=number)
        answer = engine.generate(question.ids, sampling=sampling, max_new_tokens=experiment.budget, record="off").ids
        sampler = Sampler(sampling, engine.model.card.vocabulary, engine.model.device, ())
        p, q = (_distributions(model, question.ids, answer, sampler) for model in (engine.model, engine.draft))
        if sampling.greedy:  # a draft is the likeliest token, and accepted where it is the target's
            agreed = [float(a == b) for a, b in zip(likeliest(p), likeliest(q), strict=True)]
            overlap.betas.append(agreed)
            overlap.chances.append(agreed)
        else:
            rows = torch.arange(len(answer), device=p.device)
            tokens = torch.tensor(answer, device=p.device)
            overlap.betas.append(torch.minimum(p, q).sum(-1).tolist())
            overlap.chances.append((q[rows, tokens] / p[rows, tokens]).clamp_max(1.0).tolist())
    return overlap


@torch.inference_mode()
def _distributions(
    model: Model, prompt: Sequence[int], answer: Sequence[int], sampler: Sampler
) -> torch.Tensor:  # (n, V)
    """Return a model's distributions before every token of an answer."""
    text, few = [*prompt, *answer], drafted_by(model)
    passes = plain_passes(model.open(len(text), ROWS), text, len(prompt))
    return torch.cat([sampler.probabilities(few.widen(logits) if few else logits) for _, logits in passes])
