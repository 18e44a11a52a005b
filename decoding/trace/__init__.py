"""Traces: their file format, their metrics, rescoring, and exports for other tools."""

from .file import Limits, Readable, Texts, TraceWriter, dump_line, parse_trace, read_trace, write_trace

__all__ = ["Limits", "Readable", "Texts", "TraceWriter", "dump_line", "parse_trace", "read_trace", "write_trace"]
