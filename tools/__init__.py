"""What makes pictures of the page and looks at it from outside: for benchmarks, tests and the README."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
