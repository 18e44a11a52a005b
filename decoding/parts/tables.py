"""N-gram tables that a model holds in itself: its tokens ranked as they are, and those that follow each of them.

Nothing is learnt and no text is needed. Every token of the vocabulary is read once, as a text of its own, many in one
pass: that is the bigram. The unigram comes from the embeddings alone. Making both takes seconds for a small model and
about a minute for a large one on a GPU, so `load_tables` keeps them in the user's cache folder.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from ..errors import ModelError
from ..model.decoder import Decoder, DecoderSession
from ..model.session import Model, Session, Tell
from ..sampling import ranked

RANKINGS = ("distance", "product")  # of unigrams: by the paper's text, by the code in its appendix

_FORMAT = 1  # of a cache file; raised whenever tables are made in another way
_TOP, _LENGTH = 32, 16  # what is loaded for every model: followers of a token, links of a chain
_ROWS, _NUMBERS = 256, 2**24  # texts read in one pass, and logits they may have together
_HEADER = 2**16  # bytes that a cache file may have beside its tensors
_STEEP = 1e4  # beyond every logit of a network; a table's infinite ones become this
_DTYPES = {"unigram": "I32", "bigram": "I32", "probability": "F32"}  # tensors of a cache file


class Tables:
    """The tables of one model. Everything in them is ranked, the best first."""

    def __init__(self, tensors: Mapping[str, torch.Tensor], length: int, bos: int | None) -> None:
        """`tensors` are unigram (2, top), one row per ranking, bigram (V, top) and probability (V, top)."""
        sha = hashlib.sha256()
        for name in _DTYPES:
            sha.update(tensors[name].numpy().tobytes())
        self.tensors, self.digest = dict(tensors), sha.hexdigest()
        self.about = f"n-gram tables {self.digest[:12]}" + ("" if bos is None else f" behind token {bos}")
        best = tensors["bigram"][:, 0]
        links = [best]
        while len(links) < length:
            links.append(best[links[-1].long()])
        self._chains = torch.stack(links, 1)  # (V, length)

    def unigrams(self, ranking: str) -> list[int]:
        """The tokens that the model holds likely with no text at all."""
        ids: list[int] = self.tensors["unigram"][RANKINGS.index(ranking)].tolist()
        return ids

    def bigrams(self, token: int) -> list[tuple[int, float]]:
        """The tokens likeliest behind `token` alone, with their probabilities."""
        ids, shares = (self.tensors[name][token].tolist() for name in ("bigram", "probability"))
        return list(zip(ids, shares, strict=True))

    def chain(self, token: int, count: int) -> list[int]:
        """The `count` tokens behind `token` where each is the likeliest behind the one before it."""
        links: list[int] = []
        while len(links) < count:
            links += self._chains[token].tolist()
            token = links[-1]
        return links[:count]


@torch.inference_mode()
def build(model: Model, *, top: int, length: int, tell: Tell, bos: int | None = None) -> Tables:
    """Read every token once: `top` followers are kept of each, and chains of `length` links.

    The paper reads a token with nothing in front of it. `bos` puts a begin-of-text token there: models that were
    trained with one say odd things at the first position of a text.
    """
    vocabulary = model.card.vocabulary
    top, rows = min(top, vocabulary), max(1, min(_ROWS, _NUMBERS // vocabulary))
    session = model.open(2, rows)
    session.reset(2)
    if bos is not None:
        if not 0 <= bos < vocabulary:
            raise ModelError(f"the begin-of-text token {bos} is none of the model's {vocabulary}: leave it out")
        session.read([bos], (-1,), skip=1)
        session.commit([0])
    squares = torch.zeros(vocabulary, dtype=torch.float64, device=model.device)
    products = torch.zeros_like(squares)
    bigram, probability = list[torch.Tensor](), list[torch.Tensor]()
    for start in range(0, vocabulary, rows):
        tell("reading n-gram tables from the model", start / vocabulary)
        tokens = range(start, min(start + rows, vocabulary))
        # Nodes without a parent see the stored tokens and themselves: each is a text of its own.
        logits = session.read(tokens, (-1,) * len(tokens)).logits
        law = torch.softmax(logits.float(), -1)  # (R, V)
        best = ranked(law, top)
        bigram.append(best.int().cpu())
        probability.append(law.gather(-1, best).nan_to_num(0.0).cpu())
        meeting = _meeting(model, session, tokens, logits)
        mean = meeting.mean(-1, keepdim=True)
        squares += (meeting - mean).square().sum(0)
        products += (mean * meeting).sum(0)
    tell("reading n-gram tables from the model", 1.0)
    orders = [order.nan_to_num(torch.inf).argsort(stable=True)[:top] for order in (squares, products)]
    tensors = {"unigram": torch.stack(orders).int().cpu(), "bigram": torch.cat(bigram)}
    return Tables(tensors | {"probability": torch.cat(probability)}, length, bos)


def _meeting(model: Model, session: Session, tokens: range, logits: torch.Tensor) -> torch.Tensor:  # (R, V)
    """v_y . u_x for every y of `tokens` and every x: an input embedding straight into the output layer.

    Summed over y, squared distances between u_x and the mean are those under the covariance of all v_y, as the paper
    defines them. A model without embeddings gives what comes closest, the `logits` of every x behind y alone.
    """
    if isinstance(model, Decoder) and isinstance(session, DecoderSession):
        logits = model.head(session.enter(tokens, 0))
    return logits.double().clamp(-_STEEP, _STEEP)


def load_tables(model: Model, tell: Tell, *, folder: Path | None = None, bos: int | None = None) -> Tables:
    """The tables of a model, from the cache in `folder`, by default the user's, or made and put there.

    A cache that cannot be read or written, or that is damaged or of something else, is no error: it is done without.
    """
    path, facts = _place(model, folder, bos), _facts(model, bos)
    tables = None if path is None else _read(path, model.card.vocabulary, facts, bos)
    if tables is None:
        tables = build(model, top=_TOP, length=_LENGTH, tell=tell, bos=bos)
        if path is not None:
            _write(path, tables, facts)
    return tables


def _place(model: Model, folder: Path | None, bos: int | None) -> Path | None:
    """The cache file of a model; None for one that its hash does not tell from others."""
    name = model.card.hash
    if not re.fullmatch("[0-9a-f]{64}", name) or not name.strip("0"):
        return None
    if folder is None:
        homes = (os.environ.get("XDG_CACHE_HOME", ""), os.path.expanduser("~/.cache"))  # noqa: PTH111  # raises nothing
        absolute = [home for home in map(Path, homes) if home.is_absolute()]  # the XDG standard has others ignored
        if not absolute:
            return None
        folder = absolute[0] / "specscope"
    return folder / f"tables-v{_FORMAT}-{name}-{_dtype(model)}-{bos}.safetensors"


def _facts(model: Model, bos: int | None) -> dict[str, str]:
    """What a cache file must say of itself to be this model's."""
    card = model.card
    facts = {"format": _FORMAT, "model": card.hash, "dtype": _dtype(model), "bos": bos, "top": _TOP}
    return {name: str(value) for name, value in facts.items()}


def _dtype(model: Model) -> str:
    return str(model.dtype).removeprefix("torch.")


def _read(path: Path, vocabulary: int, facts: dict[str, str], bos: int | None) -> Tables | None:
    """The tables in a cache file; None unless every byte of it is as it was written, and makes sense."""
    from safetensors import SafetensorError, safe_open

    top = min(_TOP, vocabulary)
    shapes = {"unigram": [len(RANKINGS), top], "bigram": [vocabulary, top], "probability": [vocabulary, top]}
    most = 4 * sum(rows * columns for rows, columns in shapes.values()) + _HEADER
    try:
        if not path.is_file() or path.stat().st_size > most:
            return None
        with safe_open(path, framework="pt", device="cpu") as file:
            found = file.metadata() or {}
            for name, dtype in _DTYPES.items():
                part = file.get_slice(name)
                if part.get_dtype() != dtype or part.get_shape() != shapes[name]:
                    return None
            tensors = {name: file.get_tensor(name).clone() for name in _DTYPES}
    except (OSError, SafetensorError):
        return None
    ids = (tensors["unigram"], tensors["bigram"])
    shares = tensors["probability"]
    if not all(int(part.min()) >= 0 and int(part.max()) < vocabulary for part in ids):
        return None
    if not bool(((shares >= 0.0) & (shares <= 1.0)).all()):
        return None
    tables = Tables(tensors, _LENGTH, bos)
    return tables if found == facts | {"sha256": tables.digest} else None


def _write(path: Path, tables: Tables, facts: dict[str, str]) -> None:
    """Put a cache file in its place whole or not at all."""
    from safetensors.torch import save

    content = save(tables.tensors, facts | {"sha256": tables.digest})
    with suppress(OSError):  # a folder that cannot be written, or is full: there is no cache then
        path.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=path.parent) as fresh:
            part = Path(fresh) / path.name
            part.write_bytes(content)
            part.replace(path)
