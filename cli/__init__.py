"""The command line: `python -m decoding`."""
