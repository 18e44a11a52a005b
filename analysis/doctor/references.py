"""References for a drafter: how often simple guesses are right on the same prompts, and what its card promises."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import torch

from decoding.drafting.suffix_index import SuffixIndex
from decoding.model.split import SplitDecoder

if TYPE_CHECKING:
    from decoding.model.split import AnyDecoder

    from .texts import Text

_LONGEST = 3  # tokens of the ending that prompt lookup finds again
_MOST_BYTES = 2**20  # of a README or a log, from its end
_ROW = re.compile(
    r"^\|\s*(?:guess|head) (\d+)\s*\|[^|]*\|\s*([\d.]+)%|^\|\s*(adapter|drafter)\s*\|[^|]*\|\s*([\d.]+)%", re.M
)


def references(model: AnyDecoder, texts: Sequence[Text], depth: int) -> Mapping[str, float]:
    """Return how often the first guess is right: of prompt lookup, of the other texts' commonest follower of a token,
    and of the target's own layers when they exit early.
    """
    shares = {"prompt lookup": _lookup(texts, depth), "n-grams of the other texts": _ngrams(texts, depth)}
    return {**shares, **_exits(model, texts, depth)}


def exit_name(layer: int) -> str:
    """Name the target's early exit after a layer, as `references` does."""
    return f"the target's exit after layer {layer}"


class Promise(NamedTuple):
    """How often each of a drafter's guesses, from 1, was right after its training, and the source of these numbers."""

    shares: Mapping[int, float]
    source: str


def promise(folder: Path) -> Promise | None:
    """Read the acceptance in a drafter's README, or else the last one in its training log."""
    rows = _ROW.findall(_text(folder / "README.md"))
    if rows:
        return Promise({int(number or 1): float(share or alone) / 100 for number, share, _, alone in rows}, "card")
    for line in reversed(_text(folder / "training" / "log.jsonl").splitlines()):
        if (shares := _measured(line)) is not None:
            return Promise(dict(enumerate(shares, start=1)), "training log")
    return None


def _text(path: Path) -> str:
    """Return the end of a text; nothing of what is no file, or no text."""
    try:
        return path.read_bytes()[-_MOST_BYTES:].decode(errors="replace") if path.is_file() else ""
    except OSError:
        return ""


def _measured(line: str) -> list[float] | None:
    """Return the shares of first choices that a line of a training log gives; None if it gives none."""
    try:
        shares = [head["top"][0] for head in json.loads(line)["held_out"]["heads"]]
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    return shares if shares and all(type(share) is float and 0.0 <= share <= 1.0 for share in shares) else None


def _lookup(texts: Sequence[Text], depth: int) -> float:
    right = places = 0
    for text in texts:
        index, wanted = SuffixIndex(1, _LONGEST), set(text.places(depth))
        for place in range(len(text.ids) - 1):
            written = text.ids[: place + 1]
            index.update(written)
            if place in wanted:
                places += 1
                matches = (index.find(written[-n:], latest=True) for n in range(_LONGEST, 0, -1))
                at = next((each for each in matches if each is not None), None)
                right += at is not None and text.ids[at] == text.ids[place + 1]
    return right / max(1, places)


def _ngrams(texts: Sequence[Text], depth: int) -> float:
    followers = [Counter(zip(text.ids, text.ids[1:], strict=False)) for text in texts]
    every = sum(followers, Counter[tuple[int, int]]())
    by_token = dict[int, list[int]]()
    for token, follower in every:
        by_token.setdefault(token, []).append(follower)
    right = places = 0
    for text, of_this_text in zip(texts, followers, strict=True):
        for place in text.places(depth):
            token = text.ids[place]
            counts = {each: every[token, each] - of_this_text[token, each] for each in by_token.get(token, ())}
            best = max(counts, key=lambda each: (counts[each], -each), default=None)
            right += best is not None and counts[best] > 0 and best == text.ids[place + 1]
            places += 1
    return right / max(1, places)


@torch.inference_mode()
def _exits(model: AnyDecoder, texts: Sequence[Text], depth: int) -> dict[str, float]:
    last = model.sections[-1] if isinstance(model, SplitDecoder) else model
    shares = dict[str, float]()
    for layer in texts[0].states:
        right = places = 0
        for text in texts:
            at = [*text.places(depth)]
            best = model.head(last.final(text.states[layer][at])).argmax(-1)
            right += int((best.cpu() == torch.tensor([text.ids[place + 1] for place in at])).sum())
            places += len(at)
        if layer < model.shape.layers:
            shares[exit_name(layer)] = right / max(1, places)
    return shares
