"""Loads engines by name: the embedded family, a model folder, a model of the hub, or the toy."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from .codec import Codec
from .default_model import BEST, named_model
from .embedded import DTYPE, FOLDERS, drafter_of
from .engine import Engine
from .errors import ModelError, OptionError
from .gguf.file import GgufFile
from .gguf.folder import is_gguf, load_gguf_tokenizer
from .model.resized import Resized
from .model.session import Model, ProgressCallback
from .parts import NAMED_PARTS, Parts
from .parts.named import find_part

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from .model.transformers_model import AnyModel

_TOKENIZER_JSON = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json")
_TOKENIZER_FAULTS = {  # what the libraries say, and what it means
    r"untagged enum (\w+)Untagged": r"its \1 is of no known kind",
    "Token `(.*?)` out of vocabulary": r"a merge makes \1, which is not in its vocabulary",
    r"missing field `(\w+)`|'(added_tokens)'$": r"it has no \1\2",
    "Model missing": "it has no model",
    r'invalid type: string "(.*?)", expected u32': r"an id is the text \1",
    r"Special token (\w+) has to be": r"\1 must be a text",
    r"saved `(\w+)`, should be": r"\1 must hold objects",
}
_TOKENIZER_FILES = ("tokenizer.json", "tokenizer.model", "tokenizer_config.json", "vocab.json", "vocab.txt")


def load(
    name: str = BEST,
    *,
    draft: str | None = None,
    device: str | None = None,
    draft_device: str | None = None,
    dtype: str | None = None,
    progress: ProgressCallback | None = None,
    download: bool = True,
    **parts: str | None,
) -> Engine:
    """Load "pocket", "pocket-medusa-2", "smollm2", a model folder, a GGUF file, a hub id or "toy".

    "best", the default, is smollm2 if its weights are on this machine, else pocket.

    `draft` names a smaller model with the same tokenizer. `parts` are what methods need beside a model: `medusa` is a
    folder of heads, `kangaroo` the folder of an adapter, `eagle` and `dflash` are folders of such drafters, and
    `datastore` is a file to retrieve from; each may be a hub id as well. pocket and smollm2 bring all of them, and
    the toy brings a drafter.
    "org/name@revision" is a hub id at a revision.

    The default device is CUDA if there is any. "cuda" is the first CUDA device if the model fits into it, else all of
    them; "cuda:0,cuda:1" splits the layers over these two. The drafter is on `draft_device`, by default on the last
    device of the model.

    The default dtype is float32 for the embedded family. For other models it is bfloat16 if the device computes with
    it, else float32. "int8" rounds the weights, also the drafter's, to eight bits and computes in the default dtype;
    "int8+float32" names the dtype. Such a model writes other texts. Without `download` nothing is fetched from the hub.
    """
    if unknown := sorted(parts.keys() - NAMED_PARTS.keys()):
        raise OptionError(f"there is no option {unknown[0][:40]!r}; the parts are {', '.join(NAMED_PARTS)}")
    _check_names({"model": name, "draft": draft, **parts})
    name = named_model(name)
    if name == "toy":
        return _load_toy({"draft": draft, **parts}, device or draft_device, dtype)
    if draft == "toy":
        raise ModelError('the toy drafts for "toy" only: name a smaller model with the same tokenizer')
    draft = draft or drafter_of(name)
    if name in FOLDERS:
        dtype = dtype or DTYPE
    where = device or ("cuda" if torch.cuda.is_available() else "cpu")
    from .parts.makers import makers

    report = progress or (lambda what, share: None)
    named = {part: find_part(part, path, report, download=download) for part, path in parts.items() if path is not None}
    target, codec = load_model(name, where, dtype, progress, download)
    available = Parts(makers(name, target, codec, named))
    if draft is None:
        return Engine(target, codec, parts=available)
    where, width = draft_device or str(target.device), target.card.vocabulary
    drafter, draft_codec = load_draft(draft, where, dtype, progress, download, width)
    return Engine(target, codec, match(target, codec, drafter, draft_codec), available)


def _check_names(names: Mapping[str, object]) -> None:
    for what, value in names.items():
        if value is not None and (not isinstance(value, str) or not value.strip() or "\0" in value):
            if what in ("model", "draft"):
                raise ModelError('name a model: "pocket", a model folder, or a hub id such as org/model')
            raise ModelError(f"{what} must be the path of a folder or file or a hub id")


def match(target: Model, codec: Codec, draft: Model, draft_codec: Codec) -> Model:
    """Return the drafter with logits as wide as the target's; ModelError unless both have the same tokens."""
    width = target.card.vocabulary
    pair = f"{draft.card.name} cannot draft for {target.card.name}"
    if codec.tokenizer is not None and draft_codec.tokenizer is not None:
        check_tokens(pair, codec, draft_codec)
    elif width != draft.card.vocabulary:
        raise ModelError(
            f"{pair}: their vocabularies have {draft.card.vocabulary} and {width} entries, and without tokenizers for "
            "both nothing tells whether the ids agree; name a drafter with the same tokenizer"
        )
    return draft if width == draft.card.vocabulary else Resized(draft, width)


def check_tokens(pair: str, codec: Codec, draft_codec: Codec) -> None:
    """Raise ModelError unless each id is the same token for both tokenizers, special tokens included."""
    target, draft = _words(codec), _words(draft_codec)
    if target != draft:
        first = min(index for index in target.keys() | draft.keys() if target.get(index) != draft.get(index))
        ours, theirs = (repr(words[first][:40]) if first in words else "nothing" for words in (target, draft))
        raise ModelError(
            f"{pair}: their tokenizers differ, first at id {first}, which is {ours} for the target and "
            f"{theirs} for the drafter; name a drafter with the same tokenizer"
        )


def _words(codec: Codec) -> dict[int, str]:
    """Map every id to its token, or to all of its tokens if it has several."""
    words: dict[int, list[str]] = {}
    for word, index in codec.tokenizer.get_vocab().items():
        words.setdefault(index, []).append(word)
    return {index: " ".join(sorted(tokens)) for index, tokens in words.items()}


def _load_toy(parts: Mapping[str, str | None], device: str | None, dtype: str | None) -> Engine:
    if parts["draft"] not in (None, "toy"):
        raise ModelError("the toy brings its own drafter: leave the other one out")
    if named := [what for what, path in parts.items() if path is not None and what != "draft"]:
        raise ModelError(f"the toy is a table, which has no place for {named[0]}: leave it out, or load a model")
    if device not in (None, "cpu") or dtype is not None:
        raise ModelError("the toy is a table on the CPU: leave device and dtype out, or load a model")
    from .toy import toy

    return toy()


def load_model(
    name: str, device: str, dtype: str | None, progress: ProgressCallback | None, download: bool
) -> tuple[AnyModel, Codec]:
    """Load a network and its tokenizer."""
    from .model import loading
    from .model.files import find_folder

    model = loading.load_model(name, device, dtype, progress, download=download)
    # The folder was fetched or converted just now.
    return model, load_codec(find_folder(name, lambda what, share: None, model.dtype, download=download))


def load_draft(
    name: str, device: str, dtype: str | None, progress: ProgressCallback | None, download: bool, width: int
) -> tuple[AnyModel, Codec]:
    """Load a draft model for a target of `width` tokens, and its tokenizer.

    It drafts only the common tokens that its folder lists, if it lists any.
    """
    from .model.files import find_folder
    from .parts.draft_vocabulary import narrowed

    model, codec = load_model(name, device, dtype, progress, download)
    folder = find_folder(name, lambda what, share: None, model.dtype, download=download)
    return narrowed(model, folder, width), codec


def find_codec(name: str, progress: ProgressCallback, *, download: bool = True) -> Codec:
    """Load the tokenizer of a model, without its weights. Without `download` nothing is fetched from the hub."""
    from .model.files import find_folder

    if name == "toy":
        from .toy import toy

        return toy().codec
    return load_codec(find_folder(name, progress, download=download))


def load_codec(folder: Path) -> Codec:
    """Load the tokenizer of a model folder, and the ids that end its texts; of a GGUF file the tokenizer alone."""
    tokenizer = load_tokenizer(folder)
    if is_gguf(folder):
        return Codec(tokenizer)
    return Codec(tokenizer, _end_tokens(folder, tokenizer))


def has_tokenizer(folder: Path) -> bool:
    """Return True if a folder has a tokenizer's files."""
    return any((folder / name).is_file() for name in _TOKENIZER_FILES)


def load_tokenizer(folder: Path) -> PreTrainedTokenizerBase | None:
    """Load the tokenizer of a folder or GGUF file; None if it has none, and the model reads and writes ids."""
    if is_gguf(folder):
        return load_gguf_tokenizer(folder, GgufFile(folder))
    if not has_tokenizer(folder):
        return None
    from transformers import AutoTokenizer

    try:
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(
            folder, trust_remote_code=False, local_files_only=True
        )
    except Exception as error:  # damaged files raise errors of many kinds, some from compiled code
        raise ModelError(_tokenizer_fault(folder, error)) from None
    return tokenizer


def _tokenizer_fault(folder: Path, error: Exception) -> str:
    """Say which file of a tokenizer is damaged, and how. Raises ModelError for one that is no JSON."""
    from tokenizers import Tokenizer

    from .model.files import read_json

    for name in [name for name in _TOKENIZER_JSON if (folder / name).is_file()]:
        read_json(folder / name)
    if not (folder / (file := "tokenizer.json")).is_file():
        return f"{str(folder)!r} has no {file}, and its other files make no tokenizer here: fetch {file}"
    try:
        Tokenizer.from_file(str(folder / file))
        file = "tokenizer_config.json or a file beside it"
    except Exception as cause:  # compiled code raises nothing more exact
        error = cause
    reason = " ".join(str(error).split())[:160]
    for pattern, meaning in _TOKENIZER_FAULTS.items():
        reason = re.sub(f".*{pattern}.*", meaning, reason)
    return f"{file} in {str(folder)!r} is damaged ({reason}): correct it or fetch it again"


def _end_tokens(folder: Path, tokenizer: PreTrainedTokenizerBase | None) -> frozenset[int]:
    """Return the ids that end a text: from generation_config.json, else the tokenizer, else config.json."""
    from .model.files import read_json

    path = folder / "generation_config.json"
    for ends, source in (
        (read_json(path).get("eos_token_id") if path.is_file() else None, path.name),
        (getattr(tokenizer, "eos_token_id", None), "the tokenizer"),
        (read_json(folder / "config.json").get("eos_token_id"), "config.json"),
    ):
        if ends is not None:
            ids = ends if isinstance(ends, list) else [ends]
            if not all(type(token) is int and token >= 0 for token in ids):
                raise ModelError(f"eos_token_id of {source} in {str(folder)!r} must be a token id or a list of them")
            return frozenset(ids)
    return frozenset()
