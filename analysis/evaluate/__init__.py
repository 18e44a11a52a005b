"""Runs methods over whole prompt sets, and writes what happened as Parquet."""
