"""The forms of a Space: what their READMEs tell the hub, which files they hold, and how they are uploaded."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
from huggingface_hub import SpaceCard, SpaceHardware

from app.hosting.folder import MARK, renew
from app.hosting.forms import FORMS, Form, front_matter, readme, requirements, tracked_files
from app.hosting.space import write_space
from app.hosting.static_site import MOST_BYTES
from cli.main import main
from decoding.errors import ParamError
from tests import ROOT
from tests.space import front_matter as front_matter_in
from tests.space import static_page

# https://huggingface.co/docs/hub/spaces-config-reference, without what has no effect any more.
COLORS = {"red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray"}
KEYS: dict[str, Any] = {
    "title": str,
    "emoji": str,
    "colorFrom": COLORS,
    "colorTo": COLORS,
    "license": str,
    "short_description": re.compile(r".{1,60}"),
    "tags": list,
    "models": list,
    "sdk": {"gradio", "static"},
    "sdk_version": re.compile(r"\d+\.\d+\.\d+"),
    "python_version": re.compile(r"3\.\d+(\.\d+)?"),
    "app_file": str,
    "suggested_hardware": {each.value for each in SpaceHardware},
    "startup_duration_timeout": re.compile(r"\d+[mh]"),
    "preload_from_hub": list,
}
OF_GRADIO = {"sdk_version", "python_version", "suggested_hardware", "preload_from_hub"}
GRADIO = [name for name, form in FORMS.items() if form.sdk == "gradio"]

needs_git = pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a git checkout")


@pytest.mark.parametrize("name", FORMS)
def test_the_hub_knows_every_key_and_value(name: str) -> None:
    card = SpaceCard(readme(FORMS[name]))
    fields = card.data.to_dict()
    for key, value in fields.items():
        allowed = KEYS[key]
        if isinstance(allowed, type):
            assert isinstance(value, allowed) and value, key
        elif isinstance(allowed, re.Pattern):
            assert isinstance(value, str) and allowed.fullmatch(value), key
        else:
            assert value in allowed, key
    assert fields.keys() >= OF_GRADIO if name in GRADIO else not OF_GRADIO & fields.keys()
    for line in fields.get("preload_from_hub", []):
        hub_id, _, revision = line.split(" ")
        assert hub_id in fields["models"] and re.fullmatch("[0-9a-f]{40}", revision)
    assert card.text.strip().startswith("# Specscope") and "](" not in card.text


def test_our_own_readme_is_that_of_the_first_form() -> None:
    """So that a checkout that somebody pushes to the hub as it is starts too."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert text.startswith(f"---\n{front_matter(FORMS['cpu'])}\n---\n")


def test_zerogpu_gets_what_it_accepts() -> None:
    text = requirements(FORMS["zerogpu"])
    assert "\ntorch==2.11.0\n" in text and "\nspaces==0.51.3\n" in text and text.count("setuptools==") == 1
    assert front_matter_of("zerogpu")["python_version"] in ("3.12.12", "3.10.13")
    for name in ("cpu", "gpu"):
        assert requirements(FORMS[name]) == (ROOT / "requirements.txt").read_text(encoding="utf-8")


def front_matter_of(name: str) -> dict[str, Any]:
    fields: dict[str, Any] = SpaceCard(readme(FORMS[name])).data.to_dict()
    return fields


@pytest.mark.slow  # it asks the registry for all of them
def test_zerogpus_requirements_can_be_installed_beside_what_a_space_adds(tmp_path: Path) -> None:
    """In its own Python. The other forms have requirements.txt, from which this environment was installed."""
    form = FORMS["zerogpu"]
    gradio = f"gradio[oauth,mcp]=={front_matter_of('zerogpu')['sdk_version']}"
    (tmp_path / "requirements.txt").write_text(f"{requirements(form)}\n{gradio}\n", encoding="utf-8")
    command = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--python-version", form.python]
    done = subprocess.run(
        [*command, "--only-binary", ":all:", "requirements.txt"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    resolved = dict(re.findall(r"^([a-z0-9-]+)==(\S+)", done.stdout, re.MULTILINE))
    assert resolved["torch"] == "2.11.0" and "spaces" in resolved and "authlib" in resolved  # which oauth brings


@needs_git
@pytest.mark.parametrize("name", GRADIO)
def test_a_folder_holds_what_the_page_is_served_from(name: str, tmp_path: Path) -> None:
    """Without tests, tools, pictures or anything that git does not track; tests/space.py starts it."""
    out = tmp_path / "space"
    write_space(FORMS[name], out)
    names = {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()}
    assert names == {*tracked_files(), "README.md", "requirements.txt", MARK}
    assert {"app/__main__.py", "assets/pocket/target/config.json", "LICENSE"} <= names
    tops = {each.split("/")[0] for each in names}
    assert not tops & {"tests", "tools", "benchmarks", "lab", "cli", ".ci", ".git", "node_modules"}
    assert front_matter_in(out) == front_matter_of(name)
    assert (out / front_matter_in(out)["app_file"]).is_file()
    write_space(FORMS[name], out)  # its own folder is written anew


@pytest.mark.long
@pytest.mark.slow  # every recording is played once
def test_a_static_space_is_small_and_served_from_plain_files(tmp_path: Path) -> None:
    out = tmp_path / "space"
    write_space(FORMS["static"], out)
    assert "Specscope" in static_page(out)
    assert len(list((out / "data" / "runs").iterdir())) > 100
    assert sum(path.stat().st_size for path in out.rglob("*") if path.is_file()) <= MOST_BYTES


def test_no_other_folder_is_written_over(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("mine", encoding="utf-8")
    clone = tmp_path / "clone"
    renew(clone)
    (clone / ".git").mkdir()
    for folder in (mine, clone):
        with pytest.raises(ParamError, match="holds other files: name another folder"):
            renew(folder)
    with pytest.raises(ParamError, match="is no folder"):
        renew(mine / "thesis.txt")
    with pytest.raises(ParamError, match="cannot be written"):
        renew(mine / "thesis.txt" / "below")
    assert (mine / "thesis.txt").read_text(encoding="utf-8") == "mine"


class Hub:
    """What the command asks of the hub."""

    calls: list[tuple[str, Any]] = []

    def __init__(self, token: str) -> None:
        Hub.calls = [("token", token)]

    def create_repo(self, name: str, **options: Any) -> None:
        Hub.calls.append((name, options))

    def upload_folder(self, **options: Any) -> None:
        if options["repo_id"] == "full/disk":
            raise OSError("no space is left\n on the hub")
        Hub.calls.append(("upload", options))


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> type[Hub]:
    """Let the command meet this hub, with a token, and write next to nothing."""
    monkeypatch.setattr(huggingface_hub, "HfApi", Hub)
    monkeypatch.setattr(huggingface_hub, "get_token", lambda: "hf_mine")

    def write(form: Form, out: Path) -> None:
        renew(out)

    monkeypatch.setattr("cli.space.write_space", write)
    return Hub


@pytest.mark.parametrize("name", FORMS)
def test_a_push_creates_the_space_and_makes_it_hold_the_folder(name: str, tmp_path: Path, hub: type[Hub]) -> None:
    """Only hardware that costs nothing is asked for."""
    out = str(tmp_path / "space")
    assert main(["space", "--form", name, "--to", "me/specscope", "--push", "--out", out]) == 0
    _, (created, options), (_, upload) = hub.calls
    assert created == upload["repo_id"] == "me/specscope" and options["repo_type"] == upload["repo_type"] == "space"
    assert options["space_sdk"] == FORMS[name].sdk and options["exist_ok"]
    assert options["space_hardware"] == ("zero-a10g" if name == "zerogpu" else None)
    assert upload["delete_patterns"] == ["*"] and upload["ignore_patterns"] == [MARK]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--push"], "name the Space to upload to: --to USER/NAME"),
        (["--push", "--to", "specscope"], "--to must be USER/NAME, not 'specscope'"),
        (["--to", "me/specscope@main"], "--to must be USER/NAME"),
        (["--push", "--to", "full/disk"], "the Space full/disk could not be uploaded (no space is left on the hub)"),
        (["--form", "docker"], "invalid choice: 'docker'"),
    ],
)
def test_mistakes_are_one_sentence(
    words: list[str], sentence: str, tmp_path: Path, hub: type[Hub], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["space", "--out", str(tmp_path / "space"), *words]) == 2
    error = capsys.readouterr().err
    assert sentence in error and error.count("\n") == 1


def test_without_a_token_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(huggingface_hub, "get_token", lambda: None)
    out = tmp_path / "space"
    assert main(["space", "--to", "me/specscope", "--push", "--out", str(out)]) == 2
    assert "sign in with it by `hf auth login`, or put it into HF_TOKEN" in capsys.readouterr().err
    assert not out.exists()
