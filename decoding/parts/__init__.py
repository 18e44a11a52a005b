"""What methods need in addition to the target."""

from .base import CAPABILITIES, MethodPart, Parts

__all__ = ["CAPABILITIES", "MethodPart", "Parts"]
