"""Records what the library speculators says with tiny random drafters, for `test_eagle.py`.

The library is no dependency of the tests: it asks for an older transformers. In an environment where it can be
imported, `python tests/parts/record_eagle.py tests/golden/eagle` writes the folders anew: each is a drafter as the
library saves it, and beside it tokens, tapped states and the logits of every step of writing on.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from transformers import AutoConfig

HIDDEN, VOCABULARY, DRAFTED = 16, 40, 12
TAPS, TOKENS, STEPS = [0, 2, 3], 20, 4
_LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
    "rope_theta": 1e4,
}
_WINDOW = {"layer_types": ["sliding_attention"], "sliding_window": 6, "use_sliding_window": True}
CASES: dict[str, dict[str, Any]] = {
    "llama": {},
    "llama-residual": {"norm_before_residual": True},
    "llama-before-fc": {"norm_before_fc": True, "norm_output": True},
    "llama-states": {"fc_norm": True, "norm_before_residual": True, "norm_output": True},
    "llama-whole": {"draft_vocab_size": VOCABULARY, "layer": {"attention_bias": True}},
    "llama-window": {"layer": _WINDOW},
    "llama-rope": {"layer": {"rope_parameters": _LLAMA3}},
    "qwen3": {"norm_before_residual": True},
    "qwen3-all": {"norm_before_residual": True, "norm_before_fc": True, "norm_output": True},
    "qwen3-states": {"fc_norm": True},
}


def record(out: Path, name: str, layer: dict[str, Any] | None = None, **flags: Any) -> None:
    """Write one folder."""
    source = torch.Generator().manual_seed(sum(map(ord, name)))
    model = _drafter(name.split("-", maxsplit=1)[0], layer or {}, flags)
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
    logits: list[torch.Tensor] = []
    hook = model.lm_head.register_forward_hook(lambda module, inputs, output: logits.append(output[0]))
    with torch.no_grad():
        document = torch.zeros(1, TOKENS, dtype=torch.long)
        model(hidden_states=states[None], input_ids=tokens[None], document_ids=document, ttt_steps=STEPS)
    hook.remove()
    model.save_pretrained(out / name)
    (out / name / "config.py").unlink(missing_ok=True)  # code: nobody runs it
    save_file({"tokens": tokens, "states": states, "logits": torch.stack(logits)}, out / name / "recorded.safetensors")


def _drafter(family: str, layer: dict[str, Any], flags: dict[str, Any]) -> Any:
    library, eagle3 = import_module("speculators"), import_module("speculators.models.eagle3")
    greedy = import_module("speculators.proposals.greedy").GreedyTokenProposalConfig
    sizes = {
        "vocab_size": VOCABULARY,
        "hidden_size": HIDDEN,
        "intermediate_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 16,
        "max_position_embeddings": 256,
        "rms_norm_eps": 1e-2,
    }
    one = AutoConfig.for_model(family, **sizes | layer)
    one._attn_implementation = "eager"
    config = eagle3.Eagle3SpeculatorConfig(
        transformer_layer_config=one,
        eagle_aux_hidden_state_layer_ids=TAPS,
        speculators_config=library.SpeculatorsConfig(
            algorithm="eagle3",
            proposal_methods=[greedy(speculative_tokens=STEPS)],
            default_proposal_method="greedy",
            verifier=library.VerifierConfig(name_or_path=None, architectures=["LlamaForCausalLM"]),
        ),
        **{"draft_vocab_size": DRAFTED} | flags,
    )
    return eagle3.Eagle3DraftModel(config).float().eval()


if __name__ == "__main__":
    for case, settings in CASES.items():
        record(Path(sys.argv[1]), case, **settings)
