"""Hold the promises of the whole project, by package."""

from tools import ROOT

GOLDEN = ROOT / "tests" / "golden"
