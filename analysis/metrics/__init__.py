"""The metrics of a run folder: pure functions over its three tables, listed once, in `METRICS`."""

from .compare import compared
from .registry import METRICS, Metric, measure
from .result import Condition, MetricResult
from .selection import Selection

__all__ = ["METRICS", "Condition", "Metric", "MetricResult", "Selection", "compared", "measure"]
