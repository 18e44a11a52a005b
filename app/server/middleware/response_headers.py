"""Response headers: content security policy, caching, no content sniffing."""

from __future__ import annotations

import base64
import hashlib
import re

_SCRIPT = re.compile(rb"<script(?![^>]*\ssrc=)[^>]*>(.*?)</script>", re.DOTALL)
ALWAYS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),  # an address may hold a prompt
    (b"cross-origin-resource-policy", b"same-origin"),
]
FOREVER = (b"cache-control", b"public, max-age=31536000, immutable")
SHORTLY = (b"cache-control", b"public, max-age=300")
NEVER = (b"cache-control", b"no-store")


def content_policy(page: bytes) -> tuple[bytes, bytes]:
    """Return the content security policy of an HTML page; its inline scripts are allowed by their hashes.

    Gradio compiles the scripts of its components, which needs 'unsafe-eval', and writes inline styles. Any site may
    frame the page, as Spaces do.
    """
    hashes = [base64.b64encode(hashlib.sha256(script).digest()).decode() for script in _SCRIPT.findall(page)]
    scripts = " ".join(["'self'", "'unsafe-eval'", *(f"'sha256-{digest}'" for digest in hashes)])
    rules = [
        "default-src 'self'",
        f"script-src {scripts}",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "font-src 'self' data:",
        "connect-src 'self'",
        "worker-src 'self' blob:",
        "object-src 'none'",
        "base-uri 'self'",
        "form-action 'self'",
    ]
    return b"content-security-policy", "; ".join(rules).encode()
