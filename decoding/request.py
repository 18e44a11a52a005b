"""What a user asks an engine for: its options, and the one place that makes a checked request of them."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from .chat import Chat
from .codec import Prompt
from .errors import OptionError, ParamError
from .exchange import hindrance
from .loaded import Loaded
from .methods import Method, find_method
from .model.session import ProgressCallback
from .params import Params, check_count, shown
from .parts import Part, Parts
from .ranks import Ranks
from .sampling import Sampling
from .trace.columns import LEVELS
from .types import JSON, Branch

_MOST_STOPS, _LONGEST_STOP = 16, 256
_CHUNK = 512  # tokens of a prompt per pass, where no sliding window asks for fewer
_NODES = 256  # nodes that every step has room for
LARGEST_STEP = 4096  # rows that no method and no chunk of a prompt may ask for: a mask has their square
_LONGEST_REFERENCE = 65_536  # tokens: its index holds every n-gram


@dataclass(frozen=True, slots=True)
class Request:
    """One run, in values that can be trusted."""

    method: type[Method]
    params: Params
    sampling: Sampling
    prompt: tuple[int, ...]
    max_new_tokens: int
    stop: tuple[str, ...]
    end_tokens: frozenset[int]
    reference: tuple[int, ...]
    record: str
    prefill_chunk: int
    largest_step: int  # rows that a step may hold, of the tree and of the prompt's chunk in front of it
    time_budget: float  # seconds
    parts: Mapping[str, Part]  # that the method needs, beside a drafter
    memory: dict[str, Any]  # what the method keeps from run to run
    cancel: threading.Event  # ends the run once it is set
    progress: ProgressCallback | None
    chat: Chat | None
    ranks: Ranks | None
    branch: Branch | None = None  # where the run goes on from another one

    @property
    def written(self) -> int:
        """Tokens at the end of the prompt that count as new ones: they have had their numbers of the seed already."""
        return 0 if self.branch is None else self.branch.written + len(self.prompt) - self.branch.prompt


class DecodeOptions(TypedDict, total=False):
    """The keywords of `decode` and `generate` beside the prompt, the method and its settings; all may be left out."""

    stop: Sequence[str]  # texts that end the run where one of them is written
    end_tokens: Sequence[int] | None  # ids that end it, instead of the model's own ends of text
    reference: Prompt | None  # a document that copying methods look in beside the text
    record: str  # "off", "light" (the default) or "full": how much of every step is recorded
    prefill_chunk: int | None  # tokens of the prompt that are read in one pass
    time_budget: float  # seconds after which the run ends
    cancel: threading.Event | None  # set it, from any thread, to end the run
    progress: Callable[[str, float], None] | None  # hears what is read or made before the first step, and its share
    chat: Chat | None  # keeps the caches for the next turn of a conversation
    # A dict of yours that keeps what methods learn for later runs of this engine; without it the chat does, or the
    # engine itself: a server gives every user another one.
    memory: dict[str, Any] | None
    ranks: Ranks | None  # the processes that read each step's tree together, of which this is one: Ranks.join()


class _StoppedError(Exception):
    """The caller has had enough while a part was being made."""


def build_request(
    loaded: Loaded,
    prompt: Prompt,
    method: str | type[Method],
    params: Mapping[str, JSON] | None,
    sampling: Mapping[str, JSON] | Sampling | None,
    max_new_tokens: int,
    options: DecodeOptions,
) -> Request:
    """Check all that was asked for, then make the parts that the method needs where they are not there yet."""
    _check_options(options)
    kind = find_method(method)
    if missing := loaded.lacks(kind):
        raise ParamError(f"{kind.name} needs {missing}")
    card, reference, chat = loaded.model.card, options.get("reference"), options.get("chat")
    ids = loaded.encode(prompt)
    setting, drawing = kind.Params.parse({} if params is None else params), find_sampling(sampling)
    chunk = check_chunk(options.get("prefill_chunk"), loaded.model.window)
    cancel, progress = check_event(options.get("cancel")), options.get("progress")
    return Request(
        method=kind,
        params=setting,
        sampling=drawing,
        prompt=tuple(ids),
        max_new_tokens=check_room(len(ids), max_new_tokens, card.context),
        stop=check_stops(options.get("stop", ())),
        end_tokens=check_ends(options.get("end_tokens"), loaded.codec.end_tokens, card.vocabulary),
        reference=check_reference(kind, () if reference is None else loaded.encode(reference, "reference")),
        record=check_record(options.get("record", "light")),
        prefill_chunk=chunk,
        largest_step=max(min(chunk, len(ids)), check_step(kind.name, setting.nodes)),
        time_budget=check_seconds(options.get("time_budget", math.inf)),
        memory=check_memory(options.get("memory"), loaded.memory if chat is None else chat.memory, kind),
        parts=_take_parts(loaded.parts, kind, cancel, progress),
        cancel=cancel,
        progress=progress,
        chat=chat,
        ranks=check_ranks(options.get("ranks"), kind, setting, drawing, options.get("record")),
    )


def _check_options(options: Mapping[str, object]) -> None:
    known = DecodeOptions.__optional_keys__
    if unknown := sorted(options.keys() - known):
        raise OptionError(f"there is no option {shown(unknown[0])}; known ones: {', '.join(sorted(known))}")


def _take_parts(
    parts: Parts, method: type[Method], cancel: threading.Event, progress: ProgressCallback | None
) -> dict[str, Part]:
    """What a method needs, made now where it is not yet there; nothing once the run is to be stopped."""

    def report(what: str, share: float) -> None:
        if cancel.is_set():
            raise _StoppedError
        if progress is not None:
            progress(what, share)

    try:
        return parts.take(method.needs, report)
    except _StoppedError:
        return {}


def find_sampling(raw: Mapping[str, JSON] | Sampling | None) -> Sampling:
    """Sampling settings from untrusted values."""
    return raw if isinstance(raw, Sampling) else Sampling.parse({} if raw is None else raw)


def check_room(prompt_length: int, max_new_tokens: object, context: int) -> int:
    """The budget of new tokens, if it fits the model's context together with the prompt."""
    if prompt_length >= context:
        raise ParamError(f"the prompt has {prompt_length} tokens but the model's context holds {context}: shorten it")
    budget = check_count("max_new_tokens", max_new_tokens, 1, 10_000_000)
    if prompt_length + budget > context:
        room = context - prompt_length
        raise ParamError(
            f"{prompt_length} prompt tokens and {budget} new ones exceed the model's context of {context}: "
            f"ask for at most {room} new tokens"
        )
    return budget


def check_stops(stop: object) -> tuple[str, ...]:
    """Stop strings."""
    texts = (stop,) if isinstance(stop, str) else tuple(stop) if isinstance(stop, Sequence) else None
    if texts is None or not all(isinstance(text, str) and 0 < len(text) <= _LONGEST_STOP for text in texts):
        raise ParamError(f"stop strings must be texts of 1 to {_LONGEST_STOP} characters")
    if len(texts) > _MOST_STOPS:
        raise ParamError(f"give at most {_MOST_STOPS} stop strings, not {len(texts)}")
    return texts


def check_reference(method: type[Method], tokens: Sequence[int]) -> tuple[int, ...]:
    """A document to copy from, for a method that does."""
    if tokens and not method.takes_reference:
        raise ParamError(f"{method.name} copies from no reference: leave it out, or choose prompt_lookup")
    if len(tokens) > _LONGEST_REFERENCE:
        raise ParamError(f"the reference has {len(tokens)} tokens: shorten it to {_LONGEST_REFERENCE}")
    return tuple(tokens)


def check_ends(tokens: object, usual: frozenset[int], vocabulary: int) -> frozenset[int]:
    """Ids that end a text; None leaves the usual ones."""
    if tokens is None:
        return usual
    if not isinstance(tokens, Iterable):
        raise ParamError("end_tokens must be a list of token ids")
    return frozenset(check_count("each end token", token, 0, vocabulary - 1) for token in tokens)


def check_chunk(chunk: object, window: int | None) -> int:
    """Prompt tokens per pass; None leaves it to the model's sliding window."""
    if chunk is None:
        return min(window or _CHUNK, _CHUNK)
    return check_count("prefill_chunk", chunk, 1, LARGEST_STEP)


def check_step(method: str, nodes: int) -> int:
    """The nodes of a method's largest step, if a step may hold them."""
    if nodes > LARGEST_STEP:
        raise ParamError(f"these settings put {nodes} tokens into a step of {method}, above {LARGEST_STEP}: lower them")
    return max(nodes, _NODES)


def check_event(event: object) -> threading.Event:
    """What the caller can end the run with."""
    if event is None:
        return threading.Event()
    if not isinstance(event, threading.Event):
        raise ParamError("cancel must be a threading.Event: set it to end the run")
    return event


def check_memory(memory: object, usual: dict[str, Any], method: type[Method]) -> dict[str, Any]:
    """A method's own part of the caller's memory; None leaves the usual one."""
    kept = usual if memory is None else memory
    own = kept.setdefault(method.name, {}) if isinstance(kept, dict) else None
    if not isinstance(own, dict):
        raise ParamError("memory must be a dict: give an empty one to the first run and the same one to later runs")
    return own


def check_record(level: object) -> str:
    """How much to record."""
    if level not in LEVELS:
        raise ParamError(f"record must be one of {', '.join(LEVELS)}, not {shown(level)}")
    return str(level)


def check_ranks(
    ranks: object, method: type[Method], params: Params, sampling: Sampling, record: object
) -> Ranks | None:
    """The processes of a run, if they can read the method's trees together."""
    if ranks is None:
        return None
    if not isinstance(ranks, Ranks):
        raise ParamError("ranks must be what Ranks.join() returns, in processes that torchrun has started")
    if why := hindrance(method, params, sampling):
        raise ParamError(f"{method.name} does not split over ranks: {why}")
    if record == "full":
        raise ParamError("no rank has the probabilities of all guesses: choose record light where several ranks read")
    return ranks


def check_seconds(value: object) -> float:
    """A time budget; infinity means none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise ParamError(f"time_budget must be a positive number of seconds, not {shown(value)}")
    return float(value) if value < 1e18 else math.inf
