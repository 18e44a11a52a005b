"""The run folder, three Parquet tables and a summary: writes, checks, reads and queries it."""
