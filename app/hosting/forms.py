"""The forms of a Space: the front matter of its README, what it installs, and which files it needs."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from huggingface_hub import SpaceCardData

from decoding import smollm2
from decoding.errors import ParamError

ROOT = Path(__file__).parents[2]
_FILES = "config.json,generation_config.json,model.safetensors,tokenizer.json,tokenizer_config.json"
_FOLDERS = ("analysis/", "app/", "assets/", "decoding/", "viz/")
_LEFT_OUT = ("app/hosting/", "assets/samples/")
_SINGLE = ("LICENSE", "docs/paper_checks.md", "docs/paper_checks_smollm2.md")  # lessons quote both pages


@dataclass(frozen=True, slots=True)
class Form:
    """A kind of Space."""

    sdk: str = "gradio"
    hardware: str | None = None
    is_free: bool = False  # whether a Space may be created on that hardware without asking its owner
    python: str = "3.11"
    timeout: str | None = None  # for the first start; None is the hub's half hour
    pins: Mapping[str, str] = field(default_factory=dict)  # versions other than in requirements.txt, or beside it


FORMS = {
    "cpu": Form(hardware="cpu-basic"),
    # The smallest that holds two models of the built-in list at once.
    "gpu": Form(hardware="l40sx1", timeout="1h"),
    # The versions that ZeroGPU accepts; this torch wants an older setuptools.
    "zerogpu": Form(
        hardware="zero-a10g",
        is_free=True,
        python="3.12.12",
        timeout="1h",
        pins={"torch": "2.11.0", "setuptools": "81.0.0", "spaces": "0.51.3"},
    ),
    "static": Form(sdk="static"),
}


def front_matter(form: Form) -> str:
    """Return the front matter of a Space's README, as YAML for the hub.

    It has no thumbnail: that is the absolute address of a picture, which names one repository and is wrong in a copy.
    """
    fields: dict[str, Any] = {"title": "Specscope", "emoji": "🔭", "colorFrom": "indigo", "colorTo": "yellow"}
    fields |= {"license": "apache-2.0", "short_description": "Watch speculative decoding happen, step by step"}
    fields["tags"] = ["speculative-decoding", "language-models", "visualization", "education"]
    if form.sdk == "gradio":
        fields |= {"sdk_version": _pinned("gradio"), "python_version": form.python, "app_file": "app/__main__.py"}
        fields |= {"suggested_hardware": form.hardware, "startup_duration_timeout": form.timeout}
        fields |= {"models": [smollm2.HUB_ID], "preload_from_hub": [f"{smollm2.HUB_ID} {_FILES} {smollm2.REVISION}"]}
    else:
        fields["app_file"] = "index.html"
    return str(SpaceCardData(sdk=form.sdk, **fields).to_yaml())


def readme(form: Form) -> str:
    """Return the README of a Space: the front matter, and the first paragraph of ours."""
    body = (ROOT / "README.md").read_text(encoding="utf-8").split("---\n", 2)[2]
    title, about = body.strip().split("\n\n")[:2]
    return f"---\n{front_matter(form)}\n---\n\n{title}\n\n{about}\n"


def requirements(form: Form) -> str:
    """Return the requirements of a Space: ours, with the form's own versions."""
    text = _requirements()
    for name, version in form.pins.items():
        line = f"{name}=={version}"
        text, count = re.subn(rf"^{re.escape(name)}==\S+", line, text, flags=re.MULTILINE)
        text += "" if count else line + "\n"
    return text


def tracked_files() -> list[str]:
    """Return the names of the tracked files that the page is served from. Raises ParamError outside a checkout."""
    command = ["git", "ls-files", "-z", "--", *_FOLDERS, *_SINGLE]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    except (OSError, subprocess.CalledProcessError):
        listed = []
    names = [name for name in listed if name and not name.startswith(_LEFT_OUT) and (ROOT / name).is_file()]
    if not names:
        raise ParamError("a Space is made of the files that git tracks, and this is no git checkout: clone it")
    return names


def _requirements() -> str:
    return (ROOT / "requirements.txt").read_text(encoding="utf-8")


def _pinned(name: str) -> str:
    match = re.search(rf"^{name}==(\S+)", _requirements(), flags=re.MULTILINE)
    assert match is not None, f"requirements.txt does not pin {name}"
    return match[1]
