"""Opens a database in memory without files, network, extensions or settings that a query could change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import duckdb
import pyarrow as pa

from decoding.errors import ParamError

_SETTINGS: dict[str, Any] = {
    "threads": 2,
    "memory_limit": "256MB",
    "temp_directory": "",
    "max_temp_directory_size": "0KiB",
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
    "allow_persistent_secrets": False,
    "python_enable_replacements": False,
}


def open_sandbox(tables: Mapping[str, pa.Table]) -> duckdb.DuckDBPyConnection:
    """Open a database over tables, which are not copied. It has no access to anything else."""
    database = duckdb.connect(":memory:", config=_SETTINGS)
    try:
        for name, table in tables.items():
            database.register(name, table)
        database.execute("SET enable_external_access = false")
        database.execute("SET lock_configuration = true")
    except BaseException:
        database.close()
        raise
    return database


def refusal(error: Exception | str) -> ParamError:
    """Turn an error of DuckDB into one sentence: its first line says what is wrong, the others quote the query."""
    first = next((line.strip() for line in str(error).splitlines() if line.strip()), "it failed")
    kind, _, what = first.partition(": ")
    what = what if what and kind.endswith(("Error", "error")) else first
    what = what.removeprefix("Error: ").strip().rstrip(".!")
    if "memory" in first.lower():
        return ParamError("the query needs more memory than it may have: ask for fewer rows, or join less")
    return ParamError(f"the query cannot be run: {what[:200]}")
