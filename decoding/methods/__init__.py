"""The methods, in the order in which the page lists them."""

from inspect import isabstract

from ..errors import ParamError
from ..params import shown
from .autoregressive import Autoregressive
from .base import Context, Method
from .dflash import DFlashMethod
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
    "dflash": DFlashMethod,
    "ouroboros": Ouroboros,
    "rest": Rest,
}

__all__ = ["METHODS", "Context", "Method", "find_method", "panel_names"]


def panel_names() -> frozenset[str]:
    """Return all keys that a panel may have, to check files from elsewhere."""
    return frozenset(name for method in METHODS.values() for name in method.Panel.__annotations__)


def find_method(name: object) -> type[Method]:
    """Return the method of that name; a class of the user is returned unchanged."""
    if isinstance(name, type) and issubclass(name, Method) and not isabstract(name):
        return name
    if not isinstance(name, str) or name not in METHODS:
        raise ParamError(f"unknown method {shown(name)}; choose one of {', '.join(METHODS)}")
    return METHODS[name]
