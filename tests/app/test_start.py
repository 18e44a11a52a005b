"""Starting the page: flags, addresses, and what is not imported."""

from __future__ import annotations

import importlib
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from app.__main__ import main
from app.models.catalog import read_catalog
from app.models.entry import CatalogEntry
from app.server.serving import check_free
from app.ui import LaunchOptions, build, make_state
from decoding.errors import ParamError
from decoding.parts import CAPABILITIES
from tests import ROOT
from tests.event_loops import discard_event_loops


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["--port", "http"], "--port must be a whole number from 1 to 65535, not 'http'"),
        (["--port", "70000"], "--port must be"),
        (["--port", "-1"], "--port must be"),
        (["--prot", "7860"], "unrecognized arguments: --prot 7860"),
        (["--models", "/no/such/catalog.toml", "--port", "7999"], "cannot be read: No such file or directory"),
        (
            ["--model", "org/model", "--port", "7999"],
            "there is no model 'org/model' in the catalog; choose one of ",
        ),
        (["--api", "--replay-only", "--port", "7999"], "--api and --mcp run models, and --replay-only loads none"),
        (["--api", "--api-key-file", "/no/such/keys"], "the key file '/no/such/keys' cannot be read: No such file"),
        (["--api-key-file", "README.md"], "--api-key-file is for --api and --mcp: add one of them"),
        (["--host", "not a host", "--port", "7999"], "cannot serve on not a host:7999"),
    ],
)
def test_mistakes_are_one_sentence_and_exit_code_2(
    argv: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv) == 2
    err = capsys.readouterr().err
    assert err.startswith("specscope: ") and sentence in err and err.count("\n") == 1


MOST = r"model 2 of the catalog \('b'\): max_new_tokens must be a whole number from 1 to 256, not 257"


def test_an_address_in_use_is_told() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(
            ParamError, match=f"cannot serve on 127.0.0.1:{port}: address already in use; choose another"
        ):
            check_free("127.0.0.1", port)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "holds one or more"),
        ("[[model]\n", "is not valid TOML"),
        ("[[models]]\nname='a'", "holds one or more"),
        ("[[model]]\nname='a'", r"model 1 of the catalog \('a'\) needs a name and a model"),
        (
            "[[model]]\nname='a'\nmodel='pocket'\ndevice=1",
            r"model 1 of the catalog \('a'\): device must be a text, not 1",
        ),
        ("[[model]]\nname=['a']\nmodel='pocket'", "model 1 of the catalog: name must be a text"),
        ("model=['pocket']", "model 1 of the catalog must be a table"),
        ("[[model]]\nname='a'\nmodel='pocket'\ndraft=''", r"\('a'\): draft must be a text"),
        ("[[model]]\nname='a'\nmodel='pocket'\n[[model]]\nname='b'\nmodel='toy'\nmax_new_tokens=257", MOST),
        ("[[model]]\nname='a'\nmodel='toy'\nmax_new_tokens='9'", r"\('a'\): max_new_tokens must be a whole number"),
        ("[[model]]\nname='a'\nmodel='toy'\nmax_new_tokens=true", r"\('a'\): max_new_tokens must be a whole number"),
        ("[[model]]\nname='a'\nmodel='toy'\nmax_prompt_tokens=0", "max_prompt_tokens must be a whole .* 1 to 4096"),
        ("memory_gb=8", "holds one or more"),
        ("memory=8\n[[model]]\nname='a'\nmodel='toy'", "the catalog has an unknown key 'memory'"),
        ("memory_gb='8'\n[[model]]\nname='a'\nmodel='toy'", "memory_gb of the catalog must be a number .*, not '8'"),
        ("memory_gb=0\n[[model]]\nname='a'\nmodel='toy'", "memory_gb of the catalog must be a number above 0"),
        ("memory_gb=nan\n[[model]]\nname='a'\nmodel='toy'", "memory_gb of the catalog must be a number above 0"),
        ("[[model]]\nname='a'\nmodel='pocket'\ncode='x'", "unknown key 'code'"),
        ("[[model]]\nname='../a'\nmodel='pocket'", "a name consists of"),
        ("[[model]]\nname='a'\nmodel='org/model'", "revision must name its commit by 40 hex digits"),
        ("[[model]]\nname='a'\nmodel='org/model'\nrevision='main'", "40 hex digits"),
        ("[[model]]\nname='a'\nmodel='pocket'\ndraft='org/model'", "draft_revision must name its commit"),
        ("[[model]]\nname='a'\nmodel='org/model@main'", "40 hex digits"),
        (f"[[model]]\nname='a'\nmodel='org/model@{'0' * 40}'\nrevision='{'1' * 40}'", "both name a commit"),
        ("[[model]]\nname='a'\nmodel='pocket'\nmedusa='org/heads'", "medusa is nothing on this machine"),
        ("[[model]]\nname='a'\nmodel='pocket'\neagle='org/drafter@v1'", "must name its commit after an @"),
        (
            "[[model]]\nname='a'\nmodel='pocket'\n[[model]]\nname='a'\nmodel='toy'",
            "two models of the catalog are called 'a'",
        ),
    ],
)
def test_a_catalog_with_a_mistake_is_told(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "catalog.toml"
    path.write_text(text)
    with pytest.raises(ParamError, match=sentence):
        read_catalog(path)


def test_a_catalog_names_models_and_their_parts(tmp_path: Path) -> None:
    path = tmp_path / "catalog.toml"
    path.write_text(
        f"memory_gb=1.5\n[[model]]\nname='small'\nmodel='org/model'\nrevision='{'0123456789' * 4}'\ndtype='bfloat16'\n"
        "[[model]]\nname='own'\nmodel='pocket'\nmedusa='/heads'\n"
        f"[[model]]\nname='short'\nmodel='org/model@{'0123456789' * 4}'\nkangaroo='org/adapter@{'a' * 40}'\n"
    )
    catalog, memory = read_catalog(path)
    assert memory == 1_500_000_000
    assert catalog["small"] == CatalogEntry("small", "org/model", "0123456789" * 4, dtype="bfloat16")
    assert catalog["small"].parts == {"tables", *CAPABILITIES}
    short = CatalogEntry("short", "org/model", "0123456789" * 4, part_places={"kangaroo": f"org/adapter@{'a' * 40}"})
    assert catalog["short"] == short and "kangaroo" in short.parts
    assert catalog["own"].parts >= {"medusa", "draft_model", "datastore"}


@pytest.mark.slow  # a process of its own
def test_replaying_needs_no_torch() -> None:
    """A small machine shows recordings without the weight of an engine, and the form is not there to be used.

    Nor does it import what reads and queries run folders before its Debug tab is opened.
    """
    code = (
        "import sys; from app.ui import LaunchOptions, build, make_state; from app.server.serving import Site\n"
        "app_state = make_state(LaunchOptions(replay_only=True)); page = build(app_state)\n"
        "landing = app_state.recordings.landing; Site(app_state.calls.recording_lines(landing.id))\n"
        "heavy = ('torch', 'transformers', 'duckdb', 'pyarrow.parquet', 'analysis.evaluate', 'analysis.metrics')\n"
        "print([name for name in heavy if name in sys.modules])\n"
        "print([name in str(page.config) for name in ('run-go', 'debug-viewer', 'debug_open')])"
    )
    env = {**os.environ, "GRADIO_ANALYTICS_ENABLED": "False"}
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=env, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[]", "[False, True, True]"]


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # of the event loops that Gradio leaves behind
def test_the_whole_page_has_its_forms_and_events() -> None:
    """Replaying leaves them out, so nothing else here would notice a form that cannot be built."""
    page = build(make_state(LaunchOptions()))
    discard_event_loops()
    targets = {target for event in page.fns.values() for target, _ in event.targets}
    events = {page.blocks[target].elem_id for target in targets & page.blocks.keys()}  # the page itself is a target too
    assert events >= {"run-go", "run-stop", "race-go", "race-stop", "run-fresh", "race-fresh", "run-mode", "race-mode"}


def test_components_are_defined_without_writing_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At each start Gradio parsed the source of all of its components, to write stubs for editors beside them."""
    (tmp_path / "a_component.py").write_text("import gradio\n\n\nclass Own(gradio.HTML):\n    pass\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("a_component")
    assert not [*tmp_path.glob("*.pyi")]
