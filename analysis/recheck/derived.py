"""Checks a record against itself, without its model: the summary from the steps, the text from the tokens, ..."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from decoding.errors import ParamError, TraceError
from decoding.methods import METHODS
from decoding.parts import CAPABILITIES
from decoding.sampling_params import Sampling
from decoding.trace.metrics import summarise
from decoding.types import Role, Step, Summary, Trace

from .contradiction import Contradiction, differs, first_of, summed_up
from .tested import untrue_tests

ROUNDED = 2e-6  # recorded probabilities have six decimals
_EARLY = ("cancelled", "time", "error")
_ENDS = ("length", "end_of_text", "stop", *_EARLY)
_BYTES = re.compile("(?:<0x[0-9A-F]{2}>)+")
_SPECIAL = re.compile(r"<.*>|\[.*\]", re.DOTALL)  # what a special token may look like, which no text shows


def contradictions(trace: Trace) -> list[Contradiction]:
    """List what contradicts itself in a record."""
    return first_of(_all(trace))


def unchecked(trace: Trace) -> Iterator[str]:
    """Say what of a record cannot be checked because it ends early, or because its method is not known."""
    if trace.summary is None:
        yield "how the run ended: the record stops before its summary"
    if trace.header.method not in METHODS:
        yield f"settings, parts and guesses of the method {trace.header.method[:40]!r}, which is none of ours"


def refuse_contradictions(trace: Trace) -> None:
    """Raise TraceError where a record contradicts itself; one that was merely cut off does not."""
    if problems := contradictions(trace):
        raise TraceError(f"the trace contradicts itself: {summed_up(problems)}")


def _all(trace: Trace) -> Iterator[Contradiction]:
    yield from _settings(trace)
    yield from _end(trace)
    for step in trace.steps:
        yield from _step(trace, step)
    if trace.summary is not None:
        yield from _summary(trace.summary, trace.steps)
        yield from _text(trace, trace.summary.text)


def _settings(trace: Trace) -> Iterator[Contradiction]:
    """Check the header: settings against the method, and the parts that the method needs."""
    header, method = trace.header, METHODS.get(trace.header.method)
    try:
        sampling = Sampling.parse(header.sampling)
    except ParamError as error:
        yield Contradiction(None, "sampling", f"cannot be: {error}")
        return
    written = sampling.to_json()
    if "temperature" not in header.sampling or {**written, **header.sampling} != written:
        yield Contradiction(
            None, "sampling", "must hold the temperature, and every setting as the number that a run has"
        )
    vocabulary, context = header.model.vocabulary, header.model.context
    largest = max(header.prompt, default=-1)
    if largest >= vocabulary:
        yield Contradiction(None, "prompt", f"holds token {largest}, and the model has {vocabulary}")
    if not all(0 <= token < vocabulary for token in header.end_tokens):
        yield Contradiction(None, "end_tokens", f"hold a token that is none of the model's {vocabulary}")
    if header.prefill_chunk < 1:
        yield Contradiction(None, "prefill_chunk", "is 0, with which no prompt can be read")
    if header.ranks > 1 and header.record == "full":
        yield Contradiction(None, "ranks", f"are {header.ranks}, none of which has what a full record holds")
    if header.window is None and header.slots:
        yield differs(None, "slots", header.slots, "caches without a window", 0)
    if len(header.prompt) + header.max_new_tokens > context:
        yield differs(None, "max_new_tokens", header.max_new_tokens, "prompt and context", context - len(header.prompt))
    if method is None:
        return  # a user's own
    try:
        typical = method.Params.parse(header.params).typical
    except ParamError as error:
        yield Contradiction(None, "params", f"are not those of {header.method}: {error}")
        return
    lossless = typical is None or sampling.greedy
    if header.lossless != lossless:
        yield differs(None, "lossless", header.lossless, "the settings", lossless)
    parts = sorted(method.needs - CAPABILITIES - {"draft_model"})
    if sorted(header.parts) != parts and trace.steps:
        yield Contradiction(None, "parts", f"must be those of {header.method}: {', '.join(parts) or 'none'}")
    if ("draft_model" in method.needs) != (header.draft is not None):
        needs = "has a" if "draft_model" in method.needs else "has no"
        yield Contradiction(None, "method", f"is {header.method}, which {needs} draft model")
    names = method.Panel.__annotations__.keys()
    for step in trace.steps:
        if unknown := sorted(step.panel.keys() - names):
            yield Contradiction(
                step.index, "panel", f"holds {unknown[0][:40]!r}, which {header.method} does not record"
            )
            break
        if header.method == "autoregressive" and step.drafted:
            yield differs(step.index, "drafted", step.drafted, "autoregressive steps", 0)
            break


def _end(trace: Trace) -> Iterator[Contradiction]:
    """Check where the run ended, and why."""
    header, ids, summary = trace.header, trace.ids, trace.summary
    ends, most = set(header.end_tokens), header.max_new_tokens
    place = 0
    for step in trace.steps:
        for token in step.emitted:
            place += 1
            if token in ends and place < len(ids):
                yield Contradiction(step.index, "emitted", f"goes on after token {token}, which ends the text")
                return
    if len(ids) > most:
        yield differs(None, "max_new_tokens", most, "the steps", len(ids))
    if summary is None:
        return
    finish = summary.finish
    if finish not in _ENDS:
        yield Contradiction(None, "finish", f"must be one of {', '.join(_ENDS)}")
    elif ids and ids[-1] in ends:
        if finish != "end_of_text":
            yield differs(None, "finish", finish, "the end tokens", "end_of_text")
    elif finish == "end_of_text":
        yield Contradiction(None, "finish", "is end_of_text, but the last token ends no text")
    elif finish == "length" and len(ids) < most:
        yield Contradiction(None, "finish", f"is length, but {len(ids)} of {most} tokens are written")
    elif finish == "stop" and not header.stop:
        yield Contradiction(None, "finish", "is stop, but there is no stop string")
    elif finish in _EARLY and len(ids) == most:
        yield differs(None, "finish", finish, f"all {most} tokens", "length")


def _summary(summary: Summary, steps: Sequence[Step]) -> Iterator[Contradiction]:
    recorded, derived = asdict(summary), asdict(summarise(steps, summary.finish, summary.text))
    recorded |= {f"timing.{name}": value for name, value in recorded.pop("timing").items()}
    derived |= {f"timing.{name}": value for name, value in derived.pop("timing").items()}
    for name in derived.keys() - {"bandwidth"}:
        if not _same(recorded[name], derived[name]):
            yield differs(None, f"summary.{name}", recorded[name], "the steps", derived[name])


def _same(one: object, other: object) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-6)
    return one == other


def _step(trace: Trace, step: Step) -> Iterator[Contradiction]:
    timing = step.timing
    phases = timing.draft_ms + timing.forward_ms + timing.accept_ms + timing.commit_ms
    if phases > timing.total_ms * 1.01 + 0.1:  # a device measures its part by a clock of its own
        yield Contradiction(
            step.index, "timing", f"spends {phases:.6g} ms in its phases, but {timing.total_ms:.6g} ms in all"
        )
    vocabulary = trace.header.model.vocabulary
    largest = max(step.used, default=-1)
    if largest >= vocabulary:
        yield Contradiction(step.index, "tokens", f"hold token {largest}, and the model has {vocabulary}")
    yield from _columns(trace.header.record, step)
    if not step.tokens:
        return
    rows = step.pending + len(step.tokens)
    if trace.header.ranks == 1 and (step.fed < rows or (step.fed > rows and trace.header.device == "cpu")):
        yield differs(step.index, "fed", step.fed, "the tokens before the root and the nodes", rows)
    yield from _acceptance(trace, step)
    yield from untrue_tests(trace, step)
    children: list[list[int]] = [[] for _ in step.tokens]
    for node, parent in enumerate(step.parents[1:], start=1):
        children[parent].append(node)
    for node, below in enumerate(children):
        if step.top:
            yield from _target(step, node, below, vocabulary)
        if step.top and step.draft_top:
            yield from _drafter(step, node, below)


def _columns(record: str, step: Step) -> Iterator[Contradiction]:
    """Check that a step has the columns of the record's level, and no others."""
    if bool(step.tokens) != (record != "off"):
        yield Contradiction(
            step.index, "tokens", f"are {'there' if step.tokens else 'missing'}, but the record is {record}"
        )
    for name in ("p", "q", "top"):
        if bool(getattr(step, name)) != (record == "full"):
            there = "is there" if getattr(step, name) else "is missing"
            yield Contradiction(step.index, name, f"{there}, but the record is {record}")


def _acceptance(trace: Trace, step: Step) -> Iterator[Contradiction]:
    """Check what was written against the tree and the target's choices."""
    if trace.header.sampling.get("temperature") == 0 and step.choices:
        for node, token in zip(step.path, step.emitted, strict=False):
            if step.choices[node] != token:
                why = f"is {token}, but choices[{node}] is {step.choices[node]}"
                yield Contradiction(step.index, "emitted", why)
    if trace.header.lossless and len(step.emitted) > step.accepted:
        last, bonus = step.path[-1], step.emitted[-1]
        for node, parent in enumerate(step.parents):
            if parent == last and step.roles[node] is Role.VERIFY and step.tokens[node] == bonus:
                yield Contradiction(step.index, "path", f"ends at node {last}, but guess {node} is the token after it")


def _target(step: Step, node: int, children: Sequence[int], vocabulary: int) -> Iterator[Contradiction]:
    """Check the target's probabilities at a node among themselves."""
    best, where = step.top[node], f"top[{node}]"
    if not best:
        return
    shares = [share for _, share in best]
    if shares != sorted(shares, reverse=True) or len({token for token, _ in best}) < len(best):
        yield Contradiction(step.index, where, "must list different tokens, the likeliest first")
        return
    left = max(0.0, 1.0 - sum(shares))
    if sum(shares) > 1.0 + ROUNDED * len(shares):
        yield Contradiction(step.index, where, f"adds up to {sum(shares):.6g}, more than all")
    if step.choices:
        choice = dict(best).get(step.choices[node], shares[-1])
        if choice < shares[0] - ROUNDED:
            yield differs(step.index, f"choices[{node}]", step.choices[node], f"the shares in {where}", best[0][0])
    if step.entropy:
        known = sum(-share * math.log(share) for share in shares if share > 0)
        others = vocabulary - len(best)
        # What is left lies on as few tokens as can be, none likelier than those listed, or on all of them alike.
        low = known + (left * -math.log(max(shares[-1], 1e-12)) if left and shares[-1] > 0 else 0.0)
        high = known + (left * math.log(others / left) if left > 0 and others > 0 else 0.0)
        slack = 1e-4 * (1.0 + math.log(vocabulary))
        if not low - slack <= step.entropy[node] <= high + slack:
            yield Contradiction(
                step.index,
                f"entropy[{node}]",
                f"is {step.entropy[node]:.6g}, but {where} allows from {low:.6g} to {high:.6g} nats",
            )
    listed = dict(best)
    for child in children if step.p else ():
        yield from _probability(step, child, listed, shares[-1])


def _probability(step: Step, child: int, best: dict[int, float], least: float) -> Iterator[Contradiction]:
    p = step.p[child]
    if p is None:
        yield Contradiction(step.index, f"p[{child}]", "is missing")
        return
    listed = best.get(step.tokens[child])
    if listed is None and p > least + ROUNDED:
        yield Contradiction(step.index, f"p[{child}]", f"is {p:.6g}, but tokens of {least:.6g} are listed before it")
    elif listed is not None and abs(p - listed) > ROUNDED:
        yield differs(step.index, f"p[{child}]", p, "the best tokens", listed)


def _drafter(step: Step, node: int, children: Sequence[int]) -> Iterator[Contradiction]:
    """Check the drafter's probabilities after a node among themselves and against the target's."""
    best, where = step.draft_top[node], f"draft_top[{node}]"
    if not best:
        return
    shares = {token: share for token, share, _ in best}
    if [*shares.values()] != sorted(shares.values(), reverse=True) or sum(shares.values()) > 1.0 + 1e-4:
        yield Contradiction(step.index, where, "must list shares of at most 1 together, the likeliest token first")
        return
    top, least = dict(step.top[node]), step.top[node][-1][1] if step.top[node] else 1.0
    for token, _, p in best:
        if token in top and abs(p - top[token]) > ROUNDED:
            yield differs(step.index, f"{where} of token {token}", p, "the target's best tokens", top[token])
        elif token not in top and p > least + ROUNDED:
            yield Contradiction(
                step.index, where, f"has p {p:.6g} of token {token}, which is in no list of the target's"
            )
    drawn = [child for child in children if step.q and step.q[child] is not None]
    for child in drawn if len(drawn) == 1 else ():
        q, listed = step.q[child] or 0.0, shares.get(step.tokens[child])
        if listed is not None and abs(q - listed) > ROUNDED:
            yield differs(step.index, f"q[{child}]", q, "the drafter's best tokens", listed)
        elif listed is None and q > min(shares.values()) + ROUNDED:
            yield Contradiction(step.index, f"q[{child}]", f"is {q:.6g}, but is not among the drafter's best tokens")
    overlap = step.overlap[node] if step.overlap and len(drawn) < 2 else None
    if overlap is not None:
        both = sum(min(share, p) for _, share, p in best)
        most = both + min(1.0 - sum(shares.values()), 1.0 - sum(p for _, _, p in best))
        if not both - 1e-4 <= overlap <= most + 1e-4:
            why = f"is {overlap:.6g}, but can be from {both:.6g} to {most:.6g}"
            yield Contradiction(step.index, f"overlap[{node}]", why)


def _text(trace: Trace, text: str) -> Iterator[Contradiction]:
    """Check the text against the display texts of its tokens, as far as these spell it."""
    ids = trace.ids
    if not all(token in trace.texts for token in ids):
        return
    place, left = _spelt(text, [trace.texts[token] for token in ids], cut=bool(trace.header.stop))
    if place is not None:
        before = 0
        for step in trace.steps:
            before += len(step.emitted)
            if place < before:
                yield Contradiction(
                    step.index, "text", f"is not that of token {ids[place]}, {trace.texts[ids[place]]!r}"
                )
                return
    elif left:
        yield Contradiction(None, "text", f"goes on after the last token with {left[:40]!r}")


def _spelt(text: str, pieces: Sequence[str], *, cut: bool) -> tuple[int | None, str]:
    """Follow display texts through a text: the first that is not in its place, and what is left of the text.

    A special token may be left out, and so may a space at the beginning. With `cut` the text may end early.
    """
    at, index = 0, 0
    while index < len(pieces):
        end, piece = index + 1, pieces[index]
        if _BYTES.fullmatch(piece) and not text.startswith(piece, at):
            while end < len(pieces) and _BYTES.fullmatch(pieces[end]):
                end += 1
            raw = bytes.fromhex("".join(pieces[index:end]).replace("<0x", "").replace(">", ""))
            piece = raw.decode(errors="replace")
        if text.startswith(piece, at):
            at += len(piece)
        elif not at and piece.startswith(" ") and text.startswith(piece[1:]):
            at += len(piece) - 1
        elif cut and len(text) - at < len(piece) and piece.startswith(text[at:]):
            return None, ""
        elif "\N{REPLACEMENT CHARACTER}" in piece:
            return None, ""  # bytes that are no character, which tokenizers show in several ways
        elif not _SPECIAL.fullmatch(pieces[index]):
            return index, ""
        index = end
    return None, text[at:]
