"""The limits of the page, each with its reason. The server enforces all of them."""

from __future__ import annotations

import os
from dataclasses import dataclass

from decoding.methods import panel_names
from decoding.trace.lines import Limits


@dataclass(frozen=True, slots=True)
class PageLimits:
    """The limits for visitors of a shared machine."""

    prompt_characters: int = 8_000  # more than the embedded model's context holds; read before it is tokenised
    reference_characters: int = 8_000  # of a document to copy from
    message_characters: int = 2_000  # a turn of a conversation
    turns: int = 24  # of a conversation, answers included: then a new one is begun
    new_tokens: int = 256  # bounds a run's time, its record and what the browser keeps
    forced_characters: int = 200  # that a visitor may write into a step of a run
    prompt_tokens: int = 4_096  # of models with a longer context than that; the embedded one has 1,024 in all
    nodes: int = 256  # of the largest step: a mask has their square
    seconds: float = 60.0  # of the wall clock, for one run from its first step
    speedup_seconds: float = 6.0  # of measuring a speedup, after which no further round begins: others wait
    race_seconds: float = 120.0  # for all the runs of a race together
    examination_seconds: float = 240.0  # for a drafter's examination, which other visitors wait for
    examination_prompts: int = 24  # as many as tell a fault of a tenth from chance
    examination_tokens: int = 40  # after each prompt
    tuning_seconds: float = 120.0  # for a race of settings
    tuning_prompts: int = 3  # beside the visitor's own
    tuning_tokens: int = 48  # of an answer
    landscape_tokens: int = 2_048  # of a text whose landscape is measured, with its prompt: every method reads it anew
    lanes: int = 6  # methods of a race: more do not fit side by side
    waiting: int = 16  # runs in the queue: one that would wait for very long is better refused at once
    waiting_each: int = 8  # of one client: a class behind one address gets a good part of the queue, but not all of it
    unread_seconds: float = 5.0  # a run that nobody has read for so long is cancelled, since others wait for the engine
    threads: int = 40  # of the server: each waiting run occupies one
    stream_bytes: int = 900_000  # of one run in the page's component, which copies its value on every update
    # Seconds between two updates of the page: each slows the run, most where the browser shares two cores with it.
    # The charts of a live run are drawn every half second, so that on two cores every update is one picture.
    live_gap: float = 0.2 if (os.cpu_count() or 1) > 2 else 0.5
    # What is stored for visitors, and how much of it for one client: the client that has most is evicted from first.
    sessions: int = 200  # browser tabs: the last answer, and what methods learnt from their texts
    sessions_each: int = 50
    chats: int = 16  # conversations whose caches stay in memory between two turns
    chats_each: int = 8
    stored_bytes: int = 64 * 2**20  # packed traces of live runs and uploaded files, which can be opened again
    stored_bytes_each: int = 16 * 2**20
    stored_runs: int = 256
    stored_runs_each: int = 64
    unpacked_runs: int = 6  # traces that are unpacked
    unpacked_values: int = 2**21  # in all unpacked traces: about 70 MB, or one of the largest traces
    page_characters: int = 16 * 2**20  # of a run as one HTML file, which is built in memory and opened in a browser
    own_models: int = 16  # of visitors, in the catalog of a page whose owner lets them bring some
    # For a tokenizer that a visitor brings, to load and to encode a prompt, while everybody else waits. The largest
    # vocabularies take two seconds.
    tokenizer_seconds: float = 5.0
    tokenizer_memory: int = 8 * 2**30  # bytes of address space, of which torch reserves several gigabytes
    temperature: float = 2.0  # of the page's slider: above it hardly a guess is accepted; the command line takes more
    upload_bytes: int = 4 * 2**20  # of a trace as it is sent, packed or not
    file_bytes: int = 6 * 2**20  # of a request that uploads such a trace as text, a third larger
    body_bytes: int = 256 * 2**10  # of any other request: a conversation as long as it may be takes a fifth of that
    head_seconds: float = 10.0  # for the head of a request to arrive, from its first byte or the connection's beginning
    body_seconds: float = 15.0  # for its body
    file_seconds: float = 90.0  # for a trace: half a megabit per second
    send_seconds: float = 30.0  # for a client to receive 64 KB of a response, of which no more wait for it
    patience: float = 10.0  # seconds that a request waits while others of its client are answered
    events_each: int = 16  # events of one client that are answered at once
    calls_each: int = 4  # calls of functions: reading, replaying, exporting
    connections: int = 2_000  # open at once, where the system allows as many files
    connections_each: int = 400  # of one address, unless it is a proxy's: a page uses six
    address_characters: int = 18_000  # of a page's address that is read: older links hold a long prompt and a reference
    address_text_bytes: int = 2_048  # of one encoded text in an address that is written: mail and chat cut longer links
    address_bytes: int = 56_000  # of the encoded address, where most letters take three; the server reads 64 KB in all
    # For the Debug page.
    folder_bytes: int = (
        600 * 2**20
    )  # of the run folders in memory: a million guesses take about 300 MB with all columns
    brought_folders: int = 32  # that visitors brought
    brought_folders_each: int = 4
    brought_bytes: int = 64 * 2**20  # of one, unpacked
    brought_seconds: float = 10.0  # that reading one may take, in a process of its own
    brought_memory: int = 4 * 2**30  # bytes of address space of that process
    queries: int = 2  # that run at once: each may take two threads for five seconds
    queries_each: int = 1  # of one client
    query_memory: int = 4 * 2**30  # bytes of address space of the process of each
    query_patience: float = 8.0  # seconds that a query waits for others
    listed_steps: int = 40  # steps of a bar that are listed at once
    exported_rows: int = 20_000  # steps of a selection as a file
    detail_steps: int = 4_096  # highest step whose details can be requested

    @property
    def files(self) -> Limits:
        """The limits of an uploaded trace: it can be drawn, and is read and replayed in about two seconds.

        The longest fully recorded run with the largest steps that the page can make is within them. A node takes about
        27 values and 130 bytes, or twice that with the distribution of a drafter.
        """
        return Limits(
            line_bytes=2 * 2**20,
            total_bytes=16 * 2**20,
            steps=2_048,
            nodes=1_024,
            line_values=2**18,
            total_values=2**21 + 2**17,
            panel_values=300_000,  # of a node at most four, in the panels of Medusa
            total_nodes=self.new_tokens * self.nodes,
            prompt=2**17,
            texts=2**17,
            text_characters=2**20,
            written_characters=2**20,
            panels=panel_names(),
        )


LIMITS = PageLimits()
