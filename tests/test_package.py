"""The [project] table: what pip reads before it installs a checkout, and what is there once it has."""

from __future__ import annotations

import json
import os
import re
import site
import subprocess
import sys
import tomllib
import venv
from email import message_from_string
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from setuptools import build_meta, find_packages

from decoding import __version__
from decoding.installation import EXTRAS
from tests.tiers import slow

from . import ROOT
from .space import front_matter
from .test_requirements import direct, pins, read

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
TABLE = PROJECT["project"]
ENGINE = [Requirement(text) for text in TABLE["dependencies"]]
EXTRA = {
    name: [each for each in map(Requirement, texts) if each.name != "specscope"]
    for name, texts in TABLE["optional-dependencies"].items()
}
OF_A_SPACE = {
    canonicalize_name(each.name): each for each in (*ENGINE, *EXTRA["page"], *EXTRA["debug"], *EXTRA["train"])
}
INSTALLED = ("decoding", "analysis", "lab", "cli", "viz", "app")


def test_every_requirement_of_a_space_is_the_engines_or_an_extras() -> None:
    """Two lists of the same things drift apart."""
    assert {canonicalize_name(each.name) for each in direct()} == OF_A_SPACE.keys() - {"peft"}  # who trains is at home


def test_what_developing_needs_is_one_list() -> None:
    """make installs requirements-dev.txt, pip the extra."""
    extras = {str(each) for name in ("dev", "metrics", "mcp", "train", "scale") for each in EXTRA[name]}
    assert {str(each) for each in read("requirements-dev.txt")} == extras - {"pydivsufsort>=0.0.20"}


@pytest.mark.parametrize("name", [each.name for each in direct()])
def test_every_dependency_admits_the_version_that_is_tested(name: str) -> None:
    """And says from which on it is believed to do: an older one would be found out by a traceback."""
    wanted = OF_A_SPACE[canonicalize_name(name)].specifier
    assert wanted.contains(pins("requirements.txt")[canonicalize_name(name)])
    assert any(bound.operator == ">=" for bound in wanted)


def test_a_missing_package_is_named_with_the_extra_that_brings_it() -> None:
    """The sentence would otherwise send somebody to an extra that lacks it."""
    brought = {
        each.name: name for name in ("page", "debug", "metrics", "mcp", "train", "scale") for each in EXTRA[name]
    }
    assert brought == EXTRAS


# What an installation of the engine alone does not have; h11 comes with huggingface_hub.
LACKING = sorted((EXTRAS.keys() - {"h11"}) | {"pandas", "scipy", "PIL"})
BARE = f"""
import sys
for name in {LACKING}: sys.modules[name] = None
"""


def without_extras(code: str) -> subprocess.CompletedProcess[str]:
    """Return what Python prints where only the engine's packages can be imported."""
    return subprocess.run([sys.executable, "-c", BARE + code], cwd=ROOT, capture_output=True, text=True)


@pytest.mark.long
@slow  # it loads models in a Python of its own
def test_the_engine_runs_alone() -> None:
    """As in a notebook's environment: no server, no charts, no tables."""
    done = without_extras(
        "from decoding import load, METHODS\n"
        "engine = load('pocket')\n"
        "print(*{engine.generate('Who is Ada?', name, max_new_tokens=8).text for name in METHODS}, sep='|')\n"
        "from cli.main import main\n"
        "sys.exit(main(['run', '--model', 'pocket', '--method', 'rest', '--prompt', 'Who is Ada?', '--json']))"
    )
    assert done.returncode == 0, done.stderr
    text, report = done.stdout.splitlines()
    assert "|" not in text and json.loads(report)["text"].startswith(text)


@slow  # a process of its own
@pytest.mark.parametrize(
    ("code", "extra"),
    [
        ("from cli.main import main; sys.exit(main(['metrics', 'assets/runs/pocket']))", "debug"),
        pytest.param(  # as the first
            "from cli.main import main; sys.exit(main(['import', 'x', '--out', 'y']))", "debug", marks=slow
        ),
        ("from app.__main__ import main; sys.exit(main(['--replay-only']))", "page"),
        ("import viz\ntry: viz.write_html\nexcept ImportError as error: sys.exit(str(error))", "page"),
    ],
)
def test_what_asks_for_a_missing_extra_is_answered_in_a_sentence(code: str, extra: str) -> None:
    done = without_extras(code)
    assert done.returncode and len(done.stderr.splitlines()) == 1
    assert f'pip install -e ".[{extra}]"' in done.stderr


def test_the_python_is_that_of_the_other_tools() -> None:
    """ruff, mypy, the Space and pip each ask in a file of their own."""
    asked = TABLE["requires-python"].removeprefix(">=")
    assert PROJECT["tool"]["ruff"]["target-version"] == f"py{asked.replace('.', '')}"
    assert PROJECT["tool"]["mypy"]["python_version"] == front_matter()["python_version"] == asked


def test_all_packages_are_found_and_no_others() -> None:
    """Tests, tools and benchmarks stay in the checkout: their names are everybody's."""
    packages = find_packages(str(ROOT), include=PROJECT["tool"]["setuptools"]["packages"]["find"]["include"])
    folders = {path.parent for part in INSTALLED for path in ROOT.glob(f"{part}/**/*.py")}
    assert sorted(packages) == sorted(".".join(path.relative_to(ROOT).parts) for path in folders)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Make a folder that pip may write its notes into, with this repository's files in it."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    for name in (*INSTALLED, "assets", "pyproject.toml", "README.md", "LICENSE"):
        (folder / name).symlink_to(ROOT / name)
    return folder


def test_the_metadata_is_what_the_table_promises(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As pip asks for it, with the version and the extra that stand elsewhere."""
    monkeypatch.chdir(checkout)
    folder = build_meta.prepare_metadata_for_build_wheel(str(tmp_path))
    got = message_from_string((tmp_path / folder / "METADATA").read_text(encoding="utf-8"))
    assert (got["Name"], got["Version"], got["Requires-Python"]) == ("specscope", __version__, ">=3.11")
    needs = [Requirement(text) for text in got.get_all("Requires-Dist", [])]
    assert {str(need) for need in needs if need.marker is None} == {str(need) for need in ENGINE}
    assert set(got.get_all("Provides-Extra", [])) == EXTRA.keys()


def test_the_changelog_begins_with_this_version() -> None:
    """What comes next is under Unreleased until it has a number."""
    versions = re.findall(
        r"^## (\d\S+) - \d{4}-\d\d-\d\d", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert versions[0] == __version__


@slow  # it builds a wheel
def test_a_wheel_says_to_clone(tmp_path: Path) -> None:
    """pip installs the packages from an address too, but models, recordings and the page's scripts lie beside them."""
    for name in INSTALLED:
        (tmp_path / name).symlink_to(ROOT / name)
    for command in (["app", "--replay-only"], ["decoding", "run", "--model", "pocket", "--prompt", "Who is Ada?"]):
        done = subprocess.run([sys.executable, "-m", *command], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
        assert "clone the repository, and there run pip install -e ." in done.stderr


@pytest.mark.slow
def test_an_editable_install_works_from_any_folder(checkout: Path, tmp_path: Path) -> None:
    """`pip install -e .` is what people type first in a clone."""
    venv.create(tmp_path / "env", with_pip=False)
    binaries = tmp_path / "env" / ("Scripts" if os.name == "nt" else "bin")
    (home,) = (tmp_path / "env").rglob("site-packages")
    (home / "borrowed.pth").write_text("\n".join(site.getsitepackages()))  # torch and the rest, installed already
    pip = [sys.executable, "-m", "pip", "--python", str(binaries / "python"), "install", "--quiet", "--no-index"]
    run: dict[str, Any] = {"capture_output": True, "text": True, "check": True}
    subprocess.run([*pip, "--no-deps", "--no-build-isolation", "-e", str(checkout)], cwd=tmp_path, **run)

    code = "import decoding.embedded, viz, app, lab; print(decoding.__file__, decoding.embedded.TASKS.is_file())"
    done = subprocess.run([str(binaries / "python"), "-c", code], cwd=tmp_path, **run)
    place, has_assets = done.stdout.split()
    assert Path(place).samefile(ROOT / "decoding" / "__init__.py") and has_assets == "True"
    done = subprocess.run([str(binaries / "specscope"), "methods", "--json"], cwd=tmp_path, **run)
    assert json.loads(done.stdout)[0]["name"] == "autoregressive"
