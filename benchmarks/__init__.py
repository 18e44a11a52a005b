"""Measurements. Nothing here is a test: speed depends on the machine, so it is reported, as ratios within one run."""
