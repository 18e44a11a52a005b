"""Opens the drafter that is to be examined: a folder of one of four kinds."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..errors import ParamError
from ..model.decoder import Decoder
from ..model.split import SplitDecoder

if TYPE_CHECKING:
    from ..engine import Engine
    from .probes import Examined

KINDS = {"eagle": "eagle3", "medusa": "medusa", "kangaroo": "kangaroo", "draft": "draft_model"}  # flag: method


def open_drafter(
    engine: Engine, kind: str, name: str, progress: Callable[[str, float], None], *, download: bool = True
) -> Examined:
    """The drafter of that name beside an engine's model; ModelError where nothing can be measured with it."""
    model = engine.model
    if not isinstance(model, Decoder | SplitDecoder):
        raise ParamError("the toy is a table without drafters to examine: load a model")
    if kind == "eagle":
        from ..parts.eagle_files import find_eagle
        from .eagle import ExaminedEagle

        return ExaminedEagle(str(find_eagle(name, progress, download=download)), model)
    if kind == "medusa":
        from .medusa import ExaminedHeads

        return ExaminedHeads(name, model)
    if kind == "kangaroo":
        from .kangaroo import ExaminedAdapter

        return ExaminedAdapter(name, model)
    from ..loader import load_model
    from .draft_model import ExaminedDraft

    draft, codec = load_model(name, str(model.device), model.precision, progress, download)
    return ExaminedDraft(draft, codec, model, engine.codec)
