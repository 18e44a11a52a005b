"""What methods need beside the target."""

from .base import CAPABILITIES, Part, Parts

__all__ = ["CAPABILITIES", "Part", "Parts"]
