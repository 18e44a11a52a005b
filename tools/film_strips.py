"""Take film strips of the stage: two steps phase by phase, in which one token is followed from its origin."""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO
from itertools import product
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw, ImageFont

from .browser import PLAYER
from .page import Page
from .pictures import opened, save, settle

FILMED_PHASES = ("propose", "verify", "accept", "commit")
_CAPTION, _GAP, _ACROSS = 30, 12, 2  # pixels above each picture and between them; pictures side by side

# The ids of an accepted guess of the second step and of the pieces that it was copied from, in that order. Of several
# guesses the one that has come the farthest.
_FOLLOWED = f"""(first) => {{
  const player = {PLAYER}, {{ stage }} = player, origins = new Map(), texts = new Map();
  for (const step of [first, first + 1]) for (const phase of {list(FILMED_PHASES)}) {{
    player.seek(step, phase, false);
    player.flush();
    for (const {{ id, text, origin }} of stage.pieces.shown.values()) {{
      texts.set(id, text);
      if (origin !== null) origins.set(id, origin);
    }}
  }}
  const way = (id) => {{
    const ids = [id];
    for (let at = origins.get(id); texts.get(at) === texts.get(id) && !ids.includes(at); at = origins.get(at)) {{
      ids.push(at);
    }}
    return ids;
  }};
  const accepted = [...stage.pieces.shown.values()].filter(({{ fate }}) => fate === 2);
  return accepted.map(({{ id }}) => way(id)).reduce((one, other) => (other.length > one.length ? other : one));
}}"""
_SHOW = f"""([step, phase, followed]) => {{
  const player = {PLAYER};
  player.seek(step, phase, false);
  player.flush();
  for (const [id, element] of player.stage.pieces.elements) {{
    element.style.outline = followed.includes(id) ? ".2em solid currentColor" : "";
  }}
}}"""


@dataclass(frozen=True)
class FilmStrip:
    """Two steps of a recording, the second of which accepts a guess."""

    name: str
    run: str
    step: int


STRIPS = (
    FilmStrip("lookahead", "smollm2-rain-lookahead", 38),
    FilmStrip("medusa", "smollm2-rain-medusa", 2),
    FilmStrip("ouroboros", "smollm2-rain-ouroboros", 33),
)


def take_strip(chromium: Any, server: Page, strip: FilmStrip, theme: str, folder: Path) -> None:
    """Take eight pictures, and join them into one."""
    pictures = []
    with opened(chromium, server, 1280, 900, run=strip.run, step=strip.step, __theme=theme) as page:
        followed = page.evaluate(_FOLLOWED, strip.step)
        for step, phase in product((strip.step, strip.step + 1), FILMED_PHASES):
            page.evaluate(_SHOW, [step, phase, followed])
            settle(page)
            picture = Image.open(BytesIO(page.locator(".ss-stage").screenshot())).convert("RGB")
            pictures.append((f"step {step}: {phase}", picture))
    save(_joined(pictures, dark=theme == "dark"), folder / f"film-{strip.name}-{theme}.png")


def _joined(pictures: list[tuple[str, Image.Image]], *, dark: bool) -> Image.Image:
    """Join the pictures in reading order, each below its caption."""
    wide, high = (max(sizes) for sizes in zip(*(picture.size for _, picture in pictures), strict=True))
    rows = -(-len(pictures) // _ACROSS)
    paper, ink = ("#14171C", "#E8EAEE") if dark else ("#FFFFFF", "#1A1D23")
    whole = Image.new("RGB", (_ACROSS * (wide + _GAP) + _GAP, rows * (high + _CAPTION + _GAP)), paper)
    draw, font = ImageDraw.Draw(whole), ImageFont.load_default(20)
    for number, (caption, picture) in enumerate(pictures):
        row, column = divmod(number, _ACROSS)
        left, top = _GAP + column * (wide + _GAP), row * (high + _CAPTION + _GAP)
        draw.text((left, top + 2), caption, fill=ink, font=font)
        whole.paste(picture, (left, top + _CAPTION))
    return whole
