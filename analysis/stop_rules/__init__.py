"""Stop rules replayed on recorded runs: what another draft length, threshold or tree size would have given.

Nothing is decoded again but SuffixDecoding, which needs no model. `report.py` says how sure each number is.
"""
