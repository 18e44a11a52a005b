"""The keys that callers must send, if the owner set any."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from starlette.datastructures import Headers

from decoding.errors import ParamError

from ..server.middleware.errors import RequestError

_VARIABLE = "SPECSCOPE_API_KEY"
_SHORTEST, _LONGEST, _MOST = 16, 256, 1_000
_LARGEST_FILE = _MOST * (_LONGEST + 2)


@dataclass(frozen=True, slots=True)
class Caller:
    """A caller, and the address under which it knows this server."""

    client: str  # the key or the address, which takes turns with others
    root: str  # of links to the page


@dataclass(frozen=True, slots=True)
class Keys:
    """Digests of the keys; without any, everybody may call."""

    digests: tuple[bytes, ...] = ()

    @classmethod
    def of(cls, file: str | None, environment: Mapping[str, str]) -> Keys:
        """Read the keys of a file, one per line, and the one of the environment."""
        texts = [environment[_VARIABLE]] if environment.get(_VARIABLE) else []
        if file is not None:
            try:
                with Path(file).open("rb") as opened:
                    data = opened.read(_LARGEST_FILE + 1)
                lines = [line.strip() for line in data.decode("ascii").splitlines()]
            except (OSError, ValueError) as error:
                reason = getattr(error, "strerror", None) or "keys are ASCII letters"
                raise ParamError(f"the key file {file[:200]!r} cannot be read: {reason}") from None
            if not any(lines) or len(data) > _LARGEST_FILE:
                raise ParamError(f"the key file {file[:200]!r} must hold 1 to {_MOST} keys, one a line")
            texts += [line for line in lines if line]
        for text in texts:
            if not (_SHORTEST <= len(text) <= _LONGEST and text.isascii() and text.isprintable() and " " not in text):
                raise ParamError(f"an API key has {_SHORTEST} to {_LONGEST} letters and digits without spaces")
        return cls(tuple(hashlib.sha256(text.encode()).digest() for text in texts))

    def client(self, headers: Headers, address: str) -> str:
        """Return the caller's key, or its address if there are no keys. Raises RequestError for a wrong key.

        Every key is compared, in constant time, so that the duration reveals nothing about them.
        """
        if not self.digests:
            return address
        scheme, _, key = headers.get("authorization", "").partition(" ")
        sent = hashlib.sha256(key.strip().encode("latin-1")).digest()
        fits = [hmac.compare_digest(sent, digest) for digest in self.digests]
        if scheme.lower() != "bearer" or not any(fits):
            raise RequestError(401, "Send a key of this server: Authorization: Bearer KEY.")
        return f"key {sent.hex()[:16]}"
