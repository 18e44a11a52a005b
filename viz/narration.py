"""A step in plain words: what was guessed and from where, what the target made of it, and what it brought."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from decoding.types import Role, Step

from . import panel, sources, visible
from .story import Story, siblings
from .unguessed import reason

_ROOM = 256  # rows that every pass has room for


def say(story: Story, k: int) -> str:
    """One to four short sentences about step k."""
    step = story.steps[k]
    sentences = [
        _read(story, step),
        _outcome(story, step),
        _brought(story, step),
        _learned(story, step),
        _ended(story, step),
    ]
    told = " ".join(sentence for sentence in sentences if sentence)
    return f"Step {step.index}: {told[0].lower()}{told[1:]}"


def count(number: int, noun: str, nouns: str = "") -> str:
    """A number of things."""
    return f"{number} {noun if number == 1 else nouns or noun + 's'}"


def _read(story: Story, step: Step) -> str:
    if not step.pending or step.index:
        return ""
    chunks = count(_chunks(story, step), "chunk")
    kept = step.start - 1 - step.pending  # of a conversation's earlier turns, still in the cache
    if kept:
        return f"Read {count(step.pending + 1, 'new prompt token')} in {chunks}; {kept} were kept from the turn before."
    return f"Read {count(step.start, 'prompt token')} in {chunks}."


def _chunks(story: Story, step: Step) -> int:
    return -(-step.pending // max(1, story.header.prefill_chunk))


def _brought(story: Story, step: Step) -> str:
    """What a step wrote, and for how many passes as far as the record tells."""
    tokens, chunks, chunk = count(len(step.emitted), "token"), _chunks(story, step), max(1, story.header.prefill_chunk)
    if chunks:
        # The last chunk goes through together with the tree if a pass has room for both: it has room for so many rows
        # at least, but a method may have asked for more.
        room = max(_ROOM, min(chunk, len(story.header.prompt)))
        if step.fed - (chunks - 1) * chunk > room:
            return f"{tokens}."
    return f"{tokens} for {'one pass' if chunks < 2 else f'{chunks} passes'}."


def _quote(story: Story, tokens: Sequence[int]) -> str:
    return visible.quoted(visible.joined(story.text(token) for token in tokens))


def _outcome(story: Story, step: Step) -> str:
    """What was guessed, and how far the target agreed."""
    if not step.drafted:
        why = reason(story, step)
        return f"No guess{why and ': '}{why}; the target wrote {_quote(story, step.emitted)}."
    if not step.tokens:
        return f"Guessed {count(step.drafted, 'token')}; the target agreed with {step.accepted or 'none'}."
    guesses = [node for node, role in enumerate(step.roles) if role is Role.VERIFY]
    parents = {step.parents[node] for node in guesses}
    origin = _ORIGINS.get(story.header.method, _no_reason)(story, step)
    if len(parents) == len(guesses):
        what = f"Guessed {count(step.drafted, 'token')} {_quote(story, [step.tokens[node] for node in guesses])}"
    else:
        ends = len(set(guesses) - parents)
        what = f"Guessed {count(step.drafted, 'token')} on {count(ends, 'branch', 'branches')}"
    return f"{what}{origin}; the target {_agreed(story, step, branching=len(parents) < len(guesses))}."


def _agreed(story: Story, step: Step, *, branching: bool) -> str:
    """How far the target agreed, and what it wrote itself."""
    accepted, verb = step.accepted, "drew" if story.header.sampling.get("temperature") else "wanted"
    if branching and accepted:
        agreed = f"followed {count(accepted, 'token')} {_quote(story, step.emitted[:accepted])}"
    elif accepted and accepted == step.drafted:
        agreed = f"agreed with {'it' if accepted == 1 else f'all {accepted}'}"
    else:
        agreed = f"agreed with {accepted or 'none'}"
    if unlikely := _typical(step):
        agreed += f" ({unlikely} of them typical enough without being its first choice)"
    if len(step.emitted) == accepted:
        return agreed
    own, at = step.emitted[accepted], step.path[-1]
    rejected = [node for node in siblings(step, at) if step.tokens[node] != own]
    if not rejected:
        return f"{agreed} and added {_quote(story, [own])}"
    others = len(rejected) - 1
    instead = _quote(story, [step.tokens[rejected[0]]]) + (f" and {count(others, 'other')}" if others else "")
    return f"{agreed}, {verb} {_quote(story, [own])} instead of {instead}{_odds(step, at, own, rejected[0])}"


def _typical(step: Step) -> int:
    """Accepted guesses that are not the target's first choice, under typical acceptance."""
    if "typical" not in step.panel or not step.choices:
        return 0
    return sum(step.choices[above] != step.tokens[node] for above, node in zip(step.path, step.path[1:], strict=False))


def _odds(step: Step, at: int, own: int, rejected: int) -> str:
    """The target's probabilities of its own token and of the rejected one, where both are known."""
    mine = dict(step.top[at]).get(own) if step.top else None
    theirs = step.p[rejected] if step.p else None
    return "" if mine is None or theirs is None else f" (p {_share(mine)} against {_share(theirs)})"


def _share(p: float) -> str:
    return f"{p:.2f}" if p >= 0.005 else "under 0.01"


def _ended(story: Story, step: Step) -> str:
    """Why the run ends here, as far as the step tells."""
    if step.emitted[-1] in story.ends:
        return "The end of text ends the run."
    if step.start - len(story.header.prompt) + len(step.emitted) >= story.header.max_new_tokens:
        return "That is the last token asked for."
    return "The run was cut here." if len(step.emitted) == step.accepted else ""


def _learned(story: Story, step: Step) -> str:
    """What the method took from the step for later ones."""
    told = step.panel
    if story.header.method == "lookahead" and "rows" in told:
        if told.get("phase") != "steady":
            return f"The window grew to {len(panel.rows(told['rows'])) + 1} rows."
        harvest = panel.events(panel.part(told.get("pool"), "inserted"))
        fresh = sum(event.new for event in harvest)
        return f"Harvested {count(len(harvest), 'n-gram')}, {fresh} of them new." if harvest else ""
    if story.header.method == "ouroboros":
        inspired = sum(event.new for event in panel.events(told.get("inspired")))
        pairs = zip(panel.rows(told.get("suffixes")), panel.rows(told.get("refined")), strict=False)
        refined = sum(old != new for old, new in pairs)
        made = [f"inspired {count(inspired, 'phrase')}"] if inspired else []
        made += [f"refined {count(refined, 'phrase')}"] if refined else []
        return f"The target {' and '.join(made)}." if made else ""
    return ""


Phrase = Callable[[Story, Step], str]


def _no_reason(story: Story, step: Step) -> str:
    return ""


def _from_pool(story: Story, step: Step) -> str:
    entries = len(panel.rows(step.panel.get("guesses")))
    return f" from the pool's {'n-gram' if entries == 1 else f'{entries} n-grams'} behind {_root(story, step)}"


def _root(story: Story, step: Step) -> str:
    return _quote(story, [story.ids[step.start - 1]])


def _copied(story: Story, step: Step) -> str:
    first = next(source for source, role in zip(step.sources, step.roles, strict=True) if role is Role.VERIFY)
    ending = panel.tokens(step.panel.get("ending"))
    return f", {sources.told(first)}" + (f", behind an earlier {_quote(story, ending)}" if ending else "")


def _rows(story: Story, step: Step) -> str:
    rows = step.panel.get("rows")
    kinds = [panel.part(row, "strategy") for row in rows] if isinstance(rows, list) else []
    context, model = kinds.count("context"), len(kinds) - kinds.count("context")
    told = [f"{context} from the text"] if context else []
    told += [f"{model} from the model's own n-grams"] if model else []
    return f", {' and '.join(told)}" if told else ""


def _phrases(story: Story, step: Step) -> str:
    kinds = Counter(source.partition(":")[0] for source in step.sources)
    passes = len(panel.tokens(step.panel.get("passes")))
    drafted = f": {kinds['draft']} by the drafter" + (f" in {count(passes, 'pass', 'passes')}" if passes else "")
    phrases = len(panel.rows(step.panel.get("suffixes")))
    return drafted + (f", {kinds['pool']} from {count(phrases, 'phrase')} behind them" if kinds["pool"] else "")


def _found(story: Story, step: Step) -> str:
    ending, hits = panel.tokens(step.panel.get("ending")), panel.whole(step.panel.get("hits"))
    if not ending or not hits:
        return " from the datastore"
    return f" from the datastore, where {_quote(story, ending)} stands {count(hits, 'time')}"


def _heads(story: Story, step: Step) -> str:
    heads = panel.whole(step.panel.get("heads"))
    return f" by {count(heads, 'head')}" if heads else ""


def _exit(story: Story, step: Step) -> str:
    layer, sure = panel.whole(step.panel.get("exit_layer")), panel.shares(step.panel.get("confidence"))
    by = f" by the first {'layer' if layer == 1 else f'{layer} layers'}" if layer else " by the early exit"
    return by + (f", then was unsure ({_share(sure[-1])})" if sure and step.panel.get("stopped") == "unsure" else "")


_ORIGINS: dict[str, Phrase] = {
    "jacobi": lambda story, step: " in its block",
    "lookahead": _from_pool,
    "draft_model": lambda story, step: " by the drafter",
    "prompt_lookup": _copied,
    "ngrammys": _rows,
    "medusa": _heads,
    "kangaroo": _exit,
    "ouroboros": _phrases,
    "rest": _found,
}
