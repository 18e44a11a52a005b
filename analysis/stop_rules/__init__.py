"""Replays stop rules on recorded runs: the effect of another draft length, threshold or tree size.

Only SuffixDecoding, which needs no model, is run again. `report.py` says how certain each number is.
"""
