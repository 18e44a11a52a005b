"""`demo`: decodes one prompt with every method, and marks where the steps end."""

from __future__ import annotations

import argparse
import sys
import textwrap

from analysis.tuned import tuned_params
from decoding import embedded, smollm2
from decoding.default_model import best_model
from decoding.engine import Engine, Result
from decoding.loader import load
from decoding.methods import METHODS
from decoding.native.build import library
from decoding.types import JSON

from .paint import KINDS, Paint, kind_of, one_line
from .progress import ProgressBar
from .stream import Piece, PieceCutter
from .window import window_and_mask

HELP = "watch every method write the same text, with SmolLM2 if it is on this machine, else with pocket"
EXAMPLE = "python -m decoding demo"
_READ = (
    "How to read it: │ ends a step, one forward pass of the target. All but the last token of a step were guessed "
    "beforehand and confirmed by the target. The texts are equal, token by token: guesses change how fast a "
    "text comes, never what it is."
)
_POCKET_PROMPT = (
    "Write a Python function that takes a list of numbers and returns each number times 2. Call it with [3, 1, 4]."
)
_PROMPTS = {embedded.TARGET: (embedded.NOTE, _POCKET_PROMPT), smollm2.NAME: (smollm2.NOTE, smollm2.PROMPT)}
_TOKENS = 96
_PARAMS: dict[str, dict[str, JSON]] = {"lookahead": {"W": 6, "N": 4, "G": 6}}  # a window that fits on a page


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add no flags: the command has none."""


def main(arguments: argparse.Namespace) -> int:
    """Run every method and draw its text and steps."""
    paint = Paint.for_stream(sys.stdout)
    name = best_model()
    note, text = _PROMPTS[name]
    with ProgressBar() as progress:  # without compiled code, texts of methods may diverge at near-ties in bfloat16
        engine = load(name, device="cpu", dtype=None if library() else "float32", progress=progress)
    print(paint.fit(paint.bold("Specscope") + " · every method writes the same text, in fewer steps"))
    model = f"model:  {engine.model.card.name}, {note}"
    print(paint.dim(textwrap.fill(model, paint.width, subsequent_indent=" " * 8)))
    print(textwrap.fill(f"prompt: {text}", paint.width, subsequent_indent=" " * 8) + "\n")
    methods = [method for method in METHODS if engine.lacks(method) is None]
    params = tuned_params(engine, methods) | _PARAMS
    prompt = engine.as_turn(text)
    results = {
        method: engine.generate(prompt, method, params=params.get(method), max_new_tokens=_TOKENS) for method in methods
    }
    slowest = max(result.summary.steps for result in results.values())
    for name, result in results.items():
        print(paint.fit(_head(paint, name, result, slowest)))
        print(paint.fit("\n".join(_lines(paint, engine, result))) + "\n")
    assert len({result.ids for result in results.values()}) == 1, "a method changed the output"
    print(paint.fit(_legend(paint, list(results.values()))))
    if "lookahead" in results:
        step = max(results["lookahead"].trace.steps, key=lambda step: (step.accepted, len(step.panel["guesses"])))
        print("\n" + paint.fit(window_and_mask(paint, step, engine.codec)))
    return 0


def _head(paint: Paint, name: str, result: Result, slowest: int) -> str:
    """Format a method's line of numbers; the bar is as long as the number of its steps."""
    summary = result.summary
    bar = "█" * max(1, round((paint.width - 54) * summary.steps / slowest))
    numbers = f"{summary.steps:3} steps {summary.mean_acceptance_length:6.2f} tokens/step"
    return f"{paint.bold(f'{name:16}')}{numbers}  {paint(bar, colour='245')}"


def _lines(paint: Paint, engine: Engine, result: Result) -> list[str]:
    """Format the text with a stroke after every step, broken to the terminal's width."""
    pieces, lines, line, used = PieceCutter(engine.codec, result.trace.header.prompt), list[str](), "", 0
    for step in result.trace.steps:
        for piece in [*pieces.of(step), Piece("│", "")]:
            text = one_line(piece.text)
            if used + len(text) > paint.width - 4:
                lines.append(line)
                line, used, text = "", 0, text.lstrip(" ")
            stroke = piece.text == "│" and not piece.kind
            line += paint.dim(text) if stroke else paint.guess(text, piece.kind) if piece.kind else text
            used += len(text)
    return [f"  {text}" for text in (*lines, line)]


def _legend(paint: Paint, results: list[Result]) -> str:
    """Explain how to read the lines."""
    sources = {
        kind_of(step.sources[node]) for result in results for step in result.trace.steps for node in step.path[1:]
    }
    lines = textwrap.wrap(_READ, paint.width)
    if paint.styles:
        lines.append("")
        lines += [f"  {paint.guess(f' {kind} ', kind)} {KINDS[kind][2]}" for kind in KINDS if kind in sources]
    return "\n".join(lines)
