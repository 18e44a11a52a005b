"""Speed on the CPU against transformers' `generate` on the same weights: `make bench`.

A Mistral-shaped model of 8 layers and width 384 with random weights, 256 tokens of context, two threads, greedy.
All figures of a table come from one process, measured in turn; quote the ratios, not the milliseconds.
"""

from __future__ import annotations

import statistics
from functools import partial
from typing import Any

import torch
import transformers

from analysis.cost.passes import step_ms
from decoding.codec import Codec
from decoding.engine import Engine
from decoding.model.loading import decoder_of

from .measure import (
    conditions,
    engine_ms,
    engine_steps,
    flags,
    in_turn,
    publish,
    ratio,
    table,
    transformers_ms,
)

PROMPT, TOKENS, ROUNDS = 256, 96, 7
NODES = (1, 2, 4, 8, 16, 32, 64, 120)
DTYPES = {"bf16": torch.bfloat16, "fp32": torch.float32}


def shape(window: int | None) -> transformers.MistralConfig:
    """Configure the benchmark's model."""
    return transformers.MistralConfig(
        vocab_size=4096,
        hidden_size=384,
        intermediate_size=1024,
        num_hidden_layers=8,
        num_attention_heads=8,
        num_key_value_heads=4,
        max_position_embeddings=2048,
        sliding_window=window,
    )


def models(window: int | None) -> dict[str, tuple[Any, Engine]]:
    """Make transformers' model and our engine on the same random weights, in each dtype."""
    pairs = {}
    for name, dtype in DTYPES.items():
        torch.manual_seed(0)
        model = transformers.MistralForCausalLM(shape(window)).eval().to(dtype)
        pairs[name] = (model, Engine(decoder_of(model), Codec()))
    return pairs


def against_transformers(pairs: dict[str, tuple[Any, Engine]], ids: list[int]) -> str:
    """Compare autoregressive decoding, ours against theirs, each in both dtypes."""
    timers = {}
    for name, (model, engine) in pairs.items():
        timers[f"ours {name}"] = partial(engine_ms, engine, ids, TOKENS)
        timers[f"transformers {name}"] = partial(transformers_ms, model, ids, TOKENS)
    took = in_turn(ROUNDS, timers)
    middle = {name: statistics.median(values) for name, values in took.items()}
    ours = min((name for name in middle if name.startswith("ours")), key=middle.__getitem__)
    theirs = min((name for name in middle if not name.startswith("ours")), key=middle.__getitem__)
    rows = [["autoregressive", "ms/token", "tokens/s"]]
    rows += [[name, f"{value:.2f}", f"{1000 / value:.0f}"] for name, value in middle.items()]
    rows += [
        [f"best against best ({theirs} / {ours})", f"{ratio(took[theirs], took[ours]):.2f}x", "bar 2.0x"],
        ["fp32 against fp32", f"{ratio(took['transformers fp32'], took['ours fp32']):.2f}x", "bar 1.5x"],
    ]
    return table(rows)


def step_costs(pairs: dict[str, tuple[Any, Engine]], ids: list[int]) -> str:
    """Measure c(T), the cost of a step of T nodes in steps of one."""
    timers = {}
    for name, (_, engine) in pairs.items():
        for nodes in NODES:
            timers[f"{name} {nodes}"] = partial(step_ms, engine, ids, 24, nodes)
    took = in_turn(ROUNDS, timers)
    rows = [["nodes in a step", *map(str, NODES)]]
    for name in pairs:
        rows.append([f"c(T) {name}", *(f"{ratio(took[f'{name} {n}'], took[f'{name} 1']):.2f}" for n in NODES)])
    return table(rows)


def overheads(engine: Engine, ids: list[int]) -> str:
    """Measure the engine's overheads."""

    def outside() -> float:
        steps = engine_steps(engine, ids, TOKENS)
        return statistics.median(step.timing.total_ms - step.timing.forward_ms for step in steps)

    levels = {level: partial(engine_ms, engine, ids, TOKENS, record=level) for level in ("off", "light", "full")}
    took = in_turn(2 * ROUNDS, levels)
    return table(
        [
            ["engine's own work, autoregressive bf16", "measured", "bar"],
            ["outside the forward pass, ms per step", f"{statistics.median(outside() for _ in range(5)):.3f}", "0.35"],
            ["light recording against none", f"{100 * (ratio(took['light'], took['off']) - 1):+.1f}%", "+3%"],
            ["full recording against none", f"{100 * (ratio(took['full'], took['off']) - 1):+.1f}%", ""],
        ]
    )


def report() -> str:
    """Measure all tables."""
    ids = torch.randint(0, 4096, (PROMPT,), generator=torch.Generator().manual_seed(1)).tolist()
    parts = [
        conditions("CPU", f"{torch.get_num_threads()} threads", packages=("torch", "transformers"))
        + ". Mistral shape, 8 layers, width 384, 8/4 heads, vocabulary 4096, "
        + f"{PROMPT} tokens of context, random weights."
    ]
    pairs = models(window=None)
    parts += [against_transformers(pairs, ids), step_costs(pairs, ids), overheads(pairs["bf16"][1], ids)]
    parts += ["With a sliding window of 256, past which the rolling buffer wraps:"]
    parts += [against_transformers(models(window=256), ids)]
    return "\n\n".join(parts)


def main() -> None:
    """Print the tables, and write them to a file if one is named."""
    parser = flags("cpu", __doc__)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    transformers.logging.set_verbosity_error()
    publish("cpu", report(), arguments.out)


if __name__ == "__main__":
    main()
