"""What can be seen of any drafter without a run: its norms, its embeddings, and how its numbers are stored."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch.nn.functional import cosine_similarity

from decoding.parts.eagle_files import same_model

from .probes import Check, word

_HUGE = 1000.0  # no scale of a norm that works is near it
_SAME = 0.9  # a mean cosine of rows from which on they are the target's
_ROWS = 4096  # of an embedding that are compared


def check_norms(weights: Mapping[str, torch.Tensor]) -> Check:
    """Check norm scales: all zero or too large, the drafter is mute; all one, they were not trained."""
    scales = {name: weight.float() for name, weight in weights.items() if weight.dim() == 1 and "norm" in name}
    for name, scale in scales.items():
        if not bool(scale.any()):
            return Check("norms", name, fine=False, sentence=f"{name} is all zeros", given="zeros", better="trained")
        if float(scale.abs().max()) > _HUGE:
            worst = round(float(scale.abs().max()), 1)
            return Check("norms", name, fine=False, sentence=f"{name} reaches {worst}", given=worst, better="about 1")
    ones = [name for name, scale in scales.items() if bool((scale == 1).all())]
    if ones:
        return Check("norms", "norms", fine=True, sentence=f"all scales of {', '.join(ones)} are 1: perhaps untrained")
    return Check("norms", "norms", fine=True, sentence=f"the scales of {len(scales)} norms look trained")


def check_embedding(drafter: torch.Tensor | None, target: torch.Tensor) -> Check:
    """Compare the rows of a drafter's embedding with the target's by cosine, and look for a shift between them."""
    name = flag = "embedding"
    if drafter is None:
        return Check(name, flag, fine=True, sentence="the drafter uses the target's embedding")
    if drafter.shape != target.shape:
        sentence = "the drafter has its own embedding, of another size than the target's"
        return Check(name, flag, fine=True, sentence=sentence)
    count = min(_ROWS, len(drafter) - 2)
    drafter, target = drafter[1 : count + 1].float(), target.float().to(drafter.device)
    same, *shifted = (
        float(cosine_similarity(drafter, target[1 + shift : count + 1 + shift]).mean()) for shift in (0, -1, 1)
    )
    if same < _SAME <= max(shifted):
        return Check(
            name,
            flag,
            fine=False,
            sentence=f"the rows of the drafter's embedding are the target's, shifted by one: cosine {max(shifted):.2f}",
            given="own",
            better="target",
        )
    return Check(name, flag, fine=True, sentence=f"rows of both embeddings have a mean cosine of {same:.2f}")


def check_dtype(weights: Mapping[str, torch.Tensor], dtype: torch.dtype) -> Check:
    """Show how the weights are stored, and the dtype they are computed in."""
    stored = sorted({word(weight.dtype) for weight in weights.values() if weight.is_floating_point()})
    return Check("dtype", "dtype", fine=True, sentence=f"stored as {', '.join(stored)}, computed in {word(dtype)}")


def check_verifier(named: str, name: str) -> Check:
    """Check that the model named by a configuration may be the one at hand."""
    if named and not same_model(named, name):
        sentence = f"config.json names the model {named[:80]}, not {name[:80]}"
        return Check("verifier", "verifier", fine=False, sentence=sentence, given=named[:80], better=name[:80])
    sentence = f"config.json names {named}" if named else "config.json names no model"
    return Check("verifier", "verifier", fine=True, sentence=sentence)
