"""Autoregressive decoding on the screen: it guesses nothing."""

from __future__ import annotations

from .base import Screen
from .stages import autoregressive as on_stage

SCREEN = Screen(guesses=False, heeds_budget=False, stage=on_stage.STAGE)
