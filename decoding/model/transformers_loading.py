"""Loads causal language models of transformers that our decoder does not run; refuses those that cannot run at all."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import torch

from ..errors import ModelError
from ..types import JSON
from .config import NOT_THE_MODEL
from .files import ModelFolder, TensorFiles
from .memory import check_memory
from .precision import Precision
from .transformers_model import TransformersModel
from .transformers_quantised import as_one_line, check_quantisation, count_parameters, needed_bytes

# Largest distance between our logits and the model's, relative to their norm; in bfloat16 experts may change places.
_NOISE = {torch.float64: 1e-5, torch.float32: 1e-3, torch.bfloat16: 0.2, torch.float16: 0.1}
# If activations are quantised too, rounding in attention moves some by a whole step (of 127): 0.01 to 0.02 here.
_NOISE_QUANTISED = 0.1
_CHECKED = 24  # tokens


def load_modules(folder: ModelFolder) -> TransformersModel:
    """Load the model of a folder into transformers' own modules."""
    path, raw, config, name, (device, *_), precision, report = folder
    kind = check_architecture(config)
    if precision.int8:
        raise ModelError(f"models of type {config.model_type!r} cannot be rounded to int8 here: choose another dtype")
    if (path / "adapter_config.json").is_file():
        raise ModelError(f"{name[:200]!r} is an adapter, not a whole model: merge it into its model first")
    quantised = check_quantisation(config, device)
    parameters = count_parameters(kind, config) if quantised else None
    with TensorFiles(path) as files:
        size = needed_bytes(quantised, files, parameters or 0, precision.dtype)
        check_memory(name, size, [device], f"{quantised}+{precision.name}" if quantised else precision.name)
        digest = _digest(raw, files)
    report("reading weights", 0.0)
    try:
        model, loading = kind.from_pretrained(
            path,
            config=config,
            dtype=precision.dtype,
            device_map={"": str(device)} if quantised else None,
            local_files_only=True,
            trust_remote_code=False,
            use_safetensors=True,
            output_loading_info=True,
        )
    except Exception as error:  # transformers and its quantisers raise errors of many kinds
        raise ModelError(f"transformers cannot load {name[:200]!r}: {as_one_line(error)}") from None
    for what in ("missing_keys", "mismatched_keys"):
        if wrong := sorted(map(str, loading.get(what, ()))):
            raise ModelError(
                f"the weight {wrong[0][:80]} is missing or has another shape: the weight files do not belong to this "
                "config.json"
            )
    model = model if quantised else model.to(device)
    report("checking the model against transformers", 0.9)
    made = adopt(model, name, digest, quantised, parameters)
    report("checking the model against transformers", 1.0)
    return made


def adopt(
    model: Any,
    name: str = "model in memory",
    digest: str = "0" * 64,
    quantised: str | None = None,
    parameters: int | None = None,
) -> TransformersModel:
    """Wrap a transformers model in memory; ModelError if its logits then differ from the original ones.

    `quantised`: how its weights are quantised. `parameters`: the number of weights before.
    """
    check_architecture(model.config)
    family, device = model.config.model_type, model.get_input_embeddings().weight.device
    vocabulary = model.config.get_text_config(decoder=True).vocab_size
    tokens = [(7 * position + 3) % vocabulary for position in range(_CHECKED)]
    try:
        with torch.inference_mode():
            ids = torch.tensor([tokens], device=device)
            expected = model.eval()(input_ids=ids, use_cache=False).logits[0]
        computed = Precision(model.dtype).name  # some packages keep the dtype that was saved
        made = TransformersModel(model, name, digest, f"{quantised}+{computed}" if quantised else computed, parameters)
        logits = _read_in_parts(made, tokens)
    except ModelError:
        raise
    except Exception as error:  # the modules of an untested architecture may raise anything
        raise ModelError(f"models of type {family!r} cannot be run: {as_one_line(error)}") from None
    expected, logits = expected.double(), logits.double()
    noise = max(_NOISE[made.dtype], _NOISE_QUANTISED if quantised else 0.0)
    if not (logits - expected).norm() <= noise * expected.norm():
        raise ModelError(
            f"models of type {family!r} cannot be run: read in parts, a text has other logits than in one piece, so "
            "they remember more than keys and values, or look ahead"
        )
    return made


def _read_in_parts(model: TransformersModel, tokens: list[int]) -> torch.Tensor:  # (T, V)
    """Return the logits of a text whose second half is read as a path of a tree, with rejected guesses beside it."""
    half = len(tokens) // 2
    session = model.open(len(tokens), 2 * half)
    first = session.read(tokens[:half], tuple(range(-1, half - 1))).logits
    session.commit(range(half))
    # Every token of the path has a sibling before it, with a different token.
    second = tokens[half:]
    fed = [second[0], *(each for token in second[1:] for each in (tokens[0], token))]
    parents = (-1, *(2 * depth for depth in range(len(second) - 1) for _ in range(2)))
    path = range(0, len(fed), 2)
    return torch.cat((first, session.read(fed, parents).logits[[*path]]))


def check_architecture(config: Any) -> Any:
    """Return the class of transformers for this configuration; raise ModelError if it cannot read trees."""
    from transformers import MODEL_FOR_CAUSAL_LM_MAPPING

    what = f"models of type {str(config.model_type)[:40]!r}"
    if getattr(config, "is_encoder_decoder", False):
        raise ModelError(f"{what} have an encoder, which decoding methods of one text do not feed: name a causal model")
    if type(config) not in MODEL_FOR_CAUSAL_LM_MAPPING:
        raise ModelError(f"{what} write no text from left to right: name a causal language model")
    kind = MODEL_FOR_CAUSAL_LM_MAPPING[type(config)]
    if kind._is_stateful:
        raise ModelError(
            f"{what} carry a state from token to token, which cannot branch as a tree of guesses does: "
            "name a model with attention in all layers"
        )
    return kind


def _digest(raw: dict[str, JSON], files: TensorFiles) -> str:
    """Hash the configuration and, for every weight, its name, shape, dtype, and first and last row."""
    kept = {name: value for name, value in raw.items() if name not in NOT_THE_MODEL}
    sha = hashlib.sha256(json.dumps(kept, sort_keys=True).encode())
    for name in sorted(files.shapes):
        sha.update(f"{name} {list(files.shapes[name])} {files.dtypes[name]}".encode())
        sha.update(files.rows(name).contiguous().flatten().view(torch.uint8).numpy().tobytes())
    return sha.hexdigest()
