"""N-gram tables that a model implies: its tokens ranked, and the likeliest followers of each of them.

They need no training and no text. Every token of the vocabulary is read once, as a text by itself, many in one pass:
that is the bigram. The unigram comes from the embeddings alone. No run should wait for that twice, so `load_tables`
keeps both in the user's cache folder.

A lone token tells a model little if none of its training texts began like that. So if the vocabulary is small enough to
be read ten times over, as branches of one, two, three and four tokens, the model continues every token, and a row of
the bigram is the mean of its distributions after that token wherever it occurs in these texts.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from ..errors import ModelError
from ..model.session import Model, ProgressCallback
from ..model.split import AnyDecoder
from ..outlook import Outlook
from ..user_cache import user_cache
from .rankings import RANKINGS

_FORMAT = 3  # of a cache file; raised whenever tables are made in another way
TOP, LENGTH = 32, 16  # for every model: followers of a token, links of a chain
_DEPTH, _SMALL = 4, 2**14  # tokens of a branch, in vocabularies of up to `_SMALL` tokens; in others one
_TEXT = 64  # tokens of a text that the model writes
_ROWS, _NUMBERS = 256, 2**24  # tokens read in one pass, and logits they may have together
_PIECE = 2**12  # embeddings that are widened at a time
_HEADER = 2**16  # bytes that a cache file may have besides its tensors
_STEEP = 1e4  # above every logit of a network; replaces a table's infinite ones
_DTYPES = {"unigram": "I32", "bigram": "I32", "probability": "F32"}  # tensors of a cache file


class NgramTables:
    """The tables of one model, each ranked, the best first."""

    def __init__(self, tensors: Mapping[str, torch.Tensor], length: int, head: Sequence[int] = ()) -> None:
        """`tensors` are unigram (2, top), one row per ranking, bigram (V, top) and probability (V, top)."""
        sha = hashlib.sha256()
        for name in _DTYPES:
            sha.update(tensors[name].numpy().tobytes())
        self.tensors, self.digest, self.head = dict(tensors), sha.hexdigest(), tuple(head)
        self.about = " ".join((f"n-gram tables {self.digest[:12]}", *(("behind", *map(str, head)) if head else ())))
        best = tensors["bigram"][:, 0]
        links = [best]
        while len(links) < length:
            links.append(best[links[-1].long()])
        self._chains = torch.stack(links, 1)  # (V, length)

    def unigrams(self, ranking: str) -> list[int]:
        """Return the likeliest tokens regardless of the text."""
        ids: list[int] = self.tensors["unigram"][RANKINGS.index(ranking)].tolist()
        return ids

    def bigrams(self, token: int) -> list[tuple[int, float]]:
        """Return the likeliest tokens after `token`, with their probabilities."""
        ids, shares = (self.tensors[name][token].tolist() for name in ("bigram", "probability"))
        return list(zip(ids, shares, strict=True))

    def chain(self, token: int, count: int) -> list[int]:
        """Return `count` tokens after `token`, each the likeliest after the one before it."""
        links: list[int] = []
        while len(links) < count:
            links += self._chains[token].tolist()
            token = links[-1]
        return links[:count]


@torch.inference_mode()
def build(
    model: Model, *, top: int, length: int, progress: ProgressCallback, head: Sequence[int] = (), depth: int = 1
) -> NgramTables:
    """Read every token once, after `head`: take the `top` followers of each, and chains of `length` links.

    The paper reads a token with nothing before it. Models that were trained with marks at the beginning of a text give
    odd answers there, so `head` holds these marks. With `depth` above 1 every token begins a branch of `depth` tokens,
    which the model continues greedily, and its distributions at all of them count. The branch whose first token was the
    likeliest is committed: the next ones are read after it, until that text is long enough.
    """
    vocabulary = model.card.vocabulary
    if any(not 0 <= token < vocabulary for token in head):
        raise ModelError(
            f"the tokens {[*head]} at the beginning are not all of the model's {vocabulary}: leave them out"
        )
    top, rows = min(top, vocabulary), max(1, min(_ROWS // depth, _NUMBERS // vocabulary))
    session = model.open(len(head) + _TEXT + depth, max(len(head), rows * depth))
    unigram, bigram = _Unigram(model), _Bigram(vocabulary, top)
    groups = -(-vocabulary // rows)
    for group in range(groups):
        progress("reading n-gram tables from the model", group / groups)
        if group == 0 or session.length > len(head) + _TEXT:
            session.reset(len(head) + 1)
            likely = torch.zeros(vocabulary)
            if head:
                likely = session.read(head, tuple(range(-1, len(head) - 1))).logits[-1]
                session.commit(range(len(head)))
        first = range(group, vocabulary, groups)  # from all over the vocabulary: one of them may well come next
        tokens, size = [*first], len(first)
        while True:
            # Nodes without a parent see the stored tokens and themselves: each begins a new branch.
            parents = tuple(max(-1, node - size) for node in range(len(tokens)))
            logits = session.read(tokens, parents, skip=len(tokens) - size).logits
            best = bigram.add(tokens[-size:], logits)
            if len(tokens) == size:
                unigram.add(logits)
            if len(tokens) == size * depth:
                break
            tokens += best
        if depth > 1:
            row = int(likely[[*first]].argmax())
            session.commit(range(row, len(tokens), size))
            likely = logits[row]
    progress("reading n-gram tables from the model", 1.0)
    return NgramTables({"unigram": unigram.ranked(top), **bigram.ranked()}, length, head)


class _Bigram:
    """Collects the model's distributions after tokens."""

    def __init__(self, vocabulary: int, top: int) -> None:
        self._vocabulary, self._top = vocabulary, top
        self._keys, self._shares = list[torch.Tensor](), list[torch.Tensor]()  # of a pair of tokens, and its share
        self._counts = torch.zeros(vocabulary)

    def add(self, tokens: Sequence[int], logits: torch.Tensor) -> list[int]:  # (R, V)
        """Add the best followers of every token; return the best one of each."""
        outlook, before = Outlook(logits, count=self._top), torch.tensor(tokens)
        shares = outlook.at(torch.arange(len(logits), device=logits.device)[:, None], outlook.best)
        self._shares.append(shares.nan_to_num(0.0).float().cpu().flatten())
        best = outlook.best.cpu()
        self._keys.append((before[:, None] * self._vocabulary + best).flatten())
        self._counts += before.bincount(minlength=self._vocabulary)
        ids: list[int] = best[:, 0].tolist()
        return ids

    def ranked(self) -> dict[str, torch.Tensor]:
        """Return the mean of the distributions after each token."""
        vocabulary = self._vocabulary
        keys, indices = torch.unique(torch.cat(self._keys), return_inverse=True)
        shares = torch.zeros(len(keys)).index_add_(0, indices, torch.cat(self._shares))
        order = shares.argsort(descending=True, stable=True)  # the lowest id first among equals
        order = order[(keys[order] // vocabulary).argsort(stable=True)]
        keys, shares = keys[order], shares[order]
        starts = torch.searchsorted(keys // vocabulary, torch.arange(vocabulary))
        best = starts[:, None] + torch.arange(self._top)
        return {"bigram": (keys[best] % vocabulary).int(), "probability": shares[best] / self._counts[:, None]}


class _Unigram:
    """Sums up the output embeddings' squared distances from their mean, and their products with it.

    Both are sums over the input embeddings v of all tokens y: of (v_y . (u_x - mean))^2, which is the squared distance
    under the covariance of all v, as the paper defines it, and of (v_y . mean) (v_y . u_x). For a model without
    embeddings, its logits of every x after y take the place of v_y . u_x.
    """

    def __init__(self, model: Model) -> None:
        self._from_logits = not isinstance(model, AnyDecoder)
        if isinstance(model, AnyDecoder):
            self._sums = _distances_and_products(*model.embeddings())
        else:
            self._sums = torch.zeros(len(RANKINGS), model.card.vocabulary, dtype=torch.float64, device=model.device)

    def add(self, logits: torch.Tensor) -> None:  # (R, V)
        """Add the model's logits after some of the tokens."""
        if self._from_logits:
            products = logits.double().clamp(-_STEEP, _STEEP)
            mean = products.mean(-1, keepdim=True)
            self._sums += torch.stack(((products - mean).square().sum(0), (mean * products).sum(0)))

    def ranked(self, top: int) -> torch.Tensor:  # (2, top)
        """Return the best tokens by either ranking."""
        return self._sums.nan_to_num(torch.inf).argsort(stable=True)[:, :top].int().cpu()


def _distances_and_products(inputs: torch.Tensor, output: torch.Tensor) -> torch.Tensor:  # (V, H) twice -> (2, V)
    """Compute both sums through the covariance: without it they take a product for every pair of tokens."""
    vocabulary, hidden = output.shape
    covariance, mean = inputs.new_zeros(hidden, hidden, dtype=torch.float64), output.double().mean(0)
    for start in range(0, vocabulary, _PIECE):
        piece = inputs[start : start + _PIECE].double()
        covariance.addmm_(piece.T, piece)
    sums = torch.empty(2, vocabulary, dtype=torch.float64, device=output.device)
    for start in range(0, vocabulary, _PIECE):
        piece = output[start : start + _PIECE].double()
        centred = piece - mean
        sums[0, start : start + _PIECE] = ((centred @ covariance) * centred).sum(-1)
        sums[1, start : start + _PIECE] = piece @ (covariance @ mean)
    return sums


def build_tables(model: Model, progress: ProgressCallback, *, head: Sequence[int] = ()) -> NgramTables:
    """Build the tables of a model with the sizes that every run uses."""
    depth = _DEPTH if model.card.vocabulary <= _SMALL else 1
    return build(model, top=TOP, length=LENGTH, progress=progress, head=head, depth=depth)


def load_tables(
    model: Model, progress: ProgressCallback, *, folder: Path | None = None, head: Sequence[int] = ()
) -> NgramTables:
    """Load the tables of a model from the cache in `folder`, by default the user's, or build and store them.

    A cache that is damaged, of something else, or cannot be read or written is ignored.
    """
    path, facts = _cache_file(model, folder, head), _facts(model, head)
    tables = None if path is None else _read(path, model.card.vocabulary, facts, head)
    if tables is None:
        tables = build_tables(model, progress, head=head)
        if path is not None:
            _write(path, tables, facts)
    return tables


def _cache_file(model: Model, folder: Path | None, head: Sequence[int]) -> Path | None:
    """Return the cache file of a model; None for a model without a hash."""
    name = model.card.hash
    if not re.fullmatch("[0-9a-f]{64}", name) or not name.strip("0"):
        return None
    folder = folder or user_cache()
    if folder is None:
        return None
    return folder / f"tables-v{_FORMAT}-{name}-{model.precision}-{_spelt(head)}.safetensors"


def _facts(model: Model, head: Sequence[int]) -> dict[str, str]:
    """Return the metadata that a cache file of this model must have."""
    card = model.card
    facts = {"format": _FORMAT, "model": card.hash, "dtype": model.precision, "head": _spelt(head), "top": TOP}
    return {name: str(value) for name, value in facts.items()}


def _spelt(head: Sequence[int]) -> str:
    return ".".join(map(str, head))


def _read(path: Path, vocabulary: int, facts: dict[str, str], head: Sequence[int]) -> NgramTables | None:
    """Read the tables in a cache file; None unless its hash is right and its values are plausible."""
    from safetensors import SafetensorError, safe_open

    shapes = shapes_of(vocabulary)
    most = 4 * sum(rows * columns for rows, columns in shapes.values()) + _HEADER
    try:
        if not path.is_file() or path.stat().st_size > most:
            return None
        with safe_open(path, framework="pt", device="cpu") as file:
            metadata = file.metadata() or {}
            for name, dtype in _DTYPES.items():
                part = file.get_slice(name)
                if part.get_dtype() != dtype or tuple(part.get_shape()) != shapes[name]:
                    return None
            tensors = {name: file.get_tensor(name).clone() for name in _DTYPES}
    except (OSError, SafetensorError):
        return None
    if not make_sense(tensors, vocabulary):
        return None
    tables = NgramTables(tensors, LENGTH, head)
    return tables if metadata == facts | {"sha256": tables.digest} else None


def shapes_of(vocabulary: int) -> dict[str, tuple[int, int]]:
    """Return the shapes of the tables of a model with that vocabulary."""
    top = min(TOP, vocabulary)
    return {"unigram": (len(RANKINGS), top), "bigram": (vocabulary, top), "probability": (vocabulary, top)}


def make_sense(tensors: Mapping[str, torch.Tensor], vocabulary: int) -> bool:
    """Return True if all ids are tokens of the vocabulary, and all probabilities from 0 to 1."""
    shares, ids = tensors["probability"], (tensors["unigram"], tensors["bigram"])
    if not all(int(part.min()) >= 0 and int(part.max()) < vocabulary for part in ids):
        return False
    return bool(((shares >= 0.0) & (shares <= 1.0)).all())


def _write(path: Path, tables: NgramTables, facts: dict[str, str]) -> None:
    """Write a cache file whole or not at all."""
    from safetensors.torch import save

    content = save(tables.tensors, facts | {"sha256": tables.digest})
    with suppress(OSError):  # the folder is full or cannot be written: then there is no cache
        path.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=path.parent) as fresh:
            part = Path(fresh) / path.name
            part.write_bytes(content)
            part.replace(path)
