"""`paper-checks`: tests the papers' findings on an embedded model."""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path

from analysis.prompts.tasks import Task
from decoding import embedded
from decoding.engine import Engine
from decoding.errors import ParamError
from decoding.types import JSON
from lab.papers.claims import Paper
from lab.papers.experiment import Variant

from .arguments import MODEL_FLAGS, add_json_flag, add_model_flags, check_place, clean, load_engine, names_in, whole
from .bench import read_questions
from .paint import Paint, one_line
from .progress import ProgressBar, resumable

HELP = "test the papers' central tables and figures, and report what holds here"
EXAMPLE = "python -m decoding paper-checks --only lookahead,medusa --out checks.md"
DEFAULT_OUT = "docs/paper_checks.md"
_DECIDING = (  # what is measured
    *MODEL_FLAGS,
    "threads",
    *("only", "tasks", "limit", "max_new_tokens", "kangaroo_variants", "eagle_variants", "medusa_2"),
)
_MT_BENCH = {"writing", "roleplay", "reasoning", "math", "coding", "extraction", "stem", "humanities"}


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    add_model_flags(parser, embedded.TARGET)
    parser.add_argument("--only", metavar="A,B", help="papers by name, such as lookahead (default: all)")
    parser.add_argument("--tasks", metavar="FILE", help='"english", or a file of questions in the form of Spec-Bench')
    parser.add_argument("--limit", default="6", metavar="N", help="questions per kind (default: 6)")
    parser.add_argument("--max-new-tokens", default="256", metavar="N", help="tokens per answer (default: 256)")
    parser.add_argument("--out", default=DEFAULT_OUT, metavar="FILE", help=f"page to write (default: {DEFAULT_OUT})")
    parser.add_argument("--beside", metavar="FILE", help="page of another model, to show its verdicts beside these")
    parser.add_argument("--kangaroo-variants", metavar="FOLDER", help="folder of adapters for ablations")
    parser.add_argument("--eagle-variants", metavar="FOLDER", help="folder of EAGLE-3 drafters for ablations")
    parser.add_argument(
        "--medusa-2", metavar="FOLDER", help="heads and the model trained together with them (pocket has its own)"
    )
    add_json_flag(parser)


def main(arguments: argparse.Namespace) -> int:
    """Measure, judge and write."""
    from lab.papers.claims import check_claims
    from lab.papers.experiment import Experiment, answer_questions
    from lab.papers.other_page import OtherPage
    from lab.papers.page import conditions, document, page
    from lab.papers.saved import SavedChecks

    limit = whole("--limit", arguments.limit, 1, 100_000)
    budget = whole("--max-new-tokens", arguments.max_new_tokens, 1, 1_000_000)
    papers = _papers(arguments.only)
    check_place("--out", arguments.out)
    other = None if arguments.beside is None else OtherPage.read(Path(clean(arguments.beside)))
    if arguments.only is not None and Path(arguments.out).resolve() == Path(DEFAULT_OUT).resolve():
        raise ParamError(f"{DEFAULT_OUT} is the page of all papers: name another file for some of them with --out")
    tasks = _one_bench(_first(read_questions(arguments.tasks, arguments.model, None), limit))
    engine = load_engine(arguments)
    out = Path(arguments.out)
    saved = SavedChecks(out.with_name(f"{out.name}.part"), _conditions(engine, tasks, _flags(arguments, _DECIDING)))
    with resumable(f"where it stopped: {saved.path.name} holds what is measured") as progress:
        variants = _variants(arguments, engine, progress)
        if not saved.questions:
            saved.keep_questions(answer_questions(engine, tasks, budget, partial(progress, "answering the questions")))
        experiment = Experiment(engine, saved.questions, budget, variants, saved.tallies, saved.keep_tally)
        findings = check_claims(experiment, papers, progress, saved.tables, saved.keep_table)
        measured = conditions(experiment, _flags(arguments, (*_DECIDING, "beside")))
    out.write_text(page(findings, measured, other), encoding="utf-8")
    saved.remove()
    if arguments.json:
        print(json.dumps(document(findings, measured)))
        return 0
    paint = Paint.for_stream(sys.stdout)
    for finding in findings:
        print(f"{finding.judgement.verdict:18} {paint.bold(finding.paper.title)}: {finding.claim.title}")
    print(f"saved in {one_line(clean(arguments.out))}")
    return 0


def _conditions(engine: Engine, tasks: list[Task], flags: list[str]) -> dict[str, JSON]:
    """Return the conditions that must be equal to resume paper checks."""
    header = engine.decode((0,), max_new_tokens=1).header
    draft = engine.draft.card.hash if engine.draft else None
    questions = hashlib.sha256(repr(tasks).encode()).hexdigest()[:16]
    same = {"questions": questions, "dtype": header.dtype, "threads": header.threads, "versions": header.versions}
    return {"flags": flags, "model": header.model.hash, "draft": draft, **same}


def _flags(arguments: argparse.Namespace, names: Iterable[str]) -> list[str]:
    """Return the flags of these names as typed, without the paths of folders."""
    flags: list[str] = []
    for name in names:
        value = getattr(arguments, name)
        if value is not None:
            text = clean(value)
            flags += [f"--{name.replace('_', '-')}", Path(text).name if Path(text).is_absolute() else text]
    return flags


def _papers(text: str | None) -> list[Paper]:
    """Return the papers of these names, in our order."""
    from lab.papers import PAPERS

    names = list(PAPERS) if text is None else names_in(text)
    for name in names:
        if name not in PAPERS:
            raise ParamError(f"--only knows {', '.join(PAPERS)}, not {name[:40]!r}")
    if not names:
        raise ParamError(f"--only must name some of {', '.join(PAPERS)}")
    return [paper for name, paper in PAPERS.items() if name in names]


def _first(tasks: Iterable[Task], limit: int) -> list[Task]:
    """Return the first questions of every kind."""
    seen, first = Counter[str](), list[Task]()
    for task in tasks:
        seen[task.category] += 1
        if seen[task.category] <= limit:
            first.append(task)
    return first


def _one_bench(tasks: list[Task]) -> list[Task]:
    """Rename MT-bench's kinds to one, as Spec-Bench and the papers count them, if a file holds all of them."""
    if not {task.category for task in tasks} >= _MT_BENCH:
        return tasks
    return [replace(task, category="mt_bench") if task.category in _MT_BENCH else task for task in tasks]


def _variants(arguments: argparse.Namespace, engine: Engine, progress: ProgressBar) -> dict[str, Variant]:
    """Load the engines that ablations need: those of the flags, and datastores of the embedded family's text."""
    from lab.papers.variants import build_stores, load_adapters, load_drafters, load_medusa_2

    variants: dict[str, Variant] = {}
    if arguments.kangaroo_variants is not None:
        variants |= load_adapters(engine, Path(clean(arguments.kangaroo_variants)))
    if arguments.eagle_variants is not None:
        variants |= load_drafters(engine, Path(clean(arguments.eagle_variants)))
    if arguments.medusa_2 is not None:
        variants |= load_medusa_2(engine, Path(clean(arguments.medusa_2)), progress)
    elif arguments.model == embedded.TARGET:
        variants |= load_medusa_2(engine, embedded.PARTS[embedded.MEDUSA_2]["medusa"], progress)
    if arguments.model == embedded.TARGET and embedded.STORE.is_file():
        variants |= build_stores(engine, embedded.STORE, progress)
    return variants
