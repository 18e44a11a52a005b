"""Tries a visitor's tokenizer in a separate process, before this one loads it.

Compiled code loads and runs a tokenizer while it holds the interpreter's lock. Hundreds of thousands of added tokens
take many seconds to load, and a regular expression can take as long over thirty letters, or cause a panic.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from analysis.child_process import ChildAnswer, ChildProcess, serve
from decoding.codec import Codec
from decoding.errors import ModelError, ParamError
from decoding.types import JSON

_WALL = 8  # seconds for each of the processor, which others may be using as well
_OF_GGUF = 2  # times as long, since Python reads the file, which lets others run in between
_PIECES = ("a", "A", "1", " ", "\n", "!", "_", "ab", "a1", "the ", "é", "漢", "🙂")
_MOST_PIECES = 100
_STOP = "~"  # which makes an expression try anew what it has matched before


def try_tokenizer(place: Path, seconds: float, memory: int, characters: int) -> None:
    """Load the tokenizer of a folder or GGUF file, and encode texts of this many characters, in a child process.

    Raises ModelError if that takes more seconds of the processor or bytes of address space, or if the tokenizer fails.
    """
    from decoding.gguf.file import GgufFile
    from decoding.gguf.folder import is_gguf
    from decoding.loader import has_tokenizer

    if not (GgufFile(place).has_tokenizer if is_gguf(place) else has_tokenizer(place)):
        return
    with ChildProcess(__name__, memory, ModelError) as child:
        try:
            child.ask({"place": str(place), "seconds": seconds, "characters": characters}, _WALL * seconds)
        except (TimeoutError, EOFError):
            raise ModelError(
                f"the tokenizer in {place.name!r} takes more than {seconds:g} seconds or {memory >> 30} GB to load and "
                f"to encode {characters:,} characters: bring one with fewer added tokens or simpler expressions"
            ) from None


def _try(request: Any) -> ChildAnswer:
    """Load and encode, in the child."""
    from decoding.gguf.folder import is_gguf
    from decoding.loader import load_tokenizer

    with suppress(AttributeError):  # elsewhere than on Unix
        os.nice(5)  # visitors come first
    place = Path(request["place"])
    packed = is_gguf(place)
    _limit_processor_time(request["seconds"] * (_OF_GGUF if packed else 1))
    codec, patterns = Codec(load_tokenizer(place)), [] if packed else _patterns(place / "tokenizer.json")
    for text in _texts(patterns, request["characters"]):
        try:
            codec.encode(text)
        except ParamError as error:
            raise ModelError(f"{error}: bring another tokenizer") from None
    return {}, b""


def _limit_processor_time(seconds: float) -> None:
    with suppress(ImportError, ValueError, OSError):  # elsewhere than on Unix the parent's clock has to do
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time() + seconds) + 1, most))


def _patterns(path: Path) -> list[str]:
    """Collect the regular expressions of a tokenizer, wherever they are in its file."""
    from decoding.model.files import read_json

    patterns, waiting = list[str](), [read_json(path) if path.is_file() else {}]
    while waiting:
        value: JSON = waiting.pop()
        if isinstance(value, dict):
            if isinstance(value.get("Regex"), str):
                patterns.append(value["Regex"])
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
    return patterns


def _texts(patterns: list[str], characters: int) -> Iterator[str]:
    """Make texts that repeat one piece: common ones, and those that the expressions name.

    Everything named comes again at the end, since an expression is not tried on a text that lacks what it must match.
    """
    named = [piece for pattern in patterns for piece in re.findall(r"\w+|[^\w\s]", pattern)]
    end = f"{_STOP}{''.join(named)[:_MOST_PIECES]}{_STOP}"
    for piece in list(dict.fromkeys((*_PIECES, *named, *"".join(named))))[:_MOST_PIECES]:
        yield (piece * characters)[: characters - len(end)] + end


if __name__ == "__main__":
    from transformers import AutoTokenizer, PreTrainedTokenizerFast  # noqa: F401  # before the time of a request begins

    serve(_try)
