"""Record the runs that only lessons show: `python -m tools.record_lessons [--only TEXT] [--out FOLDER]`.

Sliders need several values of one setting, with light records; a few records are full, because lessons show their
steps. Tokens and trees are reproducible, times are not: record on an idle machine, since the lesson on cost shows some.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from analysis.cost.sweep import K, W
from app.examples import EXAMPLES
from decoding import load, smollm2
from decoding.codec import Codec
from decoding.embedded import TARGET
from decoding.engine import Engine
from decoding.model.table import TableModel
from decoding.trace.file import write_trace
from decoding.types import JSON
from tools.gallery_recipes import FEW_ROWS, SHARED_PROMPTS
from tools.lesson_counts import (
    RAIN,
    SLOW_DRAFTER,
    count_askings,
    count_blocks,
    count_drafters,
    count_forms,
    count_phrases,
    count_positions,
    count_rates,
    count_successors,
    write_drafter_runs,
)
from viz.lessons.lesson import FOLDER
from viz.lessons.sources import COUNTS

SLOW = "slow"  # pocket with the drafter of docs/slow_drafter.md
LETTERS = "letters"  # the model whose words are A and B
P, Q = (0.6, 0.4), (0.9, 0.1)  # of its next letter, and of its drafter's
_SUM = EXAMPLES["sum"].prompt
_CHAT = EXAMPLES["chat"].messages
_TALK = ("chat", "function", "summary", "translation", "chat", "sum", "sum")  # it fills the ring
_SPELLING = ({"role": "user", "content": SHARED_PROMPTS[0].text},)


@dataclass(frozen=True, slots=True)
class LessonRecipe:
    """How to make one recording."""

    id: str
    model: str
    method: str
    prompt: Any
    length: int
    params: Mapping[str, JSON] = field(default_factory=dict)
    sampling: Mapping[str, JSON] = field(default_factory=dict)
    full: bool = False
    before: int = 0  # times that the same was answered before, for a method that remembers answers


def recipes() -> Iterator[LessonRecipe]:
    """Yield all recipes."""
    for count in (1, 2, 3, 5, 8, 12, 16):
        yield LessonRecipe(
            f"lookup-k{count}", smollm2.NAME, "prompt_lookup", _SPELLING, 128, {"K": count}, full=count in (1, 16)
        )
    for block in (1, 2, 4, 8, 16, 32):
        yield LessonRecipe(f"jacobi-n{block}", TARGET, "jacobi", _SUM, 160, {"n": block})
    for size in (1, 2, 4, 8, 16, 32):
        params = {"W": size, "G": size, "N": 5}
        yield LessonRecipe(f"lookahead-w{size}", TARGET, "lookahead", _SUM, 160, params, full=size == 2)
    for size in (1, 2, 4, 8, 16, 32, 63, 64, 128, 255):  # 1, 2 and 64 are opened by the Cost tab alone
        yield LessonRecipe(f"medusa-{size}", TARGET, "medusa", _SUM, 160, {"size": size})
    for k, w in itertools.product(K, W):  # opened by the Cost tab alone
        yield LessonRecipe(f"ngrammys-k{k}-w{w}", TARGET, "ngrammys", _SUM, 32, {"k": k, "w": w})
    for size in (3, 6, 10, 15, 30, 60):
        yield LessonRecipe(f"eagle-m{size}", TARGET, "eagle3", _SUM, 160, {"m": size})
    chain: Mapping[str, JSON] = {"form": "chain", "gamma": 6}
    yield LessonRecipe("eagle-chain-6", TARGET, "eagle3", _SUM, 160, chain)
    yield LessonRecipe("slow-drafter", SLOW, "eagle3", _SUM, 48, chain, full=True)
    for gamma in (1, 7):  # short, for the time of drafting
        yield LessonRecipe(f"dflash-{gamma}", TARGET, "dflash", _SUM, 48, {"form": "chain", "gamma": gamma})
        yield LessonRecipe(f"eagle-chain-{gamma}", TARGET, "eagle3", _SUM, 48, {"form": "chain", "gamma": gamma})
    drawn: Mapping[str, JSON] = {"form": "drawn", "gamma": 7}
    sampling = {"temperature": 1.0, "seed": 7}
    yield LessonRecipe("dflash-drawn", TARGET, "dflash", _SUM, 8, drawn, sampling, full=True)
    for gamma in (1, 2, 3, 4, 5, 6, 8, 12):
        yield LessonRecipe(f"draft-{gamma}", TARGET, "draft_model", _CHAT, 64, {"gamma": gamma})
    for gamma in (1, 3):
        sampling = {"temperature": 1.0, "seed": 0}
        yield LessonRecipe(f"letters-{gamma}", LETTERS, "draft_model", [0], 24, {"gamma": gamma}, sampling, full=True)
    for eta in (0.0, 0.2, 0.4, 0.8):  # 0.6 is kangaroo-defaults
        yield LessonRecipe(f"kangaroo-eta-{round(10 * eta)}", TARGET, "kangaroo", _SUM, 160, {"eta": eta})
    yield LessonRecipe("suffix-again", smollm2.NAME, "suffix", RAIN, 128, full=True, before=1)
    yield LessonRecipe("ring", TARGET, "draft_model", _TALK, 160, {"gamma": 5}, full=True)
    sampling = {"temperature": 1.0, "seed": 0}
    yield LessonRecipe("itself-0", "itself", "draft_model", _CHAT, 48, {"gamma": 5}, sampling, full=True)


class _Letters(Codec):
    """Shows token 0 as A and token 1 as B."""

    def piece(self, token: int) -> str:
        """Return the letter."""
        return "AB"[token]

    def decode(self, ids: Any) -> str:
        """Return the letters."""
        return "".join(map(self.piece, ids))


def _letter_model(chances: tuple[float, float]) -> TableModel:
    logits = torch.tensor(chances, dtype=torch.float64).log()
    return TableModel(lambda _: logits, 1, 2, "A or B")


def engine_of(model: str) -> Engine:
    """Load a recipe's model: the two letters, pocket with itself as the drafter, or a name for `load`."""
    if model == LETTERS:
        return Engine(_letter_model(P), _Letters(), _letter_model(Q))
    if model == SLOW:
        return load(TARGET, device="cpu", eagle=str(SLOW_DRAFTER))
    torch.set_num_threads(2 if model == smollm2.NAME else 1)
    if model == "itself":
        engine = load(TARGET, device="cpu")
        return Engine(engine.model, engine.codec, engine.model)
    return load(model, device="cpu")


def conversation(engine: Engine, turns: Sequence[str]) -> list[dict[str, str]]:
    """Return a conversation up to its last question, with the model's answers to the earlier ones."""
    messages = list[dict[str, str]]()
    for turn in turns:
        if messages:
            answer = engine.generate(messages, max_new_tokens=160, record="off").text
            messages.append({"role": "assistant", "content": answer})
        messages.append({"role": "user", "content": EXAMPLES[turn].written})
    return messages


def count_letters(letters: int = 50_000) -> dict[str, dict[str, int]]:
    """Count the letters written by four rules, in runs of a hundred: draft_model's, and three wrong or weaker ones."""
    engine, settings = engine_of(LETTERS), {"gamma": 1}
    tally = Counter[str]()
    for seed in range(letters // 100):
        sampling = {"temperature": 1.0, "seed": seed}
        run = engine.decode([0], "draft_model", settings, sampling, 100, record="off", end_tokens=())
        steps = list(run)
        tally.update(engine.codec.decode(run.ids))
        tally.update(guesses=sum(step.drafted for step in steps), kept=sum(step.accepted for step in steps))
    return {"letters-draft_model": dict(tally)} | {
        f"letters-{name}": dict(_count_rule(rule, letters)) for name, rule in _OTHER_RULES.items()
    }


def _keep_all(guess: str, dice: random.Random) -> tuple[str, bool]:
    return guess, True


def _redraw(guess: str, dice: random.Random) -> tuple[str, bool]:
    """Keep a guess with the right probability, but draw its replacement from p instead of the residual."""
    kept = dice.random() < min(1.0, P["AB".index(guess)] / Q["AB".index(guess)])
    return (guess, True) if kept else (_letter(P, dice), False)


def _compare(guess: str, dice: random.Random) -> tuple[str, bool]:
    """Draw from p regardless of the guess, which is kept if it is the same."""
    letter = _letter(P, dice)
    return letter, letter == guess


_OTHER_RULES = {"keep_all": _keep_all, "redraw": _redraw, "compare": _compare}


def _letter(chances: tuple[float, float], dice: random.Random) -> str:
    return "A" if dice.random() < chances[0] else "B"


def _count_rule(rule: Callable[[str, random.Random], tuple[str, bool]], letters: int) -> Counter[str]:
    dice, tally = random.Random(0), Counter[str]()
    for _ in range(letters):
        letter, kept = rule(_letter(Q, dice), dice)
        tally.update(letter, guesses=1, kept=int(kept))
    return tally


def main() -> None:
    """Record."""
    parser = argparse.ArgumentParser(prog="python -m tools.record_lessons", description=__doc__)
    parser.add_argument("--only", default="", metavar="TEXT", help="only recordings with TEXT in their id")
    parser.add_argument("--out", type=Path, default=FOLDER, metavar="FOLDER")
    flags = parser.parse_args()
    chosen = [recipe for recipe in recipes() if flags.only in recipe.id]
    for model in dict.fromkeys(recipe.model for recipe in chosen):
        engine = engine_of(model)
        for recipe in (each for each in chosen if each.model == model):
            record: Any = "full" if recipe.full else "light"
            settings = (
                recipe.method,
                {**FEW_ROWS.get(recipe.method, {}), **recipe.params} if model == smollm2.NAME else recipe.params,
            )
            prompt = conversation(engine, _TALK) if recipe.prompt is _TALK else recipe.prompt
            end: Any = {"end_tokens": ()} if model == LETTERS else {}
            memory = dict[str, Any]()
            for _ in range(recipe.before):
                engine.generate(prompt, *settings, recipe.sampling, recipe.length, record="off", memory=memory)
            done = engine.generate(
                prompt, *settings, recipe.sampling, recipe.length, record=record, memory=memory, **end
            )
            path = flags.out / f"lesson-{recipe.id}.jsonl.gz"
            write_trace(done.trace, path)
            steps = len(done.trace.steps)
            sys.stdout.write(
                f"{path.name}: {steps} steps, {done.summary.new_tokens} tokens, {path.stat().st_size:,} bytes\n"
            )
    if flags.only in COUNTS:
        pocket, english = engine_of(TARGET), engine_of(smollm2.NAME)
        write_drafter_runs()
        counts = count_letters() | count_successors(pocket) | count_rates(pocket) | count_phrases(pocket)
        counts |= count_positions(pocket) | count_blocks(pocket) | count_forms(pocket)
        counts |= count_askings(english) | count_drafters()
        text = json.dumps(counts, indent=1)
        (flags.out / COUNTS).write_text(text + "\n", encoding="utf-8")
        sys.stdout.write(f"{COUNTS}: {text}\n")


if __name__ == "__main__":
    main()
