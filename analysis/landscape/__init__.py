"""The landscape of a text: at every place, how many guesses of each method the target would accept there.

What is accepted at place i is what the first step of a greedy run accepts whose prompt is the text up to i, i tokens.
Of a method whose first step only reads the prompt, since it guesses from the target's hidden states ("hidden",
"early_exit", "features" among its needs), it is the second step of a run whose prompt is one token shorter and whose
first step has written the text's token. So a method begins at every place as it begins a run: what it would have
gathered by following the text, a window or a pool of n-grams, is not there.

The target reads the text once. Along the text that tells its choices at every place, and so the fate of all guesses
that are the text itself. Where it would have chosen another token than the text has, and a method guessed that one, and
behind the end of the text, guesses are read as well: those of many places and methods in one pass, each behind its own
part of the text.

Drafters work in the same way. At every place a method's own code runs, up to a question to its drafter; then those of
many places are answered by one pass, in which each hangs off its own part of the text (`together.py`; a draft model in
`drafting.py`, an early exit in `exits.py`, a drafter on features in `features.py`). So all rules of a method, as when a
chain stops, are its own. Numbers are those of its step where a row does not depend on its neighbours in a pass, as in
compiled code; elsewhere their last bits may differ, and what is chosen where two tokens are nearly equal.
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

from .measured import Measured
from .target import Target

if TYPE_CHECKING:
    from decoding.engine import Engine

LONGEST = 4096  # tokens of a text
_VERSION = 1

Methods = Sequence[str] | Mapping[str, Mapping[str, JSON]]


def measure_landscape(
    engine: Engine,
    text: Prompt,
    methods: Methods | None = None,
    *,
    first: int = 1,
    max_new_tokens: int = 128,
    cancel: threading.Event | None = None,
    progress: ProgressCallback | None = None,
) -> dict[str, JSON]:
    """For every place of a text: how many guesses of each method the target would accept if a step began there.

    `methods` are names, or settings by name; without them all that this engine can run. Places before `first` are
    left out. A step may write as much as a run of `max_new_tokens` may. Greedy, and plain JSON: see `docs/api.md`.
    """
    begun, cancel = time.perf_counter(), check_event(cancel)
    ids = engine.encode(text, "text")
    if len(ids) > LONGEST:
        raise ParamError(f"the text has {len(ids)} tokens: shorten it to {LONGEST}")
    if len(ids) < 2:
        raise ParamError("the text has one token: a step has something to follow from the second on")
    check_count("first", first, 1, len(ids) - 1)
    requests = _requests(engine, ids, methods, max_new_tokens, cancel)
    target = Target(engine, ids, requests)
    measured, found = list[Measured](), list[dict[str, JSON]]()
    places = [*range(len(ids) - 1, first - 1, -1)]  # from the last on, so that what is stored need not be read anew
    try:
        target.read_text()
        for done, request in enumerate(requests):
            measured.append(one := Measured(engine, target, request))
            for count in range(0, len(places), one.together):
                if cancel.is_set():
                    break
                one.guess(places[count : count + one.together])
                if progress is not None:
                    share = min(1.0, (count + one.together) / len(places))
                    progress(one.name, (done + share) / len(requests))
            one.close()
        if not cancel.is_set():
            target.read_guesses([unit for one in measured for unit in one.unread])
            found = [one.result(first) for one in measured]
    finally:
        for one in measured:
            one.close()
        target.close()
    written = {token for one in found for row in (*one["written"], *one["guesses"]) for token in row}
    return {
        "version": _VERSION,
        "model": engine.model.card.name,
        "device": ",".join(map(str, engine.model.devices)),
        "dtype": engine.model.precision,
        "tokens": ids,
        "first": first,
        "choices": target.choices,
        "greedy": sum(ids[i] == target.choices[i - 1] for i in range(first, len(ids))),
        "methods": found,
        "texts": {str(token): engine.codec.piece(token) for token in sorted({*ids, *target.choices, *written})},
        "rows": target.rows,
        "passes": target.passes,
        "seconds": time.perf_counter() - begun,
        "finished": not cancel.is_set(),
    }


def _requests(
    engine: Engine, ids: Sequence[int], methods: Methods | None, max_new_tokens: int, cancel: threading.Event
) -> list[Request]:
    """A checked request for every method."""
    if methods is None:
        methods = [name for name in METHODS if name != "autoregressive" and engine.lacks(name) is None]
    if isinstance(methods, str) or not isinstance(methods, Sequence | Mapping) or not methods:
        raise ParamError("methods must be a list of names, or a dictionary of settings by name")
    settings: Mapping[str, JSON] = methods if isinstance(methods, Mapping) else dict.fromkeys(methods)
    return [
        build_request(engine, ids, name, params, None, max_new_tokens, {"cancel": cancel, "memory": {}})
        for name, params in settings.items()
    ]
