"""A step in plain words: what was guessed and from where, what the target made of it, and what it brought."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from decoding.types import Role, Step

from . import visible
from .sources import in_words
from .story import Story


def say(story: Story, k: int) -> str:
    """One to four short sentences about step k."""
    step = story.steps[k]
    sentences = [_read(story, step), _outcome(story, step), _brought(step), _learned(story, step), _ended(story, step)]
    told = " ".join(sentence for sentence in sentences if sentence)
    return f"Step {step.index}: {told[0].lower()}{told[1:]}"


def count(number: int, noun: str, nouns: str = "") -> str:
    """A number of things."""
    return f"{number} {noun if number == 1 else nouns or noun + 's'}"


def _read(story: Story, step: Step) -> str:
    if not step.pending or step.index:
        return ""
    chunks = -(-step.pending // max(1, story.header.prefill_chunk))
    kept = step.start - 1 - step.pending  # of a conversation's earlier turns, still in the cache
    if kept:
        read = f"Read {count(step.pending + 1, 'new prompt token')} in {count(chunks, 'chunk')}"
        return f"{read}; {kept} were kept from the turn before."
    return f"Read {count(step.start, 'prompt token')} in {count(chunks, 'chunk')}."


def _brought(step: Step) -> str:
    return f"{count(len(step.emitted), 'token')} for one pass."


def _quote(story: Story, tokens: Sequence[int]) -> str:
    return visible.quoted("".join(story.text(token) for token in tokens))


def _outcome(story: Story, step: Step) -> str:
    """What was guessed, and how far the target agreed."""
    if not step.drafted:
        why = _WITHOUT.get(story.header.method, _no_reason)(story, step)
        return f"No guess{why}; the target wrote {_quote(story, step.emitted)}."
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
    rejected = [
        node
        for node, (parent, role) in enumerate(zip(step.parents, step.roles, strict=True))
        if parent == at and role is Role.VERIFY
    ]
    if not rejected:
        return f"{agreed} and added {_quote(story, [own])}"
    others = len({step.tokens[node] for node in rejected}) - 1
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
    if step.emitted[-1] in story.header.end_tokens:
        return "The end of text ends the run."
    if step.start - len(story.header.prompt) + len(step.emitted) >= story.header.max_new_tokens:
        return "That is the last token asked for."
    return "The run was cut here." if len(step.emitted) == step.accepted else ""


def _learned(story: Story, step: Step) -> str:
    """What the method took from the step for later ones."""
    panel = step.panel
    if story.header.method == "lookahead" and "rows" in panel:
        if panel.get("phase") != "steady":
            return f"The window grew to {len(panel['rows']) + 1} rows."
        outcomes = Counter(outcome for _, _, outcome in panel.get("pool", {}).get("inserted", ()))
        harvest = sum(outcomes.values())
        return (
            f"Harvested {count(harvest, 'n-gram')}, {harvest - outcomes['refreshed']} of them new." if harvest else ""
        )
    if story.header.method == "ouroboros":
        inspired = len(panel.get("inspired", ()))
        pairs = zip(panel.get("suffixes", ()), panel.get("refined", ()), strict=False)
        refined = sum(old != new for old, new in pairs)
        told = [f"inspired {count(inspired, 'phrase')}"] if inspired else []
        told += [f"refined {count(refined, 'phrase')}"] if refined else []
        return f"The target {' and '.join(told)}." if told else ""
    return ""


Phrase = Callable[[Story, Step], str]


def _no_reason(story: Story, step: Step) -> str:
    return ""


def _from_pool(story: Story, step: Step) -> str:
    entries = len(step.panel.get("guesses", ()))
    return f" from the pool's {'n-gram' if entries == 1 else f'{entries} n-grams'} behind {_root(story, step)}"


def _empty_pool(story: Story, step: Step) -> str:
    if step.panel.get("phase") == "steady":
        return f", the pool holds nothing behind {_root(story, step)}"
    return " yet" if step.panel else ""


def _root(story: Story, step: Step) -> str:
    return _quote(story, [story.ids[step.start - 1]])


def _copied(story: Story, step: Step) -> str:
    first = next(source for source, role in zip(step.sources, step.roles, strict=True) if role is Role.VERIFY)
    ending = step.panel.get("ending", ())
    return f", {in_words(first)}" + (f", behind an earlier {_quote(story, ending)}" if ending else "")


def _rows(story: Story, step: Step) -> str:
    kinds = Counter(row.get("strategy") for row in step.panel.get("rows", ()))
    told = [f"{kinds['context']} from the text"] if kinds["context"] else []
    model = sum(kinds.values()) - kinds["context"]
    told += [f"{model} from the model's own n-grams"] if model else []
    return f", {' and '.join(told)}" if told else ""


def _phrases(story: Story, step: Step) -> str:
    kinds = Counter(source.partition(":")[0] for source in step.sources)
    passes = len(step.panel.get("passes", ()))
    drafted = f": {kinds['draft']} by the drafter" + (f" in {count(passes, 'pass', 'passes')}" if passes else "")
    phrases = len(step.panel.get("suffixes", ()))
    return drafted + (f", {kinds['pool']} from {count(phrases, 'phrase')} behind them" if kinds["pool"] else "")


def _found(story: Story, step: Step) -> str:
    if not step.panel.get("span"):
        return " from the datastore"
    stands = f"{_quote(story, step.panel['ending'])} stands {count(step.panel['hits'], 'time')}"
    return f" from the datastore, where {stands}"


def _exit(story: Story, step: Step) -> str:
    layer = step.panel.get("exit_layer")
    sure = step.panel.get("confidence")
    by = f" by the first {'layer' if layer == 1 else f'{layer} layers'}" if layer else " by the early exit"
    return by + (f", then was unsure ({_share(sure[-1])})" if sure and step.panel.get("stopped") == "unsure" else "")


_ORIGINS: dict[str, Phrase] = {
    "jacobi": lambda story, step: " in its block",
    "lookahead": _from_pool,
    "draft_model": lambda story, step: " by the drafter",
    "prompt_lookup": _copied,
    "ngrammys": _rows,
    "medusa": lambda story, step: f" by {count(step.panel['heads'], 'head')}" if "heads" in step.panel else "",
    "kangaroo": _exit,
    "ouroboros": _phrases,
    "rest": _found,
}
_WITHOUT: dict[str, Phrase] = {
    "lookahead": _empty_pool,
    "prompt_lookup": lambda story, step: ", the text's ending did not occur before",
    "medusa": lambda story, step: " yet" if step.index == 0 else "",
    "kangaroo": lambda story, step: " yet" if step.index == 0 else "",
    "rest": lambda story, step: ", the text's ending is not in the datastore",
}
