"""`datastore`: prepares texts for methods that retrieve their guesses."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from decoding.embedded import TARGET
from decoding.loader import find_codec

from .arguments import add_json_flag, check_place, clean
from .paint import Paint, one_line
from .progress import ProgressBar

HELP = "build a datastore from texts, for methods that retrieve their guesses"
EXAMPLE = "python -m decoding datastore build books.txt chats.jsonl --model pocket --out store.safetensors"


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    parser.add_argument("what", choices=["build"], metavar="build", help="build: read, tokenise, sort and write")
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help='text in UTF-8; or .jsonl with "text", "messages", "conversations", "turns" and "reference", or "prompt" '
        'and "answer", "completion", "response" or "output"',
    )
    parser.add_argument(
        "--model", default=TARGET, metavar="NAME", help='model whose tokenizer is used: "pocket", a folder or a hub id'
    )
    parser.add_argument("--out", required=True, metavar="FILE", help="file to write, such as store.safetensors")
    parser.add_argument("--force", action="store_true", help="replace an existing FILE")
    parser.add_argument(
        "--border",
        metavar="TEXT",
        help='line that separates documents in text files; "" for empty lines (default: one document a file)',
    )
    add_json_flag(parser)


def main(arguments: argparse.Namespace) -> int:
    """Build and report."""
    from lab.training.datastore import build_store

    check_place("--out", arguments.out, replace=arguments.force)
    border = None if arguments.border is None else clean(arguments.border).strip()
    name = clean(arguments.model)
    with ProgressBar() as progress:
        codec = find_codec(name, progress)
        files = [Path(file) for file in arguments.files]
        built = build_store(files, codec, Path(arguments.out), border=border, progress=progress)
    out = clean(arguments.out)
    if arguments.json:
        print(json.dumps({"out": out, "model": name, **asdict(built)}))
        return 0
    paint = Paint.for_stream(sys.stdout)
    size = f"{built.size / 1e6:,.1f} MB"
    print(f"{paint.bold(one_line(out))}: {size}; documents: {built.documents:,}, tokens: {built.tokens:,}")
    print(paint.dim("draft from it: python -m decoding run --method rest --datastore FILE"))
    return 0
