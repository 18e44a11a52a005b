"""The record of a run: its file format, what is derived from it, and the forms that other tools read."""

from .file import Limits, Readable, Texts, TraceWriter, dump_line, parse_trace, read_trace, write_trace

__all__ = ["Limits", "Readable", "Texts", "TraceWriter", "dump_line", "parse_trace", "read_trace", "write_trace"]
