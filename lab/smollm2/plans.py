"""The sizes of the training of SmolLM2's parts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PartsPlan:
    """All sizes of one training of the parts."""

    prompts: int  # that the model asks itself
    length: int  # tokens of a line, and the most that a conversation has
    lines: int  # per step
    draft_vocabulary: int  # tokens that heads, adapter and drafter may draft
    heads: int
    heads_epochs: float
    exits: tuple[int, ...]  # layers after which an adapter is tried
    exit_steps: int  # of each of them
    adapter_epochs: float
    drafter_epochs: float
    eagle_epochs: float
    feature_vocabulary: int  # tokens that the EAGLE-3 and the DFlash drafter may draft
    eagle_width: int  # of its feed-forward part
    dflash_epochs: float
    dflash_layers: int
    dflash_width: int  # of their feed-forward parts


PLANS = {
    "full": PartsPlan(
        prompts=2000,
        length=512,
        lines=1,
        draft_vocabulary=8192,
        heads=4,
        heads_epochs=3.0,
        exits=(1, 2, 3),
        exit_steps=150,
        adapter_epochs=2.0,
        drafter_epochs=6.0,
        eagle_epochs=4.0,
        feature_vocabulary=2304,
        eagle_width=384,
        dflash_epochs=18.0,
        dflash_layers=1,
        dflash_width=384,
    ),
    "smoke": PartsPlan(
        prompts=8,
        length=256,
        lines=2,
        draft_vocabulary=1024,
        heads=2,
        heads_epochs=0.5,
        exits=(1, 2),
        exit_steps=1,
        adapter_epochs=0.5,
        drafter_epochs=0.5,
        eagle_epochs=0.5,
        feature_vocabulary=512,
        eagle_width=64,
        dflash_epochs=0.5,
        dflash_layers=1,
        dflash_width=64,
    ),
}
