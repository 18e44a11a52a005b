"""The page in Safari's engine: what it draws, and what a visitor does there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.webkit import WebKit, missing, webkit

from .conftest import Served

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(missing()), reason=f"Safari's engine is not here: install {' and '.join(missing())}"),
    pytest.mark.filterwarnings("default"),  # the server runs in this process, and Gradio's parts warn
]
ASSETS = Path(__file__).parents[3] / "assets"
VIEWER = "globalThis.SpecscopeApp?.shown.viewer?.player.record"
LEFT_OUT = {"field-sizing": "content"}  # the prompt's box grows without it, too
# Of declarations those that the engine refuses, once their variables are replaced by what the player's text has there.
REFUSED = r"""
const has = getComputedStyle(document.querySelector(".ss-text"));
const full = (value) => value.replace(/var\((--[\w-]+)\)/g, (kept, name) => has.getPropertyValue(name).trim() || kept);
const understood = (name, value) => name.startsWith("--") || value.includes("var(") || CSS.supports(name, value);
return arguments[0].filter(([name, value]) => !understood(name, full(value)));
"""


@pytest.fixture(scope="module")
def safari() -> Iterator[WebKit]:
    with webkit() as window:
        yield window


def marks(window: WebKit, within: str) -> dict[str, str]:
    """Return how the tokens of each fate are underlined."""
    code = f"""return Object.fromEntries([2, 6, 7].flatMap((fate) => {{
      const token = document.querySelector(`{within} .ss-token.ss-fate-${{fate}}`);
      if (!token) return [];
      const {{ textDecorationLine, textDecorationStyle, textDecorationColor, color }} = getComputedStyle(token);
      return [[fate, textDecorationColor === color ? "unseen" : `${{textDecorationLine}} ${{textDecorationStyle}}`]];
    }}));"""
    return dict(window.run(code))


def test_every_style_is_understood(safari: WebKit, served: Served) -> None:
    """A declaration that an engine does not know is passed over in silence, as the shorthand of underlines was."""
    safari.visit(f"{served.address}?run=smollm2-rain-lookahead&__theme=dark", f"{VIEWER}.last >= 0")
    sheets = [re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S) for path in ASSETS.glob("*/*.css")]
    written = {
        (name.strip(), " ".join(value.replace("!important", "").split()))
        for sheet in sheets
        for block in re.findall(r"\{([^{}]*)\}", sheet)
        for name, _, value in (each.partition(":") for each in block.split(";") if ":" in each)
    }
    refused = safari.run(REFUSED, sorted(each for each in written if each not in LEFT_OUT.items()))
    assert len(written) > 500 and refused == []
    safari.wait("document.querySelector('.ss-text .ss-token.ss-fate-7')")
    assert marks(safari, ".ss-text") == {"2": "underline solid", "6": "underline dotted", "7": "underline double"}
    assert safari.run("return getComputedStyle(document.querySelector('.ss-speed')).appearance;") == "none"
    assert safari.errors() == []


def test_the_opening_race_ends_and_its_steps_open(safari: WebKit, served: Served) -> None:
    safari.visit(served.address, "document.querySelector('.app-opening .ss-lane')")
    safari.wait("/finished first/.test(document.querySelector('.app-opening').innerText)")
    assert {"2", "6", "7"} == marks(safari, ".app-opening").keys()
    safari.click(".app-opening button", "Step through it")
    safari.wait(f"{VIEWER}.last >= 0 && document.querySelector('.ss-piece')?.checkVisibility()")
    assert safari.errors() == []


def test_a_live_run_and_its_views(safari: WebKit, served: Served) -> None:
    safari.visit(f"{served.address}?method=jacobi", "document.querySelector('#run-method input')?.value === 'Jacobi'")
    safari.wait("document.querySelector('#run-go').getAttribute('aria-disabled') !== 'true'")
    safari.click("#run-go")
    safari.wait(f"{VIEWER}.head?.header.method === 'jacobi' && {VIEWER}.end")
    assert safari.errors() == []


def test_lessons_charts_and_costs(safari: WebKit, served: Served) -> None:
    lesson = "globalThis.SpecscopeApp?.shown.learn?.player.record.last >= 0"
    safari.visit(f"{served.address}?screen=learn&lesson=verify", lesson)
    safari.click(".app-learn-choice", "c")
    safari.wait("document.querySelector('.app-learn-choice.app-right')")
    assert safari.errors() == []
    safari.visit(f"{served.address}?screen=debug", "globalThis.SpecscopeApp?.shown.debug?.opened.folder")
    safari.wait("document.querySelectorAll('#debug .main-svg').length > 3")
    safari.click("#debug button", "List them")
    safari.wait("document.querySelector('dialog[open] .app-debug-step')")
    assert safari.errors() == []
    safari.visit(f"{served.address}?screen=cost", "document.querySelectorAll('#cost .app-cost-chart').length > 3")
    assert safari.errors() == []
