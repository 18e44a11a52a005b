"""Tools that take pictures of the page and test it from outside: for benchmarks, tests and the README."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
