"""docs/api.md, generated from docstrings, signatures, parsers and the commands' output, so that it is always true."""
