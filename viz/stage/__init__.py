"""The stage: one moving picture of a run, in which a token is one object wherever it goes."""
