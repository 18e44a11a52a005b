"""`guardrails`: measures how well a model moderates by self-reflection."""

from __future__ import annotations

import argparse
import json

from analysis.guardrails import measure_moderation, read_prompts

from .arguments import add_json_flag, add_model_flags, load_engine
from .progress import ProgressBar

HELP = "measure how well a model classifies prompts as acceptable or not, as the page's --guardrails moderate does"
EXAMPLE = "python -m decoding guardrails --model org/model@revision"


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    add_model_flags(parser)
    add_json_flag(parser)


def main(arguments: argparse.Namespace) -> int:
    """Measure and report, with acceptable prompts as the positives."""
    engine, prompts = load_engine(arguments), read_prompts()
    with ProgressBar() as progress:
        measured = measure_moderation(engine, prompts, progress)
    rows, name = measured.verdicts, engine.model.card.name
    if arguments.json:
        about = {"model": name, "precision": measured.precision, "recall": measured.recall, "verdicts": rows}
        print(json.dumps(about))
        return 0
    columns = [*next(iter(rows.values()))]
    print(f"{'classified as':16}" + "".join(f"{column:>13}" for column in columns))
    for label, counts in rows.items():
        print(f"{f'{label} ({sum(counts.values())})':16}" + "".join(f"{counts[column]:>13}" for column in columns))
    precision = "-" if measured.precision is None else f"{measured.precision:.1%}"
    recall = "-" if measured.recall is None else f"{measured.recall:.1%}"
    print(f"\n{name}: precision {precision}, recall {recall} of acceptable prompts")
    print("Mistral 7B - Instruct in its paper, on other prompts: precision 99.4%, recall 95.6%")
    return 0
