"""What README, CONTRIBUTING and docs/ name is there."""

from __future__ import annotations

import re

import pytest

from . import ROOT
from .optional import left_out

GUIDES = (
    *("README.md", "CONTRIBUTING.md", "benchmarks/README.md"),
    *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md")) if path.name != "api.md"),
)
FOLDERS = "analysis|app|assets|benchmarks|cli|decoding|docs|lab|tests|tools|viz"
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))


@pytest.mark.parametrize("guide", GUIDES)
def test_files_and_folders_that_a_guide_names_exist(guide: str) -> None:
    """Who follows a path into nothing does not trust the next one."""
    text = (ROOT / guide).read_text(encoding="utf-8")
    named = {path for path in re.findall(rf"`((?:{FOLDERS})/[\w/.-]*)`", text) if "NAME" not in path}
    assert [path for path in sorted(named) if not ((ROOT / path).exists() or left_out(ROOT / path))] == []


@pytest.mark.parametrize("guide", GUIDES)
def test_links_of_a_guide_lead_somewhere(guide: str) -> None:
    """To files beside it, and to headings of its own or of theirs."""
    for target in re.findall(r"\]\(([^)\s]+)\)", (ROOT / guide).read_text(encoding="utf-8")):
        if "://" in target:
            continue
        path, _, heading = target.partition("#")
        file = (ROOT / guide).parent / path if path else ROOT / guide
        assert file.exists() or left_out(file), target
        if heading:
            titles = re.findall(r"^#+ (.*)$", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
            assert heading in {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles}, target


@pytest.mark.parametrize("guide", GUIDES)
def test_make_targets_that_a_guide_names_exist(guide: str) -> None:
    """They are the first thing that is typed."""
    text = (ROOT / guide).read_text(encoding="utf-8")
    named = {*re.findall(r"`make ([a-z-]+)", text), *re.findall(r"^make ([a-z-]+)$", text, flags=re.MULTILINE)}
    assert named <= TARGETS
