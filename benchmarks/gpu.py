"""Measure speed on a CUDA device against transformers' `generate` on the same weights: `make bench-gpu`.

The cost of steps is measured on random weights in usual shapes, bf16, greedy; the gain of methods, on real models.
Every run has a prompt of a different length: a kernel that plans for each new length must not look fast because its
warm-up had the same one. A part that fails is named, and the next one begins; none begins after `--seconds`.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
import transformers

from analysis.bench.methods import bench
from analysis.bench.peers import PEERS
from analysis.cost.passes import WrongTree, step_ms, wrong_guesses
from analysis.prompts.tasks import ENGLISH, read_tasks, spread, suite
from decoding import load
from decoding.engine import Engine
from decoding.gpu.choice import KERNELS, OVERLAP, PREFERRED
from decoding.gpu.choice import VARIABLE as FUSED
from decoding.methods import METHODS
from decoding.model.captured import SAME_ROWS
from decoding.model.decoder import Decoder
from decoding.model.graphs import VARIABLE
from decoding.model.loading import decoder_of

from .gpu_probe import probe
from .gpu_shapes import SHAPES, Prompts, bytes_per_step, copy_bandwidth, engine, parameters, random_model
from .measure import conditions, engine_ms, engine_steps, in_turn, ratio, table, transformers_ms

TOKENS, ROUNDS = 64, 3
NODES = (1, 8, 16, 32, 64, 121)
_PACKAGES = ("torch", "transformers")
SETTINGS = {
    "as usual": {},
    "no kernels of ours": {FUSED: "off"},
    "all kernels of ours": {FUSED: "all"},
    "overlapping launches": {FUSED: ",".join(sorted({*PREFERRED, OVERLAP}))},
    "all overlapping": {FUSED: ",".join((*KERNELS, OVERLAP))},
    "no graphs": {VARIABLE: "off"},
    "equal rows": {SAME_ROWS: "128"},
}


@dataclass
class DeviceReport:
    """The measurements so far: printed at once, and written to two files if they are named."""

    out: str | None
    seconds: float
    begin: float = field(default_factory=time.monotonic)
    parts: list[dict[str, Any]] = field(default_factory=list)
    costs: list[dict[str, Any]] = field(default_factory=list)  # c(T) of each shape and context, for assets/costs/
    summary: list[str] = field(default_factory=list)

    def say(self, text: str) -> None:
        """Print a part of the report."""
        print(text, end="\n\n", flush=True)
        if self.out:
            with Path(f"{self.out}.md").open("a", encoding="utf-8") as file:
                file.write(text + "\n\n")

    def part(self, name: str, measure: Callable[[], tuple[str, dict[str, Any]]]) -> dict[str, Any] | None:
        """Measure one part; None if it fails, or if the time is up."""
        if time.monotonic() - self.begin > self.seconds:
            self.say(f"{name}: left out, the time is up.")
            return None
        begin = time.monotonic()
        try:
            text, figures = measure()
        except Exception as error:  # of any kind: the other parts are measured anyway
            self.say(f"{name}: failed: {type(error).__name__}: {' '.join(str(error).split())[:400]}")
            return None
        finally:
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
        self.parts.append({"name": name, "took": round(time.monotonic() - begin, 1), **figures})
        self.say(f"### {name}\n\n{text}")
        if self.out:
            Path(f"{self.out}.json").write_text(json.dumps(self.parts, indent=1), encoding="utf-8")
        return figures


def static_ms(model: Any, ids: list[int], tokens: int) -> float:
    """Time `generate` compiled with its static cache, its fastest setting, in milliseconds per token."""
    model.generation_config.cache_implementation = "static"
    try:
        return transformers_ms(model, ids, tokens)
    finally:
        model.generation_config.cache_implementation = None


def host_ms(ours: Engine, ids: list[int]) -> float:
    """Return the median milliseconds of a step with a guess, less the target's pass as timed by the device."""
    steps = engine_steps(ours, ids, TOKENS, method=wrong_guesses([WrongTree(1, 1)]), record="off")
    return statistics.median(step.timing.total_ms - step.timing.forward_ms for step in steps)


def graphs_failed(ours: Engine) -> str:
    """Return the reason why steps were not captured, as text of the report; empty if they were."""
    recorder = ours.model.recorder if isinstance(ours.model, Decoder) else None
    return f" **Graphs failed: {recorder.failed[:200]}**" if recorder and recorder.failed else ""


def speed(
    engines: dict[str, Engine], model: Any, config: Any, context: int, roof: float | None, peers: Sequence[str]
) -> tuple[str, dict[str, Any]]:
    """Compare our autoregressive decoding with transformers' and with the device's bandwidth."""
    prompts = Prompts(config.vocab_size, context)

    def timer(ours: Engine) -> Callable[[], float]:
        return lambda: engine_ms(ours, prompts.next(), TOKENS, record="off")

    timers = {name: timer(ours) for name, ours in engines.items()}
    if "eager" in peers:
        timers["transformers generate"] = lambda: transformers_ms(model, prompts.next(), TOKENS)
    if "static" in peers:
        timers["transformers, static and compiled"] = lambda: static_ms(model, prompts.same, TOKENS)
    took = in_turn(ROUNDS, timers)
    base, size = took["as usual"], bytes_per_step(config, context)
    rows, rates = [["", "tokens/s", "share of copy bandwidth", "ours against it"]], dict[str, float]()
    for name, times in took.items():
        rates[name] = rate = 1000 / statistics.median(times)
        share = f"{size * rate / roof:.0%}" if roof else ""
        rows.append([name, f"{rate:.1f}", share, f"{ratio(times, base):.2f}x"])
    host = host_ms(engines["as usual"], prompts.next())
    note = f"Host, outside the pass of a step with a guess: {host:.2f} ms.{graphs_failed(engines['as usual'])}"
    return f"{table(rows)}\n\n{note}", {"tokens_per_second": rates, "bytes": size, "context": context, "host_ms": host}


def costs(engines: dict[str, Engine], config: Any, context: int, nodes: Sequence[int]) -> tuple[str, dict[str, Any]]:
    """Measure c(T), the cost of steps of T nodes, relative to one node in the usual settings."""
    prompts = Prompts(config.vocab_size, context)

    def timer(ours: Engine, count: int) -> Callable[[], float]:
        return lambda: step_ms(ours, prompts.next(), 16, count)

    timers = {f"{name} {count}": timer(ours, count) for name, ours in engines.items() for count in nodes}
    took = in_turn(ROUNDS, timers)
    rows, figures = [["c(T)", "T=1, ms", *(f"T={count}" for count in nodes[1:])]], {}
    for name in engines:
        single = statistics.median(took[f"{name} {nodes[0]}"])
        figures[name] = [ratio(took[f"{name} {count}"], took[f"as usual {nodes[0]}"]) for count in nodes]
        rows.append([name, f"{single:.3f}", *(f"{each:.2f}" for each in figures[name][1:])])
    failures = "".join(graphs_failed(ours) for ours in engines.values())
    took_ms = [round(statistics.median(took[f"as usual {count}"]), 4) for count in nodes]
    return table(rows) + failures, {"nodes": [*nodes], "context": context, "costs": figures, "milliseconds": took_ms}


def shape(name: str, arguments: argparse.Namespace, roof: float | None, report: DeviceReport) -> None:
    """Measure one shape."""
    config, device = SHAPES[name], arguments.device
    model = random_model(config, device)
    decoder = decoder_of(model)
    engines = {
        kind: engine(decoder, SETTINGS[kind], model if FUSED in SETTINGS[kind] else None) for kind in arguments.settings
    }
    if not arguments.peers:
        model = None
    at = f"{name}, {decoder.attention}"
    for context in arguments.contexts:
        measure_speed = partial(speed, engines, model, config, context, roof, arguments.peers)
        figures = report.part(f"Speed: {at}, {context} tokens", measure_speed)
        measure_costs = partial(costs, engines, config, context, arguments.nodes)
        c = report.part(f"Cost: {name}, {context} tokens", measure_costs)
        if c:
            report.costs.append(
                {
                    "shape": name,
                    "parameters": parameters(config),
                    "context": context,
                    "rows": c["nodes"],
                    "milliseconds": c["milliseconds"],
                }
            )
        if figures and c:
            rate = figures["tokens_per_second"]["as usual"]
            share = f", {figures['bytes'] * rate / roof:.0%} of copy bandwidth" if roof else ""
            few = ", ".join(
                f"c({count}) {cost:.2f}" for count, cost in zip(c["nodes"], c["costs"]["as usual"], strict=True)
            )
            report.summary.append(f"{name} at {context}: {rate:.0f} tokens/s{share}; {few}")
    if arguments.probe:
        report.part(f"Kernels of a pass: {name}", lambda: probe(decoder, arguments.contexts[0], device))


def gains(name: str, device: str, limit: int, eager: bool = True) -> tuple[str, dict[str, Any]]:
    """Measure every method's gain on a real model in the papers' settings; with `eager`, transformers' modes too."""
    ours = load(name, device=device, dtype="bfloat16")
    methods = [method for method in METHODS if ours.lacks(method) is None]
    tasks = spread(read_tasks(suite("pocket" if name == "pocket" else ENGLISH)), limit)
    peers = {peer: PEERS[peer](ours, name, None) for peer in PEERS if eager and peer.startswith("transformers")}
    measured = bench(ours, tasks, methods, peers=peers, max_new_tokens=96)
    rows = [[f"{name}, {measured['dtype']}", "tokens a step", "against autoregressive", "cost of a step", "same texts"]]
    for row in measured["rows"]:
        gain, cost = row["speedup_vs_autoregressive"], row["step_cost"]
        figures = [f"{row['mean_acceptance_length']:.2f}", f"{gain:.2f}x", f"{cost:.2f}", f"{row['same_texts']:.0%}"]
        rows.append([row["method"], *figures])
    rows += [[row["name"], "", f"{row['speedup_vs_autoregressive']:.2f}x", "", ""] for row in measured["peers"]]
    return table(rows), {"rows": measured["rows"], "peers": measured["peers"]}


def flags(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)

    def names(allowed: Sequence[str]) -> Callable[[str], list[str]]:
        def read(text: str) -> list[str]:
            chosen = [each for each in text.split(",") if each not in ("", "none")]
            if unknown := set(chosen) - {*allowed}:
                raise argparse.ArgumentTypeError(f"{min(unknown)!r} is not one of: {', '.join(allowed)}")
            return chosen

        return read

    def counts(text: str) -> list[int]:
        numbers = [int(each) for each in text.split(",")]
        if min(numbers) < 1:
            raise ValueError
        return numbers

    parser.add_argument("--shapes", type=names([*SHAPES]), default="135M,1B,7B", help=f"some of {','.join(SHAPES)}")
    parser.add_argument("--models", type=names(["pocket", "smollm2"]), default="pocket", help="pocket,smollm2 or none")
    parser.add_argument("--settings", type=names([*SETTINGS]), default=",".join([*SETTINGS][:2]))
    parser.add_argument("--peers", type=names(["eager", "static"]), default="eager", help="transformers' modes")
    parser.add_argument("--contexts", type=counts, default="1024", help="tokens of the prompts")
    parser.add_argument("--nodes", type=counts, default=",".join(map(str, NODES)), help="nodes of a step, 1 first")
    parser.add_argument("--limit", type=int, default=7, help="questions for a real model")
    parser.add_argument("--seconds", type=float, default=400.0, help="no part begins after so many")
    parser.add_argument("--probe", action="store_true", help="name the kernels of a pass, with their times")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda", help="cpu: a rehearsal, without bandwidth")
    parser.add_argument("--out", help="add the tables to OUT.md part by part, and the figures to OUT.json")
    parser.add_argument("--costs", help="the file for c(T), as assets/costs/ keeps it for named devices")
    arguments = parser.parse_args(argv)
    if arguments.device == "cuda" and not torch.cuda.is_available():
        parser.error("this benchmark needs a CUDA device; `make bench` measures the CPU")
    arguments.settings = [*dict.fromkeys(["as usual", *arguments.settings])]  # the base of every ratio
    return arguments


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, print and write the results."""
    arguments = flags(argv)
    transformers.logging.set_verbosity_error()
    report = DeviceReport(arguments.out, arguments.seconds)
    roof = copy_bandwidth(arguments.device)
    device = torch.cuda.get_device_name() if roof else "CPU, a rehearsal"
    measured = f"; measured copy bandwidth {roof / 1e12:.2f} TB/s" if roof else ""
    report.say(conditions(device, "bf16", packages=_PACKAGES) + f"{measured}.")
    for name in arguments.shapes:
        shape(name, arguments, roof, report)
    for name in arguments.models:
        measure_gains = partial(gains, name, arguments.device, arguments.limit, "eager" in arguments.peers)
        report.part(f"Methods: {name}", measure_gains)
    if arguments.costs and report.costs:
        measured_here = {
            "device": device,
            "date": str(datetime.date.today()),
            "dtype": "bfloat16",
            "versions": ", ".join(f"{package} {version(package)}" for package in _PACKAGES),
            "fused": os.environ.get(FUSED, ""),
            "copy_bandwidth": roof,
            "shapes": report.costs,
        }
        Path(arguments.costs).write_text(json.dumps(measured_here, indent=1) + "\n", encoding="utf-8")
    report.say("\n".join(["### Summary", "", *report.summary]))


if __name__ == "__main__":
    main()
