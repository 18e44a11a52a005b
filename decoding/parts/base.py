"""The parts that methods need in addition to the target, and how a user gets those that are missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Lock

from ..model.session import ProgressCallback
from .named import NAMED_PARTS, MethodPart

TAPPING = frozenset({"early_exit", "features"})  # capabilities that read states between the target's layers
CAPABILITIES = TAPPING | {"hidden"}  # of every model here
_ADVICE = {  # for missing parts that users do not name, as the end of a sentence
    "draft_model": "a drafter: load the engine with draft= (--draft), a model with the same tokenizer",
    "tables": "n-gram tables: load the engine with load(), which can build them for a network",
}
Maker = Callable[[ProgressCallback], MethodPart]


class Parts:
    """The parts of an engine by name, each made when first needed: some take a while."""

    def __init__(self, makers: Mapping[str, Maker] | None = None) -> None:
        self._makers = dict(makers or {})
        self._made: dict[str, MethodPart] = {}
        self._locks = {name: Lock() for name in self._makers}

    def missing(self, needs: frozenset[str], *, has_draft: bool) -> str | None:
        """Return what an engine with these parts lacks for a method, and how to get it; None: nothing."""
        for need in sorted(needs - CAPABILITIES):
            if not (has_draft if need == "draft_model" else need in self._makers):
                return _advice(need)
        return None

    def take(self, needs: frozenset[str], progress: ProgressCallback) -> dict[str, MethodPart]:
        """Return the parts that a method needs, by name; `progress` is called while one is made."""
        names = needs & self._makers.keys()
        for name in names:
            with self._locks[name]:  # so a call for another part does not wait
                if name not in self._made:
                    self._made[name] = self._makers[name](progress)
        return {name: self._made[name] for name in names}


def _advice(need: str) -> str:
    """Describe a missing part and how to get it."""
    if (part := NAMED_PARTS.get(need)) is not None:
        return f"{part.title}: load the engine with {need}= (--{need}), {part.source}"
    return _ADVICE.get(need, f"an unknown part, {need[:40]!r}")
