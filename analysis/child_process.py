"""Answers requests in a child process, with limited time and memory.

C++ code that reads or runs untrusted input can hang without any way to interrupt it, take all memory, or end the
process, and no `except` helps there. So that work runs in a child, which is killed if it takes too long. A child ends
with its parent, however that ends, because its standard input is closed. If it cannot notice that, because C++ holds
the interpreter, the system ends it when its time is over.

The module that a child runs calls `serve` with its function. A request is a line of JSON; an answer is a line of JSON
with the bytes that follow it.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from decoding.errors import SpecscopeError

_PACKAGES = Path(__file__).parents[1]  # where the child finds this package
_START_SECONDS = 60.0  # that importing the child's module may take, beyond the time of the first request
_MARGIN = 1.0  # seconds after which a child that should have been killed ends itself
ChildAnswer = tuple[dict[str, Any], bytes]


class ChildProcess:
    """A child that runs a module. One thread at a time may call it; after an error it cannot be used any more."""

    def __init__(self, module: str, memory: int, refusal: type[SpecscopeError]) -> None:
        path = os.pathsep.join(filter(None, (str(_PACKAGES), os.environ.get("PYTHONPATH"))))
        self._refusal, self._is_ready = refusal, False
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, str(memory)],
            env=os.environ | {"PYTHONPATH": path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # a library's last words, of any length
        )
        self.end = weakref.finalize(self, _end, self._process)

    def __enter__(self) -> ChildProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    @property
    def is_running(self) -> bool:
        """Whether it can still be asked."""
        return self.end.alive and self._process.poll() is None

    def ask(self, request: dict[str, Any], seconds: float) -> ChildAnswer:
        """Return the child's answer; raises TimeoutError if it is late, EOFError if the child has ended.

        A SpecscopeError of the child is raised here, as the kind of error that was named for this child.
        """
        if not self._is_ready:
            self._within(_START_SECONDS, self._read)
            self._is_ready = True
        answer, content = self._within(seconds, lambda: self._exchange({"seconds": seconds, "request": request}))
        if "refused" in answer:
            raise self._refusal(answer["refused"])
        return answer, content

    def _within(self, seconds: float, exchange: Callable[[], ChildAnswer]) -> ChildAnswer:
        """Return the result of an exchange. The child is killed at the timeout, which ends the exchange."""
        late = threading.Event()

        def stop() -> None:
            late.set()
            self._process.kill()

        timer = threading.Timer(seconds, stop)
        timer.daemon = True
        timer.start()
        try:
            return exchange()
        except (OSError, EOFError):
            self.end()
            raise EOFError("the child has ended") from None
        finally:
            timer.cancel()
            timer.join()  # so that it kills now, or never
            if late.is_set():
                self.end()
                raise TimeoutError("the child took too long")

    def _exchange(self, message: dict[str, Any]) -> ChildAnswer:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()
        return self._read()

    def _read(self) -> ChildAnswer:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line.endswith(b"\n"):
            raise EOFError
        answer = json.loads(line)
        content = self._process.stdout.read(answer["bytes"])
        if len(content) < answer["bytes"]:
            raise EOFError
        return answer, content


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    for pipe in (process.stdin, process.stdout):
        with suppress(OSError):  # unwritten data has no reader any more
            if pipe is not None:
                pipe.close()
    process.wait()


def serve(answer: Callable[[Any], ChildAnswer]) -> None:
    """Answer the parent's requests until it closes the pipe; for the child's `__main__`."""
    _limit(int(sys.argv[1]))
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # output of libraries must not be taken for an answer
    messages = queue.SimpleQueue[Any]()
    threading.Thread(target=_receive, args=(messages,), daemon=True).start()
    _send(answers, {}, b"")
    while True:
        message = messages.get()
        _end_after(message["seconds"] + _MARGIN)
        try:
            _send(answers, *answer(message["request"]))
        except SpecscopeError as error:
            _send(answers, {"refused": str(error)}, b"")
        _end_after(0)


def _receive(messages: queue.SimpleQueue[Any]) -> None:
    """Queue requests. At the end of the input the process exits at once: nobody waits for its answer any more."""
    for line in sys.stdin.buffer:
        messages.put(json.loads(line))
    os._exit(0)


def _end_after(seconds: float) -> None:
    """Have the system end this process after `seconds` seconds; 0: never."""
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, signal.SIG_DFL)  # a parent may have it ignored
        signal.setitimer(signal.ITIMER_REAL, seconds)


def _send(answers: Any, answer: dict[str, Any], content: bytes) -> None:
    answers.write(json.dumps(answer | {"bytes": len(content)}).encode() + b"\n" + content)
    answers.flush()


def _limit(memory: int) -> None:
    with suppress(ImportError, ValueError, OSError):  # elsewhere than on Unix, or where less is allowed already
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a process that aborts would write its memory to the disk
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
