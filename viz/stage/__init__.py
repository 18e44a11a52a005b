"""The stage: one animated picture of a run, in which a token stays the same object when it moves."""
