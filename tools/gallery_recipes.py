"""The recipes of the gallery's recordings, in the order of the gallery: `python -m tools.record_gallery` records them.

First come three prompts with all methods on the real model, so that methods can be compared; then the embedded family,
every method and preset on the example that suits it best.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from analysis.tuned import TUNED
from app.examples import EXAMPLES
from app.models.catalog import POCKET
from decoding import smollm2
from decoding.embedded import MEDUSA_2, TARGET
from decoding.methods import METHODS, Method
from decoding.types import JSON

Messages = Sequence[Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class GalleryRecipe:
    """How to make one recording."""

    id: str
    model: str  # as `load` knows it
    method: str
    preset: str
    group: str  # its heading in the gallery
    about: str  # a sentence below that heading
    title: str
    shows: str
    prompt: str | Messages
    params: Mapping[str, JSON]
    length: int
    sampling: Mapping[str, JSON] = field(default_factory=dict)
    before: str | Messages = ""  # a prompt that was answered before, for a method that remembers answers


@dataclass(frozen=True, slots=True)
class SharedPrompt:
    """A prompt that all methods continue."""

    id: str
    label: str
    text: str  # a turn of a chat
    about: str
    before: str  # another one, whose answer has phrases in common with this one's


SHARED_PROMPTS = (
    SharedPrompt(
        "spelling",
        "a text to correct",
        EXAMPLES["spelling"].prompt,
        "The answer repeats the prompt but for one word: methods that copy from it guess nearly all of it.",
        "Correct the spelling mistakes in this text: My brother goes swiming in the cold water every morning.",
    ),
    SharedPrompt(
        "prime",
        "a Python function",
        EXAMPLES["prime"].prompt,
        "Code repeats its own phrases: methods that copy from the text can guess some of it.",
        "Write a Python function is_square(n) that tests whether a number is a square. Only the code.",
    ),
    SharedPrompt(
        "rain",
        "a plain question",
        "Please describe in a few sentences how water becomes clouds and rain.",
        "Prose hardly repeats itself: guesses have to come from elsewhere.",
        "Please explain in a few sentences what clouds are made of.",
    ),
)
FEW_ROWS: Mapping[str, Mapping[str, JSON]] = {  # settings whose steps cost little on a CPU, and can be read at a glance
    "autoregressive": {},
    "jacobi": {"n": 3},
    "lookahead": {"W": 4, "N": 3, "G": 4, "layout": "merged", "prompt_as_reference": True},
    "draft_model": {"gamma": 4, "threshold": 0.3},
    "prompt_lookup": {"K": 5},
    "suffix": {"alpha": 3.0, "c": 8},
    "ngrammys": {"k": 3, "w": 2, "layout": "trie"},
    "token_recycling": {"tree": "grown", "size": 7, "warm_start": "across"},
    "medusa": {"size": 6},
    "kangaroo": {"gamma": 3},
    "eagle3": {"m": 8, "k": 2, "depth": 4},
    "dflash": {"form": "tree", "m": 8, "k": 2, "gamma": 4},
    "ouroboros": {"gamma": 2, "N": 3, "W": 3, "G": 3, "K": 2},
    "rest": {"c": 4, "length": 6, "shortest": 1},
}
_REMEMBERING = ("suffix", "token_recycling")  # methods that guess from earlier answers, with these settings
_FEW = "few rows"  # the name of these settings
_ENOUGH = 128  # new tokens: answers to the shared prompts end before


_LENGTH, _SHORT = 160, 64  # of the embedded family: new tokens with a method's defaults, and with its other presets
_TYPICAL: Mapping[str, JSON] = {"temperature": 0.7, "seed": 1}  # greedy typical acceptance would be lossless
_BEST = {  # the example that suits a method best; for all others, the sum
    "draft_model": "chat",
    "prompt_lookup": "summary",
    "suffix": "summary",
    "ouroboros": "chat",
    "rest": "function",
}
_SHOWS = {
    "autoregressive": "Every pass writes one token: all other methods are measured against this.",
    "jacobi": "A block of guesses is read again and again until it settles from the left.",
    "lookahead": "A window of Jacobi lines feeds a pool of n-grams, and the pool guesses.",
    "draft_model": "A small model drafts, and the target keeps what it would have written itself.",
    "prompt_lookup": "What followed the same words in the prompt is guessed again.",
    "suffix": "What followed the text's ending, here or in an earlier answer, is guessed by how often it did.",
    "ngrammys": "Every pass checks many short rows of guesses, from the text and from the model's own bigrams.",
    "token_recycling": "Tokens that the target found likely but passed over are guessed when their turn comes again.",
    "medusa": "Heads on the last hidden state guess several tokens ahead, combined as a tree.",
    "kangaroo": "The target's own first layers draft, and stop where they are unsure.",
    "eagle3": "A drafter reads what three layers of the target made of the text, and grows a tree of its guesses.",
    "dflash": "A drafter fills a block of masks in one pass: it guesses all tokens at once, each without the others.",
    "ouroboros": "A small model drafts phrase by phrase, and rejected drafts become phrases for later steps.",
    "rest": "What followed the same words in other texts is guessed again, as a tree.",
}


def recipes() -> list[GalleryRecipe]:
    """List all recipes in the order of the gallery."""
    return [*_shared(), *_embedded()]


def _shared() -> list[GalleryRecipe]:
    """List the recipes of every method on the same prompts, on the real model."""
    return [
        GalleryRecipe(
            id=f"{smollm2.NAME}-{prompt.id}-{name}",
            model=smollm2.NAME,
            method=name,
            preset=_FEW,
            group=prompt.text,
            about=prompt.about,
            title=f"{METHODS[name].label}: {prompt.label}",
            shows=_SHOWS[name],
            prompt=({"role": "user", "content": prompt.text},),
            params=settings,
            length=_ENOUGH,
            before=({"role": "user", "content": prompt.before},) if name in _REMEMBERING else "",
        )
        for prompt in SHARED_PROMPTS
        for name, settings in FEW_ROWS.items()
    ]


def _embedded() -> list[GalleryRecipe]:
    """List the embedded family's recipes: first a small Lookahead, whose views are the easiest to read."""
    from app.controls import runnable  # brings torch, which a page of recordings does without

    title = "Lookahead on a worked sum"
    listed = [_recipe("lookahead", "lookahead", "small window", "sum", title, {"W": 7, "N": 4, "G": 7}, _LENGTH)]
    for name in runnable(POCKET):
        listed += _of_method(METHODS[name])
    return listed


def _of_method(method: type[Method]) -> list[GalleryRecipe]:
    """List a method's recipes: its defaults, the papers' presets that differ, and a prompt that does not suit it."""
    from app.presets import presets

    name, best = method.name, _BEST.get(method.name, "sum")
    plain = method.Params().to_json()
    listed = []
    for preset, params in presets(method).items():
        if preset in TUNED or (preset != "defaults" and params == plain):
            continue
        words = "" if preset == "defaults" else f", {_setting(preset)}"
        title = f"{method.label}{words}: {_label(best)}"
        run = re.sub(r"[^a-z0-9]+", "-", f"{name} {preset}".lower())
        length = _LENGTH if preset == "defaults" else _SHORT
        listed.append(_recipe(run, name, preset, best, title, params, length))
    if name in ("lookahead", "draft_model"):
        title, run = f"{method.label}: where it loses", f"{name.replace('_', '-')}-names"
        shows = "Invented names at a high temperature: hardly a guess survives."
        listed.append(_recipe(run, name, "defaults", "names", title, plain, _SHORT, shows))
    if name == "medusa":
        title, shows = f"Medusa-2: {_label(best)}", "The same, with heads that were trained together with the model."
        listed.append(_recipe("medusa-2", name, "defaults", best, title, plain, _LENGTH, shows, MEDUSA_2))
    return listed


def _recipe(
    run: str,
    method: str,
    preset: str,
    example: str,
    title: str,
    params: Mapping[str, JSON],
    length: int,
    shows: str = "",
    model: str = TARGET,
) -> GalleryRecipe:
    settings = EXAMPLES[example]
    return GalleryRecipe(
        id=run,
        model=model,
        method=method,
        preset=preset,
        group=METHODS[method].label,
        about=_SHOWS[method],
        title=title,
        shows=shows or _SHOWS[method],
        prompt=settings.prompt or settings.messages,
        params=params,
        length=length,
        sampling={**settings.sampling, **(_TYPICAL if params.get("acceptance") == "typical" else {})},
    )


def _setting(preset: str) -> str:
    """Name a preset in a title; one named for a model and a device adds that it runs on neither here."""
    return f"the paper's setting for {preset}, run here on {TARGET}" if " on " in preset else preset


def _label(example: str) -> str:
    """Write an example's label in the middle of a title."""
    label = EXAMPLES[example].label
    return f"{label[0].lower()}{label[1:]}"


def as_written(prompt: str | Messages) -> JSON:
    """Return a prompt as a visitor writes it: a chat of one turn is a message."""
    if isinstance(prompt, str):
        return prompt
    return prompt[0]["content"] if len(prompt) == 1 else [dict(message) for message in prompt]
