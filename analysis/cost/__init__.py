"""Measures what decoding costs on this machine: passes by their rows, trees, prefill and the methods' drafting."""
