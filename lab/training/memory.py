"""Turns running out of memory into one sentence with a remedy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from decoding.errors import ModelError

ADVICE = (
    "halve --at-once, and the training goes on from its last checkpoint, or train anew in another folder with a "
    "shorter --length or, on a GPU, with --quantise"
)


@contextmanager
def memory_advice(what: str, advice: str = ADVICE) -> Iterator[None]:
    """Raise ModelError with the advice if the memory does not suffice for `what`."""
    sentence = f"the memory does not suffice {what}: {advice}"
    try:
        yield
    except (torch.OutOfMemoryError, MemoryError):
        raise ModelError(sentence) from None
    except RuntimeError as error:  # what torch raises where the memory of the processor ends
        if "can't allocate memory" not in str(error):
            raise
        raise ModelError(sentence) from None
