"""The methods, in the order of the screen."""

from .autoregressive import Autoregressive
from .base import Context, Method
from .draft_model import DraftModel
from .jacobi import Jacobi
from .lookahead import Lookahead
from .prompt_lookup import PromptLookup

METHODS: dict[str, type[Method]] = {
    "autoregressive": Autoregressive,
    "jacobi": Jacobi,
    "lookahead": Lookahead,
    "draft_model": DraftModel,
    "prompt_lookup": PromptLookup,
}

__all__ = ["METHODS", "Context", "Method"]
