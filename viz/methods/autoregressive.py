"""Autoregressive decoding on the screen: it guesses nothing."""

from __future__ import annotations

from .base import Screen

SCREEN = Screen(guesses=False, heeds_budget=False)
