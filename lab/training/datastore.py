"""Builds datastores: files of any size are read, tokenised, sorted and written in pieces.

Memory: a chunk of 2^24 tokens takes 32 MB as ids of two bytes. They are sorted as bytes, whose order takes 128 MB, the
steps that pick the tokens out of it 290 MB, and their own order 64 MB: together half a GB, for ids of four bytes one
GB. Texts reach the tokenizer in batches of a million characters, below 100 MB with all that it notes about them. So a
corpus of any size is built in less than 2 GB, torch and transformers included, beside the model.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from analysis.prompts.conversations import read_line
from decoding.codec import Codec
from decoding.errors import ParamError
from decoding.model.session import ProgressCallback
from decoding.parts.datastore import DIGEST, FORMAT, HEADER, VERSION, digest, fingerprint

from .suffix_sorting import sort_suffixes

CHUNK = 2**24  # tokens sorted together; even, so that every array in the file begins at a multiple of four bytes
_MOST_CHUNKS = 256
_PIECE, _BATCH = 2**16, 2**20  # characters that are tokenised as one text, and together
_LONGEST_LINE = 2**24  # bytes of JSON

TokenPieces = Iterable[tuple[Sequence[int], bool]]  # tokens, and whether a document begins with them
TextPieces = Iterator[
    tuple[str, bool, int]
]  # a piece of text, whether a document begins with it, and the file's bytes read


@dataclass(frozen=True, slots=True)
class Built:
    """The sizes of a finished datastore."""

    documents: int
    tokens: int
    size: int  # bytes


def build_store(
    files: Sequence[Path],
    codec: Codec,
    out: Path,
    *,
    border: str | None = None,
    progress: ProgressCallback = lambda what, share: None,
) -> Built:
    """Build a datastore from files of text and of JSON lines, with the tokenizer of `codec`.

    A text file is one document, unless lines that read `border` separate documents.
    """
    if codec.tokenizer is None:
        raise ParamError("this model has no tokenizer to build a datastore with: name one that has")
    for path in files:
        if not path.is_file():
            raise ParamError(f"there is no file {str(path)[:200]!r}: name files of text or of JSON lines")
        if path.suffix == ".json":
            raise ParamError(f"{path.name!r} is read by lines: write one object a line, and let the name end in .jsonl")
        if out.exists() and path.samefile(out):
            raise ParamError(f"{path.name!r} is to be read and replaced at once: write the datastore to another file")
    entries = 1 + max(codec.tokenizer.get_vocab().values())
    pieces = _tokenised(_texts(files, codec.tokenizer, border, progress), codec.tokenizer)
    return write_store(out, fingerprint(codec), entries, pieces)


def write_store(out: Path, tokenizer: str, vocabulary: int, pieces: TokenPieces, chunk: int = CHUNK) -> Built:
    """Write a datastore of token ids below `vocabulary`; if that fails, an existing `out` is left alone.

    `tokenizer` is its fingerprint.
    """
    part = out.with_name(f"{out.name}.part")
    try:
        with part.open("w+b") as file:
            writer = _Writer(file, vocabulary, chunk)
            for tokens, begins in pieces:
                writer.add(tokens, begins)
            built = writer.finish(tokenizer)
        part.replace(out)
    finally:
        part.unlink(missing_ok=True)
    return built


class _Writer:
    """Fills a chunk, sorts it, writes it, and begins the next."""

    def __init__(self, file: BinaryIO, vocabulary: int, chunk: int) -> None:
        assert chunk >= 4 and chunk % 2 == 0 and 0 < vocabulary < 2**32
        self._file, self._border = file, vocabulary
        self._chunk = np.empty(chunk, dtype="<u2" if vocabulary < 2**16 else "<u4")
        self._filled = self._documents = self._tokens = self._chunks = 0
        self._begins = True
        self._table: dict[str, Any] = {}
        self._end = 0  # bytes of data so far
        file.seek(HEADER)

    def add(self, tokens: Sequence[int], begins: bool) -> None:
        """Append tokens to the last document or to a new one."""
        ids = np.asarray(tokens, dtype=np.int64)
        if len(ids) and not 0 <= ids.min() <= ids.max() < self._border:
            raise ParamError(f"a token id is not below {self._border}, the number of the tokenizer's entries")
        if begins and self._filled:
            self._close()
        self._begins |= begins
        self._documents += self._begins and len(ids) > 0
        self._begins &= len(ids) == 0
        self._tokens += len(ids)
        while len(ids):
            room = len(self._chunk) - 2 - self._filled  # for a border, and another that makes the number even
            if room <= 0:
                self._write_chunk()  # a document may be cut here: what crosses the cut is not found
                continue
            here, ids = ids[:room], ids[room:]
            self._chunk[self._filled : self._filled + len(here)] = here
            self._filled += len(here)

    def finish(self, tokenizer: str) -> Built:
        """Write what is left, then the header in front and the digest after it."""
        if self._filled:
            self._write_chunk()
        if not self._chunks:
            raise ParamError("there is no text in what a datastore should be built from: name files that hold some")
        meta = {"format": FORMAT, "version": VERSION, "fingerprint": tokenizer, "vocabulary": str(self._border)}
        meta |= {"tokens": str(self._tokens), "documents": str(self._documents)}
        self._note("digest", "U8", DIGEST, DIGEST)
        header = json.dumps({"__metadata__": meta, **self._table}).encode()
        assert len(header) <= HEADER - 8
        self._file.seek(0)
        self._file.write((HEADER - 8).to_bytes(8, "little") + header.ljust(HEADER - 8))
        size = self._file.seek(0, os.SEEK_END)
        proof = digest(self._file, size)
        self._file.seek(0, os.SEEK_END)
        self._file.write(proof)
        self._file.flush()
        os.fsync(self._file.fileno())  # an older store is replaced next
        return Built(self._documents, self._tokens, size + DIGEST)

    def _close(self) -> None:
        """End the document, unless it is ended."""
        if self._chunk[self._filled - 1] != self._border:
            self._chunk[self._filled] = self._border
            self._filled += 1

    def _write_chunk(self) -> None:
        if self._chunks == _MOST_CHUNKS:
            raise ParamError("there are more than four billion tokens: build several datastores")
        self._close()
        self._chunk[self._filled] = self._border
        tokens = self._chunk[: self._filled + self._filled % 2]
        order = sort_suffixes(tokens).astype("<u4", copy=False)
        for name, array, kind in (("order", order, "U32"), ("tokens", tokens, f"U{8 * tokens.itemsize}")):
            self._file.write(array.data)
            self._note(f"{name}.{self._chunks}", kind, len(array), array.nbytes)
        self._chunks += 1
        self._filled = 0

    def _note(self, name: str, kind: str, length: int, size: int) -> None:
        """Add a tensor to the header's table."""
        self._table[name] = {"dtype": kind, "shape": [length], "data_offsets": [self._end, self._end + size]}
        self._end += size


def _texts(
    files: Sequence[Path], tokenizer: Any, border: str | None, progress: ProgressCallback
) -> Iterator[tuple[str, bool]]:
    """Yield the documents of all files in pieces, and whether one begins with the piece."""
    sizes, before = [path.stat().st_size for path in files], 0
    for path, size in zip(files, sizes, strict=True):
        by_line = path.suffix in (".jsonl", ".ndjson")
        for text, begins, done in _json_lines(path, tokenizer) if by_line else _text(path, border):
            progress(f"storing {path.name[:40]}", min(1.0, (before + done) / max(1, sum(sizes))))
            yield text.encode(errors="replace").decode(), begins  # escapes of JSON can hold half a character
        before += size


def _text(path: Path, border: str | None) -> TextPieces:
    """Read a text file, cut after line ends where its lines are not too long for that."""
    lines, size, begins, inside = list[str](), 0, True, False  # inside: a line that is read in pieces
    with path.open("rb") as raw:
        # The first bytes of a file from Windows may say that it is UTF-8; line ends become the model's.
        file = io.TextIOWrapper(raw, encoding="utf-8-sig")
        try:
            for line in iter(lambda: file.readline(_PIECE), ""):
                if "\0" in line:
                    raise ParamError(f"{path.name[:200]!r} is no text: save it as UTF-8")
                goes_on = len(line) == _PIECE and not line.endswith("\n")
                ends = border is not None and not (inside or goes_on) and line.strip() == border
                inside = goes_on
                lines += [] if ends else [line]
                size += len(line)
                if ends or size >= _PIECE:
                    yield "".join(lines), begins, raw.tell()
                    lines, size, begins = [], 0, ends
        except UnicodeDecodeError:
            raise ParamError(f"{path.name[:200]!r} is no text: save it as UTF-8") from None
        yield "".join(lines), begins, raw.tell()


def _json_lines(path: Path, tokenizer: Any) -> TextPieces:
    """Read a document from every line that is not blank."""
    with path.open("rb") as file:
        for number, line in enumerate(iter(lambda: file.readline(_LONGEST_LINE), b""), start=1):
            where = f"{path.name[:200]}, line {number}"
            if len(line) == _LONGEST_LINE and not line.endswith(b"\n"):
                raise ParamError(f"{where}: longer than {_LONGEST_LINE // 2**20} MB: split it")
            if line.strip():
                text = _document(line, where, tokenizer)
                for start in range(0, len(text), _PIECE):
                    yield text[start : start + _PIECE], start == 0, file.tell()


def _document(line: bytes, where: str, tokenizer: Any) -> str:
    """Return the text of a JSON line: a plain one, or a conversation as the model would be shown it."""
    try:
        conversation = read_line(line)
    except ParamError as error:
        raise ParamError(f"{where}: {error}") from None
    if isinstance(conversation, str):
        return conversation
    try:
        return str(tokenizer.apply_chat_template(conversation, tokenize=False))
    except Exception:  # no template, or one that wants other roles: a program that may raise anything
        return "\n".join(message["content"] for message in conversation)


def _tokenised(texts: Iterator[tuple[str, bool]], tokenizer: Any) -> TokenPieces:
    """Encode the pieces, in batches that a tokenizer spreads over the processor's cores."""
    batch, size = list[tuple[str, bool]](), 0
    for text, begins in texts:
        batch.append((text, begins))
        size += len(text) + 64  # what a piece takes however short it is
        if size >= _BATCH:
            yield from _ids(batch, tokenizer)
            batch, size = [], 0
    yield from _ids(batch, tokenizer)


def _ids(batch: list[tuple[str, bool]], tokenizer: Any) -> TokenPieces:
    if not batch:
        return ()
    texts = [text for text, _ in batch]
    ids = tokenizer(texts, add_special_tokens=False, return_attention_mask=False, verbose=False)["input_ids"]
    return zip(ids, (begins for _, begins in batch), strict=True)
