"""`run`: decodes one prompt with one method, and shows the text while it is written."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from pathlib import Path

from decoding import embedded, smollm2, toy
from decoding.codec import Prompt
from decoding.default_model import best_model
from decoding.engine import Engine
from decoding.errors import ParamError
from decoding.processor import LONGEST
from decoding.ranks import START, Ranks
from decoding.request import LARGEST_STEP
from decoding.run import Run
from decoding.trace import TraceWriter, read_trace
from decoding.trace.metrics import survival
from decoding.trace.rescore import Rescore
from decoding.types import JSON

from .arguments import (
    add_json_flag,
    add_model_flags,
    check_place,
    clean,
    load_engine,
    pairs,
    read_ids,
    read_text,
    whole,
)
from .paint import Paint
from .progress import ProgressBar
from .recorded import engine_of
from .screen import RunScreen

HELP = "decode a prompt with one method and show the text and its metrics"
EXAMPLE = 'python -m decoding run --method lookahead --prompt "What is the capital of France?" --trace run.jsonl'
_SAMPLING = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty", "seed")
# For those who give none.
_PROMPTS = {"toy": toy.PROMPT, embedded.TARGET: embedded.PROMPT, smollm2.NAME: smollm2.PROMPT}
_METHOD, _NEW_TOKENS = "autoregressive", "128"
_BRANCH = ("step", "node", "token", "token_id", "keep")
# What a branch takes from the run that it comes from.
_OF_THE_RUN = (
    *("prompt", "prompt_file", "prompt_ids", "raw", "chat", "reference", "method", "param", "max_new_tokens", "stop"),
    *(*_SAMPLING, "prefill_chunk"),
)


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    add_model_flags(parser)
    parser.set_defaults(model=None)  # with --from it is the trace's
    method = parser.add_argument_group("method")
    method.add_argument("--method", metavar="NAME", help=f"method, as `methods` lists them (default: {_METHOD})")
    method.add_argument(
        "--param", action="append", default=[], metavar="NAME=VALUE", help="setting of the method; repeatable"
    )
    prompt = parser.add_argument_group("prompt").add_mutually_exclusive_group()
    prompt.add_argument("--prompt", metavar="TEXT")
    prompt.add_argument("--prompt-file", metavar="FILE", help="text file of at most 1 MB")
    prompt.add_argument("--prompt-ids", metavar="1,2,3", help="token ids, for a model without a tokenizer")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--raw", action="store_true", help="use the text as it is, not as a turn of a chat")
    form.add_argument("--chat", action="store_true", help="refuse models without a chat template")
    parser.add_argument("--reference", metavar="FILE", help="document that prompt_lookup may copy from")
    parser.add_argument("--max-new-tokens", metavar="N", help=f"(default: {_NEW_TOKENS})")
    parser.add_argument("--stop", action="append", default=[], metavar="TEXT", help="stop at this text; repeatable")
    sampling = parser.add_argument_group("sampling")
    for name in _SAMPLING:
        sampling.add_argument(f"--{name.replace('_', '-')}", metavar="X" if name != "seed" else "N")
    parser.add_argument("--parallel", action="store_true", help=f"read every tree with several ranks: {START} ...")
    branch = parser.add_argument_group("what if: continue a recorded run differently, with its method and settings")
    branch.add_argument("--from", dest="origin", metavar="TRACE", help="trace written by run --trace")
    branch.add_argument("--step", metavar="N", help="step to change")
    other = branch.add_mutually_exclusive_group()
    other.add_argument("--node", metavar="K", help="write this guess of the step's tree")
    other.add_argument("--token", metavar="TEXT", help="write this text instead of the step's last token")
    other.add_argument("--token-id", metavar="ID", help="write this token id")
    branch.add_argument("--keep", metavar="K", help="with --token or --token-id: keep the step's first K tokens")
    record = parser.add_argument_group("record")
    record.add_argument("--trace", metavar="FILE", help="write every step to FILE, compressed if its name ends in .gz")
    record.add_argument("--force", action="store_true", help="replace an existing FILE")
    record.add_argument("--record", default="light", metavar="LEVEL", help="off, light or full (default: light)")
    record.add_argument("--prefill-chunk", metavar="N", help="prompt tokens per pass")
    add_json_flag(parser)


def main(arguments: argparse.Namespace) -> int:
    """Run and report, as one of several ranks if the flags say so."""
    if not arguments.parallel:
        return _run(arguments, None)
    ranks = Ranks.join(arguments.device)
    arguments.device = ranks.device
    try:
        return _run(arguments, ranks)
    finally:
        ranks.leave()


def _run(arguments: argparse.Namespace, ranks: Ranks | None) -> int:
    silent = ranks is not None and ranks.rank > 0
    if silent:
        arguments.trace = None
    if arguments.trace is not None:
        check_place("--trace", arguments.trace, replace=arguments.force)
    paint = Paint.for_stream(sys.stdout)
    start, engine = (_planned if arguments.origin is None else _planned_branch)(arguments, ranks)
    with ExitStack() as stack:
        progress = stack.enter_context(ProgressBar())
        run = start(progress)
        # Only now, with every argument checked: opening it empties a file that --force may replace.
        writer = stack.enter_context(TraceWriter(arguments.trace)) if arguments.trace is not None else None
        if writer:
            writer.header(run.header)
            writer.texts(run.texts())
        show, written = None if arguments.json or silent else RunScreen(paint, engine, run, progress), 0
        progress("reading the prompt", 0.0)
        for step in run:
            if writer:
                writer.texts(run.texts(step))
                writer.step(step)
            written += len(step.emitted)
            if show:
                show.add(step)
            else:
                progress("writing", written / run.request.max_new_tokens)
        if writer:
            writer.summary(run.summary)
    if silent:
        return 0
    if show:
        show.end_text()
    with ProgressBar() as progress:
        progress("checking the text", 0.0)
        verdict = engine.rescore(run.trace, progress)
    if show:
        show.report(verdict)
    else:
        print(json.dumps(contract(run, engine, verdict)))
    return 0


def contract(run: Run, engine: Engine, verdict: Rescore) -> dict[str, JSON]:
    """Return the JSON object of a finished run."""
    header, summary = run.header, run.summary
    timing = summary.timing
    return {
        "method": header.method,
        "params": dict(header.params),
        "sampling": dict(header.sampling),
        "lossless": header.lossless,
        "text": summary.text,
        "ids": list(run.ids),
        "finish": summary.finish,
        "prompt_tokens": len(header.prompt),
        "new_tokens": summary.new_tokens,
        "steps": summary.steps,
        "mean_acceptance_length": summary.mean_acceptance_length,
        "draft_acceptance_rate": summary.draft_acceptance_rate,
        "acceptance_histogram": list(summary.acceptance_histogram),
        "per_position_acceptance_rate": list(survival(summary.acceptance_histogram)),
        "tokens_per_second": summary.tokens_per_second,
        "seconds": summary.prefill_seconds + summary.decode_seconds,
        "prefill_seconds": summary.prefill_seconds,
        "timing": {
            "draft_ms": timing.draft_ms,
            "forward_ms": timing.forward_ms,
            "accept_ms": timing.accept_ms,
            "commit_ms": timing.commit_ms,
            "other_ms": timing.other_ms,
        },
        "rescore": {
            "checked": verdict.checked,
            "exact": verdict.exact,
            "near_ties": verdict.near_ties,
            "violations": verdict.violations,
        },
        "device": header.device,
        "dtype": header.dtype,
        "attention": header.attention,
        "model": header.model.name,
        "draft": header.draft.name if header.draft else None,
        "ranks": header.ranks,
        "branch": None if header.branch is None else asdict(header.branch),
        "bytes_per_step": sum(step.exchanged for step in run.steps) / max(1, len(run.steps)),
    }


def _prompt(arguments: argparse.Namespace) -> Prompt:
    """Return the prompt, or the one that comes with the model."""
    if arguments.prompt_ids is not None:
        if arguments.chat:
            raise ParamError("--chat needs a text: give --prompt or --prompt-file instead of --prompt-ids")
        return read_ids(arguments.prompt_ids)
    if arguments.prompt_file is not None:
        text = read_text(arguments.prompt_file, "prompt file")
    elif arguments.prompt is not None:
        text = clean(arguments.prompt)
    elif arguments.model in _PROMPTS:
        text = _PROMPTS[arguments.model]
    else:
        raise ParamError("give a prompt: --prompt TEXT, --prompt-file FILE or --prompt-ids 1,2,3")
    if not text.strip() or len(text) > 2**20:
        raise ParamError("the prompt must be a text of at least one letter and at most 1 MB")
    return [{"role": "user", "content": text}] if arguments.chat else text


def _planned(arguments: argparse.Namespace, ranks: Ranks | None) -> tuple[Callable[[ProgressBar], Run], Engine]:
    """Return a function that starts the run of a prompt, and its engine."""
    if given := [flag for flag in _BRANCH if getattr(arguments, flag) is not None]:
        raise ParamError(f"--{given[0].replace('_', '-')} is for a recorded run: name its file with --from")
    arguments.model = arguments.model or best_model()
    prompt = _prompt(arguments)
    engine = load_engine(arguments)
    if isinstance(prompt, str) and not arguments.raw:
        prompt = engine.as_turn(prompt)
    return partial(_start, engine, arguments, prompt, ranks=ranks), engine


def _planned_branch(arguments: argparse.Namespace, ranks: Ranks | None) -> tuple[Callable[[ProgressBar], Run], Engine]:
    """Return a function that starts a branch of a recorded run, and its engine."""
    if given := [flag for flag in _OF_THE_RUN if getattr(arguments, flag)]:
        raise ParamError(f"--{given[0].replace('_', '-')} is given by the run that --from names: leave it out")
    if arguments.step is None:
        raise ParamError("--from needs --step, and one of --node, --token and --token-id")
    numbers = {flag: getattr(arguments, flag) for flag in ("step", "node", "token_id", "keep")}
    step, node, token_id, keep = (
        None if text is None else whole(f"--{flag.replace('_', '-')}", text, 0, 10_000_000)
        for flag, text in numbers.items()
    )
    trace = read_trace(arguments.origin)
    engine, token = engine_of(arguments, trace), clean(arguments.token) if arguments.token is not None else token_id
    name = "".join(letter for letter in clean(Path(arguments.origin).name) if letter.isprintable())[:LONGEST]

    def start(progress: ProgressBar) -> Run:
        record = clean(arguments.record)
        assert step is not None
        return engine.branch(
            trace, step, node=node, token=token, keep=keep, name=name, record=record, progress=progress, ranks=ranks
        )

    return start, engine


def _start(
    engine: Engine, arguments: argparse.Namespace, prompt: Prompt, progress: ProgressBar, ranks: Ranks | None
) -> Run:
    chunk = arguments.prefill_chunk
    given = {name: getattr(arguments, name) for name in _SAMPLING if getattr(arguments, name) is not None}
    return engine.decode(
        prompt,
        clean(arguments.method or _METHOD),
        pairs(arguments.param),
        given,
        whole("--max-new-tokens", arguments.max_new_tokens or _NEW_TOKENS, 1, 10_000_000),
        stop=[clean(text) for text in arguments.stop],
        reference=read_text(arguments.reference, "reference") if arguments.reference is not None else None,
        record=clean(arguments.record),
        prefill_chunk=None if chunk is None else whole("--prefill-chunk", chunk, 1, LARGEST_STEP),
        progress=progress,
        ranks=ranks,
    )
