"""Drafts the guesses of an imported record again, with the models that wrote it."""
