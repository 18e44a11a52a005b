"""Writes the card and the curves of a training: what was trained, its cost and its quality, all of it measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from decoding.parts.medusa_tree import NODES, default, expected_length
from decoding.types import JSON

from .checkpoint import TrainingLog, damaged, read_log
from .machine import machine
from .plot import Chart, Curve, plot

_KINDS = {
    "medusa": ("Medusa heads", "--medusa", "medusa", "https://arxiv.org/abs/2401.10774"),
    "kangaroo": ("A Kangaroo adapter", "--kangaroo", "kangaroo", "https://arxiv.org/abs/2404.18911"),
    "eagle3": ("An EAGLE-3 drafter", "--eagle", "eagle3", "https://arxiv.org/abs/2503.01840"),
    "dflash": ("A DFlash drafter", "--dflash", "dflash", "https://arxiv.org/abs/2602.06036"),
    "drafter": ("A drafter", "--draft", "draft_model", "https://arxiv.org/abs/2211.17192"),
}


def write_report(
    folder: Path,
    base: str,
    settings: Mapping[str, JSON],
    log: Path,
    final: Mapping[str, JSON],
    device: torch.device,
    model: Mapping[str, JSON] | None = None,
) -> None:
    """Write README.md and curves.svg beside what was trained on `device`; `final` is measured on all held-out rows.

    `log` is the training's; `model` is how good the model itself was before and after, where it was measured.
    """
    kind = str(settings["kind"])
    name, flag, method, paper = _KINDS[kind]
    training, curves = _log_as_text_and_plot(settings, log, device)
    parts = [
        f"---\nbase_model: {_plain(base)}\ntags: [speculative-decoding, {kind}]\n---\n",
        f"# {name} for {_plain(base)}\n",
        f"Drafts for Specscope's method `{method}` ({paper}); the model verifies them, so its text stays its own.\n",
        training,
        _heads_table(kind, final),
    ]
    if model is not None:
        parts.append(_model_table(model))
    where = "the folder `backbone` beside this card" if (folder / "backbone").is_dir() else _plain(base)
    parts.append(
        f"## Use\n\n    python -m decoding run --model MODEL {flag} THIS_FOLDER --method {method} --prompt ...\n\n"
        f"MODEL is {where}.\n"
    )
    (folder / "README.md").write_text("\n".join(parts), encoding="utf-8")
    (folder / "curves.svg").write_text(curves, encoding="utf-8")


def _log_as_text_and_plot(settings: Mapping[str, JSON], path: Path, device: torch.device) -> tuple[str, str]:
    """Return the section on the training, and its curves; an incomplete log is damaged."""
    log = read_log(path)
    with suppress(ArithmeticError, LookupError, TypeError, ValueError):
        if log[-1]["step"] == settings["steps"]:
            return _training(settings, log[-1], device), plot(list(charts(log)))
    raise damaged(path)


def charts(log: TrainingLog) -> Iterator[Chart]:
    """Chart the training loss, and on held-out rows every head's loss, expected acceptance and top-1 to top-5."""
    losses = {
        name for entry in log for name in entry if name in ("loss", "model") or name.startswith(("head ", "guess "))
    }
    yield Chart(
        "loss on what is learnt, nats",
        {name: [(e["tokens"], e[name]) for e in log if name in e] for name in sorted(losses - {"loss"}) or ["loss"]},
    )
    looks = [(entry["tokens"], entry["held_out"]["heads"]) for entry in log if "held_out" in entry]
    count = len(looks[-1][1]) if looks else 0

    def curves(*keys: str | int) -> dict[str, Curve]:
        return {f"head {k + 1}": [(x, _within(heads[k], keys)) for x, heads in looks] for k in range(count)}

    yield Chart("held out: loss, nats", curves("loss"))
    yield Chart("held out: expected acceptance, sum of min(p, q)", curves("acceptance"), share=True)
    for rank in range(5):
        yield Chart(f"held out: top-{rank + 1} accuracy", curves("top", rank), share=True)


def _within(value: Any, keys: Sequence[str | int]) -> float:
    for key in keys:
        value = value[key]
    return float(value)


def _training(settings: Mapping[str, JSON], last: Mapping[str, Any], device: torch.device) -> str:
    lines = [
        "## Training\n",
        f"{last['step']:,} steps, {last['tokens'] / 1e6:.2f} million tokens read (only answers are learnt), "
        f"{last['seconds'] / 60:.1f} minutes on {machine(device)}. torch {torch.__version__}, "
        f"{datetime.now(UTC):%Y-%m-%d}. The curves are in `curves.svg`.\n",
        "| setting | value |",
        "|---|---|",
        *(f"| {name} | {_plain(value)} |" for name, value in _flat(settings)),
    ]
    return "\n".join([*lines, ""])


def _heads_table(kind: str, final: Mapping[str, Any]) -> str:
    lines = [
        "## On held-out conversations\n",
        "Top-n: the model's own greedy token is among the n likeliest. Acceptance: how likely a token drawn from the",
        "draft's distribution would be accepted, the sum of min(p, q).\n",
        "| | loss, nats | top-1 | top-2 | top-3 | top-4 | top-5 | acceptance |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for number, head in enumerate(final["heads"], start=1):
        shares = " | ".join(f"{share:.1%}" for share in (*head["top"], head["acceptance"]))
        name = {
            "medusa": f"head {number}",
            "eagle3": f"guess {number}",
            "dflash": f"guess {number}",
            "kangaroo": "adapter",
        }.get(kind, kind)
        lines.append(f"| {name} | {head['loss']:.3f} | {shares} |")
    if kind == "medusa":
        accuracies = final["accuracies"]
        tree = default(len(accuracies), accuracies)
        lines.append(
            f"\nThe sparse tree of {len(tree.parents) - 1} guesses (of {NODES} at most) grown from these accuracies is "
            f"expected to give {expected_length(tree, accuracies):.2f} tokens per step, "
            "as if heads erred independently."
        )
    return "\n".join([*lines, ""])


def _model_table(model: Mapping[str, Any]) -> str:
    """Format the model before and after; a frozen one is the same."""
    lines = ["## The model itself, before and after\n", "| | before | after |", "|---|---:|---:|"]
    before, after = model["before"], model["after"]
    lines.append(f"| loss on held-out answers, nats per token | {before['loss']:.4f} | {after['loss']:.4f} |")
    lines.append(f"| held-out tokens that are its greedy choice | {before['right']:.2%} | {after['right']:.2%} |")
    for name in before.get("questions", {}):
        old, new = (f"{side['questions'][name]:.1%}" for side in (before, after))
        lines.append(f"| right answers, {_plain(name)} | {old} | {new} |")
    lines.append(f"\nBoth choose the same token at {model['agreement']:.2%} of the positions.")
    return "\n".join([*lines, ""])


def _flat(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _plain(value: object) -> str:
    """Return one line without marks that Markdown or a table would read."""
    return " ".join(str(value).replace("|", "/").replace("`", "'").split())[:200]
