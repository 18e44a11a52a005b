"""The run folder: three tables of Parquet and a summary, how they are written, checked, read and queried."""
