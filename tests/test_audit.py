"""The audit of pinned versions: what it finds is named, and a database that is not there is one sentence."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

from tools.audit import audit, pins


def test_a_version_with_advisories_is_named() -> None:
    pinned = [*pins()]
    assert {"PyPI", "npm"} == {kind for kind, _, _ in pinned} and ("PyPI", "torch") in {each[:2] for each in pinned}

    class Database(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            queries = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["queries"]
            bad = [each["package"] == {"ecosystem": "npm", "name": "eslint"} for each in queries]
            body = json.dumps({"results": [{"vulns": [{"id": "GHSA-1"}]} if each else {} for each in bad]}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Database) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        advisory, count = audit(f"http://127.0.0.1:{server.server_port}/")
    assert advisory.startswith("eslint ") and advisory.endswith("has advisories: GHSA-1")
    assert count.startswith(f"{len(pinned)} pinned versions")


def test_without_a_network_it_says_so() -> None:
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as taken:
        address = f"http://127.0.0.1:{taken.server_port}/"
    assert [*audit(address)] == ["The database of advisories cannot be reached, so no dependency was audited."]
