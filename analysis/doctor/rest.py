"""Checks that any drafter's files allow without a run: of norms, embeddings, and stored numbers."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch.nn.functional import cosine_similarity

from decoding.errors import UnfitError
from decoding.model.precision import spelt
from decoding.parts.drafter_files import same_model

from .probes import Check

_HUGE = 1000.0  # no scale of a norm that works is near it
_SAME = 0.9  # a mean cosine of rows from which on they are the target's
_ROWS = 4096  # of an embedding that are compared
_LARGEST_EPS = 1e-3  # of norms that work
_TRAINED, _YOUNG = 0.01, 0.06  # root mean square distances from 1 of norms' scales, at least and at most
_EMPTY, _EMPTY_ROWS = 0.25, 0.02  # of a table's rows, and of a product's: with more of zeros it is damaged
_TABLES = ("embed_tokens", "lm_head")  # whose rows are tokens, some of which may never be met
_ZEROS, _CLIPPED, _LEVELS = 0.3, 0.1, 16  # of a matrix's numbers, at most, and levels of what was not rounded
_PRUNED = 0.6  # of a matrix's numbers may be zeros where the guesses fit
_COARSE = 0.15  # an error of rounding, over the numbers' root mean square, that a drafter shows
_SAMPLED, _GROUPS = 64, (128, 64, 32)  # rows, and numbers that are rounded together


def refuse_infinite(weights: Mapping[str, torch.Tensor]) -> None:
    """Raise UnfitError for weights with which nothing can be measured."""
    for name, weight in weights.items():
        if not bool(weight.isfinite().all()):
            raise UnfitError("weights", f"NaN or infinity is in the drafter's {name}: train it anew or fetch it again")


def check_norms(weights: Mapping[str, torch.Tensor]) -> Check:
    """Check norm scales. Zeros or huge ones leave the drafter unable to predict. Ones were not trained, or were lost if
    all other norms were trained.

    Their scales are not compared with the target's, which differ fivefold from layer to layer. One that was multiplied
    and costs guesses is found by dividing it; where none is lost, as with pocket's draft model, nothing is to mend.
    """
    scales = _norms(weights)
    for name, scale in scales.items():
        if not bool(scale.any()):
            return Check("norms", name, fine=False, sentence=f"{name} is all zeros", given="zeros", better="trained")
        if float(scale.abs().max()) > _HUGE:
            worst = round(float(scale.abs().max()), 1)
            return Check("norms", name, fine=False, sentence=f"{name} reaches {worst}", given=worst, better="about 1")
    ones = [name for name, scale in scales.items() if bool((scale == 1).all())]
    trained = sum(_distance(scale) >= _TRAINED for scale in scales.values())
    if len(ones) == 1 and trained == len(scales) - 1 >= 2:
        sentence = f"{ones[0]} is all ones, and the {trained} other norms are not: its scales were lost"
        return Check("norms", ones[0], fine=False, sentence=sentence, given="ones", better="trained")
    if ones:
        return Check("norms", "norms", fine=True, sentence=f"all scales of {', '.join(ones)} are 1: perhaps untrained")
    return Check("norms", "norms", fine=True, sentence=f"the scales of {len(scales)} norms look trained")


def is_young(weights: Mapping[str, torch.Tensor]) -> bool:
    """Return whether all norms but the final one, which may begin as the target's, are nearly ones."""
    distances = [_distance(scale) for name, scale in _norms(weights).items() if name != "norm.weight"]
    return bool(distances) and max(distances) <= _YOUNG


def _norms(weights: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: weight.float() for name, weight in weights.items() if weight.dim() == 1 and "norm" in name}


def _distance(scale: torch.Tensor) -> float:
    return float((scale - 1).square().mean().sqrt())


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


def check_eps(drafter: float, target: float) -> Check:
    """Check the epsilon of the norms, which is tiny in any model."""
    sentence = f"the norms' epsilon is {drafter:g}, the target's {target:g}"
    fine = drafter <= max(_LARGEST_EPS, 10 * target)
    sentence += "" if fine else ": no model has so large a one, correct it in config.json"
    return Check("epsilon", "rms_norm_eps", fine=fine, sentence=sentence, given=drafter, better=target)


def check_spoilt(weights: Mapping[str, torch.Tensor]) -> Check:
    """Look for matrices that are all zeros, have many rows or columns of zeros, or hold the same as another."""
    matrices = {name: weight for name, weight in weights.items() if weight.dim() >= 2}
    for name, weight in matrices.items():
        zeros = weight.flatten(1) == 0
        shares = {"rows": float(zeros.all(1).float().mean()), "columns": float(zeros.all(0).float().mean())}
        what, empty = max(shares.items(), key=lambda share: share[1])
        if empty > (_EMPTY if name.startswith(_TABLES) else _EMPTY_ROWS):
            sentence = (
                f"{name} is all zeros: untrained" if empty == 1.0 else f"{empty:.0%} of the {what} of {name} are zeros"
            )
            return Check("weights", name, fine=False, sentence=sentence, given="zeros", better="trained")
    names = list(matrices)
    for at, one in enumerate(names):
        for other in names[at + 1 :]:
            if matrices[one].shape == matrices[other].shape and torch.equal(matrices[one], matrices[other]):
                sentence = f"{one} and {other} hold the same numbers"
                return Check("weights", other, fine=False, sentence=sentence, given=one, better="its own")
    return Check("weights", "weights", fine=True, sentence=f"{len(matrices)} matrices, none empty and no two the same")


def check_lost(weights: Mapping[str, torch.Tensor]) -> Check:
    """Look for numbers that were too small or too large for the format in which they were stored: zeros, or all alike.

    A matrix of few levels was rounded, which `check_rounding` judges. Rows and columns of zeros are for `check_spoilt`.
    """
    zeros, clipped = dict[str, float](), dict[str, float]()
    for name, weight in weights.items():
        if weight.dim() >= 2:
            rows = _sample(weight).abs()
            rows = rows[rows.any(1)][:, rows.any(0)]
            ordered = rows.sort(1).values
            if not len(rows) or float((ordered.diff(dim=1) > 0).sum(1).float().mean()) < _LEVELS:
                continue
            zeros[name] = float((rows == 0).float().mean())
            clipped[name] = float((rows == ordered[:, -1:]).float().mean())
    for shares, most, what in (
        (zeros, _ZEROS, "are zeros: small ones were lost, as in float16, or the drafter was pruned"),
        (clipped, _CLIPPED, "are as large as the largest of their row: they were clipped"),
    ):
        if many := {name: share for name, share in shares.items() if share > most}:
            worst = max(many, key=lambda name: many[name])
            others = f", and many of {len(many) - 1} others," if len(many) > 1 else ""
            sentence = f"{many[worst]:.0%} of the numbers of {worst}{others} {what}: store the weights anew in bfloat16"
            flag = "sparse" if shares is zeros and many[worst] <= _PRUNED else "range"  # no pruning leaves less
            return Check("range", flag, fine=False, sentence=sentence, given="lost", better="bfloat16")
    return Check("range", "range", fine=True, sentence="no numbers were lost as too small or too large for a format")


def _sample(weight: torch.Tensor) -> torch.Tensor:
    """Return some rows of a matrix, or of a stack of them."""
    rows = weight.flatten(0, -2).float()
    return rows[torch.linspace(0, len(rows) - 1, min(_SAMPLED, len(rows))).long()]


def check_rounding(weights: Mapping[str, torch.Tensor]) -> Check:
    """Look for matrices whose numbers were rounded to few levels, and tell the error of each that is too coarse."""
    errors = {
        name: error for name, weight in weights.items() if weight.dim() >= 2 and (error := rounding_error(weight))
    }
    worst = max(errors, key=lambda name: errors[name], default=None)
    if worst is None:
        return Check("rounding", "rounding", fine=True, sentence="no matrix was rounded to few levels")
    coarse = {name: error for name, error in errors.items() if error > _COARSE}
    listed = ", ".join(f"{name} {error:.1%}" for name, error in (coarse or {worst: errors[worst]}).items())
    fewer = f", {len(coarse)} of them too coarsely" if coarse else ""
    sentence = f"{len(errors)} matrices were rounded to few levels{fewer}, with errors of {listed}"
    if coarse:
        sentence += ": store them in more bits"
    return Check("rounding", "rounding", fine=not coarse, sentence=sentence, given="rounded", better="bfloat16")


def rounding_error(weight: torch.Tensor) -> float:
    """Return the error of a rounding to few levels, over the root mean square of the numbers; 0 where there is none.

    A group of numbers in one row that take few levels has been rounded: numbers as they were trained are nearly all
    different.
    """
    rows = _sample(weight)
    error = 0.0
    for size in (rows.shape[1], *(group for group in _GROUPS if group < rows.shape[1] and rows.shape[1] % group == 0)):
        ordered = rows.reshape(-1, size).sort(1).values
        gaps = ordered.diff(dim=1)
        levels = (gaps > 0).sum(1) + 1
        few = levels <= size // 4
        if float(few.float().mean()) < 0.9:
            continue
        step = gaps.where(gaps > 0, torch.nan).nanmedian(1).values.nan_to_num(0.0)
        size_of = rows.square().mean().sqrt().clamp(min=1e-12)
        error = max(error, float((step.square().mean() / 12).sqrt() / size_of))
    return error


def check_numbers(weights: Mapping[str, torch.Tensor]) -> list[Check]:
    """Look for what training and storing do to matrices."""
    return [check_spoilt(weights), check_lost(weights), check_rounding(weights)]


def check_dtype(weights: Mapping[str, torch.Tensor], dtype: torch.dtype) -> Check:
    """Show how the weights are stored, and the dtype they are computed in."""
    stored = sorted({spelt(weight.dtype) for weight in weights.values() if weight.is_floating_point()})
    return Check("dtype", "dtype", fine=True, sentence=f"stored as {', '.join(stored)}, computed in {spelt(dtype)}")


def check_verifier(named: str, name: str, loaded: str) -> Check:
    """Check that the model named by a configuration may be the one at hand, by its public name or the one it was loaded
    by.
    """
    if named and not same_model(named, name) and not same_model(named, loaded):
        sentence = f"config.json names the model {named[:80]}, not {name[:80]}"
        return Check("verifier", "verifier", fine=False, sentence=sentence, given=named[:80], better=name[:80])
    sentence = f"config.json names {named}" if named else "config.json names no model"
    return Check("verifier", "verifier", fine=True, sentence=sentence)
