"""Runs a GGUF file with llama-cpp-python: a line of JSON in for every text, one out with its ids and times.

It runs in a separate environment with llama-cpp-python and without this project. It uses the plain C functions of
llama.cpp, so that no sampler runs between a pass and its greedy token.
"""

from __future__ import annotations

import ctypes
import json
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import llama_cpp as library
import numpy as np

SILENT = library.llama_log_callback(lambda level, text, data: None)  # kept, since llama.cpp calls it until the end


def print_line(answer: dict[str, Any]) -> None:
    """Print a line and flush it."""
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def fail(reason: str) -> NoReturn:
    """Print why, and exit: llama.cpp cannot be used any more."""
    print_line({"error": reason})
    sys.exit(1)


class LlamaModel:
    """A file and a context for it."""

    def __init__(self, file: str, threads: int, context: int) -> None:
        library.llama_log_set(SILENT, ctypes.c_void_p(0))
        library.llama_backend_init()
        options = library.llama_model_default_params()
        options.n_gpu_layers = 0
        model = library.llama_model_load_from_file(file.encode(), options)
        if not model:
            fail("it cannot read the file")
        size = library.llama_context_default_params()
        size.n_ctx = size.n_batch = min(context, library.llama_model_n_ctx_train(model))
        size.n_threads = size.n_threads_batch = threads
        self._context = library.llama_init_from_model(model, size)
        if not self._context:
            fail("it cannot make a context")
        self._vocabulary = library.llama_vocab_n_tokens(library.llama_model_get_vocab(model))

    def greedy(self, prompt: Sequence[int]) -> Iterator[int]:
        """Yield the target's likeliest token after a prompt, and after each token it chose."""
        library.llama_memory_clear(library.llama_get_memory(self._context), True)
        ids = list(prompt)
        while True:
            tokens = (library.llama_token * len(ids))(*ids)
            if library.llama_decode(self._context, library.llama_batch_get_one(tokens, len(ids))):
                fail("a pass failed")
            logits = library.llama_get_logits_ith(self._context, -1)
            ids = [int(np.ctypeslib.as_array(logits, (self._vocabulary,)).argmax())]
            yield ids[0]


def main(file: str, threads: str, context: str) -> None:
    """Answer until the input ends."""
    model = LlamaModel(file, int(threads), int(context))
    print_line({"ready": True})
    for line in sys.stdin:
        asked = json.loads(line)
        ids, seconds, begin = list[int](), list[float](), time.perf_counter()
        for token in model.greedy(asked["ids"]):
            ids.append(token)
            seconds.append(time.perf_counter() - begin)
            if len(ids) >= asked["budget"] or token in asked["ends"]:
                break
        print_line({"ids": ids, "seconds": seconds})


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except Exception as error:
        fail(str(error))
