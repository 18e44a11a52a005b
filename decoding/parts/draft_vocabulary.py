"""The file of a draft vocabulary, next to the weights of Medusa heads, a Kangaroo adapter or a draft model.

vocabulary.safetensors holds `ids`, the tokens that the drafter may draft, ascending.
"""

from __future__ import annotations

from pathlib import Path

import torch

from ..errors import ModelError
from ..model.decoder import Decoder
from ..model.draft_vocabulary import DraftVocabulary
from ..model.session import Model
from ..model.transformers_model import AnyModel
from ..packed import open_tensors, stored

VOCABULARY_FILE = "vocabulary.safetensors"


def read_vocabulary(folder: Path, model: AnyModel) -> DraftVocabulary | None:
    """Read the draft vocabulary in a drafter's folder; None if it drafts all tokens."""
    path, size, where = stored(folder / VOCABULARY_FILE), model.shape.vocabulary, str(folder)[:200]
    if not path.is_file():
        return None
    with open_tensors(path, f"{VOCABULARY_FILE} in {where!r} is damaged or cut short: fetch it again") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # the file is no dict
    ids = tensors.get("ids", torch.empty(0))
    fine = tensors.keys() == {"ids"} and ids.dtype == torch.int32 and ids.dim() == 1 and 0 < len(ids) <= size
    if not (fine and int(ids[0]) >= 0 and int(ids[-1]) < size and bool((ids.diff() > 0).all())):
        raise ModelError(
            f"{VOCABULARY_FILE} in {where!r} must hold ids of the model's {size} tokens, ascending: "
            "make it again, or delete it to draft from all tokens"
        )
    return DraftVocabulary(ids.long(), size, model.device)


@torch.inference_mode()
def narrowed(draft: AnyModel, folder: Path, width: int) -> AnyModel:
    """Narrow a draft model's logits to the draft vocabulary in its folder, if there is one.

    Other models, and those whose vocabulary differs from the target's `width` tokens, are returned unchanged: they
    draft from all tokens, which is slower but changes nothing else.
    """
    if not isinstance(draft, Decoder) or draft.shape.vocabulary != width:
        return draft
    vocabulary = read_vocabulary(folder, draft)
    return draft if vocabulary is None else draft.narrowed(vocabulary)


def drafted_by(model: Model) -> DraftVocabulary | None:
    """Return the tokens that a draft model's logits are over; None: all."""
    return model.drafts if isinstance(model, Decoder) else None
