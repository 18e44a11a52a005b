"""The methods, in the order of the screen."""

from .autoregressive import Autoregressive
from .base import Context, Method
from .draft_model import DraftModel
from .eagle3 import Eagle3
from .jacobi import Jacobi
from .kangaroo import Kangaroo
from .lookahead import Lookahead
from .medusa import Medusa
from .ngrammys import NGrammys
from .ouroboros import Ouroboros
from .prompt_lookup import PromptLookup
from .rest import Rest
from .suffix import Suffix
from .token_recycling import TokenRecycling

METHODS: dict[str, type[Method]] = {
    "autoregressive": Autoregressive,
    "jacobi": Jacobi,
    "lookahead": Lookahead,
    "draft_model": DraftModel,
    "prompt_lookup": PromptLookup,
    "suffix": Suffix,
    "ngrammys": NGrammys,
    "token_recycling": TokenRecycling,
    "medusa": Medusa,
    "kangaroo": Kangaroo,
    "eagle3": Eagle3,
    "ouroboros": Ouroboros,
    "rest": Rest,
}

__all__ = ["METHODS", "Context", "Method", "panel_names"]


def panel_names() -> frozenset[str]:
    """The names in the panels, for whoever reads a file that may hold anything in them."""
    return frozenset(name for method in METHODS.values() for name in method.Panel.__annotations__)
