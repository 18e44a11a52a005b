"""Speed on a CUDA device against transformers' `generate` on the same weights: `make bench-gpu`.

Random weights in the shapes of a 1B and a 7B model, bf16, greedy. Beside tokens/s it reports c(T), the cost of a
step of T nodes in steps of one, and the share of the device's measured copy bandwidth that reading the weights and
the cache once a step amounts to.
"""

from __future__ import annotations

import argparse
import datetime
import statistics
from functools import partial
from typing import Any

import torch
import transformers

from decoding.codec import Codec
from decoding.engine import Engine
from decoding.model.decoder import Decoder

from .measure import engine_ms, in_turn, publish, ratio, step_ms, table, transformers_ms

TOKENS, ROUNDS = 64, 5
CONTEXTS = (1024, 4096)
NODES = (1, 2, 4, 8, 16, 32, 64, 128)
SHAPES = {
    "1B": transformers.LlamaConfig(
        vocab_size=128_256,
        hidden_size=2048,
        intermediate_size=8192,
        num_hidden_layers=16,
        num_attention_heads=32,
        num_key_value_heads=8,
        max_position_embeddings=16_384,
        tie_word_embeddings=True,
    ),
    "7B": transformers.MistralConfig(
        vocab_size=32_000,
        hidden_size=4096,
        intermediate_size=14_336,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=8,
        max_position_embeddings=16_384,
        sliding_window=None,
    ),
}


def random_model(config: Any) -> Any:
    """A model with random weights, made on the device."""
    torch.manual_seed(0)
    with torch.device("cuda"):
        return transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).eval()


def copy_bandwidth() -> float:
    """Bytes per second that a large device-to-device copy reads and writes: the roof that decoding works under."""
    source = torch.empty(2**30, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    times = []
    for _ in range(20):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        target.copy_(source)
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) / 1000)
    return 2 * source.numel() / statistics.median(times)


def bytes_per_step(config: Any, context: int) -> int:
    """Weights and cache that one autoregressive step has to read, in bf16."""
    heads, width = config.num_key_value_heads, config.hidden_size // config.num_attention_heads
    attention = config.hidden_size * (2 * config.hidden_size + 2 * heads * width)
    layer = attention + 3 * config.hidden_size * config.intermediate_size
    weights = config.num_hidden_layers * layer + config.vocab_size * config.hidden_size
    return 2 * (weights + config.num_hidden_layers * context * 2 * heads * width)


def measure(name: str, config: Any, roof: float) -> str:
    """One shape's tables, at every context length."""
    model = random_model(config)
    engine = Engine(Decoder.from_transformers(model), Codec())
    speed = [["autoregressive", "context", "ours tok/s", "transformers tok/s", "ratio", "share of copy bandwidth"]]
    costs = [["c(T)", "context", *(f"T={nodes}" for nodes in NODES)]]
    for context in CONTEXTS:
        ids = torch.randint(0, config.vocab_size, (context,)).tolist()
        took = in_turn(
            ROUNDS,
            {
                "ours": partial(engine_ms, engine, ids, TOKENS),
                "theirs": partial(transformers_ms, model, ids, TOKENS),
            },
        )
        ours, theirs = (statistics.median(took[who]) for who in ("ours", "theirs"))
        share = bytes_per_step(config, context) / (ours / 1000) / roof
        gain = ratio(took["theirs"], took["ours"])
        speed.append([name, str(context), f"{1000 / ours:.1f}", f"{1000 / theirs:.1f}", f"{gain:.2f}x", f"{share:.0%}"])
        took = in_turn(ROUNDS, {str(n): partial(step_ms, engine, ids, 16, n) for n in NODES})
        costs.append([name, str(context), *(f"{ratio(took[str(n)], took['1']):.2f}" for n in NODES)])
    del model, engine
    torch.cuda.empty_cache()
    return table(speed) + "\n\n" + table(costs)


def report(names: list[str]) -> str:
    """All tables as Markdown."""
    roof = copy_bandwidth()
    head = (
        f"{torch.cuda.get_device_name()}, bf16, torch {torch.__version__}, transformers {transformers.__version__}, "
        f"{datetime.date.today()}; measured copy bandwidth {roof / 1e12:.2f} TB/s."
    )
    return "\n\n".join([head, *(measure(name, SHAPES[name], roof) for name in names)])


def main() -> None:
    """Print the tables, and write them to a file where one is named."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("--shapes", default="1B,7B", help="which shapes, separated by commas")
    parser.add_argument("--out", help="also write the tables to this file")
    arguments = parser.parse_args()
    names = arguments.shapes.split(",")
    if unknown := set(names) - SHAPES.keys():
        parser.error(f"unknown shape {min(unknown)!r}; choose from {', '.join(SHAPES)}")
    if not torch.cuda.is_available():
        parser.error("this benchmark needs a CUDA device; `make bench` measures the CPU")
    transformers.logging.set_verbosity_error()
    publish(report(names), arguments.out)


if __name__ == "__main__":
    main()
