"""Runs a command; an error becomes one line on stderr and exit code 2, never a traceback."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence

from decoding.errors import SpecscopeError
from decoding.installation import required

from . import (
    bench,
    cost,
    datastore,
    demo,
    doctor,
    evaluate,
    guardrails,
    import_,
    landscape,
    methods,
    metrics,
    paper_checks,
    prepare,
    quality,
    rescore,
    rules,
    run,
    space,
    trace,
    train,
    tree_search,
    tune,
)
from .arguments import Parser
from .paint import one_line

_INTERRUPTED, _PIPE_CLOSED, _USER_ERROR = 130, 141, 2  # what shells give for SIGINT and SIGPIPE; argparse's own

_COMMANDS = (
    demo,
    run,
    methods,
    prepare,
    bench,
    cost,
    tune,
    evaluate,
    metrics,
    import_,
    doctor,
    landscape,
    rescore,
    rules,
    trace,
    quality,
    guardrails,
    datastore,
    tree_search,
    paper_checks,
    train,
    space,
)
_EPILOG = """example:
  python -m decoding demo
  python -m decoding run --method lookahead --prompt "What is the capital of France?"
  python -m decoding COMMAND --help"""


def build_parser() -> Parser:
    """Build the parser with all commands."""
    parser = Parser(
        prog="python -m decoding",
        description="Speculative decoding: several tokens per step, the same text as one token at a time.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for command in _COMMANDS:
        name = command.__name__.rpartition(".")[2].strip("_").replace("_", "-")  # import_ is called import
        sub = commands.add_parser(
            name,
            help=command.HELP,
            description=command.HELP[0].upper() + command.HELP[1:] + ".",
            epilog=f"example:\n  {command.EXAMPLE}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        command.add_flags(sub)
        sub.set_defaults(command=command.main, parser=sub)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal may lack letters that a model writes
    parser = build_parser()
    try:
        try:
            arguments, unknown = parser.parse_known_args(argv)
            if unknown:  # refused by the command's parser, whose --help lists its arguments
                getattr(arguments, "parser", parser).error(f"unrecognized arguments: {' '.join(unknown)}")
        except SystemExit as stop:  # --help
            return int(stop.code or 0)
        if not hasattr(arguments, "command"):
            parser.print_help()
            return 0
        with required("this command"):
            code: int = arguments.command(arguments)
        sys.stdout.flush()
        return code
    except SpecscopeError as error:
        return _complain(str(error))
    except BrokenPipeError:
        # The reader has left; the interpreter would complain when it flushes the same pipe at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _PIPE_CLOSED
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        return _complain(f"{place}{error.strerror or error}")
    except KeyboardInterrupt:
        return _INTERRUPTED


def _complain(sentence: str) -> int:
    sys.stderr.write(f"specscope: {one_line(sentence)}\n")
    return _USER_ERROR
