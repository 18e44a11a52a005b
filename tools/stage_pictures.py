"""Take pictures of every method's stage on a projector, a desktop and a phone, each at a step that accepts."""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import Image

from .browser import PLAYER
from .page import Page
from .pictures import opened, save, settle

PHASE = "accept"  # guesses are judged, and no token is committed yet


@dataclass(frozen=True)
class ScreenSize:
    """The size of a screen."""

    name: str
    width: int
    height: int
    full: bool = False  # whether the player fills it


SCREENS = (
    ScreenSize("projector", 1280, 720, full=True),
    ScreenSize("desk", 1440, 900),
    ScreenSize("large", 1920, 1080),
    ScreenSize("phone", 390, 844),
)
# Recordings, and a step of each that shows the method's idea.
STAGES = {
    "autoregressive": ("smollm2-rain-autoregressive", 10),
    "jacobi": ("jacobi-defaults", 12),
    "lookahead": ("smollm2-rain-lookahead", 70),
    "draft_model": ("smollm2-spelling-draft_model", 5),
    "prompt_lookup": ("smollm2-spelling-prompt_lookup", 4),
    "suffix": ("smollm2-spelling-suffix", 3),
    "ngrammys": ("smollm2-prime-ngrammys", 20),
    "token_recycling": ("smollm2-prime-token_recycling", 5),
    "medusa": ("smollm2-prime-medusa", 2),
    "kangaroo": ("kangaroo-defaults", 4),
    "eagle3": ("eagle3-defaults", 3),
    "dflash": ("dflash-ddtree", 3),
    "ouroboros": ("smollm2-prime-ouroboros", 14),
    "rest": ("smollm2-rain-rest", 10),
}


def take_stage(chromium: Any, server: Page, method: str, theme: str, folder: Path) -> None:
    """Take a method's stage on every screen."""
    run, step = STAGES[method]
    for screen in SCREENS:
        with opened(chromium, server, screen.width, screen.height, run=run, step=step, __theme=theme) as page:
            if screen.full:
                page.keyboard.press("f")
                page.wait_for_function(f"{PLAYER}.state.full")
            page.evaluate(f"{PLAYER}.seek({step}, '{PHASE}', false)")
            settle(page)
            picture = Image.open(BytesIO(page.screenshot()))
            save(picture, folder / f"stage-{method}-{screen.name}-{theme}.png")
