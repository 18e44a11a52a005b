"""The flags of `train medusa`, `kangaroo`, `eagle3`, `dflash` and `drafter`."""

from __future__ import annotations

import argparse

from decoding.embedded import TARGET

from .arguments import add_json_flag

_NORMS = "norms: residual, fc or states, output; or none (default: residual)"
_FORMS = 'JSON lines with "messages", "conversations", "turns", "prompt" (and "answer" or "output") or "text"'


def add_medusa_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `train medusa`."""
    _add_common_flags(parser)
    group = parser.add_argument_group("heads")
    group.add_argument("--heads", default="5", metavar="K", help="number of heads (default: 5)")
    group.add_argument("--layers", default="1", metavar="N", help="residual blocks per head (default: 1)")
    group.add_argument("--own-output", action="store_true", help="give each head its own output layer, as in the paper")
    _add_vocabulary_flag(group)
    group = parser.add_argument_group("training the model too (Medusa-2), with LoRA")
    group.add_argument("--joint", action="store_true", help="train the model together with the heads")
    group.add_argument(
        "--schedule", default="two-stage", metavar="NAME", help="two-stage, sine or constant (default: two-stage)"
    )
    group.add_argument(
        "--first-stage", default="0.4", metavar="SHARE", help="share of the training for the heads alone (default: 0.4)"
    )
    group.add_argument("--lambda0", metavar="X", help="weight of the heads' loss (default: 0.2; distilled: 0.01)")
    group.add_argument("--model-rate", metavar="X", help="learning rate of the model (default: a quarter of --rate)")
    group.add_argument("--model-loss", metavar="NAME", help="tokens, or distilled (the default with --self-distill)")
    group.add_argument("--rank", default="32", metavar="R", help="LoRA rank (default: 32)")
    group.add_argument("--alpha", default="16", metavar="X", help="LoRA alpha (default: 16)")
    group.add_argument("--tasks", metavar="FILE", help="questions of the embedded family to answer before and after")


def add_kangaroo_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `train kangaroo`."""
    _add_common_flags(parser)
    group = parser.add_argument_group("adapter")
    group.add_argument("--exit-layer", metavar="L", help="layers before the exit (default: one in fourteen)")
    group.add_argument("--architecture", default="kangaroo", metavar="NAME", help="architecture of the paper's Table 2")
    _add_vocabulary_flag(group)


def add_eagle3_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `train eagle3`."""
    _add_common_flags(parser)
    group = parser.add_argument_group("drafter")
    _add_layer_flags(group)
    group.add_argument(
        "--test-time-steps", default="3", metavar="N", help="guesses per position in training (default: 3)"
    )
    group.add_argument("--norms", default="residual", metavar="A,B", help=_NORMS)
    _add_vocabulary_flag(group)


def add_dflash_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `train dflash`."""
    _add_common_flags(parser)
    group = parser.add_argument_group("drafter")
    _add_layer_flags(group)
    group.add_argument("--layers", default="2", metavar="N", help="number of layers (default: 2)")
    group.add_argument(
        "--block", default="8", metavar="B", help="rows of a block: the root and B - 1 guesses (default: 8)"
    )
    group.add_argument(
        "--mask-token", metavar="ID", help="token in the place of guesses (default: the model's padding, or its last)"
    )
    group.add_argument("--blocks", default="24", metavar="N", help="blocks per line of text (default: 24)")
    group.add_argument(
        "--decay", default="4", metavar="X", help="guesses over which a guess comes to count 1/e (default: 4)"
    )
    _add_vocabulary_flag(group)


def _add_layer_flags(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--taps",
        metavar="L,M,H",
        help="layers whose inputs the drafter reads (default: a low, a middle and a high one)",
    )
    group.add_argument("--intermediate", metavar="N", help="feed-forward width (default: the model's)")


def add_drafter_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `train drafter`."""
    _add_common_flags(parser)
    group = parser.add_argument_group("drafter")
    group.add_argument("--hidden", default="96", metavar="N", help="hidden size (default: 96)")
    group.add_argument("--layers", default="4", metavar="N", help="number of layers (default: 4)")
    group.add_argument("--heads", default="3", metavar="N", help="attention heads (default: 3)")
    group.add_argument("--intermediate", default="256", metavar="N", help="feed-forward width (default: 256)")
    _add_vocabulary_flag(group)


def _add_vocabulary_flag(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--draft-vocabulary", default="0", metavar="N", help="draft only the N most frequent tokens (default: 0, all)"
    )


def _add_common_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", default=TARGET, metavar="NAME", help='"pocket", a folder or a hub id')
    parser.add_argument("--out", required=True, metavar="FOLDER", help="folder to write, or to resume from")
    group = parser.add_argument_group("data")
    group.add_argument("--data", metavar="FILE", help=f'{_FORMS}; or "language", pocket\'s own (its default)')
    group.add_argument("--self-distill", action="store_true", help="train on the model's own answers to the prompts")
    group.add_argument(
        "--answers", default="4096", metavar="N", help="prompts of the language to answer (default: 4096)"
    )
    group.add_argument("--temperature", default="0.3", metavar="T", help="temperature of these answers (default: 0.3)")
    group.add_argument("--answers-at-once", default="32", metavar="N", help="answers in memory at a time (default: 32)")
    group.add_argument("--length", metavar="N", help="tokens per line (default: 2048; for the language 256)")
    group = parser.add_argument_group("training")
    group.add_argument("--steps", metavar="N", help="training steps (default: two epochs; for the language 800)")
    group.add_argument(
        "--epochs", default="2", metavar="X", help="passes over a file, if --steps is not given (default: 2)"
    )
    group.add_argument("--lines", metavar="N", help="lines per step (default: 8; for the language 16)")
    group.add_argument("--at-once", metavar="N", help="lines in memory at a time (default: all of a step)")
    group.add_argument("--rate", metavar="X", help="learning rate")
    group.add_argument("--warm-up", default="40", metavar="N", help="steps until the full rate (default: 40)")
    group.add_argument("--seed", default="1", metavar="N")
    group = parser.add_argument_group("machine")
    group.add_argument("--device", help="cpu or cuda (default: cuda if available)")
    group.add_argument("--dtype", help="the model's dtype: float32 or bfloat16 (default: depends on the device)")
    group.add_argument("--quantise", action="store_true", help="hold the model in 4 bits (needs CUDA and bitsandbytes)")
    group.add_argument("--threads", metavar="N", help="CPU threads")
    add_json_flag(parser)
