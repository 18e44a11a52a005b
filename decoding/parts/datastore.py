"""A datastore: texts of others as token ids with suffix arrays, in one memory-mapped safetensors file.

The file holds `order.i` and `tokens.i` for chunk i of the stream, and at its end a `digest`. Opening reads the whole
file once, a second or two per GB, and verifies every byte; look-ups read only what they need. A malicious file can only
make guesses worse: every id and position is checked where it is used.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from ..codec import Codec
from ..errors import ModelError
from ..packed import SUFFIX, open_tensors, unpack
from .suffixes import Suffixes, cut_at_ends, frequent

FORMAT, VERSION = "specscope datastore", "1"
HEADER = 2**16  # bytes reserved for the table of all chunks, which is written first but known last
DIGEST = 32  # bytes, the last ones of a file
_PIECE = 2**20  # bytes read at once while a file is checked


@dataclass(frozen=True, slots=True)
class Continuations:
    """The continuations of a text's suffix in a datastore."""

    span: int  # length of the suffix that matched; 0: not even the shortest
    hits: int  # its occurrences with a token after them
    ways: npt.NDArray[np.int64]  # (length, m) the tokens after m of these, sorted; -1 after a document's end

    def prefixes(self, most: int, ends: Collection[int] = ()) -> list[tuple[tuple[int, ...], int]]:
        """Return the most frequent prefixes of the ways and their counts, none continuing after a token of `ends`.

        Each comes after its own prefixes. Of equally frequent ones the shorter come first, then those with lower
        tokens.
        """
        return frequent(cut_at_ends(self.ways, list(ends)) if ends else self.ways, most)


class Datastore:
    """An open datastore."""

    def __init__(self, about: str, chunks: Sequence[Suffixes], border: int, limit: int) -> None:
        self.about = about
        self._chunks, self._border, self._limit = chunks, border, min(border, limit)

    def continuations(self, text: Sequence[int], longest: int, shortest: int, length: int, most: int) -> Continuations:
        """Return the continuations of the longest suffix of `text` that matches, of `shortest` to `longest` tokens.

        These are the next `length` tokens at up to `most` occurrences, spread evenly: the first ones in the suffix
        array have the continuations with the lowest ids, so guesses from them would be biased.
        """
        ending = self._without_foreign(text[-longest:])
        spans = range(shortest, len(ending) + 1)
        # A suffix of a match matches too, so the longest one can be found by bisection.
        span = shortest - 1 + bisect_left(spans, True, key=lambda span: not self._holds(ending[-span:]))
        if span < shortest:
            return Continuations(0, 0, np.empty((length, 0), dtype=np.int64))
        matches = [chunk.find(ending[-span:]) for chunk in self._chunks]
        hits = sum(map(len, matches))
        picked = np.arange(min(hits, most)) * hits // min(hits, most)
        parts, before = [], 0
        for chunk, ranks in zip(self._chunks, matches, strict=True):
            in_chunk = picked[(picked >= before) & (picked < before + len(ranks))] - before + ranks.start
            parts.append(chunk.read(in_chunk, span, length, self._limit))
            before += len(ranks)
        ways = np.concatenate(parts, axis=1)
        return Continuations(span, hits, ways[:, np.lexsort(ways[::-1])] if sum(map(bool, matches)) > 1 else ways)

    def _without_foreign(self, ending: Sequence[int]) -> list[int]:
        """Return the tokens after the last id outside the tokenizer: no phrase may contain a border."""
        foreign = [i for i, token in enumerate(ending) if not 0 <= token < self._border]
        return list(ending[foreign[-1] + 1 :] if foreign else ending)

    def _holds(self, phrase: list[int]) -> bool:
        return any(chunk.find(phrase) for chunk in self._chunks)


def fingerprint(codec: Codec) -> str:
    """Hash a tokenizer: sha256 over the vocabulary in the order of its ids."""
    vocabulary = {} if codec.tokenizer is None else codec.tokenizer.get_vocab()
    entries = sorted(vocabulary.items(), key=lambda entry: (entry[1], entry[0]))
    return hashlib.sha256(json.dumps(entries).encode()).hexdigest()


def load_store(path: str | Path, fingerprint: str, vocabulary: int | None = None) -> Datastore:
    """Open a datastore that was built with the tokenizer of that fingerprint.

    `vocabulary` is the model's, which may have fewer entries than the tokenizer: no id beyond it is ever returned.
    """
    from safetensors import SafetensorError

    path = Path(path)
    name = path.name.removesuffix(SUFFIX)[:80]
    try:
        with open_tensors(path) as file:
            border = _check(file.metadata() or {}, fingerprint, name)
            chunks = [Suffixes(tokens, order, border) for tokens, order in _chunks(file, name)]
        with BytesIO(unpack(path)) if path.suffix == SUFFIX else path.open("rb") as raw:
            size = raw.seek(-DIGEST, 2)
            stored, computed = raw.read(), digest(raw, size)
    except FileNotFoundError:
        raise ModelError(f"there is no datastore {name!r}: `python -m decoding datastore build` makes one") from None
    except (OSError, UnicodeError, SafetensorError):
        raise ModelError(f"{name!r} is no datastore, or was cut short: build it again") from None
    if stored != computed:
        raise _damaged(name)
    return Datastore(f"{name} {computed.hex()[:12]}", chunks, border, border if vocabulary is None else vocabulary)


def digest(file: BinaryIO, size: int) -> bytes:
    """Return a sha256 over the number `size` and the first `size` bytes."""
    sha = hashlib.sha256(str(size).encode())
    file.seek(0)
    for start in range(0, size, _PIECE):
        sha.update(file.read(min(_PIECE, size - start)))
    return sha.digest()


def _check(meta: Mapping[str, str], fingerprint: str, name: str) -> int:
    """Return the border token; ModelError unless the metadata are those of a store for this tokenizer."""
    if meta.get("format") != FORMAT:
        raise ModelError(f"{name!r} is no datastore: name a file made by `python -m decoding datastore build`")
    if meta.get("version") != VERSION:
        raise ModelError(f"the datastore {name!r} has another format than this program reads: build it again")
    if meta.get("fingerprint") != fingerprint:
        raise ModelError(f"the datastore {name!r} was built with another tokenizer: build one with this model's")
    border = meta.get("vocabulary", "")
    if not (border.isascii() and border.isdigit() and len(border) <= 10):
        raise _damaged(name)
    return int(border)


def _chunks(file: Any, name: str) -> list[tuple[npt.NDArray[Any], npt.NDArray[Any]]]:
    """Map tokens and order of every chunk into memory, without reading them."""
    names, pairs = set(file.keys()), list[tuple[npt.NDArray[Any], npt.NDArray[Any]]]()
    while (keys := (f"tokens.{len(pairs)}", f"order.{len(pairs)}"))[0] in names:
        slices = [file.get_slice(key) for key in keys if key in names]
        shapes = [part.get_shape() for part in slices]
        kinds = [part.get_dtype() for part in slices]
        if kinds not in (["U16", "U32"], ["U32", "U32"]) or len(shapes[0]) != 1 or shapes[0] != shapes[1]:
            raise _damaged(name)
        # torch maps a file's tensors instead of reading them; numpy, which indexes them faster, shares the mapping.
        tokens, order = (file.get_tensor(key).numpy() for key in keys)
        pairs.append((tokens, order))
    if not pairs:
        raise _damaged(name)
    return pairs


def _damaged(name: str) -> ModelError:
    return ModelError(f"the datastore {name!r} is damaged: copy or build it again")
