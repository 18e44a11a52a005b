"""Checks a recorded run against itself, against its model, and against another run of the same settings."""
