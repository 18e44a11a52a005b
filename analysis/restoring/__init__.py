"""Guesses of an imported record, drafted again by the models that wrote it."""
