"""docs/api.md, made of docstrings, signatures, parsers and what the commands print: it cannot say what is not so."""
