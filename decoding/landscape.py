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
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import torch

from . import accept
from .errors import ParamError
from .loop import Loop
from .methods import METHODS
from .model.download import fetch
from .model.session import ExitSession, Model, ProgressCallback, Session, TapSession, catch_up
from .parts.base import TAPPING
from .queued import QueuedDraft
from .request import Prompt, Request, build_request, check_count, check_event
from .sampling import likeliest
from .stops import Stops
from .tree import Builder
from .types import JSON, Draft, Role, Verdict

if TYPE_CHECKING:
    from .engine import Engine

LONGEST = 4096  # tokens of a text
_ROWS = 512  # of a pass
_FIRST_GUESSES = 8  # that are named of a place
_VERSION = 1

Methods = Sequence[str] | Mapping[str, Mapping[str, JSON]]


class _Place(NamedTuple):
    """Where a guess stands: behind a token of the text, with the guesses on the way from there; none: that token."""

    token: int
    path: tuple[int, ...]


class _UnreadError(Exception):
    """The target has not read a guess whose verdict is asked for."""


def landscape(
    engine: Engine,
    text: Prompt,
    methods: Methods | None,
    first: int,
    max_new_tokens: int,
    cancel: threading.Event | None,
    progress: ProgressCallback | None,
) -> dict[str, JSON]:
    """Check what is asked for, then measure; as plain JSON."""
    begun, cancel = time.perf_counter(), check_event(cancel)
    ids = engine.encode(text, "text")
    if len(ids) > LONGEST:
        raise ParamError(f"the text has {len(ids)} tokens: shorten it to {LONGEST}")
    if len(ids) < 2:
        raise ParamError("the text has one token: a step has something to follow from the second on")
    check_count("first", first, 1, len(ids) - 1)
    requests = _requests(engine, ids, methods, max_new_tokens, cancel)
    model, rows = engine.model, max(_ROWS, *(request.largest_step for request in requests))
    if model.rolling is not None:
        rows = max(rows, len(ids))  # so that what was overwritten is never asked for again
    session = engine.session_pool.acquire(model, len(ids) + max_new_tokens, rows)
    session.reset(len(ids))
    measured, found = list[_Measured](), list[dict[str, JSON]]()
    try:
        if session.seam is not None and len(ids) > session.seam:
            raise ParamError(f"this model reads texts of more than {session.seam} tokens in another way: shorten it")
        target = _Target(model, session, ids)
        places = [*range(len(ids) - 1, first - 1, -1)]  # from the last on, so that what is stored need not be read anew
        measured = [_Measured(engine, target, request) for request in requests]
        for done, one in enumerate(measured):
            for count, place in enumerate(places):
                if cancel.is_set():
                    break
                one.guess(place)
                if progress is not None:
                    progress(one.name, (done + (count + 1) / len(places)) / len(measured))
            one.close()
        if not cancel.is_set():
            target.read_guesses([unit for one in measured for unit in one.unread])
            found = [one.result(first) for one in measured]
    finally:
        for one in measured:
            one.close()
        if isinstance(session, TapSession):
            session.tap()
        engine.session_pool.release(model, session)
    written = {token for one in found for row in (*one["written"], *one["guesses"]) for token in row}
    return {
        "version": _VERSION,
        "model": model.card.name,
        "device": ",".join(map(str, model.devices)),
        "dtype": model.precision,
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


class _Target:
    """What the target says behind every token of the text, and behind the guesses that it was asked to read."""

    def __init__(self, model: Model, session: Session, text: Sequence[int]) -> None:
        self.session, self.text = session, text
        self.rows = self.passes = 0
        self._largest = min(_ROWS, model.step_rows or _ROWS)
        self._room = min(session.largest_step, model.step_rows or session.largest_step)
        self._answers: dict[_Place, int] = {}
        self.choices: list[int] = []
        self._hidden = torch.empty(0)  # (N, H)
        self._states: dict[tuple[int, ...], torch.Tensor] = {}  # by the tapped layers, (N, layers * H)
        self._read_text()

    @torch.inference_mode()
    def _read_text(self) -> None:
        hidden = list[torch.Tensor]()
        for start in range(0, len(self.text), self._largest):
            tokens = self.text[start : start + self._largest]
            reading = self.session.read(tokens, tuple(range(-1, len(tokens) - 1)))
            self.session.commit(range(len(tokens)))
            self._count(len(tokens))
            self.choices += likeliest(reading.logits)
            hidden.append(reading.hidden)
        self._hidden = torch.cat(hidden)

    def _count(self, rows: int) -> None:
        self.rows += rows
        self.passes += 1

    def hidden(self, place: int) -> torch.Tensor:  # (H,)
        """The hidden state behind a token of the text."""
        return self._hidden[place]

    @torch.inference_mode()
    def states(self, layers: tuple[int, ...]) -> torch.Tensor:  # (N, layers * H)
        """The hidden states with which the text enters some layers: it is read once more for each set of them."""
        if layers not in self._states:
            assert isinstance(self.session, TapSession)
            self.session.reset(len(self.text))
            self.session.tap(*layers)
            catch_up(self.session, self.text, 0, self._largest)
            self.rows += len(self.text)
            self.passes += -(-len(self.text) // self._largest)
            self._states[layers] = self.session.tapped()
            self.session.tap()
        return self._states[layers]

    def stand(self, length: int) -> None:
        """Let the session hold this many tokens of the text."""
        if self.session.length < length:
            catch_up(self.session, self.text[self.session.length : length], 0, self._largest)
        self.session.rewind(length)

    def choice(self, place: _Place) -> int:
        """What the target chooses behind a guess; behind the text itself if the path is empty."""
        if not place.path:
            return self.choices[place.token]
        if place not in self._answers:
            raise _UnreadError
        return self._answers[place]

    def below(self, place: _Place, token: int) -> _Place:
        """Where a guess of this token behind another stands: on the text as long as it says the same."""
        behind = place.token + 1
        if not place.path and behind < len(self.text) and token == self.text[behind]:
            return _Place(behind, ())
        return _Place(place.token, (*place.path, token))

    @torch.inference_mode()
    def read_guesses(self, units: Sequence[Sequence[_Place]]) -> None:
        """Read guesses; each unit holds guesses behind one token of the text, none without those in front of it."""
        waiting = sorted(units, key=lambda unit: unit[0].token)
        while waiting:
            start = min(self.session.length, waiting[0][0].token)
            self.stand(waiting[0][0].token if waiting[0][0].token - start >= self._largest // 2 else start)
            start, end = self.session.length, waiting[0][0].token + 1
            together = dict.fromkeys(waiting.pop(0))
            while waiting:
                more, reach = together | dict.fromkeys(waiting[0]), waiting[0][0].token + 1
                if reach - start + len(more) > self._largest:
                    break
                together, end = more, reach
                waiting.pop(0)
            self._read(start, end, [*together])

    def _read(self, start: int, end: int, places: Sequence[_Place]) -> None:
        """One pass: a part of the text as a chain, and guesses behind its tokens."""
        rows, chain = dict[_Place, int](), end - start
        parents = [*range(-1, chain - 1)]
        for place in places:
            above = rows[_Place(place.token, place.path[:-1])] if place.path[1:] else place.token - start
            rows[place] = chain + len(rows)
            parents.append(above)
        tokens = [*self.text[start:end], *(place.path[-1] for place in places)]
        reading = self.session.read(tokens, tuple(parents), skip=chain)
        self._count(len(tokens))
        self._answers |= zip(places, likeliest(reading.logits), strict=True)
        self.session.commit(range(chain - 1))  # the last may have more guesses, which the next pass reads


class _Measured:
    """One method at all places."""

    def __init__(self, engine: Engine, target: _Target, request: Request) -> None:
        self.name, self.unread = request.method.name, list[list[_Place]]()
        self._engine, self._target, self._request = engine, target, request
        self._lead = int(bool(request.method.needs & (TAPPING | {"hidden"})))
        self._drafts: dict[int, Draft] = {}  # by place, until they are judged
        self._rows: dict[int, dict[str, JSON]] = {}  # what came of it, by place
        self._seconds = 0.0
        drafts = engine.draft is not None and "draft_model" in request.method.needs
        self._draft = engine.draft if drafts else None
        self._session: Session | None = None

    @torch.inference_mode()
    def guess(self, place: int) -> None:
        """Let the method guess there, and judge as far as the target has read."""
        if place <= self._lead - 1 or place - self._lead < 1:
            self._rows[place] = {"accepted": None, "drafted": 0, "written": [], "guesses": []}
            return
        begun = time.perf_counter()
        draft = self._begin(place)
        try:
            self._judge(place, draft)
        except _UnreadError:
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
            "lead": self._lead,
            **{column: [row[column] for row in rows] for column in ("accepted", "drafted", "written", "guesses")},
            "mean_accepted": sum(known) / len(known) if known else None,
            "guessed": sum(row["drafted"] > 0 for row in rows),
            "seconds": self._seconds,
        }

    def _begin(self, place: int) -> Draft:
        """The draft of a run that is about to write the text's token there."""
        text, lead, target = self._target.text, self._lead, self._target
        request = replace(
            self._request,
            prompt=tuple(text[: place - lead]),
            largest_step=max(self._request.largest_step, min(self._request.prefill_chunk, place - lead)),
            memory={},
        )
        prefix = cast("Session", _Prefix(target, place - 1))
        draft_model = self._draft
        loop = _Beginning(
            request,
            self._engine.model,
            prefix,
            self._drafting(place),
            draft_model.device if draft_model else self._engine.model.device,
            self._engine.codec,
        )
        if lead:
            loop.write(text[place - 1], target.choices[place - 2], target.hidden(place - 2))
        return loop.guess()

    def _drafting(self, place: int) -> Session | None:
        """The drafter's session with nothing but the text in front of the root."""
        if self._draft is None:
            return None
        if self._session is None:
            room = len(self._target.text) + self._request.max_new_tokens
            self._session = self._engine.session_pool.acquire(self._draft, room, self._request.largest_step)
            self._session.reset(place)
        session = self._session
        if not session.keep(min(session.length, place - 1), place):
            session.reset(place)
        return session

    def close(self) -> None:
        """Give the drafter's session back."""
        if self._session is not None and self._draft is not None:
            self._engine.session_pool.release(self._draft, self._session)
            self._session = None

    def _judge(self, place: int, draft: Draft) -> None:
        """Walk the draft by the target's choices; where it has not read a guess, ask for those below it."""
        target, places = self._target, [_Place(place - 1, ())]
        for token, parent in zip(draft.tokens[1:], draft.parents[1:], strict=True):
            places.append(target.below(places[parent], token))

        def choose(node: int, depth: int, children: Sequence[int]) -> int:
            try:
                return target.choice(places[node])
            except _UnreadError:
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


def _behind(place: _Place, places: Sequence[_Place], draft: Draft) -> Iterator[_Place]:
    """A place of a draft and those behind it, each once."""
    seen = set[_Place]()
    for node, other in enumerate(places):
        inside = other.token == place.token and other.path[: len(place.path)] == place.path
        if inside and other not in seen and _guess(draft, node):
            seen.add(other)
            yield other


class _Beginning(Loop):
    """A run that is about to take a step at a place of a text."""

    @torch.inference_mode()
    def guess(self) -> Draft:
        """What the method proposes."""
        proposal = self._propose(len(self._text))
        if isinstance(proposal, QueuedDraft):
            return self._fit(proposal.finish(fetch(*proposal.numbers)))
        return proposal

    @torch.inference_mode()
    def write(self, token: int, choice: int, hidden: torch.Tensor) -> None:
        """A first step that only reads the prompt and writes the text's token, whatever the target chose."""
        draft = Builder(self._text[-1]).draft()
        self._text.append(token)
        self._sampler.extend([token])
        guesses = self._method.guess(hidden).flatten().tolist() if self._guesses else ()
        self._method.observe(draft, Verdict((0,), (token,), (choice,), tuple(guesses)))


class _Prefix:
    """The target's session as a run meets it whose text was read up to a place; nothing is stored in it."""

    def __init__(self, target: _Target, length: int) -> None:
        self._target, self._session, self.length = target, target.session, length
        self.capacity, self.largest_step, self.seam = (
            self._session.capacity,
            self._session.largest_step,
            self._session.seam,
        )
        self._layers: tuple[int, ...] = ()
        self._told = 0

    def tap(self, *layers: int) -> None:
        """Record the hidden states with which the text enters these layers."""
        self._layers = layers

    def tapped(self) -> torch.Tensor:
        """Those that were not asked for before."""
        states = self._target.states(self._layers)[self._told : self.length]
        self._told = self.length
        return states

    def enter(self, tokens: Any, layer: int, ahead: int = 0) -> torch.Tensor:
        """Run a chain through the first layers."""
        if ahead == 0:
            self._target.stand(self.length)
        assert isinstance(self._session, ExitSession)
        return self._session.enter(tokens, layer, ahead)

    def read(self, tokens: Any, parents: tuple[int, ...], skip: int = 0) -> Any:
        """Not asked for: the target reads all places together."""
        raise AssertionError("a method only guesses here")

    resume = commit = rewind = keep = reset = read
