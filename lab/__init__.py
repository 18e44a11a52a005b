"""Makes the embedded family, trains parts, and measures the papers' claims; only the command line uses it."""
