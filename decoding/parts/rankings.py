"""The ways to rank a model's unigrams: as in the paper, or as in the code in its appendix."""

RANKINGS = ("distance", "product")
