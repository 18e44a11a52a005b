"""Opens the drafter that is to be examined: a folder of one of four kinds."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..errors import ParamError
from ..model.decoder import Decoder
from ..model.resized import Resized
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

    return ExaminedDraft(*load_model(name, str(model.device), model.precision, progress, download), model, engine.codec)


def open_draft(engine: Engine) -> Examined:
    """The draft model that an engine was loaded with: its tokenizer was compared with the target's then."""
    from .draft_model import ExaminedDraft

    draft = engine.draft.model if isinstance(engine.draft, Resized) else engine.draft
    if not isinstance(draft, Decoder | SplitDecoder) or not isinstance(engine.model, Decoder | SplitDecoder):
        raise ParamError("the toy is a table without drafters to examine: load a model")
    return ExaminedDraft(draft, engine.codec, engine.model, engine.codec)
