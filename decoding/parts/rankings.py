"""The ways to rank a model's tokens that follow nothing at all: by the paper's text, by the code in its appendix."""

RANKINGS = ("distance", "product")
