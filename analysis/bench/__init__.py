"""Measures methods and peers side by side."""
