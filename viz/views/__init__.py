"""All views: behind the keys 1 to 8 of the page in this order, then what always goes with them."""

from __future__ import annotations

from ..view import View
from . import cache, check, counters, mask, mask_words, pair, pool, stage, text, timeline, tree, window

VIEWS: dict[str, View] = {
    "mask": mask.VIEW,
    "window": window.VIEW,
    "pool": pool.VIEW,
    "tree": tree.VIEW,
    "pair": pair.VIEW,
    "timeline": timeline.VIEW,
    "counters": counters.VIEW,
    "check": check.VIEW,
    "cache": cache.VIEW,
    "text": text.VIEW,
    "stage": stage.VIEW,
}
WORDS = {"mask": mask_words.WORDS}  # sentences that the page's player fills in
