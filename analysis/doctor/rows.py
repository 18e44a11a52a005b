"""Finds the tokens of the rows of a drafter's output layer, by the most similar rows of the target's."""

from __future__ import annotations

import torch
from torch.nn.functional import normalize

from .probes import Check

_SAMPLE = 512  # rows that the check looks at
_PIECE = 512
_ALIKE = 0.7  # a cosine from which on two rows are one token's
_AGREE = 0.9  # of the rows must be those of the token that the map names


@torch.inference_mode()
def match_rows(output: torch.Tensor, target: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:  # (n,), (n,)
    """Return for every row of an output layer the row of the target's that is most like it, and their cosine.

    The target's mean row is subtracted first, since it would make all rows alike.
    """
    wide = target.float()
    middle = wide.mean(0)
    against = normalize(wide - middle, dim=1).T
    best = [
        (normalize(piece.float().to(wide.device) - middle, dim=1) @ against).max(1)
        for piece in torch.split(output, _PIECE)
    ]
    return torch.cat([each.indices for each in best]), torch.cat([each.values for each in best])


def check_rows(output: torch.Tensor | None, target: torch.Tensor, ids: torch.Tensor | None) -> Check:
    """Check that the rows of a drafter's output layer are the target's rows of the tokens that the map names."""
    name, flag = "output layer", "vocabulary_map" if ids is not None else "output"
    if output is None:
        return Check(name, flag, fine=True, sentence="the drafter uses the target's output layer")
    if output.shape[1] != target.shape[1]:
        return Check(
            name, flag, fine=True, sentence="the drafter has an output layer of another size than the target's"
        )
    named = torch.arange(len(output)) if ids is None else ids.cpu()
    at = torch.linspace(0, len(output) - 1, min(_SAMPLE, len(output))).long()
    nearest, cosine = (each.cpu() for each in match_rows(output[at], target))
    alike = cosine >= _ALIKE
    if float(alike.float().mean()) < 0.5:
        sentence = f"its rows are unlike the target's: the median of the best cosines is {float(cosine.median()):.2f}"
        return Check(name, flag, fine=True, sentence=sentence)
    agree = float((nearest == named[at])[alike].float().mean())
    if agree >= _AGREE:
        sentence = f"{agree:.0%} of its rows are most like the target's row of the token that they stand for"
        return Check(name, flag, fine=True, sentence=sentence)
    sentence = (
        f"only {agree:.0%} of its rows are most like the target's row of the token that the map names, although "
        f"their median cosine with some row is {float(cosine.median()):.2f}: rows and map are in different orders"
    )
    return Check(name, flag, fine=False, sentence=sentence, given="own", better="by rows")
