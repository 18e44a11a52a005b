"""What methods need in addition to the target."""

from .base import CAPABILITIES, Parts
from .named import NAMED_PARTS, MethodPart

__all__ = ["CAPABILITIES", "NAMED_PARTS", "MethodPart", "Parts"]
