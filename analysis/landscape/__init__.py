"""The landscape of a text: at every position, how many guesses of each method the target would accept there.

What is accepted at position i is what the first step of a greedy run accepts whose prompt is the text's first i tokens.
Some methods guess from the target's hidden states ("hidden", "early_exit" or "features" among their needs), so their
first step only reads the prompt. For them it is the second step of a run whose prompt is one token shorter and whose
first step has written the text's token. So a method starts at every position as it starts a run: it has no window or
pool of n-grams from following the text.

The target reads the text once. That gives its choices at every position, and so the fate of all guesses that match the
text. Other guesses are read as well, those of many positions and methods in one pass, where the target would choose
another token than the text has and a method guessed that one, and after the end of the text.

Drafters work in the same way. At every position a method's own code runs until it asks its drafter something; then one
pass answers many positions (`questions.py`; a draft model in `draft_model.py`, an early exit in `early_exit.py`,
drafters on features in `features.py` and `blocks.py`). So all rules of a method, such as when a chain stops, are its
own. The numbers are those of a step where a row does not depend on its neighbours in a pass, as in compiled code.
Elsewhere the last bits may differ, and with them the choice between two tokens that are nearly equal.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from decoding.codec import Prompt
from decoding.errors import ParamError
from decoding.methods import METHODS
from decoding.model.session import ProgressCallback
from decoding.params import check_count
from decoding.request import Request, build_request, check_event
from decoding.types import JSON

from .one_method import OneMethod
from .target import Target

if TYPE_CHECKING:
    from decoding.loaded import Loaded

LONGEST = 4096  # tokens of a text
_VERSION = 1

MethodChoice = Sequence[str] | Mapping[str, Mapping[str, JSON]]


def measure_landscape(
    engine: Loaded,
    text: Prompt,
    methods: MethodChoice | None = None,
    *,
    first: int = 1,
    max_new_tokens: int = 128,
    cancel: threading.Event | None = None,
    progress: ProgressCallback | None = None,
) -> dict[str, JSON]:
    """Count, for every position of a text, the guesses of each method that the target would accept in a step there.

    `methods` are names, or settings by name; by default all that this engine can run. Positions before `first` are
    left out. A step may write as much as a run of `max_new_tokens`. Greedy. Returns plain JSON: see `docs/api.md`.
    """
    begun, cancel = time.perf_counter(), check_event(cancel)
    ids = engine.encode(text, "text")
    if len(ids) > LONGEST:
        raise ParamError(f"the text has {len(ids)} tokens: shorten it to {LONGEST}")
    if len(ids) < 2:
        raise ParamError("the text has one token: a step can only begin after the first, so it needs two")
    check_count("first", first, 1, len(ids) - 1)
    requests = _requests(engine, ids, methods, max_new_tokens, cancel)
    target = Target(engine.model, engine.session_pool, ids, requests)
    measured, results = list[OneMethod](), list[dict[str, JSON]]()
    positions = [*range(len(ids) - 1, first - 1, -1)]  # from the last on, so that nothing stored must be read again
    try:
        target.read_text()
        for done, request in enumerate(requests):
            measured.append(method := OneMethod(target, request, engine.draft))
            for start in range(0, len(positions), method.together):
                if cancel.is_set():
                    break
                method.guess(positions[start : start + method.together])
                if progress is not None:
                    share = min(1.0, (start + method.together) / len(positions))
                    progress(method.name, (done + share) / len(requests))
            method.close()
        if not cancel.is_set():
            target.read_guesses([unit for method in measured for unit in method.unread])
            results = [method.result(first) for method in measured]
    finally:
        for method in measured:
            method.close()
        target.close()
    written = {token for each in results for row in (*each["written"], *each["guesses"]) for token in row}
    return {
        "version": _VERSION,
        "model": engine.model.card.name,
        "device": ",".join(map(str, engine.model.devices)),
        "dtype": engine.model.precision,
        "tokens": ids,
        "first": first,
        "choices": target.choices,
        "greedy": sum(ids[i] == target.choices[i - 1] for i in range(first, len(ids))),
        "methods": results,
        "texts": {str(token): engine.codec.piece(token) for token in sorted({*ids, *target.choices, *written})},
        "rows": target.rows,
        "passes": target.passes,
        "seconds": time.perf_counter() - begun,
        "finished": not cancel.is_set(),
    }


def _requests(
    engine: Loaded, ids: Sequence[int], methods: MethodChoice | None, max_new_tokens: int, cancel: threading.Event
) -> list[Request]:
    """Build a checked request for every method."""
    if methods is None:
        methods = [name for name in METHODS if name != "autoregressive" and engine.lacks(name) is None]
    if isinstance(methods, str) or not isinstance(methods, Sequence | Mapping) or not methods:
        raise ParamError("methods must be a list of names, or a dictionary of settings by name")
    settings: Mapping[str, JSON] = methods if isinstance(methods, Mapping) else dict.fromkeys(methods)
    return [
        build_request(engine, ids, name, params, None, max_new_tokens, {"cancel": cancel, "memory": {}})
        for name, params in settings.items()
    ]
