"""Counts over many runs, for lessons that need more runs than are worth recording: assets/lessons/counts.json."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from analysis.doctor.drafters import open_drafter
from analysis.doctor.examine import examine
from analysis.doctor.texts import write_texts
from analysis.evaluate.evaluation import evaluate, in_this_process
from analysis.evaluate.plan import make_plan
from analysis.metrics import Selection, measure
from analysis.prompts.tasks import read_tasks, sample, spread, suite
from analysis.reporting import finish
from analysis.store.folder import read_folder, read_summary, write_summary
from app.examples import EXAMPLES
from app.store.run_folders import SHIPPED
from decoding import load
from decoding.embedded import TARGET
from decoding.engine import Engine
from decoding.types import JSON
from tools.gallery_recipes import FEW_ROWS, SHARED_PROMPTS
from viz.lessons.sources import RunLibrary

Counts = dict[str, dict[str, int]]

SLOW_DRAFTER = Path(__file__).parents[1] / "assets" / "samples" / "slow-drafter"
DRAFTER_RUNS = {"slow": SHIPPED / "slow-drafter", "mended": SHIPPED / "slow-drafter-mended"}
ACCEPTANCES = ("lossless", "typical")
_PLACE = 4  # tokens of the answer before the one whose successor is counted
_CHAIN: Mapping[str, Mapping[str, JSON]] = {"eagle3": {"form": "chain", "gamma": 6}}
_WARM = 0.7  # the temperature of medusa-typical
_BLOCK = 7  # guesses of pocket's DFlash drafter
_FORMS = ("chain", "drawn", "tree")
RAIN = ({"role": "user", "content": next(prompt.text for prompt in SHARED_PROMPTS if prompt.id == "rain")},)


def count_successors(pocket: Engine, runs: int = 1000) -> Counts:
    """Count the tokens after "cards" in the answer of the recording medusa-typical, under both acceptance rules."""
    trace = RunLibrary().trace("medusa-typical")
    text = [*trace.header.prompt, *trace.ids[:_PLACE]]
    counts: Counts = {}
    for acceptance in ACCEPTANCES:
        tally = Counter[str]()
        for seed in range(runs):
            params: dict[str, JSON] = {**trace.header.params, "acceptance": acceptance}
            run = pocket.decode(text, "medusa", params, {"temperature": _WARM, "seed": seed}, 8, record="off")
            while len(run.ids) < 2:
                next(run)
            assert run.ids[0] == trace.ids[_PLACE], "the token before is certain"
            tally[pocket.codec.piece(run.ids[1]).strip()] += 1
        counts[f"after-cards-{acceptance}"] = dict(tally.most_common())
    return counts


def count_rates(pocket: Engine) -> Counts:
    """Count tokens and passes of Medusa's two acceptance rules over the temperature, in answers to the sum."""
    counts: Counts = {}
    for acceptance in ACCEPTANCES:
        for temperature in (0.25, 0.5, _WARM, 1.0):
            tally = Counter[str]()
            for seed in range(20):
                sampling = {"temperature": temperature, "seed": seed}
                run = pocket.decode(
                    EXAMPLES["sum"].prompt, "medusa", {"acceptance": acceptance}, sampling, 160, record="off"
                )
                tally.update(passes=len(list(run)), tokens=len(run.ids))
            counts[f"medusa-{acceptance}-{temperature}"] = dict(tally)
    return counts


def count_phrases(pocket: Engine) -> Counts:
    """Count the passes and rows of Ouroboros by the number of phrases that it adds to a draft, in the sum."""
    counts: Counts = {}
    for phrases in (0, 1, 3, 6, 12):
        run = pocket.decode(EXAMPLES["sum"].prompt, "ouroboros", {"K": phrases}, None, 160, record="off")
        first, *later = run
        rows, tokens = sum(step.fed for step in later), sum(len(step.emitted) for step in later)
        counts[f"phrases-{phrases}"] = {"passes": len(later) + 1, "rows": rows, "tokens": tokens}
    return counts


def count_askings(english: Engine) -> Counts:
    """Count the passes of methods that remember answers, each time they get the question about the rain."""
    counts: Counts = {}
    for method in ("suffix", "token_recycling"):
        memory, passes = dict[str, Any](), dict[str, int]()
        for time in (1, 2, 3):
            run = english.generate(RAIN, method, FEW_ROWS.get(method, {}), None, 128, record="off", memory=memory)
            passes[str(time)] = run.summary.steps
        counts[f"asked-{method}"] = passes
    return counts


def count_positions(pocket: Engine, prompts: int = 70) -> Counts:
    """Count how far the guesses of DFlash's and EAGLE-3's chains are right, in greedy answers to a suite's prompts."""
    counts: Counts = {}
    for method in ("dflash", "eagle3"):
        tally = Counter[str](prompts=prompts)
        for task in spread(read_tasks(suite(TARGET)), prompts):
            prompt, params = pocket.as_turn(task.turns[0]), {"form": "chain", "gamma": _BLOCK}
            for step in pocket.decode(prompt, method, params, None, 160, record="off"):
                reached = range(1, min(step.accepted + 1, step.drafted) + 1)
                tally.update(f"tried-{place}" for place in reached)
                tally.update(f"right-{place}" for place in reached if place <= step.accepted)
                tally.update(steps=1, tokens=len(step.emitted))
        counts[f"positions-{method}"] = dict(sorted(tally.items()))
    return counts


def count_blocks(pocket: Engine) -> Counts:
    """Count passes and rows for the sum: with chains of DFlash and EAGLE-3, and with DFlash's trees by their size."""
    chain: Mapping[str, JSON] = {"form": "chain", "gamma": _BLOCK}
    runs: dict[str, tuple[str, Mapping[str, JSON]]] = {"dflash": ("dflash", chain), "eagle3": ("eagle3", chain)}
    for size in (3, 7, 15, 32, 60):
        runs[f"tree-{size}"] = "dflash", {"form": "tree", "gamma": _BLOCK, "m": size}
    counts: Counts = {}
    for name, (method, params) in runs.items():
        _, *later = pocket.decode(EXAMPLES["sum"].prompt, method, params, None, 160, record="off")
        rows, tokens = sum(step.fed for step in later), sum(len(step.emitted) for step in later)
        guesses = sum(step.drafted for step in later)
        counts[f"sum-{name}"] = {"passes": len(later) + 1, "rows": rows, "guesses": guesses, "tokens": tokens}
    return counts


def count_forms(pocket: Engine, runs: int = 20) -> Counts:
    """Count tokens and passes of DFlash's three forms at temperature 1, in answers to the sum."""
    counts: Counts = {}
    for form in _FORMS:
        tally, params = Counter[str](runs=runs), {"form": form, "gamma": _BLOCK}
        for seed in range(runs):
            sampling = {"temperature": 1.0, "seed": seed}
            run = pocket.decode(EXAMPLES["sum"].prompt, "dflash", params, sampling, 160, record="off")
            tally.update(passes=len(list(run)), tokens=len(run.ids))
        counts[f"dflash-{form}"] = dict(tally)
    return counts


def count_drafters() -> Counts:
    """Count the numbers of docs/slow_drafter.md: acceptance by position, ranks, then the gains of the doctor's changes.

    The counted run folders ship, for the Debug page. The doctor's numbers are tokens per thousand steps.
    """
    counts = {
        f"drafter-{name}": _positions(Selection.from_folder(read_folder(folder)).where(method="eagle3"))
        for name, folder in DRAFTER_RUNS.items()
    }
    return counts | {"doctor": _probes()}


def write_drafter_runs() -> None:
    """Evaluate the slow drafter and the fixed one, and write run folders."""
    with TemporaryDirectory() as place:
        mended = Path(place) / "mended"
        shutil.copytree(SLOW_DRAFTER, mended)
        config = json.loads((mended / "config.json").read_text(encoding="utf-8"))
        (mended / "config.json").write_text(json.dumps(config | {"norm_before_residual": True}), encoding="utf-8")
        for name, drafter in (("slow", SLOW_DRAFTER), ("mended", mended)):
            folder, engine = DRAFTER_RUNS[name], load(TARGET, eagle=str(drafter), device="cpu")
            plan = make_plan(spread(read_tasks(suite(TARGET)), 7), ["eagle3"], params=_CHAIN, max_new_tokens=48)
            shutil.rmtree(folder, ignore_errors=True)
            evaluate(plan, folder, in_this_process(engine), {"eagle": f"{name} drafter"})
            write_summary(folder, read_summary(folder) | {"name": f"Sample: the {name} drafter"})


def _positions(chosen: Selection) -> dict[str, int]:
    counts = {"tokens": int(chosen.steps.number("written").sum()), "steps": len(chosen.steps)}
    for position, right, tried, *_ in measure("conditional_acceptance", chosen)["rows"]:
        counts |= {f"right-{position}": right, f"tried-{position}": tried}
    ranks = [count for _, count, *_ in measure("rank_histogram", chosen)["rows"]]
    return counts | {"ranked": sum(ranks), "first": ranks[0], "listed": sum(ranks[:5])}


def _probes() -> dict[str, int]:
    """Return the tokens per thousand steps of the drafter as given, and with each change that the doctor tried."""

    def quiet(what: str, share: float) -> None:
        """Show no progress."""

    engine = load(TARGET, device="cpu")
    examined = open_drafter(engine, "eagle", str(SLOW_DRAFTER), quiet)
    tasks = sample(read_tasks(suite(TARGET)), 8, seed=0)
    texts = finish(write_texts(engine, tasks, 32, examined.layers()), quiet)
    report = finish(examine(examined, texts, TARGET), quiet).to_json()
    tokens = {"as given": report["tokens_per_step_given"]}
    tokens |= {probe["name"]: probe["tokens_per_step"] for probe in report["probes"]}
    return {"steps": 1000} | {name.replace(" ", "-"): round(1000 * each) for name, each in tokens.items()}
