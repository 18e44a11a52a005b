"""Serve the page as on a ZeroGPU Space, without a GPU: `python -m tools.pretended_zero_gpu`, with the flags of the app.

The package `spaces` is the real one (`pip install spaces`), and forks its processes as on ZeroGPU; only the device API,
which lends the GPU and counts its seconds, is ours. If torch has no CUDA that `spaces` could patch, torch is hidden
while `spaces` is imported.
"""

from __future__ import annotations

import http.server
import json
import os
import sys
import threading
from collections import deque
from typing import Any
from urllib.parse import parse_qs, urlparse


class DeviceAPI(http.server.BaseHTTPRequestHandler):
    """Lends a GPU to every visitor who has seconds left."""

    asked = deque[dict[str, str]](maxlen=100)  # paths and arguments of the last calls
    idle = True  # whether a process that had the GPU before gets it again
    left = 10**6  # seconds that the visitor has
    longest = 10**6  # seconds that are lent at once

    def do_POST(self) -> None:
        """Answer a call of `spaces`."""
        address = urlparse(self.path)
        words = {name: values[0] for name, values in parse_qs(address.query).items()} | {"path": address.path}
        self.asked.append(words)
        code, answer, headers = 200, dict[str, Any](), {}
        if address.path == "/schedule":
            wanted = int(words["durationSeconds"])
            answer = {"idle": self.idle, "nvidiaIndex": 0, "nvidiaUUID": "GPU-0", "allowToken": os.urandom(8).hex()}
            if wanted > self.longest or wanted > self.left:
                code, headers = 429, {"X-Approve-Result": "quota-exceeded"}
                answer = {"left": self.left, "wait": -1 if wanted > self.longest else 3600}
        body = json.dumps(answer).encode()
        self.send_response(code)
        for name, value in (headers | {"Content-Type": "application/json", "Content-Length": str(len(body))}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        """Log nothing."""


def pretend() -> None:
    """Start the device API and import `spaces`: before torch, Gradio and the app."""
    api = http.server.ThreadingHTTPServer(("127.0.0.1", 0), DeviceAPI)
    threading.Thread(target=api.serve_forever, daemon=True).start()
    cgroup = os.memfd_create("cgroup")  # a file that is left nowhere
    os.write(cgroup, b"0::/here\n")
    os.environ |= {
        "SPACES_ZERO_GPU": "true",
        "SPACES_ZERO_DEVICE_API_URL": f"http://127.0.0.1:{api.server_port}",
        "ZEROGPU_PROC_SELF_CGROUP_PATH": f"/proc/{os.getpid()}/fd/{cgroup}",
    }
    sys.modules["torch"] = None  # type: ignore[assignment]
    import spaces  # type: ignore[import-not-found, import-untyped, unused-ignore]  # noqa: F401

    del sys.modules["torch"]


if __name__ == "__main__":
    pretend()
    from app.__main__ import main

    sys.exit(main())
