"""Traces: their file format, their metrics, and rescoring."""

from .file import Texts, TraceWriter, dump_line, parse_trace, read_trace, write_trace
from .lines import Limits, Readable

__all__ = ["Limits", "Readable", "Texts", "TraceWriter", "dump_line", "parse_trace", "read_trace", "write_trace"]
