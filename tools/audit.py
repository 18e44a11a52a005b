"""Look every pinned version up in the Open Source Vulnerabilities database; `make lint` ends with it.

Advisories do not fail lint, since one may appear on any day, in a dependency that nobody has touched: a release waits
for them.
"""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Iterator
from typing import Any

from . import ROOT

_DATABASE = "https://api.osv.dev/v1/querybatch"
_PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;]+)", re.MULTILINE)
_SECONDS = 10


def pins() -> Iterator[tuple[str, str, str]]:
    """Yield ecosystem, name and version of every pinned package."""
    for file in ("requirements.txt", "constraints.txt"):
        for name, version in _PIN.findall((ROOT / file).read_text(encoding="utf-8")):
            yield "PyPI", name, version
    packages = json.loads((ROOT / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    for path, package in packages.items():
        if path:
            yield "npm", path.rpartition("node_modules/")[2], package["version"]


def audit(database: str = _DATABASE) -> Iterator[str]:
    """Yield a sentence for every pinned version that has advisories, and one with the number looked up."""
    pinned = [*pins()]
    queries = [{"package": {"ecosystem": kind, "name": name}, "version": version} for kind, name, version in pinned]
    content, headers = json.dumps({"queries": queries}).encode(), {"Content-Type": "application/json"}
    try:
        with urllib.request.urlopen(urllib.request.Request(database, content, headers), timeout=_SECONDS) as answer:
            results: list[dict[str, Any]] = json.load(answer)["results"]
    except (OSError, ValueError, KeyError, TypeError):
        yield "The database of advisories cannot be reached, so no dependency was audited."
        return
    for (_, name, version), result in zip(pinned, results, strict=True):
        if ids := ", ".join(each["id"] for each in result.get("vulns", [])):
            yield f"{name} {version} has advisories: {ids}"
    yield f"{len(pinned)} pinned versions were looked up in the database of advisories."


if __name__ == "__main__":
    for sentence in audit():
        print(sentence)
