"""The [project] table: what pip reads before it installs a checkout, and what is there once it has."""

from __future__ import annotations

import json
import os
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

from .space import ROOT, front_matter
from .test_requirements import direct, pins, read

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
TABLE = PROJECT["project"]
WANTED = {canonicalize_name(Requirement(text).name): Requirement(text) for text in TABLE["dependencies"]}
INSTALLED = ("decoding", "lab", "viz", "app")


def test_the_dependencies_are_those_of_a_space() -> None:
    """Two lists of the same things drift apart."""
    assert list(WANTED) == [canonicalize_name(requirement.name) for requirement in direct()]


@pytest.mark.parametrize("name", WANTED)
def test_every_dependency_admits_the_version_that_is_tested(name: str) -> None:
    """And says from which on it is believed to do: an older one would be found out by a traceback."""
    assert WANTED[name].specifier.contains(pins("requirements.txt")[name])
    assert any(bound.operator == ">=" for bound in WANTED[name].specifier)


def test_the_python_is_that_of_the_other_tools() -> None:
    """ruff, mypy, the Space and pip each ask in a file of their own."""
    asked = TABLE["requires-python"].removeprefix(">=")
    assert PROJECT["tool"]["ruff"]["target-version"] == f"py{asked.replace('.', '')}"
    assert PROJECT["tool"]["mypy"]["python_version"] == front_matter()["python_version"] == asked


def test_all_packages_are_found_and_no_others() -> None:
    """Tests, tools and benchmarks stay in the checkout: their names are everybody's."""
    found = find_packages(str(ROOT), include=PROJECT["tool"]["setuptools"]["packages"]["find"]["include"])
    folders = {path.parent for part in INSTALLED for path in ROOT.glob(f"{part}/**/*.py")}
    assert sorted(found) == sorted(".".join(path.relative_to(ROOT).parts) for path in folders)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder that pip may write its notes into, with this repository's files in it."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    for name in (*INSTALLED, "assets", "pyproject.toml", "README.md", "LICENSE", "requirements-dev.txt"):
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
    assert {str(need) for need in needs if need.marker is None} == {str(need) for need in WANTED.values()}
    for need in needs:
        if need.marker is not None:
            assert need.marker.evaluate({"extra": "dev"}) and not need.marker.evaluate({"extra": ""})
    dev = {(canonicalize_name(need.name), str(need.specifier)) for need in needs if need.marker is not None}
    assert dev == {(canonicalize_name(need.name), str(need.specifier)) for need in read("requirements-dev.txt")}


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
