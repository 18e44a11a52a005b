"""Measures and analyses many runs: evaluations, run folders, metrics, imports, the doctor, benchmarks, landscapes."""
