"""Measure how a hostile visitor affects everybody else: `make attack`."""
