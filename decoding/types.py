"""The data types of the project: the draft that a method proposes, the verdict of the engine, and the record of a run.

Everything here is plain, frozen data. `Step` and `Trace` hold no tensors: they are the only
interface between the engine and any screen, test, file or script.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

if TYPE_CHECKING:
    import torch

SCHEMA = 1  # version of the trace format; raised whenever a reader of the old one would misread the new one

# Marks a field that older records of this version lack. Its default means that the value was not recorded.
LATER = {"later": True}

# A token id in a method's panel. By this type a record finds the display texts that it needs.
Token = Annotated[int, "token"]
JSON = Any  # null, bool, int, float, str, list or dict with str keys; checked where it enters


class Role(IntEnum):
    """What a node of a step may become."""

    ROOT = 0  # the last committed token: its key/value is not in the cache yet
    VERIFY = 1  # a guess that may be emitted
    EXPLORE = 2  # a window cell: read for the target's answer there, never emitted


@dataclass(frozen=True, slots=True)
class Draft:
    """A tree of guesses. Node 0 is the root; a node's parent is an earlier node.

    `sources` says where each guess came from, as "kind" or "kind:detail":
    "root", "draft:3" (third token of the draft model), "jacobi:4", "window:2,5" (row, column),
    "pool:1,3" (entry, token), "prompt:17", "output:40", "reference:9" (position copied from),
    "bigram:0", "chain:1", "unigram:2" (rank, link and rank in the model's own n-grams), "medusa:2,0" (head, rank),
    "exit:1" (first token of the early exit), "eagle:1" (first token of a drafter on features), "branch:2,0" (depth and
    rank in such a drafter's tree), "block:1" (first token drawn from a block), "place:2,0" (place in a block, and rank
    there), "datastore:12" (how often it came next there), "local:3" and "global:3" (the same in this text and in
    earlier answers), "recycled:2" (entry in the row of the token before it).
    """

    tokens: tuple[int, ...]
    parents: tuple[int, ...]
    roles: tuple[Role, ...]
    sources: tuple[str, ...]
    # Per node the distribution (V,) it was SAMPLED from, after temperature and filters; None means a point mass.
    # Greedy drafts, which it does not affect, have it in a full record only.
    q: tuple[torch.Tensor | None, ...] | None = None
    # A layer, and the hidden states (T, H) with which the nodes enter it: the layers before it have run already.
    entry: tuple[int, torch.Tensor] | None = None
    # Equal where every node's q is at the same address of the target's device; None: the addresses change.
    fixed: Hashable = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The engine's answer to a draft."""

    path: tuple[int, ...]  # accepted nodes, root first, each a child of the one before
    emitted: tuple[int, ...]  # tokens committed: the accepted ones and one bonus or correction
    argmax: tuple[int, ...]  # the target's most likely next token at every node
    guesses: tuple[int, ...] = ()  # of `Method.guess`, from the hidden state at the last accepted node
    ranked: Sequence[Sequence[int]] = ()  # the likeliest tokens at every node, best first, as many as `Params.ranked`
    tested: Mapping[int, float] = field(default_factory=dict)  # the numbers that sampled guesses were tested with


TIME_PARTS = ("draft", "forward", "accept", "commit", "other")  # of a step; `Timing` has each as NAME_ms


@dataclass(frozen=True, slots=True)
class Timing:
    """The times of a step's phases, in milliseconds by the engine's clock."""

    draft_ms: float = 0.0
    forward_ms: float = 0.0
    accept_ms: float = 0.0
    commit_ms: float = 0.0
    total_ms: float = 0.0

    @property
    def other_ms(self) -> float:
        """Return the time outside the four phases: building the record, checking stops."""
        return max(0.0, self.total_ms - self.draft_ms - self.forward_ms - self.accept_ms - self.commit_ms)


class Node(NamedTuple):
    """One node of a step, as a row of `Step`'s columns."""

    token: int
    parent: int
    depth: int
    role: Role
    source: str
    accepted: bool
    choice: int | None  # the target's most likely next token here
    p: float | None  # the target's probability of this token, given its parent
    q: float | None  # the drafter's probability of this token, if it was sampled from a distribution


@dataclass(frozen=True, slots=True)
class Step:
    """One turn of propose, verify, observe, as columns over the nodes. `record` decides which are filled."""

    index: int
    start: int  # committed tokens before the step; the root is the last of them, at position start - 1
    pending: int  # committed tokens fed before the root because they had no key/value yet
    emitted: tuple[int, ...]
    accepted: int  # guesses accepted; emitted holds one more unless the run was cut
    drafted: int  # VERIFY nodes proposed
    fed: int  # rows that went through the target, pending ones included
    timing: Timing
    # Columns, one entry a node; empty with record="off".
    tokens: tuple[int, ...] = ()
    parents: tuple[int, ...] = ()
    roles: tuple[Role, ...] = ()
    sources: tuple[str, ...] = ()
    path: tuple[int, ...] = ()
    choices: tuple[int, ...] = ()
    # Filled with record="full" only.
    p: tuple[float | None, ...] = ()
    q: tuple[float | None, ...] = ()
    top: tuple[tuple[tuple[int, float], ...], ...] = ()  # the target's best (token, probability) at every node
    panel: Mapping[str, JSON] = field(default_factory=dict)  # the step as the method saw it: window, pool changes, ...
    # The drafter's best (token, the drafter's probability, the target's) at every node; empty if it had none.
    draft_top: tuple[tuple[tuple[int, float, float], ...], ...] = field(default=(), metadata=LATER)
    # One number about p and q at every node; at temperature 0 about the unscaled distributions of the models.
    entropy: tuple[float, ...] = field(default=(), metadata=LATER)  # of p, in nats
    overlap: tuple[float | None, ...] = field(default=(), metadata=LATER)  # sum of min(p, q), where q was sampled from
    # The uniform number that each sampled guess was tested with: it is accepted if u * q < p.
    u: tuple[float | None, ...] = field(default=(), metadata=LATER)
    # The ranks that read each node, if there are several; `pending` and `fed` are then those of rank 0.
    ranks: tuple[tuple[int, ...], ...] = field(default=(), metadata=LATER)
    exchanged: int = field(default=0, metadata=LATER)  # bytes that each rank received in the exchange of choices
    # Distinct experts that the step's pass read per layer, averaged over the layers with experts; None without them.
    experts: float | None = field(default=None, metadata=LATER)

    @property
    def alternatives(self) -> set[int]:
        """Collect the ids of the target's and the drafter's best tokens."""
        lists: tuple[Sequence[tuple[Any, ...]], ...] = (*self.top, *self.draft_top)
        return {entry[0] for best in lists for entry in best}

    @property
    def used(self) -> set[int]:
        """Collect all token ids of the step but those in its panel: see `decoding/panel_tokens.py`."""
        return {*self.emitted, *self.tokens, *self.choices, *self.alternatives}

    @property
    def nodes(self) -> tuple[Node, ...]:
        """Return the columns as rows."""
        depth: list[int] = []
        for parent in self.parents:
            depth.append(0 if parent < 0 else depth[parent] + 1)
        on_path = set(self.path)
        return tuple(
            Node(
                token,
                self.parents[i],
                depth[i],
                self.roles[i],
                self.sources[i],
                i in on_path,
                self.choices[i] if self.choices else None,
                self.p[i] if self.p else None,
                self.q[i] if self.q else None,
            )
            for i, token in enumerate(self.tokens)
        )


@dataclass(frozen=True, slots=True)
class ModelCard:
    """The weights that ran, and their sizes."""

    name: str
    family: str
    hash: str  # sha256 over the configuration and the weights' names, shapes and leading bytes
    parameters: int
    vocabulary: int
    context: int
    # In bytes; None for a table.
    weight_bytes: int | None = field(default=None, metadata=LATER)  # of all weights in memory
    pass_bytes: int | None = field(default=None, metadata=LATER)  # of the weights that a pass reads; None: it varies
    token_bytes: int | None = field(default=None, metadata=LATER)  # of the keys and values of one cached token
    experts: int | None = field(default=None, metadata=LATER)  # that a layer's router chooses from; None: no router


@dataclass(frozen=True, slots=True)
class Branch:
    """Where a run continues another one with different tokens.

    Its prompt is the other run's prompt, the first `at` of the other run's new tokens, and the `forced` ones.
    """

    run: str  # the other run's name; "" if it has none
    prompt: int  # length of the other run's prompt, in tokens
    step: int  # of the other run
    at: int  # how many of the other run's new tokens are kept
    forced: tuple[int, ...]  # the last is the token asked for; the others lead to it in the step's tree
    written: int = 0  # tokens at the end of the other run's prompt that it took over from yet another run


@dataclass(frozen=True, slots=True)
class Header:
    """Everything about a run before its first step: enough to repeat it."""

    method: str
    params: Mapping[str, JSON]
    sampling: Mapping[str, JSON]
    prompt: tuple[int, ...]
    max_new_tokens: int
    stop: tuple[str, ...]
    end_tokens: tuple[int, ...]
    reference: tuple[int, ...]  # a document to copy from, for methods that do
    prefill_chunk: int
    model: ModelCard
    draft: ModelCard | None
    device: str
    dtype: str
    attention: str
    record: str
    versions: Mapping[str, str]
    parts: Mapping[str, str] = field(default_factory=dict)  # the method's heads, adapter, tables, ...: name and hash
    window: int | None = None  # the largest sliding window; None if some layer sees the whole text
    lossless: bool = True  # whether the text has the target's distribution; not with typical acceptance
    slots: int = 0  # of the rolling cache that the run needs; 0 if no slot is used twice
    # Memory bandwidth measured before the run, in bytes per second; None if a cache may hold the weights.
    bandwidth: float | None = field(default=None, metadata=LATER)
    cache: int | None = field(default=None, metadata=LATER)  # bytes of the devices' last-level caches; None for a table
    processor: str | None = field(default=None, metadata=LATER)  # the CPU's name, also where a GPU computes
    threads: int | None = field(default=None, metadata=LATER)  # of torch on the CPU
    ranks: int = field(default=1, metadata=LATER)  # processes that read each step's tree together
    branch: Branch | None = field(default=None, metadata=LATER)  # where the run continues another one
    schema: int = SCHEMA


@dataclass(frozen=True, slots=True)
class Summary:
    """The result of a run, in the metric names that users know from vLLM."""

    finish: str  # "length", "end_of_text", "stop", "cancelled", "time" or "error"
    text: str
    new_tokens: int
    steps: int
    mean_acceptance_length: float  # new tokens / steps, bonus included: autoregressive is exactly 1
    draft_acceptance_rate: float | None  # accepted / drafted guesses; None when nothing was drafted
    acceptance_histogram: tuple[int, ...]  # entry j: steps that accepted exactly j guesses
    fed_per_token: float  # rows through the target / new tokens: the factor of compute
    prefill_seconds: float  # the first step, which reads the prompt
    decode_seconds: float  # all later steps
    tokens_per_second: float | None  # tokens of the later steps / decode_seconds
    timing: Timing  # sums over the later steps
    bandwidth: float | None = field(default=None, metadata=LATER)  # as in the header, measured after the run


@dataclass(frozen=True, slots=True)
class Trace:
    """The record of a run, which plays without a model."""

    header: Header
    steps: tuple[Step, ...]
    summary: Summary | None  # None for a run that is still going or was interrupted
    texts: Mapping[int, str] = field(default_factory=dict)  # display text of every token id in the record

    @property
    def ids(self) -> tuple[int, ...]:
        """Return the new tokens."""
        return tuple(token for step in self.steps for token in step.emitted)
