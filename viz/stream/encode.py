"""The encodings of patches: compact, and the same in Python and in the page's player.

{"dtype": "i2", "bdata": "...", "shape": "3,4"}   an array, in the form that plotly itself decodes
{"tokens": array}        token ids that become their display texts; -1 becomes an empty text
{"strings": array}       numbers of strings that the stream holds already, or the strings themselves
{"fates": array}         codes of `palette.Fate`; the player shows guesses as PROPOSED until they are judged
{"symbols": array}       the same codes, as the markers that stand for them
{"node": "fate", ...}    one of these columns over the step's own nodes: see `node`
{"edges": "row", ...}    lines between the step's own nodes: see `edges`
{"closure": {...}}       the step's attention matrix: see `closure`
"$accepted"              a colour of the theme
"""

from __future__ import annotations

import base64
from array import array
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt

from decoding import tree
from decoding.types import Step

from .. import tree_layout
from ..fates import node_fates, seen_fate
from ..palette import MEANINGS, Fate
from ..token_text import cut, escaped

Encoded = Any  # JSON with the encodings above in it

_KINDS = {"i1": np.int8, "u1": np.uint8, "i2": np.int16, "u2": np.uint16, "i4": np.int32, "f4": np.float32}
_ARRAYS = {"i1": "b", "u1": "B", "i2": "h", "u2": "H", "i4": "i"}  # whole numbers: array is faster with a few


def pack(values: Sequence[float] | npt.NDArray[Any], kind: str = "i2") -> dict[str, str]:
    """Return numbers as base64; raises OverflowError if they do not fit."""
    if not isinstance(values, np.ndarray) and kind in _ARRAYS:
        with suppress(TypeError):  # not a plain list of whole numbers
            return {"dtype": kind, "bdata": _base64(array(_ARRAYS[kind], cast(Sequence[int], values)))}
    given = np.asarray(values)
    fitted = given.astype(_KINDS[kind])
    if kind != "f4" and given.size and (fitted != given).any():
        raise OverflowError(f"a value does not fit into {kind}")
    packed = {"dtype": kind, "bdata": _base64(np.ascontiguousarray(fitted))}
    return packed if fitted.ndim == 1 else packed | {"shape": ",".join(map(str, fitted.shape))}


def _base64(numbers: array[int] | npt.NDArray[Any]) -> str:
    return base64.b64encode(numbers.tobytes()).decode("ascii")


def unpack(packed: Mapping[str, str]) -> npt.NDArray[Any]:
    """Decode packed numbers."""
    flat = np.frombuffer(base64.b64decode(packed["bdata"]), dtype=_KINDS[packed["dtype"]])
    return flat.reshape([int(size) for size in packed["shape"].split(",")]) if "shape" in packed else flat


def size(packed: Mapping[str, str]) -> int:
    """Return how many numbers are packed, without decoding them."""
    data = packed["bdata"]
    return (len(data) // 4 * 3 - data.count("=", -2)) // np.dtype(_KINDS[packed["dtype"]]).itemsize


def ids(tokens: Sequence[int]) -> dict[str, str]:
    """Return token ids in as few bytes as they need."""
    return pack(tokens, "i2" if max(tokens, default=0) < 2**15 else "i4")


def tokens(given: Sequence[int]) -> dict[str, Any]:
    """Return texts of tokens, by their ids."""
    return {"tokens": ids(given)}


def fates(codes: Sequence[int]) -> dict[str, Any]:
    """Return fates of tokens, by their codes."""
    return {"fates": pack(codes, "u1")}


def node(
    column: Literal["token", "fate", "symbol", "id", "depth", "row"], first: int = 0, stop: int | None = None
) -> dict[str, Any]:
    """Refer to a column of the step's own nodes from `first` on: their texts, fates, markers, numbers,
    depths, or rows in the tree (see `tree_layout`).
    """
    return _chosen({"node": column}, first, stop)


def edges(column: Literal["depth", "row"], first: int = 0, stop: int | None = None) -> dict[str, Any]:
    """Return the lines to these nodes from their parents: for each the parent's value, its own, and a gap."""
    return _chosen({"edges": column}, first, stop)


def _chosen(column: dict[str, Any], first: int, stop: int | None) -> dict[str, Any]:
    column |= {"from": first} if first else {}
    return column if stop is None else column | {"to": stop}


def closure(
    left: Sequence[int] = (), quiet: int = 0, window: int | None = None, rows: int | None = None
) -> dict[str, Any]:
    """Return a matrix with a row for every node of the step, or for the first `rows` of them: what the node sees.

    To the left a column for every number of `left`: `quiet` in the rows whose depth is less than it, else 0. To the
    right a column for every node: 1 and the row's fate where the node is the row itself or an ancestor, else 0; where
    a `window` is given, only in the rows that are less than `window` deeper.
    """
    matrix: dict[str, Any] = {}
    if left:
        matrix |= {"left": pack(left, "u1" if max(left) < 2**8 else "u2"), "quiet": quiet}
    matrix |= {"window": window} if window is not None else {}
    return {"closure": matrix if rows is None else matrix | {"rows": rows}}


def matrix(encoded: Mapping[str, Any], step: Step, *, judged: bool = True) -> npt.NDArray[np.uint8]:
    """Return the matrix that the inside of a "closure" encodes in a step."""
    parents = step.parents[: encoded.get("rows")]
    depth, seen = np.array(tree.depths(parents), dtype=np.int64), tree.closure(parents)
    if "window" in encoded:
        seen = seen & (depth[:, None] - depth[None, :] < encoded["window"])
    codes = np.array(_seen(node_fates(step)[: len(parents)], judged), dtype=np.int64) + 1
    left = unpack(encoded["left"]) if "left" in encoded else np.zeros(0, dtype=np.uint8)
    quiet = np.where(depth[:, None] < left[None, :], encoded.get("quiet", 0), 0)
    return np.concatenate((quiet, np.where(seen, codes[:, None], 0)), axis=1).astype(np.uint8)


def resolve(
    value: Encoded,
    texts: Mapping[int, str],
    strings: Sequence[str],
    theme: Mapping[str, str],
    step: Step | None = None,
    *,
    judged: bool = True,
) -> Encoded:
    """Return plain values that plotly draws, for use without the player.

    `texts` are those that figures show; what could be a tag in them is escaped here. A patch that refers
    to the nodes of its step needs the `step`; before it is `judged`, its guesses are proposed.
    """
    plain = partial(resolve, texts=texts, strings=strings, theme=theme, step=step, judged=judged)
    if isinstance(value, str):
        return theme[value[1:]] if value.startswith("$") else value
    if isinstance(value, Mapping):
        if "node" in value and step is not None:
            return plain(_column(value, step))
        if "edges" in value and step is not None:
            return _edges(value, step)
        if "tokens" in value:
            shown = ("" if token < 0 else texts.get(token, f"#{token}") for token in unpack(value["tokens"]).tolist())
            return [escaped(cut(text, value.get("cut", len(text)))) for text in shown]
        if "strings" in value:
            given = value["strings"]
            words = given if isinstance(given, list | tuple) else [strings[number] for number in unpack(given).tolist()]
            return [escaped(string) for string in words]
        if "fates" in value:
            return _seen(unpack(value["fates"]).tolist(), judged)
        if "symbols" in value:
            return [MEANINGS[code].symbol for code in _seen(unpack(value["symbols"]).tolist(), judged)]
        if "closure" in value and step is not None:
            return matrix(value["closure"], step, judged=judged).tolist()
        if "bdata" in value:
            return unpack(value).tolist()
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return value


def _seen(fates: Sequence[int], judged: bool) -> list[int]:
    return [int(seen_fate(Fate(fate), judged=judged)) for fate in fates]


def _column(value: Mapping[str, Any], step: Step) -> Encoded:
    """Return what a "node" refers to."""
    chosen = slice(value.get("from", 0), value.get("to"))
    if value["node"] == "id":
        return list(range(len(step.tokens))[chosen])
    if value["node"] in ("depth", "row"):
        return list(_places(value["node"], step)[chosen])
    if value["node"] == "token":
        texts = tokens(step.tokens[chosen])
        return texts | {"cut": value["cut"]} if "cut" in value else texts
    codes = pack(node_fates(step)[chosen], "u1")
    return {"fates" if value["node"] == "fate" else "symbols": codes}


def _places(column: str, step: Step) -> tuple[int | None, ...]:
    return tree.depths(step.parents) if column == "depth" else tree_layout.rows(step)


def _edges(value: Mapping[str, Any], step: Step) -> list[int | None]:
    places, rows = _places(value["edges"], step), tree_layout.rows(step)
    drawn: list[int | None] = []
    for at in range(len(step.tokens))[value.get("from", 0) : value.get("to")]:
        parent = step.parents[at]
        has_edge = parent >= 0 and rows[at] is not None
        drawn += [places[parent], places[at], None] if has_edge else [None] * 3
    return drawn
