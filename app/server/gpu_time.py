"""How many seconds of ZeroGPU's GPU a run requests, and what a visitor reads if they are refused.

A visitor's quota is charged by the requested seconds, so a run requests as few as it needs by the pace of the last
similar run. If these are refused it requests fewer, down to `LEAST`, so that no run is refused if enough is left.
"""

from __future__ import annotations

import json
import logging
import math
import re
from collections.abc import Callable, Generator, Iterator
from typing import Any

import gradio as gr

from decoding.errors import SpecscopeError

_log = logging.getLogger(__name__)
AROUND = 5  # seconds that are asked for beside the run's own: to move the weights to the GPU, and to check the run
LEAST, MOST = 2 * AROUND, 40  # seconds that are asked for; some GPUs count 1.5 for each, and 60 are lent by default
_FIRST_PACE = 0.05  # seconds for a token, until a run of that model and method has been measured
_SPARE = 1.5  # times the last run's pace
_LEFT = re.compile(r"\((\d+)s requested vs\. (\d+)s left\)")
_WAIT = re.compile(r"Try again in ((?:\d+ days?, )?[\d:]+)")
_ILLEGAL = "larger than the maximum allowed"
_paces = dict[tuple[str, str], float]()  # seconds for a token, by model and method


def seconds_for(model: str, method: str, tokens: int) -> int:
    """Return how many seconds of GPU time to request for a run of `tokens` tokens."""
    pace = _paces.get((model, method), _FIRST_PACE)
    return min(MOST, max(LEAST, AROUND + math.ceil(pace * tokens)))


def note_pace(model: str, method: str, pace: float) -> None:
    """Store the seconds per token of a run."""
    _paces[model, method] = _SPARE * pace


def seconds_of(name: str, asked: str) -> int:
    """Return the seconds in the arguments of a call, as `spaces` asks for them."""
    return int(json.loads(asked)["seconds"])


def borrow(call: Callable[[str, str], Iterator[str]], name: str, words: dict[str, Any]) -> Generator[str, None, None]:
    """Borrow the GPU for a call and yield its results; request less time if it is refused."""
    while True:
        try:
            yield from call(name, json.dumps(words))
            return
        except gr.Error as error:
            less = _less(str(error.message), words["seconds"])
            if less is None:
                _log.warning("no GPU: %s", error.message)
                raise SpecscopeError(sentence_of(str(error.message))) from None
            words = words | {"seconds": less}


def _less(message: str, seconds: int) -> int | None:
    """Return how many seconds can be requested instead; None if fewer do not help.

    The error states the requested and the remaining time in the GPU's own seconds, so the rest is taken as a share of
    ours. Both are rounded, so `LEAST` is requested in any case.
    """
    if match := _LEFT.search(message):
        less = seconds * int(match[2]) // max(1, int(match[1]))
    elif _ILLEGAL in message:
        less = seconds // 2
    else:
        return None
    return max(LEAST, less) if seconds > LEAST and less < seconds else None


def sentence_of(message: str) -> str:
    """Return what a visitor can do about an error of `spaces`."""
    recorded = "open a recorded run: those need no GPU"
    if "quota" in message or "runs limit" in message:
        wait = _WAIT.search(message)
        when = f"in {wait[1]} (hours, minutes, seconds)" if wait else "tomorrow"
        return f"your GPU time on ZeroGPU is used up: try again {when}, or {recorded}"
    if _ILLEGAL in message:
        return f"ZeroGPU does not lend its GPU for the {LEAST} seconds of a run now: try again later, or {recorded}"
    if "GPU limit" in message:
        return f"this Space's GPU time on ZeroGPU is used up: sign in at huggingface.co to use your own, or {recorded}"
    if "No GPU" in message or "credits" in message:
        return f"no GPU is free now: try again in a minute, or {recorded}"
    return f"the GPU was taken away before the run had ended: try again, or {recorded}"
