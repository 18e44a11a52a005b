"""Write the commands and their flags, from the parsers themselves."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from unittest.mock import patch

from cli.main import build_parser

from ..markdown import code, table


def section(title: str) -> str:
    """Write every command of `python -m decoding`, and `python -m app`."""
    return f"## {title}\n\n" + "".join(_command(name, parser) for name, parser in _all())


def _all() -> Iterator[tuple[str, argparse.ArgumentParser]]:
    yield from _below("python -m decoding", build_parser())
    from app.__main__ import _parser

    with patch.dict(os.environ, clear=True):  # it may hold defaults
        yield "python -m app", _parser()


def _below(name: str, parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Yield the commands at the ends of the tree."""
    subs = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not subs:
        yield name, parser
    for action in subs:
        for word, sub in action.choices.items():
            yield from _below(f"{name} {word}", sub)


def _command(name: str, parser: argparse.ArgumentParser) -> str:
    actions = [action for action in parser._actions if not isinstance(action, argparse._HelpAction)]
    rows = [(_usage(action), _default(action), _help(action, parser)) for action in actions]
    return f"### `{name}`\n\n{parser.description}\n\n" + table(("flag", "default", "help"), rows)


def _usage(action: argparse.Action) -> str:
    value = action.metavar or ("|".join(map(str, action.choices)) if action.choices else action.dest.upper())
    if not action.option_strings:
        return code(value)
    flag = action.option_strings[-1]
    return code(flag if action.nargs == 0 else f"{flag} {value}") + (" (required)" if action.required else "")


def _default(action: argparse.Action) -> str:
    if action.default in (None, False, "", [], argparse.SUPPRESS):
        return ""
    return code(action.default)


def _help(action: argparse.Action, parser: argparse.ArgumentParser) -> str:
    words = (action.help or "") % {"default": action.default, "prog": parser.prog}
    if action.choices and action.metavar:
        words += f" ({', '.join(map(str, action.choices))})"
    stated = f"default: {action.default}"
    return words.removesuffix(stated).removesuffix(f" ({stated})").strip()
