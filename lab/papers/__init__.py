"""Tests the papers' central tables and figures on a small model."""

from collections.abc import Mapping

from . import (
    eagle3,
    jacobi,
    kangaroo,
    lookahead,
    medusa,
    ngrammys,
    ouroboros,
    rest,
    speculative,
    suffix,
    token_recycling,
)
from .claims import Paper

PAPERS: Mapping[str, Paper] = {
    "jacobi": jacobi.PAPER,
    "lookahead": lookahead.PAPER,
    "speculative": speculative.PAPER,
    "ngrammys": ngrammys.PAPER,
    "medusa": medusa.PAPER,
    "kangaroo": kangaroo.PAPER,
    "eagle3": eagle3.PAPER,
    "ouroboros": ouroboros.PAPER,
    "rest": rest.PAPER,
    "token_recycling": token_recycling.PAPER,
    "suffix": suffix.PAPER,
}

__all__ = ["PAPERS"]
