"""A child for the tests of `analysis.child_process`: it does what it is asked to."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

from analysis.child_process import ChildAnswer, serve
from decoding.errors import SpecscopeError


def _answer(request: Any) -> ChildAnswer:
    match request["do"]:
        case "sleep":
            time.sleep(request["seconds"])
        case "hold":  # the interpreter, as a library in C++ does
            sys.setswitchinterval(1e6)
            while True:
                pass
        case "allocate":
            bytearray(request["bytes"])
        case "print":
            sys.stdout.write("noise\n")
            os.write(1, b"noise\n")
        case "refuse":
            raise SpecscopeError("this is refused")
        case "exit":
            os._exit(3)
    return {"pid": os.getpid(), "did": request["do"]}, b"\0\n" * request.get("size", 0)


if __name__ == "__main__":
    serve(_answer)
