"""The paths of the embedded family, models that run without a download, and of SmolLM2's parts."""

from __future__ import annotations

from pathlib import Path

from .packed import ASSETS, stored

ROOT = Path(__file__).parents[1]
_HOME, _REAL = ASSETS / "pocket", ASSETS / "smollm2"

TARGET, DRAFTER, MEDUSA_2 = "pocket", "pocket-drafter", "pocket-medusa-2"
SMOLLM2, SMOLLM2_DRAFTER = "smollm2", "smollm2-drafter"  # only the parts of the first are here
FOLDERS = {  # of models, by names that are allowed wherever a folder is
    TARGET: _HOME / "target",
    DRAFTER: _HOME / "drafter",
    MEDUSA_2: _HOME / "medusa-2" / "backbone",  # the target as trained together with its heads
    SMOLLM2_DRAFTER: _REAL / "drafter",
}
DTYPE = "float32"  # the default: for teaching, equal texts matter more than speed
_STORE = stored(_HOME / "datastore.safetensors")
PARTS = {  # what methods need beside a model
    TARGET: {**{part: _HOME / part for part in ("medusa", "kangaroo", "eagle", "dflash")}, "datastore": _STORE},
    MEDUSA_2: {"medusa": _HOME / "medusa-2", "datastore": _STORE},
    SMOLLM2: {
        "medusa": _REAL / "medusa",
        "kangaroo": _REAL / "kangaroo",
        "eagle": _REAL / "eagle",
        "dflash": _REAL / "dflash",
        "datastore": stored(_REAL / "datastore.safetensors"),
        "tables": stored(_REAL / "tables.safetensors"),
    },
}
_DRAFTERS = {TARGET: DRAFTER, MEDUSA_2: DRAFTER, SMOLLM2: SMOLLM2_DRAFTER}
TASKS = _HOME / "tasks.jsonl"  # held-out questions with references, in Spec-Bench's form
STORE = _HOME / "datastore.jsonl"  # conversations of the training split, for drafting by retrieval
PROMPT = "Translate this into Velan: The big dog found the letter in the garden. At night the king sleeps."
NOTE = "a model of 6.5 million parameters that speaks a small language of its own"


def drafter_of(model: str) -> str | None:
    """Return the drafter that comes with a model, or None."""
    drafter = _DRAFTERS.get(model)
    return drafter if drafter == DRAFTER or (drafter and FOLDERS[drafter].is_dir()) else None
