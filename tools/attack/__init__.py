"""Measure what a hostile visitor can do to everybody else: `make attack`."""
