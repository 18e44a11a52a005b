"""`python -m app`, or `python app/__main__.py` as a Space starts it."""

from __future__ import annotations

import sys
from pathlib import Path

if __package__ in (None, ""):  # started as a file: sys.path begins with the file's folder, not with the repository
    sys.path[0] = str(Path(__file__).resolve().parents[1])

import argparse
import importlib
import os
import tempfile
from collections.abc import Sequence
from typing import NoReturn

from decoding.errors import ParamError, SpecscopeError
from decoding.installation import assets, required

_PACKAGES = {"metrics": "prometheus_client", "mcp": "mcp"}  # by the flag that needs it


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ParamError(f"{message} (see python -m app --help)")


def _parser() -> _Parser:
    parser = _Parser(prog="python -m app", description="Serve the page.", allow_abbrev=False)
    # A Space, or a container, sets these variables.
    parser.add_argument(
        "--host", default=os.environ.get("GRADIO_SERVER_NAME", "127.0.0.1"), help="default: %(default)s"
    )
    parser.add_argument("--port", default=os.environ.get("GRADIO_SERVER_PORT", "7860"), help="default: %(default)s")
    parser.add_argument(
        "--replay-only", action="store_true", help="show recorded runs and uploaded traces only; load no model"
    )
    parser.add_argument("--models", metavar="FILE", help="a TOML file that lists the models that visitors can choose")
    parser.add_argument(
        "--download",
        action="store_true",
        default="SPACE_ID" in os.environ,  # a Space is expected to fetch its models
        help="let visitors choose models of the built-in list that must be fetched from the hub (default: on a Space)",
    )
    parser.add_argument(
        "--bring-your-own",
        metavar="FOLDER",
        help="let everybody who reaches the page load models from this folder, and from the hub by their commit; for a "
        "page of your own",
    )
    parser.add_argument(
        "--runs",
        metavar="FOLDER",
        help="a run folder, or a folder of them, that the Debug tab lists besides the sample",
    )
    parser.add_argument(
        "--guardrails",
        action="append",
        choices=("system", "moderate"),
        default=[],
        help="system: begin each chat with the system prompt of Mistral's paper; moderate: have the model classify "
        "prompts and answers, and show an answer only once it was found acceptable; may be repeated",
    )
    parser.add_argument(
        "--allow-host",
        metavar="NAME",
        action="append",
        default=[],
        help="a host name under which the page can be reached, besides localhost and IP addresses; may be repeated",
    )
    parser.add_argument(
        "--behind-proxy", action="store_true", help="trust X-Forwarded headers, which a proxy in front must set"
    )
    parser.add_argument("--metrics", action="store_true", help="let a Prometheus server scrape /metrics")
    parser.add_argument("--log-json", action="store_true", help="write each line of the log as a JSON object")
    parser.add_argument(
        "--api", action="store_true", help="let programs decode: /v1/decode, and OpenAI's /v1/chat/completions"
    )
    parser.add_argument(
        "--mcp", action="store_true", help="offer decode as a tool of the Model Context Protocol, at /mcp"
    )
    parser.add_argument(
        "--api-key-file",
        metavar="FILE",
        help="keys of which callers of --api and --mcp must send one, one a line (or set SPECSCOPE_API_KEY)",
    )
    parser.add_argument(
        "--model",
        metavar="NAME",
        help="the model that is selected at first (default: the first of the file; without a file SmolLM2 135M where "
        "it is on this machine, else pocket)",
    )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until interrupted."""
    try:
        given = _parser().parse_args(argv)
        port = _port(given.port)
        os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")  # read when gradio is imported
        os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
        assets()
        with required("the page"):
            from .server.middleware.origin import Owner

            owner = Owner.of(given.allow_host, given.behind_proxy, os.environ)
            _find_temporary_folder()
            from .api.keys import Keys
            from .ui import LaunchOptions, serve
        for flag, package in _PACKAGES.items():
            if getattr(given, flag):
                with required(f"--{flag}"):
                    importlib.import_module(package)

        if given.api_key_file is not None and not (given.api or given.mcp):
            raise ParamError("--api-key-file is for --api and --mcp: add one of them")
        own_root = None if given.bring_your_own is None else Path(given.bring_your_own)
        launch = LaunchOptions(
            given.replay_only,
            given.models,
            given.model,
            given.download,
            own_root,
            given.runs,
            tuple(given.guardrails),
            metrics=given.metrics,
            log_json=given.log_json,
            api=given.api,
            mcp=given.mcp,
            keys=Keys.of(given.api_key_file, os.environ),
        )
        serve(given.host, port, launch, owner)
    except SpecscopeError as error:
        sys.stderr.write(f"specscope: {' '.join(str(error).split())}\n")
        return 2
    except KeyboardInterrupt:
        return 0
    return 0


def _find_temporary_folder() -> None:
    """Set a temporary folder: Gradio needs one when it is imported, although this page writes nothing there."""
    try:
        tempfile.gettempdir()
    except OSError:
        sys.stderr.write("specscope: no temporary folder can be written; name one with TMPDIR if something needs it\n")
        tempfile.tempdir = os.sep


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:6]) <= 65_535:
        raise ParamError(f"--port must be a whole number from 1 to 65535, not {text[:20]!r}")
    return int(text)


if __name__ == "__main__":
    if __package__ in (None, ""):
        from app.__main__ import main as _main

        sys.exit(_main())
    sys.exit(main())
