"""What an installation may lack: the packages of extras, as pip installs the engine alone, and the assets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import ExtraError
from .packed import ASSETS

CLONE = "clone the repository, and there run pip install -e ."
EXTRAS = {  # by the name that is imported; pyproject.toml has the versions
    "gradio": "page",
    "plotly": "page",
    "fastapi": "page",
    "starlette": "page",
    "uvicorn": "page",
    "h11": "page",
    "brotli": "page",
    "prometheus_client": "metrics",
    "mcp": "mcp",
    "pyarrow": "debug",
    "duckdb": "debug",
    "ray": "scale",
    "pydivsufsort": "train",
    "peft": "train",
}


@contextmanager
def required(what: str) -> Iterator[None]:
    """Raise ExtraError if `what` needs a package of an extra that is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRAS:
            raise
        extra = EXTRAS[package]
        raise ExtraError(
            f"{what} needs the Python package {package}: install the extra that brings it, "
            f'from the checkout with pip install -e ".[{extra}]"'
        ) from None


def assets() -> Path:
    """Return the folder of models, recordings and the page's scripts, which a wheel lacks."""
    if not ASSETS.is_dir():
        raise ExtraError(f"this installation has no assets: {CLONE}")
    return ASSETS
