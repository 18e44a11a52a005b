"""Writes a run for the page's player: append-only JSON lines, during the run or from a record.

    {"kind":"play", ...}       what the run is, the themes, and every view with its base
    {"kind":"texts", ...}      display texts of tokens, before the line that first uses them
    {"kind":"strings", ...}    more of the run's table of strings
    {"kind":"values", ...}     more of its table of values: {"same": 3} in a step is the fourth of them
    {"kind":"step", ...}       a step: its nodes, a sentence, and a patch for every view
    {"kind":"end", ...}        what came out

On request:

    {"kind":"detail", ...}     for every node of a step: the target's best tokens, what the node sees in words, and what
                               views show when it is pinned; it has a table of values of its own
    {"kind":"rows", ...}       a step's tables

Beyond the size that is sent to a browser at once, steps are thin: their nodes and patches are requested and made when
needed. Requested lines hold their own strings, since the table ends where the thin steps begin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from threading import Lock
from typing import Any

from decoding.errors import TraceError
from decoding.trace import metrics
from decoding.types import Header, ModelCard, Step, Summary, Trace

from .. import narration, ranks, sources, tree_layout
from ..fates import JUDGED, emitted_fates, is_branching, node_fates
from ..methods import inspired_nodes, label_of, screen_of, setting_labels
from ..palette import THEMES, meanings
from ..run_state import RunState
from ..tables import as_json
from ..view import OF_A_RUN, View
from ..views import VIEWS, counters
from ..views.check import Rescored
from ..views.check import outcome as check_outcome
from ..views.mask_words import sentences
from ..views.pair import residuals
from . import encode
from .lines import Strings, Values, ids_in, line, scalars, texts_line

VERSION = 1
_FORCED = 64  # tokens of a branch that are named
CAP = 900_000  # bytes of a run's lines; thin steps come on top


class MisfitError(TraceError):
    """A record in a trace's form without what the views read, for example one changed by hand."""


class Play:
    """Writes a run's lines, and holds its state, so that a step or its details can be written again.

    The lines of a run in a race have the number of its `lane`. While one thread writes the steps, others may ask for
    those that are written.
    """

    def __init__(
        self,
        header: Header,
        run: str | None = None,
        cap: int | None = CAP,
        views: Mapping[str, View] = VIEWS,
        lane: int | None = None,
    ) -> None:
        self._write, self._lock = _writer(lane), Lock()
        self.run = RunState(header)
        self._id, self._cap, self._size = run, cap, 0
        self._strings, self._values, self._sent_texts = Strings(self._write), Values(self._write), set[int]()
        self._sources = screen_of(header).source_words
        self._thin = False  # from the step on that did not fit
        self._views = list[View]()
        for view in views.values():
            with _refusing_misfits("header", view.name):
                shown = view.shows(header)
            if shown:
                self._views.append(view)
        self._growing = [view for view in self._views if view.grows and view.kind == "plot"]

    def begin(self, texts: Mapping[int, str] | None = None) -> str:
        """Return the first lines; `texts` are display texts of the prompt's tokens."""
        header = self.run.header
        self.run.learn_texts(texts or {})
        views = [self._view(view) for view in self._views]
        fates = [
            asdict(meaning)
            | {"fate": meaning.fate.name.lower(), "code": meaning.fate, "judged": meaning.fate in JUDGED}
            for meaning in meanings(lossless=header.lossless)
        ]
        with _refusing_misfits("header", "prompt"):
            prompt = encode.ids(header.prompt)
        lines = self._write(
            "play",
            version=VERSION,
            run=self._id,
            header=_header(header),
            prompt=prompt,
            themes=THEMES,
            fates=fates,
            views=views,
        )
        lines += self._strings.line() + self._texts({*header.prompt, *ids_in(views)})
        self._size += len(lines)
        return lines

    def step(self, step: Step, texts: Mapping[int, str] | None = None) -> str:
        """Write the lines of the next step; `texts` are display texts of all its tokens, alternatives included."""
        with self._lock:
            self.run.learn_texts(texts or {})
            self.run.add(step)
            if not self._thin:
                fields = self._fields(step.index, thin=False)
                parts = {name: self._values.replace(fields[name]) for name in ("nodes", "views") if name in fields}
                whole = self._values.line() + self._write("step", **fields | parts)
                self._thin = self._cap is not None and self._size + len(whole) > self._cap
            if self._thin:  # the first step that is too large was made whole to find that out; none after it is
                fields = self._fields(step.index, thin=True)
                whole = self._write("step", **fields)
            lines = self._strings.line() + self._texts({*step.emitted, *ids_in(fields)}) + whole
            self._strings.closed = self._thin
            self._size += len(lines)
            return lines

    def end(self, summary: Summary | None, check: Rescored | None = None, speedup: float | None = None) -> str:
        """Return the last line; the summary of a run that was interrupted is None."""
        numbers = {} if summary is None else asdict(summary)
        numbers.pop("text", None)  # it is in the steps
        finish = "torn" if summary is None else summary.finish[:40]
        memory = counters.largest_memory(self.run) if self.run.steps else None
        facts = {"memory": memory, "bandwidth": counters.bandwidth(self.run, summary)}
        return self._write("end", finish=finish, summary=numbers, **facts, **self._proof(check, speedup))

    def late(self, check: Rescored | None = None, speedup: float | None = None) -> str:
        """Write what is measured after the end: the outcome of the check, or the speedup."""
        return self._write("check", **self._proof(check, speedup))

    def full(self, k: int) -> str:
        """Return step k again with everything in it, and the texts that it uses."""
        with self._lock:
            fields = self._fields(self._existing(k), thin=False)
        used = {*self.run.steps[k].emitted, *ids_in(fields)}
        return texts_line(self.run.texts, used) + line("step", **fields)

    def detail(self, k: int) -> str:
        """Write what is shown of a pinned node, for every node of step k, and the texts that it uses."""
        step = self.run.steps[self._existing(k)]
        strings, values, patches = Strings(closed=True), Values(), dict[str, list[encode.Encoded]]()
        for view in self._views:
            with _refusing_misfits(f"step {k}", view.name):
                made = view.pinned(self.run, k) if view.pinned else ()
            if made:
                patches[view.name] = [values.replace(strings.replace(patch)) for patch in made]
        with _refusing_misfits(f"step {k}", "mask"):
            sees = sentences(self.run, k)
        words = [*dict.fromkeys(sees)]
        numbers = {sentence: number for number, sentence in enumerate(words)}
        seen = {"words": words, "sees": [numbers[sentence] for sentence in sees]}
        details = line("detail", k=k, top=step.top, left=residuals(step), views=patches, values=values.new(), **seen)
        return texts_line(self.run.texts, step.alternatives) + details

    def rows(self, k: int) -> str:
        """Return the tables of step k that are made here: those of views whose rows are not the step's nodes."""
        self._existing(k)
        made = ((view.name, view.rows) for view in self._views if view.rows is not None)
        views = {}
        for name, rows in made:
            with _refusing_misfits(f"step {k}", name):
                table = rows(self.run, k)
            views[name] = as_json(table)
        return line("rows", k=k, views=views)

    def _view(self, view: View) -> dict[str, Any]:
        """Return a view's line; its base may know better words for this method, and of what the figure is made here."""
        with _refusing_misfits("header", view.name):
            base = dict(view.base(self.run))
        names: dict[str, Any] = {"name": view.name, "label": view.label, "kind": view.kind}
        names |= {"look_for": view.look_for, "columns": view.columns}
        facts = {"grows": view.grows, "nodes": view.nodes, "phases": view.phases}
        facts |= {"rows": view.rows is not None, "pinned": view.pinned is not None}
        better = {name: base.pop(name) for name in OF_A_RUN if name in base}
        return names | facts | better | {"base": self._strings.replace(base)}

    def _fields(self, k: int, *, thin: bool) -> dict[str, Any]:
        """Return step k as its line holds it; a thin line has no nodes, and patches of growing views only."""
        step, t = self.run.steps[k], self.run.steps[k].timing
        with _refusing_misfits(f"step {k}", "narration"):
            sentence = narration.say(self.run, k)
        with _refusing_misfits(f"step {k}", "tree"):
            sparks = inspired_nodes(self.run, k)
        fields: dict[str, Any] = {
            "k": k,
            **{name: getattr(step, name) for name in ("start", "pending", "fed", "accepted", "drafted", "emitted")},
            "emitted_fates": emitted_fates(step),
            "branch": is_branching(step),
            "ms": [round(ms, 3) for ms in (t.draft_ms, t.forward_ms, t.accept_ms, t.commit_ms, t.total_ms)],
            "say": sentence,
        }
        if step.experts is not None:
            fields["experts"] = round(step.experts, 2)
        if sparks:
            fields["inspired"] = [place for place, node in enumerate(step.path[1:]) if node in sparks]
        if thin:
            fields["thin"] = True
        elif step.tokens:
            sampled = bool(self.run.header.sampling.get("temperature"))
            with _refusing_misfits(f"step {k}", "nodes"):
                nodes = _nodes(step, self._strings, self._sources, sampled)
            inspired = {"inspired": sorted(sparks)} if sparks else {}
            fields["nodes"] = self._strings.replace(nodes | inspired)
        patches = {}
        for view in self._growing if thin else self._views:
            with _refusing_misfits(f"step {k}", view.name):
                patch = view.frame(self.run, k)
            if patch:
                patches[view.name] = self._strings.replace(patch)
        return fields | {"views": patches}

    def _proof(self, check: Rescored | None, speedup: float | None) -> dict[str, Any]:
        tokens_per_step = metrics.compression_rate(metrics.written(self.run.steps))
        outcome = None if check is None else check_outcome(check, self.run.header)
        return {"check": outcome, "speedup": metrics.credible_speedup(speedup, tokens_per_step)}

    def _existing(self, k: int) -> int:
        if not 0 <= k < len(self.run.steps):
            raise IndexError(f"step {k} is not one of the {len(self.run.steps)} steps so far")
        return k

    def _texts(self, tokens: Iterable[int]) -> str:
        """Return the texts that the stream does not hold yet."""
        new = set(tokens) - self._sent_texts
        self._sent_texts |= new
        return texts_line(self.run.texts, new, self._write)


def lines(trace: Trace, check: Rescored | None = None, cap: int | None = CAP, run: str | None = None) -> str:
    """Return all lines of a whole trace."""
    play = Play(trace.header, run, cap)
    texts = trace.texts
    begin = play.begin(texts)
    steps = "".join(play.step(step) for step in trace.steps)
    return begin + steps + play.end(trace.summary, check)


def state(what: str, sentence: str, share: float | None = None, lane: int | None = None) -> str:
    """Write what a run is waiting for before its first step: "loading", "queued" or "reading"."""
    return _writer(lane)("state", what=what, sentence=sentence, share=share)


def fault(sentence: str, lane: int | None = None) -> str:
    """Write why a run failed: one sentence that says what to change."""
    return _writer(lane)("fault", sentence=sentence)


def _writer(lane: int | None) -> Callable[..., str]:
    """Return what writes a line; in a race each has the number of its lane."""
    return line if lane is None else partial(line, lane=lane)


@contextmanager
def _refusing_misfits(where: str, what: str) -> Iterator[None]:
    """Raise MisfitError if the block reads what a file from elsewhere does not hold."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise MisfitError(f"the {where} of this trace does not hold what {what} shows: record the run again") from error


def _header(header: Header) -> dict[str, Any]:
    names = ("method", "device", "dtype", "attention", "record", "lossless", "window", "max_new_tokens", "slots")
    more = ("prefill_chunk", "processor", "threads", "ranks")
    fields = scalars({name: getattr(header, name) for name in (*names, *more)})
    fields |= {name: scalars(getattr(header, name)) for name in ("params", "sampling", "versions", "parts")}
    fields |= {"labels": setting_labels(header), "label": label_of(header)[:200], "prompt_length": len(header.prompt)}
    branch = header.branch
    if branch is not None:
        fields["branch"] = scalars(asdict(branch)) | {"forced": branch.forced[:_FORCED], "forces": len(branch.forced)}
    return fields | {"model": _card(header.model), "draft": _card(header.draft), "end_tokens": header.end_tokens[:64]}


def _card(card: ModelCard | None) -> dict[str, Any] | None:
    return None if card is None else scalars(asdict(card))


def _nodes(step: Step, strings: Strings, words: Mapping[str, str], sampled: bool) -> dict[str, Any]:
    """Return the columns of a step; what was not recorded is left out, and q where no guess is judged by it."""
    columns: dict[str, Any] = {
        "token": encode.ids(step.tokens),
        "parent": encode.pack(step.parents, "i1" if len(step.parents) <= 2**7 else "i2"),
        "fate": encode.fates(node_fates(step)),
        "source": strings.numbers(sources.in_words(source, words) for source in step.sources),
    }
    rows = [-1 if row is None else row for row in tree_layout.rows(step)]
    if any(rows):
        columns["row"] = encode.pack(rows, "i1" if len(rows) <= 2**7 else "i2")
    if step.choices:
        columns["choice"] = encode.ids(step.choices)
    if step.ranks:
        columns["readers"] = strings.numbers(map(ranks.words, step.ranks))
    for name in ("p", "q", "u") if sampled else ("p",):
        values = getattr(step, name)
        if any(value is not None for value in values):
            columns[name] = encode.pack([float("nan") if value is None else value for value in values], "f4")
    return columns
