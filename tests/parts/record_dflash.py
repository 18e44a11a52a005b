"""Records what the library speculators says with tiny random DFlash drafters, for `test_dflash.py`.

The library is no dependency of the tests: it asks for an older transformers. In an environment where it can be
imported, `python tests/parts/record_dflash.py tests/golden/dflash` writes the folders anew: each is a drafter as the
library saves it, and beside it tokens, tapped states and the logits of the block at every root.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from transformers import AutoConfig

HIDDEN, VOCABULARY, DRAFTED, MASK = 16, 40, 12, 39
TAPS, TOKENS, BLOCK = [0, 2], 20, 4
_SLIDING, _FULL = "sliding_attention", "full_attention"
_WINDOW = {"sliding_window": 6, "use_sliding_window": True}
CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "whole": {"draft_vocab_size": VOCABULARY, "layer": {"attention_bias": True}},
    "anchor": {"sample_from_anchor": True},
    "one-layer": {"layer": {"num_hidden_layers": 1, "head_dim": 32}},
    "window": {"layer": {**_WINDOW, "layer_types": [_SLIDING] * 2}},
    "window-both-ways": {"layer": {**_WINDOW, "layer_types": [_SLIDING] * 2}, "sliding_window_non_causal": True},
    "window-mixed": {"layer": {**_WINDOW, "layer_types": [_FULL, _SLIDING]}},
}


def record(out: Path, name: str, layer: dict[str, Any] | None = None, **flags: Any) -> None:
    """Write one folder."""
    source = torch.Generator().manual_seed(sum(map(ord, name)))
    model = _drafter(layer or {}, flags)
    with torch.no_grad():
        for key, weight in model.named_parameters():
            start = 1.0 if weight.dim() == 1 and "norm" in key else 0.0
            weight.copy_(start + 0.3 * torch.randn(weight.shape, generator=source))
    if model.config.draft_vocab_size != VOCABULARY:
        ids = torch.randperm(VOCABULARY, generator=source)[:DRAFTED].sort().values
        drafted = torch.zeros(VOCABULARY, dtype=torch.bool)
        drafted[ids] = True
        model.load_vocab_mappings(drafted, ids - torch.arange(DRAFTED))
    tokens = torch.randint(0, VOCABULARY, (TOKENS,), generator=source)
    states = torch.randn(TOKENS, len(TAPS) * HIDDEN, generator=source)
    blocks = list[torch.Tensor]()
    for root in range(1, TOKENS - BLOCK):
        mask = torch.zeros(1, TOKENS)
        mask[0, root] = 1.0
        with torch.no_grad():
            _, logits, *_ = model._backbone_forward(
                hidden_states=states[None],
                input_ids=tokens[None],
                loss_mask=mask,
                verifier_last_hidden_states=torch.zeros(1, TOKENS, HIDDEN),
                document_ids=torch.zeros(1, TOKENS, dtype=torch.long),
                max_anchors=1,
            )
        blocks.append(logits[0])
    model.save_pretrained(out / name)
    (out / name / "config.py").unlink(missing_ok=True)  # code: nobody runs it
    recorded = {"tokens": tokens, "states": states, "logits": torch.stack(blocks)}
    # The library keeps no embedding, since it is the target's.
    recorded |= {"embed": model.embed_tokens.weight.detach(), "head": model.lm_head.weight.detach()}
    save_file({key: value.contiguous() for key, value in recorded.items()}, out / name / "recorded.safetensors")


def _drafter(layer: dict[str, Any], flags: dict[str, Any]) -> Any:
    library, dflash = import_module("speculators"), import_module("speculators.models.dflash")
    greedy = import_module("speculators.proposals.greedy").GreedyTokenProposalConfig
    sizes = {
        "vocab_size": VOCABULARY,
        "hidden_size": HIDDEN,
        "intermediate_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 16,
        "max_position_embeddings": 256,
        "rms_norm_eps": 1e-2,
    }
    layers = AutoConfig.for_model("qwen3", **sizes | layer)
    layers._attn_implementation = "eager"
    config = dflash.DFlashSpeculatorConfig(
        transformer_layer_config=layers,
        aux_hidden_state_layer_ids=TAPS,
        block_size=BLOCK,
        mask_token_id=MASK,
        speculators_config=library.SpeculatorsConfig(
            algorithm="dflash",
            proposal_methods=[greedy(speculative_tokens=BLOCK - 1)],
            default_proposal_method="greedy",
            verifier=library.VerifierConfig(name_or_path=None, architectures=["LlamaForCausalLM"]),
        ),
        **{"draft_vocab_size": DRAFTED} | flags,
    )
    return import_module("speculators.models.dflash.core").DFlashDraftModel(config).float().eval()


if __name__ == "__main__":
    for case, settings in CASES.items():
        record(Path(sys.argv[1]), case, **settings)
