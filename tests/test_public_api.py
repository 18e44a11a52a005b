"""What people import, and how the options of a run are typed."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
import typing
from pathlib import Path

import pytest

import decoding
import viz
from decoding import DecodeOptions, Engine, OptionError, ParamError, moved
from tests import ROOT
from tests.toys import cycle, engine

SNIPPET = """
from decoding import DecodeOptions, Engine, Result, Run

def right(engine: Engine) -> Run:
    return engine.decode("a", "jacobi", {}, None, 5, stop=["b"], record="full")

def right_too(engine: Engine, options: DecodeOptions) -> Result:
    return engine.generate("a", sampling={"temperature": 1.0}, **options)

def misspelt(engine: Engine) -> None:
    engine.generate("a", recrod="full")

def misspelt_too(engine: Engine) -> None:
    engine.decode("a", max_tokens=5)

def mistyped(engine: Engine) -> None:
    engine.generate("a", time_budget="long")
"""

UNREAD = """
[mypy-torch.*,numpy.*,transformers.*,tokenizers.*,safetensors.*,huggingface_hub.*]
follow_imports = skip
ignore_missing_imports = True
"""


@pytest.mark.parametrize("package", [decoding, viz], ids=["decoding", "viz"])
def test_the_public_names_are_there_and_sorted(package: typing.Any) -> None:
    """Constants, then classes, then functions, each by the alphabet: where a reader looks for them."""
    names = package.__all__
    assert names == sorted(set(names), key=lambda name: (not name.isupper(), not name[0].isupper(), name))
    for name in names:
        assert getattr(package, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        package.nothing  # noqa: B018


def test_type_checkers_see_the_names_that_are_imported_late() -> None:
    """They read the imports below TYPE_CHECKING, the interpreter a table: one that differs is a name that is not."""
    source = ast.parse(Path(decoding.__file__).read_text(encoding="utf-8"))
    (late,) = (node for node in source.body if isinstance(node, ast.If))
    seen = {(alias.name, f".{node.module}") for node in late.body for alias in node.names}  # type: ignore[attr-defined]
    assert seen == {(name, module) for module, names in decoding._LATER.items() for name in names}
    errors = {name for name in decoding.__all__ if name.endswith("Error")}
    assert {name for name, _ in seen} | errors == set(decoding.__all__)


def test_a_notebook_completes_the_names() -> None:
    """It asks for them before any is imported."""
    assert dir(decoding) == sorted(decoding.__all__)


@pytest.mark.slow
def test_modules_that_moved_are_found_by_their_old_names() -> None:
    """Scripts of strangers name them, and a second copy of a module would have classes of its own."""
    code = (
        "import warnings; warnings.simplefilter('error'); import decoding; warnings.simplefilter('ignore')\n"
        "from decoding.evaluate.folder import read_folder; from decoding.evaluate.plan import make_plan\n"
        "import decoding.metrics.cost, analysis.metrics.cost, analysis.store.folder, analysis.evaluate.plan\n"
        "print(read_folder is analysis.store.folder.read_folder, make_plan is analysis.evaluate.plan.make_plan,\n"
        "      decoding.metrics.cost is analysis.metrics.cost, analysis.metrics.cost.__spec__.name)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True", "True", "analysis.metrics.cost"]


def test_every_old_name_leads_to_a_module() -> None:
    """The finder takes any old name and fails only when it imports what stands behind it."""
    for old, new in moved._PATHS.items():
        place = ROOT.joinpath(*new.split("."))
        assert place.with_suffix(".py").is_file() or (place / "__init__.py").is_file(), f"{old} leads to {new}"
        assert not ROOT.joinpath(*old.split(".")).with_suffix(".py").exists(), f"{old} hides a module"


def test_a_method_needs_nothing_but_decoding() -> None:
    """One import line begins a file of one's own."""
    for name in ("Method", "Context", "Builder", "Params", "param", "Draft", "Verdict", "Role"):
        assert name in decoding.__all__


def test_errors_and_records_can_be_imported_without_torch() -> None:
    """A script that reads traces should not wait for it."""
    code = "import sys; from decoding import TraceError, read_trace, Trace, Step; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_decode_and_generate_take_the_same() -> None:
    """One of them would else fall behind."""
    one, other = (inspect.signature(function).parameters for function in (Engine.decode, Engine.generate))
    assert one == other
    assert one["options"].annotation == "Unpack[DecodeOptions]"
    assert not one.keys() & DecodeOptions.__optional_keys__ and not DecodeOptions.__required_keys__


@pytest.mark.parametrize("wrong", [{"recrod": "full"}, {"max_tokens": 5, "stop": "a"}])
def test_an_unknown_option_is_refused_with_a_sentence(wrong: dict[str, typing.Any]) -> None:
    """A keyword that is swallowed is a setting that somebody believes in."""
    machine = engine(cycle(5))
    for function in (machine.decode, machine.generate):
        with pytest.raises(OptionError, match="there is no option '(recrod|max_tokens)'; known ones: cancel, chat, "):
            function((1,), **wrong)
    assert issubclass(OptionError, TypeError) and issubclass(OptionError, ParamError)


@pytest.mark.slow
def test_a_type_checker_finds_a_misspelt_option(tmp_path: Path) -> None:
    """`**options: Any` would take anything."""
    (tmp_path / "script.py").write_text(SNIPPET)
    (tmp_path / "mypy.ini").write_text("[mypy]\nfollow_imports = silent\n" + UNREAD)
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache")]
    done = subprocess.run(
        [*command, "--config-file", str(tmp_path / "mypy.ini"), str(tmp_path / "script.py")],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    errors = [line.split("script.py:")[1] for line in done.stdout.splitlines() if "error:" in line]
    assert [error.split(":")[0] for error in errors] == ["11", "14", "17"], done.stdout
    assert 'Unexpected keyword argument "recrod"' in errors[0] and '"max_tokens"' in errors[1]
    assert 'incompatible type "str"; expected "float"' in errors[2]
