"""Opens the drafter that is to be examined: a folder of one of five kinds."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from decoding.errors import ModelError, ParamError
from decoding.model.decoder import Decoder
from decoding.model.resized import Resized
from decoding.model.split import SplitDecoder

from .names import names_in

if TYPE_CHECKING:
    from pathlib import Path

    import torch

    from decoding.codec import Codec
    from decoding.engine import Engine
    from decoding.model.session import Model
    from decoding.model.split import AnyDecoder

    from .probes import Examined

_SPECIAL = 32  # tokens that may be a mask
_LARGEST = 2**31  # bytes of a draft model whose weights are changed
_OTHER = "only models of the Llama family can be examined, and drafters of that family: load one, such as pocket"


def open_drafter(
    engine: Engine,
    kind: str,
    name: str,
    progress: Callable[[str, float], None],
    *,
    download: bool = True,
    loaded: str = "",  # the name that the model was loaded by, where its card has another
) -> Examined:
    """Open the drafter of that name for an engine's model; raise ModelError if nothing can be measured with it."""
    model = engine.model
    if not isinstance(model, Decoder | SplitDecoder):
        raise ParamError(_OTHER)
    if kind == "draft":
        from decoding.loader import load_draft

        draft, codec = load_draft(name, str(model.device), model.precision, progress, download, model.card.vocabulary)
        return _examined_draft(draft, codec, engine, name)
    from decoding.parts.named import find_part

    from .dflash import ExaminedDFlash
    from .eagle import ExaminedEagle
    from .kangaroo import ExaminedAdapter
    from .medusa import ExaminedHeads

    kinds: dict[str, Callable[[str, AnyDecoder, str], Examined]] = {
        "eagle": ExaminedEagle,
        "dflash": partial(ExaminedDFlash, special=_special(engine.codec)),
        "medusa": ExaminedHeads,
        "kangaroo": ExaminedAdapter,
    }
    return kinds[kind](find_part(kind, name, progress, download=download), model, loaded)


def _special(codec: Codec) -> list[int]:
    """Return the special tokens, and the first ids after all tokens, which some take for a mask."""
    tokenizer = codec.tokenizer
    return [] if tokenizer is None else [*sorted(tokenizer.all_special_ids)[:_SPECIAL], len(tokenizer)]


def open_draft(engine: Engine, name: str) -> Examined:
    """Examine the draft model that an engine was loaded with, by its name or folder; its tokenizer was compared with
    the target's then.
    """
    draft = engine.draft.model if isinstance(engine.draft, Resized) else engine.draft
    return _examined_draft(draft, engine.codec, engine, name)


def _examined_draft(draft: Model | None, codec: Codec, engine: Engine, name: str) -> Examined:
    from .draft_model import ExaminedDraft

    if not isinstance(draft, Decoder | SplitDecoder) or not isinstance(engine.model, Decoder | SplitDecoder):
        raise ParamError(_OTHER)
    folder = _find(name, draft.dtype)
    names = [] if folder is None else names_in("draft", folder)
    return ExaminedDraft(draft, codec, engine.model, engine.codec, partial(_weights, folder, draft), names)


def _find(name: str, dtype: torch.dtype) -> Path | None:
    """Find the folder of a draft model; None if it is not on this machine."""
    from decoding.model.files import find_folder

    try:
        return find_folder(name, lambda what, share: None, dtype, download=False)
    except ModelError:
        return None


def _weights(folder: Path | None, draft: AnyDecoder) -> dict[str, torch.Tensor]:
    """Read the weights of a draft model's layers; none if they are quantised, too large to be held twice, or not on
    this machine.
    """
    from decoding.model.files import TensorFiles

    if folder is None:
        return {}
    with TensorFiles(folder) as files:
        if "int8" in draft.precision or files.bytes() > _LARGEST:
            return {}
        return {each: files.get(each) for each in files.shapes if ".layers." in each or each == "model.norm.weight"}
