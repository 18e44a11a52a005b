"""Says which fields of an address were ignored. assets/page/address.js does so for tabs without a server."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from decoding.params import shown

_LISTED = 3  # names of fields in a sentence
_ELSEWHERE = ("__", "utm_")  # begin the fields of Gradio and of those who count visits


def left_out(keys: Sequence[str], why: object) -> str:
    """Say which fields were ignored and why. Their names are untrusted, too."""
    more = f" and {len(keys) - _LISTED} more" if len(keys) > _LISTED else ""
    were = "was" if len(keys) == 1 else "were"
    return f"{', '.join(map(shown, keys[:_LISTED]))}{more} in the address {were} left out: {why}"


def unknown_fields(keys: Iterable[str], is_known: Callable[[str], bool]) -> list[str]:
    """Return a sentence on unknown fields, or none."""
    unknown = [key for key in keys if not is_known(key) and not key.startswith(_ELSEWHERE)]
    return [left_out(unknown, "this page has no such settings")] if unknown else []
