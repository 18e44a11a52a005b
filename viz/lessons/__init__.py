"""Lessons: Markdown files that drive the player, with every number in them computed from recorded runs."""
