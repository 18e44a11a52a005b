"""Stores what visitors can open again: recordings, traces of live runs, run folders."""
