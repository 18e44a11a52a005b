"""Runs methods over whole prompt sets, and writes every run, step and guess as Parquet."""
