"""One method of a landscape: its guesses at every position, and how many of them the target accepts."""

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

from .blocks import BlockReader
from .draft_model import DraftReader
from .early_exit import ExitReader
from .features import FeatureReader
from .first_step import first_draft, lead_of
from .part_at import PartReader
from .questions import run_together
from .target import GuessPath, Target, UnreadError

if TYPE_CHECKING:
    from decoding.model.session import Model
    from decoding.request import Request

    from .questions import Ask

_TOGETHER, _ROWS = 64, 1024  # positions that draft together, and rows of their trees, at most
_FIRST_GUESSES = 8  # that are listed of a position


class OneMethod:
    """One method at all positions."""

    @torch.inference_mode()
    def __init__(self, target: Target, request: Request, draft: Model | None) -> None:
        """`draft` is the draft model, for a method that has one."""
        begun, params, room = time.perf_counter(), request.params, request.max_new_tokens
        self.name, self.unread = request.method.name, list[list[GuessPath]]()
        self._target, self._request = target, request
        self._lead = lead_of(request)
        self._drafts: dict[int, Draft] = {}  # by position, until they are judged
        self._rows: dict[int, dict[str, JSON]] = {}  # the results, by position
        self.together = max(1, min(_TOGETHER, _ROWS // max(1, params.rows)))  # positions for `guess`
        self._reader: DraftReader | None = None
        self._along: Mapping[str, PartReader] = {}  # by the part's name
        if "draft_model" in request.method.needs and draft is not None:
            self._reader = DraftReader(draft, target.pool, target.text, room, request.largest_step)
            self.together = self.together if self._reader.joins_positions else 1
        opened = {name: part for name, part in request.parts.items() if hasattr(part, "open")}
        if "features" in request.method.needs:
            guesses = self.together * (params.rows + 2)  # and the positions themselves
            self._along = {
                name: BlockReader(part, target, room)
                if name == "dflash"
                else FeatureReader(part, target, room, guesses)
                for name, part in opened.items()
            }
        elif "early_exit" in request.method.needs:
            self._along = {name: ExitReader(part, target, room) for name, part in opened.items()}
        self._seconds = time.perf_counter() - begun

    @torch.inference_mode()
    def guess(self, positions: Sequence[int]) -> None:
        """Draft with the method at some positions, and judge as far as the target has read."""
        begun, after = time.perf_counter(), [each for each in positions if each > self._lead]
        for position in {*positions} - {*after}:
            self._rows[position] = {"accepted": None, "drafted": 0, "written": [], "guesses": []}
        for reader in self._along.values() if after else ():
            reader.begin(after)
        drafts = run_together([partial(self._draft, position) for position in after])
        for position, draft in zip(after, drafts, strict=True):
            try:
                self._judge(position, draft)
            except UnreadError:
                self._drafts[position] = draft
        self._seconds += time.perf_counter() - begun

    def result(self, first: int) -> dict[str, JSON]:
        """Return the results of all positions in their order, for JSON."""
        for position, draft in self._drafts.items():
            self._judge(position, draft)
        self._drafts.clear()
        rows = [self._rows[each] for each in range(first, len(self._target.text))]
        accepted = [row["accepted"] for row in rows if row["accepted"] is not None]
        return {
            "name": self.name,
            "label": self._request.method.label,
            "params": self._request.params.to_json(),
            "settings": ", ".join(self._request.params.in_words()),
            "lead": self._lead,
            **{column: [row[column] for row in rows] for column in ("accepted", "drafted", "written", "guesses")},
            "mean_accepted": sum(accepted) / len(accepted) if accepted else None,
            "guessed": sum(row["drafted"] > 0 for row in rows),
            "seconds": self._seconds,
        }

    def _draft(self, position: int, ask: Ask) -> Draft:
        """Return the method's draft at a position."""
        parts: dict[str, Any] = {name: reader.at(position, ask) for name, reader in self._along.items()}
        draft = None if self._reader is None else (self._reader.at(position - 1, ask), self._reader.model)
        request = replace(self._request, parts={**self._request.parts, **parts})
        return first_draft(self._target, request, position, ask, draft)

    def close(self) -> None:
        """Return the drafter's session to the pool."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _judge(self, position: int, draft: Draft) -> None:
        """Walk the draft by the target's choices; list a guess that it has not read, and those below, as unread."""
        target, paths = self._target, [GuessPath(position - 1, ())]
        for token, parent in zip(draft.tokens[1:], draft.parents[1:], strict=True):
            paths.append(target.extend(paths[parent], token))

        def choose(node: int, depth: int, children: Sequence[int]) -> int:
            try:
                return target.choice(paths[node])
            except UnreadError:
                self.unread.append([*_from(paths[node], paths, draft)])
                raise

        path, emitted = accept.walk(draft, choose)
        request = self._request
        left = request.max_new_tokens - self._lead
        emitted, _ = Stops(left, request.end_tokens, (), lambda ids: "").cut(emitted)
        firsts = (
            draft.tokens[node] for node, parent in enumerate(draft.parents) if parent == 0 and _verified(draft, node)
        )
        self._rows[position] = {
            "accepted": len(path[: len(emitted) + 1]) - 1,
            "drafted": draft.roles.count(Role.VERIFY),
            "written": [*emitted],
            "guesses": [*dict.fromkeys(firsts)][:_FIRST_GUESSES],
        }


def _verified(draft: Draft, node: int) -> bool:
    return draft.roles[node] is Role.VERIFY


def _from(guess: GuessPath, paths: Sequence[GuessPath], draft: Draft) -> Iterator[GuessPath]:
    """Yield a guess of a draft and those below it, each once."""
    seen = set[GuessPath]()
    for node, other in enumerate(paths):
        below = other.token == guess.token and other.path[: len(guess.path)] == guess.path
        if below and other not in seen and _verified(draft, node):
            seen.add(other)
            yield other
