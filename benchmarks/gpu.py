"""Speed on a CUDA device against transformers' `generate` on the same weights: `make bench-gpu`.

What steps cost is measured on random weights in the shapes of models of 1B, 7B and 13B parameters, bf16, greedy; what
methods gain, on SmolLM2 and pocket, whose texts are real. Every run has a prompt of another length: a kernel that plans
anew for each length must not look fast because its warm-up met the same one.
"""

from __future__ import annotations

import argparse
import datetime
import os
import statistics
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import torch
import transformers

from decoding import load
from decoding.bench.methods import bench
from decoding.bench.peers import PEERS
from decoding.codec import Codec
from decoding.embedded import suite as pocket_suite
from decoding.engine import Engine
from decoding.errors import SpecscopeError
from decoding.methods import METHODS
from decoding.model.captured import SAME_ROWS, VARIABLE
from decoding.model.decoder import Decoder
from decoding.prompts.tasks import ENGLISH, read_tasks, spread, suite
from decoding.types import Step

from .measure import engine_ms, engine_steps, in_turn, ratio, step_ms, table, transformers_ms

TOKENS, ROUNDS = 64, 5
CONTEXTS = (1024, 16_384)
NODES = (1, 8, 16, 32, 64, 121)
APART = 37  # tokens by which the prompts of two runs differ in length


def llama(vocabulary: int, width: int, inner: int, layers: int, heads: int, kv_heads: int, **more: Any) -> Any:
    """A configuration; weights are random."""
    return transformers.LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=width,
        intermediate_size=inner,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        max_position_embeddings=32_768,
        **more,
    )


SHAPES = {
    "tiny": llama(512, 64, 128, 2, 4, 2),  # to try the benchmark out
    "1B": llama(128_256, 2048, 8192, 16, 32, 8, tie_word_embeddings=True),
    "7B": llama(32_000, 4096, 14_336, 32, 32, 8),
    "13B": llama(32_000, 5120, 13_824, 40, 40, 40),
}


class Prompts:
    """Prompts of about so many tokens, each a little longer than the one before."""

    def __init__(self, vocabulary: int, tokens: int) -> None:
        self._ids = torch.randint(0, vocabulary, (tokens + 4096,)).tolist()
        self._lengths: Iterator[int] = count(tokens, APART)

    def next(self) -> list[int]:
        """The next one; its end differs from that of the others too."""
        length = next(self._lengths)
        return self._ids[:length]


def random_model(config: Any, device: str) -> Any:
    """A model with random weights, made on the device."""
    torch.manual_seed(0)
    with torch.device(device):
        return transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).eval()


def engine(model: Any, **settings: str) -> Engine:
    """Our engine on the same weights, with some settings in the environment."""
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    try:
        return Engine(Decoder.from_transformers(model), Codec())
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


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


def static_ms(model: Any, ids: list[int], tokens: int) -> float:
    """Milliseconds per token of `generate` with its static cache, which it compiles for: its fastest setting."""
    model.generation_config.cache_implementation = "static"
    try:
        return transformers_ms(model, ids, tokens)
    finally:
        model.generation_config.cache_implementation = None


def host_ms(steps: list[Step]) -> float:
    """Milliseconds of a step outside the target's pass, which the device times."""
    return statistics.median(step.timing.total_ms - step.timing.forward_ms for step in steps)


def launches(ours: Engine, ids: list[int]) -> float:
    """What the host gives the device to do in an autoregressive step: kernels, copies and graphs."""
    run = ours.decode(ids, max_new_tokens=32, end_tokens=(), record="off")
    for _ in range(16):  # the shape has been captured by then
        next(run)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as found:
        for _ in range(8):
            next(run)
    run.close()
    names = ("cudaLaunchKernel", "cudaGraphLaunch", "cudaMemcpyAsync", "cudaMemsetAsync", "cuLaunchKernel")
    return sum(event.name.startswith(names) for event in found.events()) / 8


def speed(model: Any, config: Any, context: int, roof: float | None, peers: bool) -> list[str]:
    """A row: autoregressive decoding, ours against theirs and against the device."""
    prompts, plain = Prompts(config.vocab_size, context), engine(model)
    timers: dict[str, Callable[[], float]] = {
        "ours": lambda: engine_ms(plain, prompts.next(), TOKENS, record="off"),
        "eager": lambda: transformers_ms(model, prompts.next(), TOKENS),
    }
    if peers:
        timers["static"] = lambda: static_ms(model, prompts.next(), TOKENS)
    took = in_turn(ROUNDS, timers)
    ours = statistics.median(took["ours"])
    against = [f"{ratio(took[peer], took['ours']):.2f}x" if peer in took else "" for peer in ("eager", "static")]
    share = f"{bytes_per_step(config, context) / (ours / 1000) / roof:.0%}" if roof else ""
    host = host_ms(engine_steps(plain, prompts.next(), TOKENS, record="off"))
    given = f"{launches(plain, prompts.next()):.0f}" if roof else ""
    return [str(context), f"{1000 / ours:.1f}", share, *against, f"{host:.2f}", given]


def costs(model: Any, config: Any, context: int) -> list[list[str]]:
    """Rows: c(T), as usual, without graphs, and with the same rows in every pass."""
    prompts, rows = Prompts(config.vocab_size, context), []
    kinds = {"": {}, f"{VARIABLE}=off": {VARIABLE: "off"}, f"{SAME_ROWS}=128": {SAME_ROWS: "128"}}
    engines = {kind: engine(model, **settings) for kind, settings in kinds.items()}
    timers = {
        f"{kind} {nodes}": lambda kind=kind, nodes=nodes: step_ms(engines[kind], prompts.next(), 16, nodes)
        for kind in kinds
        for nodes in NODES
    }
    took = in_turn(max(2, ROUNDS // 2), timers)  # type: ignore[arg-type]  # the defaults are bound
    for kind in kinds:
        figures = [f"{ratio(took[f'{kind} {nodes}'], took[' 1']):.2f}" for nodes in NODES]
        rows.append([str(context), kind or "as usual", *figures])
    return rows


def measure(name: str, device: str, roof: float | None, contexts: tuple[int, ...] = CONTEXTS) -> str:
    """One shape's tables."""
    config = SHAPES[name]
    model = random_model(config, device)
    head = [name, "ours, tokens/s", "share of copy bandwidth", "generate", "static and compiled"]
    speeds = [[*head, "host, ms a step", "launches a step"]]
    cost = [[f"c(T) of {name}", "", *(f"T={nodes}" for nodes in NODES)]]
    for context in contexts:
        speeds.append(speed(model, config, context, roof, peers=roof is not None))
        cost += costs(model, config, context)
    del model
    if device == "cuda":
        torch.cuda.empty_cache()
    return table(speeds) + "\n\n" + table(cost)


def gains(name: str, device: str, limit: int) -> str:
    """What every method gains on a real model, with the papers' settings, beside transformers' own modes."""
    try:
        ours = load(name, device=device, dtype="bfloat16")
    except SpecscopeError as error:
        return f"{name}: {error}"
    methods = [method for method in METHODS if ours.lacks(method) is None]
    tasks = spread(read_tasks(pocket_suite() if name == "pocket" else suite(ENGLISH)), limit)
    wanted = [peer for peer in PEERS if peer.startswith("transformers")]
    peers = {peer: PEERS[peer](ours, name, None) for peer in wanted}
    found = bench(ours, tasks, methods, peers=peers, max_new_tokens=96)
    rows = [[f"{name}, {found['dtype']}", "tokens a step", "against autoregressive", "cost of a step", "same texts"]]
    for row in found["rows"]:
        gain, cost = row["speedup_vs_autoregressive"], row["step_cost"]
        figures = [f"{row['mean_acceptance_length']:.2f}", f"{gain:.2f}x", f"{cost:.2f}", f"{row['same_texts']:.0%}"]
        rows.append([row["method"], *figures])
    rows += [[row["name"], "", f"{row['speedup_vs_autoregressive']:.2f}x", "", ""] for row in found["peers"]]
    return table(rows)


def main() -> None:
    """Print the tables, and add them to a file where one is named."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("--shapes", default="1B,7B", help="which shapes, separated by commas: tiny, 1B, 7B, 13B")
    parser.add_argument("--models", default="pocket,smollm2", help="which real models; none for none")
    parser.add_argument("--limit", type=int, default=7, help="questions for a real model")
    parser.add_argument("--out", help="add the tables to this file too, part by part")
    arguments = parser.parse_args()
    names = [name for name in arguments.shapes.split(",") if name not in ("", "none")]
    if unknown := set(names) - SHAPES.keys():
        parser.error(f"unknown shape {min(unknown)!r}; choose from {', '.join(SHAPES)}")
    if not torch.cuda.is_available():
        parser.error("this benchmark needs a CUDA device; `make bench` measures the CPU")
    transformers.logging.set_verbosity_error()
    roof = copy_bandwidth()

    def say(part: str) -> None:
        """What is measured is not lost if a later part fails, or takes too long."""
        print(part, end="\n\n", flush=True)
        if arguments.out:
            with Path(arguments.out).open("a", encoding="utf-8") as file:
                file.write(part + "\n\n")

    say(
        f"{torch.cuda.get_device_name()}, bf16, torch {torch.__version__}, transformers {transformers.__version__}, "
        f"{datetime.date.today()}; measured copy bandwidth {roof / 1e12:.2f} TB/s."
    )
    for name in arguments.models.split(","):
        if name not in ("", "none"):
            say(gains(name, "cuda", arguments.limit))
    for name in names:
        say(measure(name, "cuda", roof))


if __name__ == "__main__":
    main()
