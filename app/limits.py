"""Every cap of the page with its reason. All of them hold on the server, whatever a browser sends."""

from __future__ import annotations

import os
from dataclasses import dataclass

from decoding.trace import Limits as FileLimits


@dataclass(frozen=True, slots=True)
class Limits:
    """What one visitor may ask of a machine that many share."""

    prompt_characters: int = 8_000  # more than the embedded model's context holds; read before it is tokenised
    reference_characters: int = 8_000  # of a document to copy from
    message_characters: int = 2_000  # a turn of a conversation
    turns: int = 24  # of a conversation, answers included: then a new one is begun
    new_tokens: int = 256  # bounds a run's time, its record and what the browser keeps
    prompt_tokens: int = 4_096  # of models with a longer context than that; the embedded one has 1,024 in all
    nodes: int = 256  # of the largest step: a mask has their square
    seconds: float = 60.0  # of the wall clock, for one run from its first step
    race_seconds: float = 120.0  # for all the runs of a race together
    lanes: int = 6  # methods of a race: more do not fit side by side
    waiting: int = 16  # runs waiting for the engine: told at once to come back later, the next one loses less
    threads: int = 40  # of the server: every run that waits holds one
    stream_bytes: int = 900_000  # of one run in the page's component, which copies its value on every update
    # Seconds between two updates of the page: each takes time from the run that it tells of, most where two cores have
    # to serve the browser as well. Charts of a live run rest for half a second: there one picture is for all of it.
    live_gap: float = 0.2 if (os.cpu_count() or 1) > 2 else 0.5
    sessions: int = 200  # browser tabs whose state is kept
    chats: int = 16  # conversations whose caches stay in memory between two turns
    stored_bytes: int = 64 * 2**20  # packed records of live runs, to be looked at again; the oldest go first
    stored_runs: int = 256
    unpacked_runs: int = 6  # records held as objects, a few ten megabytes each
    models: int = 2  # engines in memory; the one unused for longest makes room
    upload_bytes: int = 4 * 2**20  # of a trace as it is sent, packed or not
    body_bytes: int = 6 * 2**20  # of any request: such a trace as text, and some room
    address_characters: int = 18_000  # of a page address: a long prompt and a reference fit, a flood does not
    address_bytes: int = 56_000  # of it as it is sent, where most letters are three: the server reads 64 KB in all
    detail_steps: int = 4_096  # highest step that can be asked for

    @property
    def files(self) -> FileLimits:
        """For a trace that a visitor drops: small enough to be drawn, and read in about a second."""
        return FileLimits(line_bytes=2 * 2**20, total_bytes=32 * 2**20, steps=2_048, nodes=1_024)


LIMITS = Limits()
