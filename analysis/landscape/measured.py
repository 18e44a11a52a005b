"""One method of a landscape: what it guesses at every place of the text, and how much of that the target accepts."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from decoding import accept
from decoding.stops import Stops
from decoding.types import JSON, Draft, Role

from .beginning import Beginning, lead_of
from .drafting import DraftReader
from .exits import ExitReader
from .features import FeatureReader
from .target import Target, TreePlace, UnreadError
from .together import together

if TYPE_CHECKING:
    from decoding.engine import Engine
    from decoding.request import Request

_TOGETHER, _ROWS = 64, 1024  # places that are drafted at together, and rows of a tree for them, at most
_FIRST_GUESSES = 8  # that are named of a place


class Measured:
    """One method at all places."""

    @torch.inference_mode()
    def __init__(self, engine: Engine, target: Target, request: Request) -> None:
        begun, params, room = time.perf_counter(), request.params, request.max_new_tokens
        self.name, self.unread = request.method.name, list[list[TreePlace]]()
        self._engine, self._target, self._request = engine, target, request
        self._lead = lead_of(request)
        self._drafts: dict[int, Draft] = {}  # by place, until they are judged
        self._rows: dict[int, dict[str, JSON]] = {}  # what came of it, by place
        self.together = max(1, min(_TOGETHER, _ROWS // max(1, params.rows)))  # places for `guess`
        self._reader: DraftReader | None = None
        self._along: Mapping[str, FeatureReader | ExitReader] = {}  # what reads the text along, by the part's name
        if "draft_model" in request.method.needs and engine.draft is not None:
            self._reader = DraftReader(engine, engine.draft, target.text, room, request.largest_step)
            self.together = self.together if self._reader.joins_places else 1
        opened = {name: part for name, part in request.parts.items() if hasattr(part, "open")}
        if "features" in request.method.needs:
            guesses = self.together * (params.rows + 2)  # and the places themselves
            self._along = {name: FeatureReader(part, target, room, guesses) for name, part in opened.items()}
        elif "early_exit" in request.method.needs:
            self._along = {name: ExitReader(part, target, room) for name, part in opened.items()}
        self._seconds = time.perf_counter() - begun

    @torch.inference_mode()
    def guess(self, places: Sequence[int]) -> None:
        """Let the method guess at some places, and judge as far as the target has read."""
        begun, after = time.perf_counter(), [place for place in places if place > self._lead]
        for place in {*places} - {*after}:
            self._rows[place] = {"accepted": None, "drafted": 0, "written": [], "guesses": []}
        for reader in self._along.values() if after else ():
            reader.begin(after)
        for place, draft in zip(after, together([partial(self._draft, place) for place in after]), strict=True):
            try:
                self._judge(place, draft)
            except UnreadError:
                self._drafts[place] = draft
        self._seconds += time.perf_counter() - begun

    def result(self, first: int) -> dict[str, JSON]:
        """All places in their order, for JSON."""
        for place, draft in self._drafts.items():
            self._judge(place, draft)
        self._drafts.clear()
        rows = [self._rows[place] for place in range(first, len(self._target.text))]
        known = [row["accepted"] for row in rows if row["accepted"] is not None]
        return {
            "name": self.name,
            "label": self._request.method.label,
            "params": self._request.params.to_json(),
            "settings": ", ".join(self._request.params.in_words()),
            "lead": self._lead,
            **{column: [row[column] for row in rows] for column in ("accepted", "drafted", "written", "guesses")},
            "mean_accepted": sum(known) / len(known) if known else None,
            "guessed": sum(row["drafted"] > 0 for row in rows),
            "seconds": self._seconds,
        }

    @torch.inference_mode()
    def _draft(self, place: int) -> Draft:
        """What the method proposes there."""
        session = None if self._reader is None else self._reader.at(place - 1)
        parts: dict[str, Any] = {name: reader.at(place) for name, reader in self._along.items()}
        request = replace(self._request, parts={**self._request.parts, **parts})
        return Beginning(self._engine, self._target, request, place, session).guess()

    def close(self) -> None:
        """Give the drafter's session back."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _judge(self, place: int, draft: Draft) -> None:
        """Walk the draft by the target's choices; where it has not read a guess, ask for those below it."""
        target, places = self._target, [TreePlace(place - 1, ())]
        for token, parent in zip(draft.tokens[1:], draft.parents[1:], strict=True):
            places.append(target.below(places[parent], token))

        def choose(node: int, depth: int, children: Sequence[int]) -> int:
            try:
                return target.choice(places[node])
            except UnreadError:
                self.unread.append([*_behind(places[node], places, draft)])
                raise

        path, emitted = accept.walk(draft, choose)
        request = self._request
        left = request.max_new_tokens - self._lead
        emitted, _ = Stops(left, request.end_tokens, (), lambda ids: "").cut(emitted)
        firsts = (
            draft.tokens[node] for node, parent in enumerate(draft.parents) if parent == 0 and _guess(draft, node)
        )
        self._rows[place] = {
            "accepted": len(path[: len(emitted) + 1]) - 1,
            "drafted": draft.roles.count(Role.VERIFY),
            "written": [*emitted],
            "guesses": [*dict.fromkeys(firsts)][:_FIRST_GUESSES],
        }


def _guess(draft: Draft, node: int) -> bool:
    return draft.roles[node] is Role.VERIFY


def _behind(place: TreePlace, places: Sequence[TreePlace], draft: Draft) -> Iterator[TreePlace]:
    """A place of a draft and those behind it, each once."""
    seen = set[TreePlace]()
    for node, other in enumerate(places):
        inside = other.token == place.token and other.path[: len(place.path)] == place.path
        if inside and other not in seen and _guess(draft, node):
            seen.add(other)
            yield other
