"""From logits to the distribution that a token is drawn from, and the draws themselves.

One function shapes both the target's p and a drafter's q, so the two can never disagree about
temperature or filters. The order is that of transformers: repetition penalty, temperature, top-k, top-p, min-p.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np
import torch

from .errors import ModelError
from .model.download import fetch
from .model.queued_tree import Parents, closure_on
from .model.upload import upload
from .native.summaries import NativeNodes, softmax, summarize, summarizes
from .params import Params, param
from .tree import paths
from .types import Draft

_FEW = 2**20  # numbers below which numpy is the faster at finding the largest of a row
_NOT_A_NUMBER = "the model's output is not a number here; try dtype float32 or another model"
_SPARE = 32  # numbers looked at behind the largest: bfloat16 has many equal ones
_TOP = 5  # tokens that an outlook lists at every node
_DECIMALS = 6  # of what is recorded
_FARTHEST = -1e4  # its power is 0, and so is 0 times it, unlike 0 times minus infinity
_COLDEST = 1e-30  # float32 rounds a divisor much below this to zero


@dataclass(frozen=True, slots=True)
class Sampling(Params):
    """How the next token is chosen."""

    temperature: float = param(0.0, label="Temperature", help="0 takes the likeliest token", min=0.0, max=100.0)
    top_k: int = param(0, label="Top k", help="Keep the k likeliest tokens; 0 keeps all", min=0, max=1_000_000)
    top_p: float = param(1.0, label="Top p", help="Keep the likeliest tokens up to this mass", min=0.0, max=1.0)
    min_p: float = param(0.0, label="Min p", help="Drop tokens below this share of the likeliest", min=0.0, max=1.0)
    repetition_penalty: float = param(
        1.0,
        label="Repetition penalty",
        help="Above 1 makes tokens of the text so far less likely",
        min=0.01,
        max=100.0,
    )
    seed: int = param(0, label="Seed", help="The same seed gives the same draws", min=0, max=2**63 - 1)

    @property
    def greedy(self) -> bool:
        """Whether the likeliest token is always taken."""
        return self.temperature == 0.0


class Draws:
    """A run's uniform numbers in [0, 1).

    `at(position)` is fixed by seed and position alone. The target's own choice at a position uses it, so every
    method whose drafts are point masses writes the very tokens that autoregressive sampling writes for that seed.
    `fresh()` is a second, independent stream for acceptance tests and for drafters' own sampling. Where a device draws
    before the host knows how many draws count, it is given those `ahead`, and the host then has them `skip`ped.
    """

    _BLOCK = 64

    def __init__(self, seed: int) -> None:
        # Philox is a block cipher over a counter: different keys give independent streams.
        self._by_position, self._fresh = (np.random.Generator(np.random.Philox(key=[seed, s])) for s in (0, 1))
        self._drawn: list[float] = []
        self._ahead = deque[float]()  # numbers of the second stream that are known but not used

    def at(self, position: int) -> float:
        """The number that belongs to the new token at `position`."""
        while position >= len(self._drawn):
            self._drawn.extend(self._by_position.random(self._BLOCK).tolist())
        return self._drawn[position]

    def fresh(self) -> float:
        """The next number of the second stream."""
        return self._ahead.popleft() if self._ahead else float(self._fresh.random())

    def ahead(self, count: int) -> list[float]:
        """The next numbers of the second stream, which stay the next ones."""
        while len(self._ahead) < count:
            self._ahead.append(float(self._fresh.random()))
        return [*islice(self._ahead, count)]

    def skip(self, count: int) -> None:
        """Pass over the next numbers of the second stream."""
        for _ in range(count):
            self.fresh()


class Sampler:
    """Shapes logits of one run: knows its settings and the tokens of its text."""

    def __init__(self, sampling: Sampling, vocabulary: int, device: torch.device, text: Iterable[int]) -> None:
        self.sampling = sampling
        self.draws = Draws(sampling.seed)
        self._penalised = sampling.repetition_penalty != 1.0
        self._seen = torch.zeros(vocabulary if self._penalised else 0, dtype=torch.bool, device=device)
        self.extend(text)

    @property
    def plain(self) -> bool:
        """Whether the token taken is the likeliest one by the model's own logits."""
        return self.sampling.greedy and not self._penalised

    @property
    def filters(self) -> bool:
        """Whether some tokens are left out of the distribution."""
        setting = self.sampling
        return bool(setting.top_k) or setting.top_p < 1.0 or setting.min_p > 0.0

    def extend(self, tokens: Iterable[int]) -> None:
        """Note committed tokens, which the repetition penalty counts."""
        if self._penalised:
            places = upload(torch.tensor(list(tokens), dtype=torch.long), self._seen.device)
            self._seen.index_fill_(0, places, True)

    def penalise(self, logits: torch.Tensor, paths: Sequence[Sequence[int]]) -> torch.Tensor:  # (T, V)
        """Apply the repetition penalty; `paths[i]` holds the tokens behind the text on row i's own path."""
        if not self._penalised:
            return logits
        places, width = None, logits.shape[-1]
        if any(paths):
            host = torch.tensor([row * width + token for row, path in enumerate(paths) for token in path])
            places = upload(host, logits.device)
        return self._penalise_at(logits, places)

    def penalise_queued(
        self, logits: torch.Tensor, ids: torch.Tensor, parents: Parents
    ) -> torch.Tensor:  # (T, V), (T,)
        """Apply the repetition penalty to a tree of which only the device knows the tokens; the first is the root."""
        if not self._penalised:
            return logits
        seen, rows = closure_on(parents, ids.device), torch.arange(len(ids), device=ids.device)
        tokens = torch.where(seen, ids, ids[:1])  # the root is of the text, whose tokens are penalised anyway
        return self._penalise_at(logits, (rows[:, None] * logits.shape[-1] + tokens).flatten())

    def penalise_behind(self, logits: torch.Tensor, ids: torch.Tensor | None) -> torch.Tensor:  # (1, V), (n,)
        """Apply the repetition penalty behind tokens that only the device knows."""
        return self._penalise_at(logits, ids) if self._penalised else logits

    def _penalise_at(self, logits: torch.Tensor, places: torch.Tensor | None) -> torch.Tensor:
        """`places`: in the flattened logits, those of tokens that are penalised beside the text's."""
        seen = self._seen.to(logits.device).expand(logits.shape[0], -1)  # a drafter's device may be another one
        if places is not None:
            seen = seen.clone(memory_format=torch.contiguous_format)
            seen.view(-1).index_fill_(0, places, True)
        penalty = self.sampling.repetition_penalty
        return torch.where(seen, torch.where(logits < 0, logits * penalty, logits / penalty), logits)

    def penalise_tree(
        self, logits: torch.Tensor, draft: Draft, before: Sequence[int] = (), only: Sequence[int] | None = None
    ) -> torch.Tensor:  # (T, V)
        """Apply the repetition penalty to a tree's nodes, or `only` some, of which there are logits.

        `before`: the tokens behind the text up to its root.
        """
        if not self._penalised:
            return logits
        ways = paths(draft.parents, draft.tokens, before)
        return self.penalise(logits, ways if only is None else [ways[node] for node in only])

    def probabilities(self, logits: torch.Tensor) -> torch.Tensor:  # (..., V) penalised logits -> (..., V)
        """The distribution that a token is drawn from; at temperature 0 the model's own distribution."""
        setting = self.sampling
        if setting.greedy:
            return _softmax(logits)
        scores = logits.double() if logits.dtype == torch.float64 else logits.float()
        scores = scores - scores.amax(-1, keepdim=True)  # a tiny temperature cannot overflow
        scores = scores / max(setting.temperature, _COLDEST)
        if 0 < setting.top_k < scores.shape[-1]:
            kth = torch.topk(scores, setting.top_k).values[..., -1:]
            scores = scores.masked_fill(scores < kth, -torch.inf)
        if setting.top_p < 1.0:
            scores = _keep_mass(scores, setting.top_p)
        probabilities = torch.softmax(scores, -1)
        if setting.min_p > 0.0:
            low = setting.min_p * probabilities.amax(-1, keepdim=True)
            kept = probabilities.masked_fill(probabilities < low, 0.0)
            probabilities = kept / kept.sum(-1, keepdim=True)
        return probabilities

    def outlook(self, logits: torch.Tensor) -> Outlook:  # (T, V) penalised logits
        """The same distributions, to look a few numbers up."""
        if self.filters:
            return Outlook(self.probabilities(logits).log())
        return Outlook(logits, 1.0 if self.sampling.greedy else self.sampling.temperature)


def _softmax(logits: torch.Tensor) -> torch.Tensor:  # (..., V) -> (..., V)
    """In compiled code, if it ran the layers: torch's threads stay asleep."""
    rows = logits.reshape(-1, logits.shape[-1])
    if summarizes(rows) and (shares := softmax(rows)) is not None:
        return shares.view(logits.shape)
    return torch.softmax(logits if logits.dtype == torch.float64 else logits.float(), -1)


def _keep_mass(scores: torch.Tensor, top_p: float) -> torch.Tensor:
    """Drop the least likely tokens as long as the others still hold `top_p`; the likeliest always stays."""
    ordered, index = torch.sort(scores, descending=True, stable=True)
    probabilities = torch.softmax(ordered, -1)
    before = probabilities.cumsum(-1) - probabilities  # mass in front of each token
    drop = before >= top_p
    drop[..., 0] = False
    return scores.masked_fill(torch.zeros_like(drop).scatter(-1, index, drop), -torch.inf)


class Drafted(NamedTuple):
    """What a full record says of the distributions q of a drafter, each behind a node. Lists of all of them in turn."""

    best: list[int]  # the likeliest tokens
    mine: list[float]  # their probabilities in q
    theirs: list[float]  # and at the node
    overlaps: list[float]  # at each node the sum over all tokens of min(p, q): how often a draw from q is accepted
    shares: list[float]  # of drafted tokens, their probabilities in the q that they come from


class Outlook:
    """The target's distribution at every node of a step, looked up number by number: no row is written out."""

    def __init__(self, scores: torch.Tensor, temperature: float = 1.0, count: int = _TOP) -> None:  # (T, V)
        """`count`: tokens that are listed at every node, the best first."""
        self._scores, self._scale = scores.contiguous(), 1.0 / max(temperature, _COLDEST)
        self.best, self._values, self._totals, self._moments = _summarized(self._scores, count, self._scale)

    @property
    def count(self) -> int:
        """How many tokens are listed at every node."""
        return self.best.shape[1]

    def likeliest(self) -> list[int]:
        """The likeliest token at every node, as `likeliest` says it; compiled code has found it already."""
        if not summarizes(self._scores):  # torch has ranked these numbers in float32, whatever they were
            return likeliest(self._scores)
        chosen: list[int] = self.best[:, 0].tolist()
        return chosen

    def at(self, nodes: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:  # of one shape, which the result has
        """The probabilities of tokens at nodes; a drafter's tokens may come from a device of its own."""
        nodes, tokens = nodes.to(self._scores.device), tokens.to(self._scores.device)
        return self._probabilities(self._scores[nodes, tokens], nodes)

    def listed(self, parents: Sequence[int], tokens: Sequence[int]) -> list[list[float]]:
        """For a record: the probabilities of the best tokens, row by row; the entropy of every row, in nats; and the
        probabilities of tokens at the nodes that they hang off.
        """
        if summarizes(self._scores):
            return self._native.describe(parents, tokens)
        shares = self._probabilities(self._values, torch.arange(len(self.best))[:, None])
        entropy = (self._totals.log() - self._moments / self._totals).clamp(min=0.0)  # rounding can go below
        at = self.at(torch.tensor(parents, dtype=torch.long), torch.tensor(tokens, dtype=torch.long))
        return fetch(shares, entropy, at, decimals=_DECIMALS)

    def beside(
        self, q: Sequence[torch.Tensor], behind: Sequence[int], places: Sequence[int], tokens: Sequence[int]
    ) -> Drafted:
        """For a record: a drafter's distributions (V,), each behind a node; and tokens, each drawn from one of them.

        They are set beside the same p as is recorded: at temperature 0, where nothing is drawn, the models' own.
        """
        if summarizes(self._scores) and all(self._suits(row) for row in q):
            found = self._native.compare(q, behind, places, tokens)
            if found is not None:
                return Drafted(found[0], *found[1])
        rows, nodes = torch.stack([*q]).to(self._scores.device), torch.tensor(behind)[:, None].to(self._scores.device)
        best = ranked(rows, self.count)
        p = self._probabilities(self._scores[nodes[:, 0]], nodes)
        numbers = rows.gather(1, best), self.at(nodes, best), torch.minimum(p, rows).sum(-1).clamp(max=1.0)
        shares = rows[torch.tensor(places), torch.tensor(tokens)]
        return Drafted(best.flatten().tolist(), *fetch(*numbers, shares, decimals=_DECIMALS))

    def _suits(self, q: torch.Tensor) -> bool:
        """Whether compiled code can read a drafter's distribution where it is."""
        plain = q.device.type == "cpu" and q.dtype == torch.float32 and q.is_contiguous()
        return plain and q.shape == self._scores.shape[1:]

    @property
    def _native(self) -> NativeNodes:
        return NativeNodes(self._scores, self._scale, self._values, self._totals, self._moments)

    def _probabilities(self, scores: torch.Tensor, nodes: torch.Tensor) -> torch.Tensor:
        """Those of scores at nodes."""
        largest = self._values[nodes, 0]
        return ((scores.to(largest.dtype) - largest) * self._scale).exp() / self._totals[nodes]


def _summarized(
    scores: torch.Tensor, count: int, scale: float
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Of every row (T, V) the ids of the largest scores, these scores, and the sums that `summarize` describes."""
    if summarizes(scores):
        if (found := summarize(scores, count, scale)) is None:
            raise ModelError(_NOT_A_NUMBER)
        return found
    wide = scores if scores.dtype == torch.float64 else scores.float()
    best = ranked(scores, count)
    values = wide.gather(-1, best)
    distances = ((wide - values[:, :1]) * scale).clamp(min=_FARTHEST)
    powers = distances.exp()
    return best, values, powers.sum(-1), (powers * distances).sum(-1)


def surest(logits: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:  # (R, V) -> (R, count) twice
    """The likeliest tokens of every row and their probabilities, before temperature and filters."""
    if summarizes(logits):
        if (found := summarize(logits, count, 1.0)) is None:
            raise ModelError(_NOT_A_NUMBER)
        ids, values, totals, _ = found
        return ids, (values - values[:, :1]).exp_() / totals[:, None]
    outlook = Outlook(logits, count=count)
    rows = torch.arange(len(logits), device=logits.device)[:, None].expand_as(outlook.best)
    return outlook.best, outlook.at(rows, outlook.best)


def largest_probability(logits: torch.Tensor) -> torch.Tensor:  # (V,) -> ()
    """How likely the likeliest token is, before temperature and filters."""
    if summarizes(logits[None]) and (read := summarize(logits[None], 1, 1.0)) is not None:
        return 1.0 / read[2][0]
    return torch.softmax(logits.float(), -1).max()


def likeliest(logits: torch.Tensor) -> list[int]:  # (T, V) -> T ids
    """The greedy choice at every row; ties break to the lowest id. The one place where a tie is broken."""
    if summarizes(logits):
        if (read := summarize(logits, 1)) is None:
            raise ModelError(_NOT_A_NUMBER)
        chosen: list[int] = read[0][:, 0].tolist()
        return chosen
    if logits.device.type == "cpu":
        # torch searches bfloat16 fifteen times as long as numpy searches the same numbers in float32
        wide = logits if logits.dtype == torch.float64 else logits.float()
        if wide.numel() < _FEW:
            rows = wide.numpy()
            best = rows.argmax(-1)
            if np.isnan(rows[np.arange(len(rows)), best]).any():  # a row's NaN counts as its largest number
                raise ModelError(_NOT_A_NUMBER)
            ids: list[int] = best.tolist()
            return ids
        logits = wide
    return checked(*fetch(*likeliest_rows(logits)))


def likeliest_rows(logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:  # (T, V) -> (T,) ids, (T,) faults
    """The same where the logits are; `checked` takes both, once they are on the host."""
    found = logits.argmax(-1)
    return found, logits.gather(-1, found[:, None])[:, 0].isnan()


def checked(ids: Sequence[float], faults: Sequence[float]) -> list[int]:
    """Token ids that came from a device; ModelError where one has a fault: it was found among what is no number."""
    if any(faults):
        raise ModelError(_NOT_A_NUMBER)
    return [int(token) for token in ids]


def ranked(rows: torch.Tensor, count: int) -> torch.Tensor:  # (R, V) -> (R, count) ids, or all where V is smaller
    """The largest numbers of every row in order; ties break to the lowest id, which `topk` does not promise."""
    if summarizes(rows) and (read := summarize(rows, count)) is not None:
        return read[0]
    rows = rows.float()
    if rows.device.type != "cpu":
        return _ranked_ties(rows, count)  # whether there are ties, the host would have to wait for
    values, ids = rows.topk(min(count + _SPARE, rows.shape[-1]))
    tied = (values[:, 1:] == values[:, :-1])[:, :count].any(-1).nonzero()[:, 0]
    if len(tied):
        by_id = ids[tied].sort(-1)
        order = values[tied].gather(-1, by_id.indices).sort(dim=-1, descending=True, stable=True).indices
        ids[tied] = by_id.values.gather(-1, order)
        last = values[:, min(count, values.shape[1]) - 1]
        # Ties that go on behind the spare ones, of which lower ids may be missing.
        beyond = ((last == values[:, -1]) & (values.shape[1] < rows.shape[-1])).nonzero()[:, 0]
        if len(beyond):
            ids[beyond, :count] = _ranked_ties(rows[beyond], count)
    return ids[:, :count].contiguous()


def _ranked_ties(rows: torch.Tensor, count: int) -> torch.Tensor:
    """The same for all rows, on a CPU at ten times the cost."""
    size = rows.shape[-1]
    bits = (rows + 0.0).view(torch.int32)  # adding zero makes minus zero equal to it
    # The bits of floats are ordered as they are, those of negative ones backwards; an id makes every key different.
    keys = torch.where(bits < 0, bits ^ 0x7FFFFFFF, bits).long() << 31
    keys += torch.arange(size - 1, -1, -1, device=rows.device)
    return keys.topk(min(count, size)).indices


def draw(probabilities: torch.Tensor, uniform: float) -> int:  # (V,), need not sum to one
    """The token at which the running sum passes `uniform` of the total: never one of probability zero."""
    if probabilities.device.type != "cpu":
        return draw_rows(probabilities[None], [uniform])[0]
    running = probabilities.cumsum(0, dtype=torch.float64)
    total = float(running[-1])
    if not 0.0 < total < float("inf"):
        raise ModelError(_NOT_A_NUMBER)
    goal = uniform * total
    token = int(torch.searchsorted(running, goal, right=True))
    if token < len(probabilities):
        return token
    return int(probabilities.nonzero()[-1])  # rounding put the goal at the very end


def draw_rows(probabilities: torch.Tensor, uniforms: Sequence[float]) -> list[int]:  # (R, V)
    """A token of every row, with one wait for the device, where `draw` would look at numbers one by one."""
    goals = upload(torch.tensor(uniforms, dtype=torch.float64), probabilities.device)
    return checked(*fetch(*drawn_rows(probabilities, goals)))


def drawn_rows(
    probabilities: torch.Tensor, uniforms: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:  # (R, V), (R,) -> (R,) ids, (R,) faults
    """The same where the probabilities are; `checked` takes both, once they are on the host."""
    running = probabilities.cumsum(-1, dtype=torch.float64)
    totals = running[:, -1:].contiguous()
    goals = totals * uniforms[:, None]
    # Rounding may put a goal at the very end, behind every token: then it is the last one that adds to the sum.
    tokens = torch.minimum(torch.searchsorted(running, goals, right=True), torch.searchsorted(running, totals))
    sound = (totals > 0.0) & (totals < torch.inf)
    return tokens[:, 0], ~sound[:, 0]
