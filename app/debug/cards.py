"""The cards of the Debug tab: every metric, and the replayed stop rules."""

from __future__ import annotations

from analysis.metrics import METRICS
from analysis.stop_rules.card import CARD

CARDS = {**METRICS, CARD.key: CARD}
