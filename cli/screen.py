"""The output of `run` on a terminal, while a text is written and afterwards."""

from __future__ import annotations

import sys

from decoding import toy
from decoding.engine import Engine
from decoding.run import Run
from decoding.trace.rescore import Rescore
from decoding.types import Step

from .paint import KINDS, Paint, kind_of, visible
from .progress import ProgressBar
from .report import summary_lines
from .stream import Piece, PieceCutter, Stream

_LONGEST_ECHO = 400  # characters of the prompt shown in front of the answer


class RunScreen:
    """Shows a run on a terminal: its method, its text while it is written, then its metrics."""

    def __init__(self, paint: Paint, engine: Engine, run: Run, progress: ProgressBar) -> None:
        self._paint, self._engine, self._run, self._progress = paint, engine, run, progress
        self._pieces = PieceCutter(engine.codec, run.header.prompt)
        self._stream = Stream(self._write, run.request.stop)
        self._begun = False
        header = run.header
        params = "  ".join(run.request.params.in_words())
        print(paint.fit(f"{paint.bold(header.method)}  {paint.dim(params)}"))
        if engine.model.card.family == "table":
            print(paint.dim(f"toy: {toy.NOTE}"))
        print()

    def add(self, step: Step) -> None:
        """Show a step."""
        if not self._begun:
            self._begin_text()
        self._stream.add(self._pieces.of(step))
        sys.stdout.flush()

    def end_text(self) -> None:
        """Show the rest of the text, and move the cursor to an empty line, where a progress bar may be drawn."""
        self._stream.finish(self._run.summary.text)
        print("\n")

    def report(self, verdict: Rescore) -> None:
        """Show the numbers."""
        paint, run = self._paint, self._run
        sources = {kind_of(step.sources[node]) for step in run.steps for node in step.path[1:]}
        if sources and paint.styles:
            print(paint.fit(paint.legend([*(kind for kind in KINDS if kind in sources), *sorted(sources - {*KINDS})])))
        print(summary_lines(paint, run.header, run.steps, run.summary, verdict))

    def _begin_text(self) -> None:
        """Show the end of the prompt, once it has been read: until then the progress bar is on the same line."""
        self._begun = True
        self._progress.close()
        if self._paint.styles:  # elsewhere only the new text is printed, as in a file
            prompt = visible(self._engine.codec.decode(self._run.header.prompt[-_LONGEST_ECHO:]))
            print(self._paint.dim(prompt[-_LONGEST_ECHO:]), end="")

    def _write(self, piece: Piece) -> None:
        text, paint = visible(piece.text), self._paint
        print(paint.guess(text, piece.kind) if piece.kind else text, end="")
