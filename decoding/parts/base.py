"""The parts that methods need in addition to the target: what each is, and how a user gets it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Lock
from typing import NamedTuple, Protocol

from ..model.session import ProgressCallback

TAPPING = frozenset({"early_exit", "features"})  # what reads along between the target's layers
CAPABILITIES = TAPPING | {"hidden"}  # what every model of ours can do


class NamedPart(NamedTuple):
    """A part that users name, by a flag and by an argument of `load`."""

    method: str  # that needs it
    title: str  # in a sentence
    example: str  # of a hub id
    source: str  # what to name
    is_file: bool = False


NAMED_PARTS = {
    "medusa": NamedPart("medusa", "Medusa heads", "org/heads", "a folder or hub id, trained for the model"),
    "kangaroo": NamedPart("kangaroo", "a Kangaroo adapter", "org/adapter", "a folder or hub id, trained for the model"),
    "eagle": NamedPart("eagle3", "an EAGLE-3 drafter", "org/drafter", "a folder or hub id, trained for the model"),
    "datastore": NamedPart(
        "rest", "a datastore", "org/datastore", "a file or hub id, made by `datastore build`", is_file=True
    ),
}
# What to do about a part that is missing, as the end of a sentence.
_ADVICE = {
    "draft_model": "a drafter: load the engine with draft= (--draft), a model with the same tokenizer",
    "tables": "n-gram tables: load the engine with load(), which can build them for a network",
    **{
        name: f"{part.title}: load the engine with {name}= (--{name}), {part.source}"
        for name, part in NAMED_PARTS.items()
    },
}


class MethodPart(Protocol):
    """Anything that an engine was loaded with for one method."""

    about: str  # name and hash, for the record


Maker = Callable[[ProgressCallback], MethodPart]


class Parts:
    """The parts of an engine by name, each made when it is first asked for: some take a while."""

    def __init__(self, makers: Mapping[str, Maker] | None = None) -> None:
        self._makers = dict(makers or {})
        self._made: dict[str, MethodPart] = {}
        self._locks = {name: Lock() for name in self._makers}

    def missing(self, needs: frozenset[str], *, has_draft: bool) -> str | None:
        """Return what an engine with these parts lacks for a method, and how to get it; None: nothing."""
        for need in sorted(needs - CAPABILITIES):
            if not (has_draft if need == "draft_model" else need in self._makers):
                return _ADVICE.get(need, f"an unknown part, {need[:40]!r}")
        return None

    def take(self, needs: frozenset[str], progress: ProgressCallback) -> dict[str, MethodPart]:
        """Return the parts that a method needs, by name; `progress` is called while one is made."""
        wanted = needs & self._makers.keys()
        for need in wanted:
            with self._locks[need]:  # so a call for another part does not wait
                if need not in self._made:
                    self._made[need] = self._makers[need](progress)
        return {need: self._made[need] for need in wanted}
