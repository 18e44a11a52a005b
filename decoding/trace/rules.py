"""Rules for the lines of a trace beyond their types; a file that breaks one was not written by a run."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from itertools import pairwise

from .. import tree
from ..errors import TraceError
from ..processor import LONGEST
from ..types import Header, Role, Step, Summary

_MOST_THREADS = 2**16
_MOST_RANKS = 2**10
_OPTIONAL = ("choices", "p", "q", "top", "draft_top", "entropy", "overlap", "u", "ranks")
MOST_NATS = 64.0  # of an entropy: more tokens than 64 bits can number have less
_LARGEST = 1e18  # of a count, an amount or a time: sums of it stay finite


class TraceChecker:
    """Checks the steps of a trace in order, each against those before it."""

    def __init__(self, header: Header, where: str) -> None:
        _check_counts(header, where)
        require(bool(header.prompt), f"{where}.prompt must hold at least one token")
        _check_ids(header.prompt, f"{where}.prompt")
        _check_machine(header, where)
        _check_branch(header, where)
        require(1 <= header.ranks <= _MOST_RANKS, f"{where}.ranks must be from 1 to {_MOST_RANKS}, not {header.ranks}")
        self._ranks = header.ranks
        self._committed = len(header.prompt)
        self._prompt_length = self._committed
        self._last = header.prompt[-1]
        self._steps = 0
        self._cut = False
        self._unread = self._committed - 1  # tokens before the root that the next step may have to feed

    def add(self, step: Step, most_nodes: int, where: str) -> None:
        """Check the next step."""
        require(step.index == self._steps, f"{where}.index must be {self._steps}, not {step.index}")
        require(step.start == self._committed, f"{where}.start must be {self._committed}, not {step.start}")
        require(not self._cut, f"{where} follows a step whose tokens were cut, which only the last step may have")
        _check_counts(step, where)
        _check_outcome(step, where)
        most = self._unread
        require(step.pending <= most, f"{where}.pending must be at most {most}: all other tokens were read before")
        nodes = len(step.tokens)
        require(nodes <= most_nodes, f"{where} has {nodes} nodes, more than the {most_nodes} allowed")
        # The same limit holds for a step whose nodes were not recorded.
        require(step.drafted <= most_nodes, f"{where}.drafted must be at most {most_nodes}, not {step.drafted}")
        _check_columns(step, where)
        if nodes:
            require(step.tokens[0] == self._last, f"{where}.tokens[0] must be {self._last}, the last committed token")
            _check_tree(step, where)
            _check_path(step, where)
            _check_ranks(step, self._ranks, where)
        self._steps += 1
        self._committed += len(step.emitted)
        self._last = step.emitted[-1]
        self._unread = len(step.emitted)
        self._cut = len(step.emitted) == step.accepted

    def finish(self, summary: Summary, where: str) -> None:
        """Check the end of the run."""
        _check_counts(summary, where)
        written = self._committed - self._prompt_length
        require(summary.steps == self._steps, f"{where}.steps must be {self._steps}, not {summary.steps}")
        require(summary.new_tokens == written, f"{where}.new_tokens must be {written}, not {summary.new_tokens}")
        _check_shares([summary.draft_acceptance_rate], f"{where}.draft_acceptance_rate")
        negative = any(count < 0 for count in summary.acceptance_histogram)
        require(not negative, f"{where}.acceptance_histogram must not hold negative counts")


def check_texts(earlier: Mapping[int, str], texts: Mapping[int, str], where: str) -> None:
    """Check that display texts belong to token ids and do not contradict earlier ones."""
    _check_ids(texts, where)
    for token, text in texts.items():
        require(earlier.get(token, text) == text, f"{where} gives token {token} a second, different text")


def require(holds: bool, sentence: str) -> None:
    """Raise TraceError with `sentence` unless a condition holds."""
    if not holds:
        raise TraceError(sentence)


def _check_counts(record: object, where: str) -> None:
    """Check that no number of a record, all of which are counts, amounts or times, is negative or huge."""
    assert dataclasses.is_dataclass(record)
    for field in dataclasses.fields(record):
        value = getattr(record, field.name)
        if isinstance(value, int | float):
            require(value >= 0, f"{where}.{field.name} must not be negative")
            require(value <= _LARGEST, f"{where}.{field.name} must be at most {_LARGEST:g}")
        elif dataclasses.is_dataclass(value):
            _check_counts(value, f"{where}.{field.name}")


def _check_machine(header: Header, where: str) -> None:
    """Check the header's machine, which is shown in the middle of a sentence."""
    name, threads = header.processor, header.threads
    plain = name is None or (0 < len(name) <= LONGEST and name.isprintable())
    require(plain, f"{where}.processor must be one to {LONGEST} printable characters")
    fine = threads is None or 1 <= threads <= _MOST_THREADS
    require(fine, f"{where}.threads must be from 1 to {_MOST_THREADS}, not {threads}")


def _check_branch(header: Header, where: str) -> None:
    """Check that the forced tokens of a branch end its prompt."""
    branch = header.branch
    if branch is None:
        return
    plain = len(branch.run) <= LONGEST and (not branch.run or branch.run.isprintable())
    require(plain, f"{where}.branch.run must be at most {LONGEST} printable characters")
    begins, ends = branch.prompt + branch.at, len(header.prompt)
    fine = branch.prompt > branch.written and bool(branch.forced) and begins + len(branch.forced) == ends
    require(fine, f"{where}.branch must divide the {ends} tokens of the prompt into prompt, new ones and forced ones")
    require(header.prompt[begins:] == branch.forced, f"{where}.branch.forced must be the end of the prompt")


def _check_ids(tokens: Iterable[int], where: str) -> None:
    require(min(tokens, default=0) >= 0, f"{where} must not hold negative token ids")


def _check_shares(shares: Iterable[float | None], where: str) -> None:
    fine = all(share is None or 0.0 <= share <= 1.0 for share in shares)
    require(fine, f"{where} must hold probabilities from 0 to 1")


def _check_outcome(step: Step, where: str) -> None:
    """Check the fields that a step has even if its nodes were not recorded."""
    _check_ids(step.emitted, f"{where}.emitted")
    most = step.accepted + 1
    fine = max(1, step.accepted) <= len(step.emitted) <= most
    require(fine, f"{where}.emitted must hold the {step.accepted} accepted tokens and one more, unless it was cut")
    require(step.accepted <= step.drafted, f"{where}.accepted must not exceed the {step.drafted} drafted guesses")
    require(step.pending < step.start, f"{where}.pending must be less than start, which counts the root too")
    require(step.fed > step.pending, f"{where}.fed must count the root behind {step.pending} pending tokens")


def _check_columns(step: Step, where: str) -> None:
    nodes = len(step.tokens)
    for name in ("parents", "roles", "sources", *_OPTIONAL):
        length = len(getattr(step, name))
        optional = length == 0 and name in _OPTIONAL
        require(length == nodes or optional, f"{where}.{name} has {length} entries for {nodes} nodes")
    require(bool(step.path) == bool(nodes), f"{where}.path must begin at node 0 and be empty where there are no nodes")
    for name in ("tokens", "choices"):
        _check_ids(getattr(step, name), f"{where}.{name}")
    for name in ("top", "draft_top"):
        listed = getattr(step, name)
        _check_ids((token for best in listed for token, *_ in best), f"{where}.{name}")
        _check_shares((share for best in listed for _, *shares in best for share in shares), f"{where}.{name}")
    for name in ("p", "q", "overlap", "u"):
        _check_shares(getattr(step, name), f"{where}.{name}")
    fine = all(0.0 <= nats <= MOST_NATS for nats in step.entropy)
    require(fine, f"{where}.entropy must hold numbers from 0 to {MOST_NATS:g}")


def _check_tree(step: Step, where: str) -> None:
    try:
        tree.check(step.parents)
    except ValueError as error:
        raise TraceError(f"{where}.parents is no tree: {error}") from None
    single = step.roles[0] is Role.ROOT and step.roles.count(Role.ROOT) == 1
    require(single, f"{where}.roles must give node 0, and no other, the role {int(Role.ROOT)} of the root")
    guesses = step.roles.count(Role.VERIFY)
    require(step.drafted == guesses, f"{where}.drafted must be {guesses}, the nodes to verify, not {step.drafted}")


def _check_path(step: Step, where: str) -> None:
    require(step.path[0] == 0, f"{where}.path must begin at node 0")
    above = 0
    for node in step.path[1:]:
        require(0 < node < len(step.tokens), f"{where}.path names node {node}, which does not exist")
        require(step.parents[node] == above, f"{where}.path must go from node to child, but {node} is none of {above}")
        require(step.roles[node] is Role.VERIFY, f"{where}.path holds node {node}, which is no guess to verify")
        above = node
    guesses = len(step.path) - 1
    require(step.accepted == guesses, f"{where}.accepted must be {guesses} by its path, not {step.accepted}")
    agree = step.emitted[:guesses] == tuple(step.tokens[node] for node in step.path[1:])
    require(agree, f"{where}.emitted must begin with the tokens of the accepted path")


def _check_ranks(step: Step, ranks: int, where: str) -> None:
    """Check that every node was read by some rank, and that all its readers read its parent."""
    for node, readers in enumerate(step.ranks):
        fine = bool(readers) and all(low < high for low, high in pairwise((-1, *readers, ranks)))
        require(fine, f"{where}.ranks[{node}] must hold different ranks below {ranks} in order, and one at least")
        above = step.ranks[max(0, step.parents[node])]
        require(set(readers) <= set(above), f"{where}.ranks[{node}] must be among the ranks that read its parent")
