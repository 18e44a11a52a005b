"""The cards of the Debug page: every metric, and the stop rules replayed."""

from __future__ import annotations

from analysis.metrics import METRICS
from analysis.stop_rules.card import CARD

CARDS = {**METRICS, CARD.key: CARD}
