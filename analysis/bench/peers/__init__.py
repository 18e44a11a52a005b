"""Other implementations to measure against, on the same weights and prompts, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from decoding.engine import Engine
from decoding.errors import ParamError

from ..measured import Peer
from . import llama_cpp, transformers

# From the engine and the names that it and its drafter were loaded by.
PEERS: Mapping[str, Callable[[Engine, str, str | None], Peer]] = {
    "transformers": transformers.decode_plainly,
    "transformers-prompt-lookup": transformers.prompt_lookup,
    "transformers-draft-model": transformers.draft_model,
    "llama.cpp": partial(llama_cpp.load, as_stored=False),
    "llama.cpp-as-stored": partial(llama_cpp.load, as_stored=True),
}


def find_peers(names: Sequence[str], engine: Engine, model: str, draft: str | None = None) -> dict[str, Peer]:
    """Make the peers of those names ready to run; `model` and `draft` are the names that the engine was loaded by."""
    for name in names:
        if name not in PEERS:
            raise ParamError(f"unknown peer {name[:40]!r}; there are: {', '.join(PEERS)}")
    if names and engine.model.card.family == "table":
        raise ParamError(f"{names[0]} cannot run the toy: name a model folder or a hub id, or leave the peers out")
    return {name: PEERS[name](engine, model, draft) for name in dict.fromkeys(names)}
