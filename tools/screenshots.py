"""Take pictures of the page, one per view and theme: `make screenshots`. Times in them are this machine's.

Pictures in the README or docs/ are in docs/screenshots, in few bytes, since every clone carries them. All others are in
its folder more/, which git ignores.
"""

from __future__ import annotations

import argparse
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from PIL import Image

from analysis.tuned import CPU

from . import ROOT
from .browser import browser, served
from .film_strips import STRIPS, take_strip
from .page import Page
from .pictures import opened, save
from .stage_pictures import STAGES, take_stage

FOLDER, OTHERS = ROOT / "docs" / "screenshots", "more"
THEMES = ("light", "dark")
RUN = "smollm2-prime-lookahead"
RACED = ("prompt_lookup", "eagle3", "dflash")


@dataclass(frozen=True)
class Shot:
    """A view of a recorded run, at an instructive step; with a token pinned, or none."""

    view: str
    run: str
    step: int
    node: int | None = None


SHOTS = (
    Shot("mask", "lookahead", 11, 30),
    Shot("window", "lookahead", 11),
    Shot("pool", "lookahead", 11),
    Shot("tree", "medusa-defaults", 5),
    Shot("pair", "draft-model-names", 20),
    Shot("timeline", "ouroboros-defaults", 4),
    Shot("counters", "lookahead", 11),
    Shot("check", "lookahead", 11),
    Shot("cache", "lookahead", 11),
    Shot("text", "lookahead", 40),
)


def take(chromium: Any, server: Page, shot: Shot, theme: str, folder: Path) -> None:
    """Take the picture of one view."""
    with opened(chromium, server, 1280, 2600, **asdict(shot), __theme=theme) as page:
        card = ".ss-words" if shot.view == "text" else f'.ss-card[data-view="{shot.view}"]'
        page.locator(card).screenshot(path=folder / f"{shot.view}-{theme}.png")


def take_pages(chromium: Any, server: Page, theme: str, folder: Path) -> None:
    """Take the page as a visitor finds it, a recorded run on a desk and on a phone, and a live race."""
    with opened(chromium, server, 1280, 720, __theme=theme) as page:
        page.wait_for_function("SpecscopeApp.shown.viewer.opening.race.ended")
        page.screenshot(path=folder / f"opening-{theme}.png")
    for name, width, height in (("page", 1280, 1120), ("phone", 390, 844)):
        with opened(chromium, server, width, height, run=RUN, __theme=theme) as page:
            page.screenshot(path=folder / f"{name}-{theme}.png")
    race = {"screen": "race", "methods": ",".join(("autoregressive", *RACED)), "length": 60}
    race |= {f"preset.{method}": CPU for method in RACED}
    with opened(chromium, server, 1280, 1120, **race, __theme=theme) as page:
        page.wait_for_function("document.querySelector('#race-length input')?.value === '60'")
        page.click("#race-go")
        # Before it there is the recorded one.
        page.wait_for_function("SpecscopeApp.shown.race.address?.includes('methods=') && SpecscopeApp.shown.race.ready")
        page.wait_for_function("SpecscopeApp.shown.race.state.time >= SpecscopeApp.shown.race.length")
        page.locator("#race-viewer").scroll_into_view_if_needed()
        page.screenshot(path=folder / f"race-{theme}.png")


def shown() -> set[str]:
    """Return the names of the pictures in the README and docs/."""
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    return {name for page in pages for name in re.findall(r"screenshots/([\w-]+\.png)", page.read_text("utf-8"))}


def sort_out(folder: Path) -> None:
    """Move pictures that are not shown to the other folder, and write the rest with fewer colours."""
    names, others = shown(), folder / OTHERS
    others.mkdir(exist_ok=True)
    for path in folder.glob("*.png"):
        if path.name not in names:
            path.replace(others / path.name)
        elif (picture := Image.open(path)).mode != "P":
            save(picture, path)


def main() -> None:
    """Take all pictures, or those with a given text in their names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="views whose names hold this")
    parser.add_argument("--out", type=Path, default=FOLDER)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    with browser() as chromium, served() as server:
        for theme in THEMES:
            for shot in SHOTS:
                if given.only in shot.view:
                    take(chromium, server, shot, theme, given.out)
            for method in STAGES:
                if given.only in f"stage-{method}":
                    take_stage(chromium, server, method, theme, given.out)
            for strip in STRIPS:
                if given.only in f"film-{strip.name}":
                    take_strip(chromium, server, strip, theme, given.out)
            if given.only in "opening page phone race":
                take_pages(chromium, server, theme, given.out)
    sort_out(given.out)


if __name__ == "__main__":
    main()
