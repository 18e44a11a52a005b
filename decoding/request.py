"""The request of a run: the options that a caller may give, and the one function that checks them."""

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
from .parts import MethodPart, Parts
from .ranks import Ranks
from .sampling import Sampling
from .session_pool import SessionPool
from .trace.columns import LEVELS
from .types import JSON, Branch

_MOST_STOPS, _LONGEST_STOP = 16, 256
_CHUNK = 512  # tokens of a prompt per pass, unless a sliding window is smaller
_NODES = 256  # nodes that every step has room for
LARGEST_STEP = 4096  # the most rows of a method's tree or of a chunk of the prompt: a mask has their square
_LONGEST_REFERENCE = 65_536  # tokens: its index holds every n-gram


@dataclass(frozen=True, slots=True)
class Request:
    """One run, in checked values."""

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
    largest_step: int  # the most rows of a step: the tree and the chunk of the prompt before it
    time_budget: float  # seconds
    parts: Mapping[str, MethodPart]  # that the method needs, besides a draft model
    memory: dict[str, Any]  # what the method keeps between runs
    session_pool: SessionPool  # where the parts' sessions stay between runs
    cancel: threading.Event  # ends the run once it is set
    progress: ProgressCallback | None
    chat: Chat | None
    ranks: Ranks | None
    branch: Branch | None = None  # where the run continues another one

    @property
    def written(self) -> int:
        """Count the prompt's tokens that another run wrote: their uniform numbers are used up."""
        return 0 if self.branch is None else self.branch.written + len(self.prompt) - self.branch.prompt


class DecodeOptions(TypedDict, total=False):
    """The optional keywords of `decode` and `generate` besides the prompt, the method and its settings."""

    stop: Sequence[str]  # texts that end the run when one of them is written
    end_tokens: Sequence[int] | None  # ids that end the run, instead of the model's
    reference: Prompt | None  # a document that copying methods copy from, besides the text
    record: str  # "off", "light" (the default) or "full": how much of every step is recorded
    prefill_chunk: int | None  # tokens of the prompt per pass
    time_budget: float  # seconds after which the run ends
    cancel: threading.Event | None  # set it, from any thread, to end the run
    progress: Callable[[str, float], None] | None  # called before the first step: what is done, its share
    chat: Chat | None  # keeps the caches for the next turn of a conversation
    # Keeps what methods learn for later runs of this engine; by default the chat does, or the engine itself. A server
    # gives each user a dict.
    memory: dict[str, Any] | None
    ranks: Ranks | None  # Ranks.join(): this process among those that read each step's tree together


class _StoppedError(Exception):
    """The caller cancelled the run while a part was being made."""


def build_request(
    loaded: Loaded,
    prompt: Prompt,
    method: str | type[Method],
    params: Mapping[str, JSON] | None,
    sampling: Mapping[str, JSON] | Sampling | None,
    max_new_tokens: int,
    options: DecodeOptions,
) -> Request:
    """Check every argument, then make the parts that the method needs and the engine has not made yet."""
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
        largest_step=largest_step(kind.name, setting, chunk, len(ids)),
        time_budget=check_seconds(options.get("time_budget", math.inf)),
        memory=check_memory(options.get("memory"), loaded.memory if chat is None else chat.memory, kind),
        session_pool=loaded.session_pool,
        parts=_take_parts(loaded.parts, kind, cancel, progress),
        cancel=cancel,
        progress=progress,
        chat=chat,
        ranks=check_ranks(options.get("ranks"), kind, setting, drawing, options.get("record")),
    )


def _check_options(options: Mapping[str, object]) -> None:
    names = DecodeOptions.__optional_keys__
    if unknown := sorted(options.keys() - names):
        raise OptionError(f"there is no option {shown(unknown[0])}; known ones: {', '.join(sorted(names))}")


def _take_parts(
    parts: Parts, method: type[Method], cancel: threading.Event, progress: ProgressCallback | None
) -> dict[str, MethodPart]:
    """Return the parts that a method needs, making missing ones now; none once the run is cancelled."""

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
    """Parse sampling settings from untrusted values."""
    return raw if isinstance(raw, Sampling) else Sampling.parse({} if raw is None else raw)


def check_room(prompt_length: int, max_new_tokens: object, context: int) -> int:
    """Return the budget of new tokens, if it fits into the model's context together with the prompt."""
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
    """Return the stop strings, if they are few and short."""
    texts = (stop,) if isinstance(stop, str) else tuple(stop) if isinstance(stop, Sequence) else None
    if texts is None or not all(isinstance(text, str) and 0 < len(text) <= _LONGEST_STOP for text in texts):
        raise ParamError(f"stop strings must be texts of 1 to {_LONGEST_STOP} characters")
    if len(texts) > _MOST_STOPS:
        raise ParamError(f"give at most {_MOST_STOPS} stop strings, not {len(texts)}")
    return texts


def check_reference(method: type[Method], tokens: Sequence[int]) -> tuple[int, ...]:
    """Return the document to copy from, if the method copies and the document is not too long."""
    if tokens and not method.takes_reference:
        raise ParamError(f"{method.name} copies from no reference: leave it out, or choose prompt_lookup")
    if len(tokens) > _LONGEST_REFERENCE:
        raise ParamError(f"the reference has {len(tokens)} tokens: shorten it to {_LONGEST_REFERENCE}")
    return tuple(tokens)


def check_ends(tokens: object, usual: frozenset[int], vocabulary: int) -> frozenset[int]:
    """Return the ids that end a text; None means the usual ones."""
    if tokens is None:
        return usual
    if not isinstance(tokens, Iterable):
        raise ParamError("end_tokens must be a list of token ids")
    return frozenset(check_count("each end token", token, 0, vocabulary - 1) for token in tokens)


def check_chunk(chunk: object, window: int | None) -> int:
    """Return the prompt's tokens per pass; None means the model's sliding window, up to a bound."""
    if chunk is None:
        return min(window or _CHUNK, _CHUNK)
    return check_count("prefill_chunk", chunk, 1, LARGEST_STEP)


def largest_step(method: str, params: Params, chunk: int, prompt_length: int) -> int:
    """Return the most rows of a step: of the tree, or of a chunk of the prompt."""
    return max(min(chunk, prompt_length), check_step(method, params.nodes))


def check_step(method: str, nodes: int) -> int:
    """Return how many nodes the cache must have room for in a step; ParamError above `LARGEST_STEP`."""
    if nodes > LARGEST_STEP:
        raise ParamError(f"these settings put {nodes} tokens into a step of {method}, above {LARGEST_STEP}: lower them")
    return max(nodes, _NODES)


def check_event(event: object) -> threading.Event:
    """Return the event that ends the run."""
    if event is None:
        return threading.Event()
    if not isinstance(event, threading.Event):
        raise ParamError("cancel must be a threading.Event: set it to end the run")
    return event


def check_memory(memory: object, usual: dict[str, Any], method: type[Method]) -> dict[str, Any]:
    """Return the method's part of the caller's memory; None means the usual one."""
    memory = usual if memory is None else memory
    part = memory.setdefault(method.name, {}) if isinstance(memory, dict) else None
    if not isinstance(part, dict):
        raise ParamError("memory must be a dict: give an empty one to the first run and the same one to later runs")
    return part


def check_record(level: object) -> str:
    """Return how much to record."""
    if level not in LEVELS:
        raise ParamError(f"record must be one of {', '.join(LEVELS)}, not {shown(level)}")
    return str(level)


def check_ranks(
    ranks: object, method: type[Method], params: Params, sampling: Sampling, record: object
) -> Ranks | None:
    """Return the ranks of a run; ParamError if they cannot read the method's trees together."""
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
    """Return the time budget; infinity means none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise ParamError(f"time_budget must be a positive number of seconds, not {shown(value)}")
    return float(value) if value < 1e18 else math.inf
