"""Describes a step: what was guessed and from where, what the target accepted, and what that gained."""

from __future__ import annotations

from decoding.types import Role, Step

from . import ranks
from .fates import siblings
from .methods import screen_of
from .run_state import RunState
from .wording import count, odds, quote, share

_ROOM = 256  # rows that every pass has room for


def say(run: RunState, k: int) -> str:
    """Return one to five short sentences about step k."""
    step = run.steps[k]
    sentences = [
        _read(run, step),
        _outcome(run, step),
        _wrote(run, step),
        ranks.readers_in_words(run.header, step),
        screen_of(run.header).learned(run, step),
        _ended(run, step),
    ]
    words = " ".join(sentence for sentence in sentences if sentence)
    return f"Step {step.index}: {words[0].lower()}{words[1:]}"


def _read(run: RunState, step: Step) -> str:
    if not step.pending or step.index:
        return ""
    chunks = count(_chunks(run, step), "chunk")
    cached = step.start - 1 - step.pending  # of a conversation's earlier turns
    if cached:
        new = count(step.pending + 1, "new prompt token")
        return f"Read {new} in {chunks}; {cached} were cached in the previous turn."
    return f"Read {count(step.start, 'prompt token')} in {chunks}."


def _chunks(run: RunState, step: Step) -> int:
    return -(-step.pending // max(1, run.header.prefill_chunk))


def _wrote(run: RunState, step: Step) -> str:
    """Say what a step wrote, and in how many passes, if that is recorded."""
    tokens, chunks, chunk = count(len(step.emitted), "token"), _chunks(run, step), max(1, run.header.prefill_chunk)
    if chunks:
        # The last chunk goes through together with the tree if a pass has room for both: it has room for so many rows
        # at least, but a method may have asked for more.
        room = max(_ROOM, min(chunk, len(run.header.prompt)))
        if step.fed - (chunks - 1) * chunk > room:
            return f"{tokens}."
    return f"{tokens} from {'one pass' if chunks < 2 else f'{chunks} passes'}."


def _outcome(run: RunState, step: Step) -> str:
    """Say what was guessed, and how far the target agreed."""
    if not step.drafted:
        why = screen_of(run.header).why_no_guess(run, step)
        return f"No guess{why and ': '}{why}; the target wrote {quote(run, step.emitted)}."
    if not step.tokens:
        return f"Guessed {count(step.drafted, 'token')}; the target agreed with {step.accepted or 'none'}."
    guesses = [node for node, role in enumerate(step.roles) if role is Role.VERIFY]
    parents = {step.parents[node] for node in guesses}
    origin = screen_of(run.header).origin(run, step)
    if len(parents) == len(guesses):
        what = f"Guessed {count(step.drafted, 'token')} {quote(run, [step.tokens[node] for node in guesses])}"
    else:
        ends = len(set(guesses) - parents)
        what = f"Guessed {count(step.drafted, 'token')} on {count(ends, 'branch', 'branches')}"
    return f"{what}{origin}; the target {_agreed(run, step, branching=len(parents) < len(guesses))}."


def _agreed(run: RunState, step: Step, *, branching: bool) -> str:
    """Say how far the target agreed, and what it wrote itself."""
    accepted, verb = step.accepted, "drew" if run.header.sampling.get("temperature") else "wanted"
    if not run.header.lossless:
        agreed = f"found {count(accepted, 'token')} {quote(run, step.emitted[:accepted])} likely enough"
        agreed = agreed if accepted else "found none likely enough"
    elif branching and accepted:
        agreed = f"followed {count(accepted, 'token')} {quote(run, step.emitted[:accepted])}"
    elif accepted and accepted == step.drafted:
        agreed = f"agreed with {'it' if accepted == 1 else f'all {accepted}'}"
    else:
        agreed = f"agreed with {accepted or 'none'}"
    if remark := screen_of(run.header).agreed(run, step):
        agreed += f" ({remark})"
    if len(step.emitted) == accepted:
        return agreed
    chosen, at = step.emitted[accepted], step.path[-1]
    rejected = [node for node in siblings(step, at) if step.tokens[node] != chosen]
    if not run.header.lossless:
        return f"{agreed} and drew {quote(run, [chosen])}"
    if not rejected:
        return f"{agreed} and added {quote(run, [chosen])}"
    others = len(rejected) - 1
    instead = quote(run, [step.tokens[rejected[0]]]) + (f" and {count(others, 'other')}" if others else "")
    return f"{agreed}, {verb} {quote(run, [chosen])} instead of {instead}{_odds(run, step, chosen, rejected[0])}"


def _odds(run: RunState, step: Step, chosen: int, rejected: int) -> str:
    """Return the probabilities that decided against a guess, if they are known."""
    p = step.p[rejected] if step.p else None
    if p is None:
        return ""
    if not run.header.sampling.get("temperature"):
        p_chosen = dict(step.top[step.path[-1]]).get(chosen) if step.top else None
        return "" if p_chosen is None else f" ({odds(p_chosen, p)})"
    q = step.q[rejected] if step.q else None
    if not q:
        return f" (copied, so accepted with probability p {share(p)})"
    return f" (p {share(p)}, q {share(q)}: accepted with probability {share(min(1.0, p / q))})"


def _ended(run: RunState, step: Step) -> str:
    """Say why the run ends here, if the step shows it."""
    if step.emitted[-1] in run.ends:
        return "The end of text ends the run."
    if step.start - len(run.header.prompt) + len(step.emitted) >= run.header.max_new_tokens:
        return "The token limit is reached."
    return "The run was stopped here." if len(step.emitted) == step.accepted else ""
