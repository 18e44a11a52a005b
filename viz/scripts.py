"""JavaScript modules joined into one classic script, so that neither a page nor a host needs a bundler.

Each module becomes a function of its own that returns what it exports; modules come after those that they import.
The joiner knows two forms, each at the beginning of a line, and refuses any other import or export:

    import { name, other as alias } from "./file.js";     also over several lines
    export const name = ...                               or function, async function, class
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_TABLE = "joined_modules"  # the one name that all modules share
_IMPORT = re.compile(r'^import \{([^{}"]*)\} from "(\.[^"\n]*\.js)";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:const|class|function|async function) ([A-Za-z_$][\w$]*))", re.MULTILINE)
_NAME = re.compile(r"([A-Za-z_$][\w$]*)(?: as ([A-Za-z_$][\w$]*))?")
_COMMENT = re.compile(r"^\s*(?://|\*(?!/)|/\*(?!.*\*/\s*\S))")
_FOREIGN = re.compile(r"(?:^|[;}]|\*/)\s*(?:import|export)\b|\bimport\s*[(.]")


class JoinError(ValueError):
    """Modules that cannot be joined; the message says where and why."""


@dataclass(frozen=True, slots=True)
class _Module:
    path: Path
    body: str  # without imports, and without the word "export"
    imports: tuple[tuple[Path, tuple[tuple[str, str], ...]], ...]  # file, and (name there, name here)
    exports: frozenset[str]


def join(entry: Path) -> str:
    """Join a module and all that it imports into one classic script. Raises JoinError."""
    order: list[_Module] = []
    _visit(entry.resolve(), {}, (), order)
    numbers = {module.path: number for number, module in enumerate(order)}
    exports = {module.path: module.exports for module in order}
    parts = [_wrapped(module, numbers, exports) for module in order]
    return "\n".join(['"use strict";', "(() => {", f"const {_TABLE} = [];", *parts, "})();", ""])


def _visit(path: Path, modules: dict[Path, _Module], above: tuple[Path, ...], order: list[_Module]) -> None:
    """Append a module to `order`, after everything that it imports."""
    if path in above:
        circle = [*above[above.index(path) :], path]
        raise JoinError("modules import each other in a circle: " + " -> ".join(map(_label, circle)))
    if path in modules:
        return
    module = modules[path] = _parsed(path)
    for file, _ in module.imports:
        _visit(file, modules, (*above, path), order)
    order.append(module)


def _parsed(path: Path) -> _Module:
    if not path.is_file():
        raise JoinError(f"there is no module {_label(path)}")
    text = path.read_text(encoding="utf-8")
    if _TABLE in text:
        raise JoinError(f"{_label(path)} uses the name {_TABLE}, which belongs to the joiner")
    imports = tuple(((path.parent / line[2]).resolve(), _names(line[1], path)) for line in _IMPORT.finditer(text))
    exports = _EXPORT.findall(text)
    body = _EXPORT.sub("", _IMPORT.sub("", text))
    for line in body.splitlines():
        if not _COMMENT.match(line) and _FOREIGN.search(line):
            raise JoinError(
                f"{_label(path)} imports or exports in a form that the joiner does not know: {line.strip()}"
            )
    return _Module(path, body.strip("\n"), imports, frozenset(exports))


def _names(listed: str, path: Path) -> tuple[tuple[str, str], ...]:
    """Return the names between the braces of an import: (name there, name here)."""
    names = []
    for part in filter(None, (part.strip() for part in listed.split(","))):
        name = _NAME.fullmatch(part)
        if name is None:
            raise JoinError(f"{_label(path)} imports what is no name: {part}")
        names.append((name[1], name[2] or name[1]))
    return tuple(names)


def _wrapped(module: _Module, numbers: dict[Path, int], exports: dict[Path, frozenset[str]]) -> str:
    """Wrap a module in a function whose result is in the table under the module's number."""
    lines = [f"// {_label(module.path)}", f"{_TABLE}.push((() => {{"]
    for file, names in module.imports:
        for there, _ in names:
            if there not in exports[file]:
                raise JoinError(f"{_label(module.path)} imports {there}, which {_label(file)} does not export")
        taken = ", ".join(there if there == here else f"{there}: {here}" for there, here in names)
        lines.append(f"const {{ {taken} }} = {_TABLE}[{numbers[file]}];")
    return "\n".join([*lines, module.body, f"return {{ {', '.join(sorted(module.exports))} }};", "})());"])


def _label(path: Path) -> str:
    """Name a file by its folder and name, without its path on this machine."""
    return "/".join(path.parts[-2:])
