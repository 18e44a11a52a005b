"""The rankings of a model's unigrams: the paper's, and that of the code in its appendix."""

RANKINGS = ("distance", "product")
