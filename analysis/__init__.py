"""What many runs show: evaluations, run folders, metrics, imports, the doctor, benchmarks, landscapes."""
