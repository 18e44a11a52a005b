"""The rules of the house that a reader would otherwise have to trust.

A rule for every file is one test, not one a file: with three thousand tests more, every process of a run would take
seconds longer before its first.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import get_type_hints, is_typeddict

import pytest

from decoding.methods import METHODS, Method, panel_names
from tests import ROOT

ENGINE = sorted(ROOT.glob("decoding/**/*.py"))
PARTS = ("decoding", "analysis", "lab", "cli", "viz", "app", "benchmarks", "tools", "tests")
# What each package may import of the others. The page's own fixtures and the makers of its assets know everything.
BELOW: dict[str, set[str]] = {
    "decoding": set(),
    "analysis": {"decoding"},
    "lab": {"decoding", "analysis"},
    "cli": {"decoding", "analysis", "lab", "app"},
    "viz": {"decoding"},
    "app": {"decoding", "analysis", "viz"},
}
WAY_IN = "decoding.__main__"  # `python -m decoding` is the command line's name: the one arrow up
# A class and a part of it that stands in a file of its own know each other.
WITH_ITS_PART = {
    frozenset({"decoding.model.decoder", "decoding.model.decoder_session"}),
    frozenset({"analysis.doctor.eagle", "analysis.doctor.eagle_guesses"}),
}
LIBRARY = [
    path for package in BELOW if package not in ("viz", "app") for path in sorted(ROOT.glob(f"{package}/**/*.py"))
]
SOURCES = [path for part in PARTS for path in ROOT.glob(f"{part}/**/*.py")]
SCRIPT_FOLDERS = ("assets/player", "assets/style", "assets/page")
SCRIPTS = sorted(
    p for folder in SCRIPT_FOLDERS for p in ROOT.glob(f"{folder}/**/*") if p.suffix in (".js", ".ts", ".css")
)
METHOD_FILES = [p for p in ROOT.glob("decoding/methods/*.py") if p.stem not in ("__init__", "base", "panels")]

# What a method file may know beside the standard library: never a device, a cache, a tokenizer or another method.
METHOD_IMPORTS = {
    "decoding.drafting.candidate_table",
    "decoding.drafting.chain",
    "decoding.drafting.earlier_answers",
    "decoding.drafting.guess_tree",
    "decoding.drafting.ngram_pool",
    "decoding.drafting.suffix_automaton",
    "decoding.drafting.suffix_index",
    "decoding.drafting.window",
    "decoding.errors",
    "decoding.methods.base",
    "decoding.methods.panels",
    "decoding.params",
    "decoding.parts.medusa_tree",
    "decoding.parts.rankings",
    "decoding.queued",
    "decoding.tree",
    "decoding.types",
    # For the type checker alone: importing a method brings no torch.
    "decoding.parts.datastore",
    "decoding.parts.heads",
    "decoding.parts.tables",
    "torch",
}


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def syntax(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def is_module(dotted: str) -> bool:
    return ROOT.joinpath(*dotted.split(".")).with_suffix(".py").is_file()


@cache
def imports(path: Path) -> set[str]:
    """Return dotted names of all modules that a file imports, relative ones resolved."""
    package = path.relative_to(ROOT).with_suffix("").parts[:-1]
    modules = set()
    for node in ast.walk(syntax(path)):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*base, *([node.module] if node.module else [])])
            parts = {alias.name for alias in node.names if is_module(f"{module}.{alias.name}") or not node.module}
            modules |= {f"{module}.{part}" for part in parts} | ({module} if len(parts) < len(node.names) else set())
    return modules


def packages(path: Path) -> set[str]:
    """Return the packages that a file imports from."""
    return {module.split(".")[0] for module in imports(path)}


def test_no_file_or_function_grows_without_bound() -> None:
    """Length is a smell that a review judges: about 300 lines a file, 150 a method and 50 a function are read in one
    sitting. What passes these bounds, twice as large, has been judged by nobody.
    """
    complaints = list[str]()
    for path in SOURCES:
        text = path.read_text(encoding="utf-8")
        complaints += [f"{name(path)} is longer than 600 lines"] if len(text.splitlines()) > 600 else []
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert node.end_lineno is not None
                if node.end_lineno - node.lineno >= 100:
                    complaints.append(f"{name(path)}: {node.name} is longer than 100 lines")
    assert complaints == []


def module_of(path: Path) -> str:
    """Return the dotted name of a file of ours."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def arrows() -> dict[str, set[str]]:
    """Return which of our modules each of them imports, inside functions and for the type checker too."""
    paths = {module_of(path): path for path in SOURCES if path.relative_to(ROOT).parts[0] in BELOW}
    return {module: (imports(path) - {module}) & paths.keys() for module, path in paths.items()}


def test_no_package_imports_one_above_it() -> None:
    """An engine that imports its screen or its command line cannot be scripted, tested or replayed alone."""
    upward = {
        f"{module} imports {other}"
        for module, others in arrows().items()
        for other in others
        if other.split(".")[0] not in {module.split(".")[0], *BELOW[module.split(".")[0]]} and module != WAY_IN
    }
    assert upward == set()
    screens = {"gradio", "plotly", "tests", "benchmarks", "tools"}
    assert {name(path): known for path in LIBRARY if (known := packages(path) & screens)} == {}


def test_no_modules_import_each_other_in_a_circle() -> None:
    """What is in a circle can only be read, tested or moved as a whole."""
    assert circles(arrows()) <= WITH_ITS_PART


def circles(graph: dict[str, set[str]]) -> set[frozenset[str]]:
    """Return the strongly connected parts of a graph that have more than one node, after Tarjan."""
    index, lowest = dict[str, int](), dict[str, int]()
    stack, found = list[str](), set[frozenset[str]]()

    def visit(node: str) -> None:
        index[node] = lowest[node] = len(index)
        stack.append(node)
        for other in graph[node]:
            if other not in index:
                visit(other)
                lowest[node] = min(lowest[node], lowest[other])
            elif other in stack:
                lowest[node] = min(lowest[node], index[other])
        if lowest[node] == index[node]:
            place = stack.index(node)
            if len(stack) > place + 1:
                found.add(frozenset(stack[place:]))
            del stack[place:]

    for node in graph:
        if node not in index:
            visit(node)
    return found


def test_a_circle_is_noticed() -> None:
    """Also one of three, into which others lead and out of which they go."""
    graph = {"a": {"b"}, "b": {"c"}, "c": {"d", "e"}, "d": {"b"}, "e": set[str]()}
    assert circles(graph) == {frozenset("bcd")}


def test_the_engine_stays_small() -> None:
    """It takes token ids and returns steps; what reads records, trains or serves belongs in the packages beside it."""
    assert sum(len(path.read_text(encoding="utf-8").splitlines()) for path in ENGINE) <= 20_330


@pytest.mark.parametrize("path", sorted(ROOT.glob("viz/**/*.py")), ids=name)
def test_views_know_only_the_record(path: Path) -> None:
    """A view that reaches into the engine could not replay a trace without a model. Of a method it knows the types."""
    allowed = {
        "decoding.errors",
        "decoding.installation",
        "decoding.params",
        "decoding.types",
        "decoding.tree",
        "decoding.trace.metrics",
        "numpy",
        "numpy.typing",
    }
    if path.parent.name == "lessons":  # which state what recordings hold
        allowed |= {"decoding.trace.file"}
    drawing = path.stem in ("landscape_figure", "notebook", "page")
    allowed |= {"plotly.graph_objects", "plotly.offline"} if drawing else set()
    tops = {module: module.split(".")[0] for module in imports(path)}
    foreign = {module for module, top in tops.items() if top != "viz" and top not in sys.stdlib_module_names}
    methods = {module for module in foreign if "viz/methods" in str(path) and module.startswith("decoding.methods")}
    assert foreign - methods <= allowed


SHARED_VIEWS = [path for path in ROOT.glob("viz/**/*.py") if (ROOT / "viz" / "methods") not in path.parents]
SCREENS = [path for path in ROOT.glob("viz/methods/**/*.py") if path.stem in METHODS]


@pytest.mark.parametrize("path", SHARED_VIEWS, ids=name)
def test_only_a_methods_own_screen_knows_the_method(path: Path) -> None:
    """A view that asks which method it shows has to be changed for every new one."""
    for node in ast.walk(syntax(path)):
        if isinstance(node, ast.Constant):
            assert node.value not in METHODS, f"line {node.lineno} names a method"
        if isinstance(node, ast.Compare):
            asked = {part.attr for part in [node.left, *node.comparators] if isinstance(part, ast.Attribute)}
            assert "method" not in asked, f"line {node.lineno} asks for the method"


@pytest.mark.parametrize("path", SCREENS, ids=name)
def test_a_screen_knows_no_other_method(path: Path) -> None:
    """What two screens share lies in a board that neither owns."""
    others = set(METHODS) - {path.stem}
    methods = [module.split(".") for module in imports(path) if ".methods." in module]
    assert not {part for module in methods for part in module} & others
    constants = {node.value for node in ast.walk(syntax(path)) if isinstance(node, ast.Constant)}
    assert not constants & others


@pytest.mark.parametrize("path", METHOD_FILES, ids=name)
def test_a_method_only_suggests(path: Path) -> None:
    """A method with device, cache, timing or error-handling code in it can make the output wrong."""
    for module in imports(path):
        top = module.split(".")[0]
        assert top in sys.stdlib_module_names or module in METHOD_IMPORTS, f"{module} is out of a method's reach"
    banned = (ast.Try, ast.Global, ast.Nonlocal)
    assert not any(isinstance(node, banned) for node in ast.walk(syntax(path)))
    assert not {"time", "threading"} & imports(path)


@pytest.mark.parametrize("path", METHOD_FILES, ids=name)
def test_a_methods_code_follows_its_algorithm(path: Path) -> None:
    """The numbered lines of the docstring are the map from paper to code: each must be found there."""
    text = path.read_text(encoding="utf-8")
    docstring = ast.get_docstring(syntax(path)) or ""
    steps = set(re.findall(r"^\s*(L\d+)\s", docstring, flags=re.MULTILINE))
    assert steps, "the docstring holds no numbered algorithm"
    for step in steps:
        assert re.search(rf"#.*\b{step}\b", text), f"no line of code is marked # {step}"


def test_no_type_has_the_name_of_another() -> None:
    """A reader who searches for `Progress` and finds four has to open four files."""
    modules = dict[str, list[str]]()
    for path in SOURCES:
        if path.relative_to(ROOT).parts[0] not in BELOW:
            continue
        for statement in syntax(path).body:
            for defined in names_defined(statement):
                if re.fullmatch(r"[A-Z]\w*[a-z]\w*", defined):
                    modules.setdefault(defined, []).append(module_of(path))
    assert {defined: where for defined, where in modules.items() if len(where) > 1} == {}


# One function of the same job in every module of its kind, which is called by the module's name: commands, importers,
# views and stages, pages of the form, languages of the embedded family's tasks.
SHARED_INTERFACES = {
    *("main", "add_flags"),
    *("read", "recognises"),
    *("base", "frame", "rows", "shows"),
    *("build", "functions"),
    *("make", "right"),
}


def test_no_function_has_the_name_of_two_others() -> None:
    """A reader who searches for `check` wants one of two, unless the name is that of an interface."""
    modules = dict[str, list[str]]()
    for path in SOURCES:
        for statement in syntax(path).body if path.relative_to(ROOT).parts[0] in BELOW else ():
            if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef) and not statement.name.startswith("_"):
                modules.setdefault(statement.name, []).append(module_of(path))
    often = {defined: where for defined, where in modules.items() if len(where) > 2}
    assert {defined: often[defined] for defined in often.keys() - SHARED_INTERFACES} == {}
    assert often.keys() >= SHARED_INTERFACES


def names_defined(statement: ast.stmt) -> list[str]:
    """What a statement at the top of a module names: a class, or an alias of a type."""
    if isinstance(statement, ast.ClassDef):
        return [statement.name]
    if isinstance(statement, ast.Assign | ast.AnnAssign):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        return [target.id for target in targets if isinstance(target, ast.Name)]
    return []


def test_the_library_is_quiet_and_safe() -> None:
    """No print outside the command line, no swallowed errors, nothing that runs code from a file."""
    for path in LIBRARY:
        for node in ast.walk(syntax(path)):
            if isinstance(node, ast.ExceptHandler):
                assert node.type is not None, f"{name(path)}:{node.lineno}: bare except"
            if isinstance(node, ast.Call):
                called, where = ast.unparse(node.func), f"{name(path)}:{node.lineno}"
                assert called != "print" or path.is_relative_to(ROOT / "cli"), f"{where}: print"
                assert called not in ("eval", "exec", "torch.load", "pickle.load", "pickle.loads"), where
                for keyword in node.keywords:
                    assert keyword.arg != "trust_remote_code" or ast.unparse(keyword.value) == "False", where


def test_nothing_is_left_for_later() -> None:
    """A note to self is not a finished feature."""
    note = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
    others = [path for path in SOURCES if path != Path(__file__)]
    assert [name(path) for path in others if note.search(path.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize("path", SCRIPTS, ids=name)
def test_scripts_and_styles_reach_for_nothing_outside(path: Path) -> None:
    """The page's own files keep the bound of all files, and fetch and run nothing."""
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 600
    assert not re.search(r"\b(TODO|FIXME|XXX|HACK)\b|innerHTML|insertAdjacentHTML|document\.write|\beval\(", text)
    assert not re.search(r"@ts-(nocheck|ignore|expect-error)|eslint-disable", text)
    for counterpart in re.findall(r"\b(?:viz|decoding|analysis|app)/[\w/]+\.py", text):
        assert (ROOT / counterpart).is_file(), f"{counterpart} has moved"
    assert "//" not in re.sub(r"http://www\.w3\.org/\S+|^\s*//.*$|\s//\s.*$", "", text, flags=re.MULTILINE)


@pytest.mark.parametrize("path", sorted(ROOT.glob("assets/player/stream/*.js")), ids=name)
def test_decoding_the_stream_knows_no_page(path: Path) -> None:
    """What reads the lines runs under node, where it is tested, and could run in a worker."""
    text = path.read_text(encoding="utf-8")
    assert all(source.startswith("./") for source in re.findall(r'^(?:import|\}) .*from "(.*)";$', text, re.MULTILINE))
    assert not re.search(r"\b(document|navigator|location|globalThis)\.", text)


def test_replaying_a_record_brings_no_model_and_no_plotly() -> None:
    """The page's server must be up before anything heavy is imported, and may have no torch in memory at all."""
    code = "import sys, viz.stream.play, decoding.trace.file; "
    code += "print([m for m in ('torch', 'plotly', 'gradio') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_what_a_method_says_of_itself_is_read_without_a_model() -> None:
    """Labels, bounds and panels are for screens, which may have no torch in memory: only a run brings it."""
    code = "import sys, decoding.methods; print([m for m in ('torch', 'transformers') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_a_panel_declares_what_a_method_shows(method: type[Method]) -> None:
    """Views and readers of files go by the declared names; a type that cannot be resolved is of no use to them."""
    assert is_typeddict(method.Panel) and get_type_hints(method.Panel).keys() <= panel_names()


def test_importing_the_engine_is_light() -> None:
    """transformers takes seconds to import: it must wait until a model is loaded."""
    code = "import sys, decoding; print([m for m in ('transformers', 'tokenizers', 'gradio') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
