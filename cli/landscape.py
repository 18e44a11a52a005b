"""`landscape`: measures what every method's first step would have accepted at every position of a text."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from analysis.landscape import measure_landscape
from decoding.default_model import best_model
from decoding.engine import Engine
from decoding.errors import ParamError
from decoding.trace import read_trace
from decoding.types import JSON

from .arguments import add_json_flag, add_model_flags, clean, load_engine, names_in, read_text, whole
from .paint import Paint, print_report, visible
from .progress import ProgressBar
from .recorded import engine_of

HELP = "show how many guesses of each method the target would accept at every position of a text"
EXAMPLE = 'python -m decoding landscape --prompt "Who wrote Hamlet?" --write 40 --methods prompt_lookup,medusa'
_MOST = 9  # most accepted guesses in a digit
_SHADES = ("", "24", "31", "37", "43", "42", "41", "40", "46", "118")  # of 256 colours, by the digit


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    add_model_flags(parser)
    parser.set_defaults(model=None)  # with --from it is the trace's
    text = parser.add_argument_group("text").add_mutually_exclusive_group(required=True)
    text.add_argument("--prompt", metavar="TEXT")
    text.add_argument("--prompt-file", metavar="FILE", help="text file of at most 1 MB")
    text.add_argument(
        "--from", dest="origin", metavar="TRACE", help="use the new text of a trace written by run --trace"
    )
    parser.add_argument(
        "--write",
        metavar="N",
        help="answer the prompt with N tokens and measure these (default: measure the prompt itself)",
    )
    parser.add_argument("--methods", metavar="A,B", help="methods (default: all that can run)")
    parser.add_argument("--max-new-tokens", default="128", metavar="N", help="tokens that a step may write at most")
    add_json_flag(parser)


def main(arguments: argparse.Namespace) -> int:
    """Measure and report."""
    budget = whole("--max-new-tokens", arguments.max_new_tokens, 1, 1_000_000)
    written = 0 if arguments.write is None else whole("--write", arguments.write, 1, 1_000_000)
    methods = None if arguments.methods is None else names_in(arguments.methods)
    engine, ids, first = _text(arguments, written)
    with ProgressBar() as progress:
        landscape = measure_landscape(engine, ids, methods, first=first, max_new_tokens=budget, progress=progress)
    print_report(landscape, arguments.json, _picture)
    return 0


def _text(arguments: argparse.Namespace, written: int) -> tuple[Engine, Sequence[int], int]:
    """Return the engine, the text, and the first position to measure."""
    if arguments.origin is not None:
        if written:
            raise ParamError("--write answers a prompt: leave it out with --from")
        trace = read_trace(arguments.origin)
        engine = engine_of(arguments, trace)
        return engine, [*trace.header.prompt, *trace.ids], len(trace.header.prompt)
    arguments.model = arguments.model or best_model()
    given = arguments.prompt_file
    text = clean(arguments.prompt) if given is None else read_text(given, "prompt file")
    engine = load_engine(arguments)
    if not written:
        return engine, engine.encode(text), 1
    with ProgressBar() as progress:
        progress("writing the text", 0.0)
        run = engine.decode(engine.as_turn(text), max_new_tokens=written, record="off")
        for _ in run:
            progress("writing the text", len(run.ids) / written)
    return engine, [*run.header.prompt, *run.ids], len(run.header.prompt)


def _picture(paint: Paint, landscape: dict[str, JSON]) -> list[str]:
    """Draw a row of digits for every method, under the text."""
    names = [one["name"] for one in landscape["methods"]]
    head = max(map(len, names), default=0)
    width = paint.width - head - 3
    places = range(landscape["first"], len(landscape["tokens"]))
    lines = [paint.bold(f"{'method':{head}}  {'mean':>5}  {'guessed':>8}  settings")]
    for one in landscape["methods"]:
        mean = "-" if one["mean_accepted"] is None else f"{one['mean_accepted']:.2f}"
        lines.append(
            f"{one['name']:{head}}  {mean:>5}  {one['guessed']:>4}/{len(places):<3}  {one['settings']}".rstrip()
        )
    for start in range(0, len(places), width):
        part = places[start : start + width]
        text = "".join(landscape["texts"][str(landscape["tokens"][place])] for place in part)
        lines += ["", paint.dim(" ".join(visible(text).split())[: paint.width])]
        for one in landscape["methods"]:
            cells = one["accepted"][start : start + width]
            lines.append(f"{one['name']:{head}}  " + "".join(_cell(paint, count) for count in cells))
    greedy, seconds = landscape["greedy"], landscape["seconds"]
    lines += ["", paint.dim("one digit per token of the text: guesses that a run's first step there accepts")]
    lines.append(paint.dim(f"{greedy} of {len(places)} tokens are the target's own choice; {seconds:.1f} s"))
    return lines


def _cell(paint: Paint, count: int | None) -> str:
    if not count:
        return " " if count is None else "·"
    digit = min(count, _MOST)
    return paint(str(digit), "1" if digit > 1 else "", _SHADES[digit])
