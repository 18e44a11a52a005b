"""Ouroboros on the screen: a chain by phrases, the phrases after it, and those that the target's answers made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence, Set

from decoding.methods.ouroboros import OuroborosParams
from decoding.methods.panels import OuroborosPanel
from decoding.types import Header, Step

from ..boards import ngrams
from ..boards.board import GAINED, SIGNED, Board
from ..palette import Fate
from ..panels import panel_reader
from ..params import params_reader
from ..run_state import RunState
from ..sources import parse
from ..tables import Table
from ..view import Figure, Patch, Picture
from ..wording import count
from .base import Screen
from .stages import ouroboros as on_stage

_BACK = 512  # steps in which the origin of a phrase is looked for
_PASSES, _APART = 4, 10  # passes of the drafter that are shown, and columns that their words need

params_of = params_reader(OuroborosParams)
panel_of = panel_reader(OuroborosPanel)


def _size(header: Header) -> tuple[int, int]:
    """Return tokens shown of a phrase after its key, and phrases shown after the draft."""
    params = params_of(header)
    return min(ngrams.WIDEST, params.N - 1), min(ngrams.HELD, max(1, params.K))


def _right(n: int) -> int:
    return ngrams.right_of(n, _APART)


def base(run: RunState) -> Figure:
    """Return the figure without a step."""
    n, held = _size(run.header)
    figure = ngrams.base("Phrase pool", (GAINED,), n, _right(n), max(held, ngrams.NEW))
    return figure | {"draws": [Fate.INSPIRED]}


def frame(run: RunState, k: int) -> Patch:
    """Return the phrases after the draft, and those that the target's answers made."""
    step, panel, board = run.steps[k], panel_of(run.steps[k]), Board()
    n, held = _size(run.header)
    right = _right(n)
    last, key = _last_drafted(step)
    if step.tokens:
        board.context(key, 0, 0, Fate.PROPOSED if last else Fate.ROOT, last)
    board.outcome(_passes(step), 0.7, 0)
    entries = ngrams.newest_ngrams(step, panel.get("suffixes", []), last, held, newest_first=True)
    for row, entry in enumerate(entries, start=1):
        ngrams.draw_ngram(board, entry, row, n)
        board.label(_since(run, k, (key, *entry.ngram)), 0.4, row)
    for row, (words, phrase) in enumerate(_helped(step)[: ngrams.NEW], start=1):
        for i, token in enumerate(phrase[: n + 1]):
            board.learned(token, right + i, row, Fate.PROMPT if i == 0 else Fate.INSPIRED)
        board.mark(GAINED, right - 0.8, row)
        board.outcome(words, right + min(n + 1, len(phrase)) - 0.3, row)
    ngrams.count_shown(board, 0.5, len(entries), len(panel.get("suffixes", [])))
    ngrams.count_shown(board, right - 0.5, min(ngrams.NEW, len(_helped(step))), len(_helped(step)))
    board.outcome(_counted(step), right - 0.5, 0)
    return {"data": [*board.patch(step), {}, {}, {}, *ngrams.sizes(run, k, _held)]}


def rows(run: RunState, k: int) -> Table:
    """Return the pool as a table: the phrases after the draft, and those that the target's answers made."""
    step = run.steps[k]
    last, key = _last_drafted(step)
    table_rows, phrases = ngrams.key_row(run, k, last, _passes(step)), panel_of(step).get("suffixes", [])
    for entry in ngrams.newest_ngrams(step, phrases, last, len(phrases), newest_first=True):
        table_rows.append(ngrams.held_row(run, k, entry, _since(run, k, (key, *entry.ngram))))
    for words, phrase in _helped(step):
        table_rows.append(ngrams.learned_row(run, phrase, f"{words}, {SIGNED[GAINED]}"))
    return ngrams.table(table_rows, _held(step), [{"commit": _counted(step)}])


def _last_drafted(step: Step) -> tuple[int, int]:
    """Return the last node that the drafter wrote, or the root, and its token."""
    drafted = _drafted(step)
    last = drafted[-1] if drafted else 0
    return last, step.tokens[last] if step.tokens else -1


def _passes(step: Step) -> str:
    """Say how many tokens the drafter wrote in each of its passes."""
    passes = panel_of(step).get("passes", [])
    if not passes:
        return "no drafter pass"
    shown = " + ".join(map(str, passes[:_PASSES])) + (" + …" if len(passes) > _PASSES else "")
    tokens = "token" if sum(passes) == 1 else "tokens"
    return f"{count(len(passes), 'drafter pass', 'drafter passes')} wrote {shown} {tokens}"


def _helped(step: Step) -> list[tuple[str, ngrams.Ngram]]:
    """Return the phrases that the target's answers made, each after its key, and how."""
    _, key = _last_drafted(step)
    panel = panel_of(step)
    refined = [("refined", (key, *after)) for before, after in _corrected(panel) if before != after]
    return refined + [("inspired", phrase) for phrase in _inspired_phrases(panel)]


def _counted(step: Step) -> str:
    kinds = Counter(kind for kind, _ in _helped(step))
    return f"refined {kinds['refined']}, inspired {kinds['inspired']}"


def _drafted(step: Step) -> list[int]:
    """Return the nodes that the drafter wrote."""
    return [node for node, source in enumerate(step.sources) if parse(source)[0] == "draft"]


def _corrected(panel: OuroborosPanel) -> Iterable[tuple[list[int], list[int]]]:
    """Return every phrase after the draft, and what the target's answers made of it."""
    return zip(panel.get("suffixes", []), panel.get("refined", []), strict=False)


def _inspired_phrases(panel: OuroborosPanel) -> list[ngrams.Ngram]:
    """Return the phrases, each after its key, that answers to the rejected part of the draft made."""
    return [(key, *phrase) for key, phrase, outcome in panel.get("inspired", []) if outcome != "refreshed"]


def _held(step: Step) -> int:
    pool = panel_of(step).get("pool")
    return pool["entries"] if pool else 0


def _since(run: RunState, k: int, phrase: ngrams.Ngram) -> str:
    """Say how a phrase came into the pool, as far as it is recorded."""
    step = learned_in(run, k, phrase)
    if step is not None:
        return f"☆ step {step}"
    return "window" if k <= _BACK and params_of(run.header).warm_start == "off" else ""


def learned_in(run: RunState, k: int, phrase: ngrams.Ngram) -> int | None:
    """Return the last step before k whose verification had inspired or refined a phrase, given after its key."""
    step = ngrams.last_learned(run, k, phrase, _learned_phrases)
    return step if step is not None and step >= k - _BACK else None


def _learned_phrases(step: Step) -> list[ngrams.Ngram]:
    """Return the phrases that are new by what the target answered; one that it left as it was is not."""
    panel, drafted = panel_of(step), _drafted(step)
    held = set(map(tuple, panel.get("suffixes", [])))
    changed = [phrase for phrase in map(tuple, panel.get("refined", [])) if phrase not in held]
    return _inspired_phrases(panel) + [(step.tokens[drafted[-1]], *phrase) for phrase in changed if drafted]


def inspired(run: RunState, k: int) -> Set[int]:
    """Return the nodes of phrases that an earlier verification had inspired or refined."""
    nodes_of: dict[int, Set[int]] = run.memo.setdefault("inspired nodes", {})
    if k not in nodes_of:
        nodes_of[k] = _inspired_nodes(run, k)
    return nodes_of[k]


def _inspired_nodes(run: RunState, k: int) -> Set[int]:
    step, entries = run.steps[k], dict[int, list[int]]()
    for node, source in enumerate(step.sources):
        kind, numbers = parse(source)
        if kind == "pool" and len(numbers) == 2:
            entries.setdefault(numbers[0], []).append(node)
    if not entries:
        return set()
    first = next(iter(entries.values()))[0]
    key = step.tokens[step.parents[first]]
    suffixes = panel_of(step).get("suffixes", [])
    helped = [i for i, phrase in enumerate(suffixes) if learned_in(run, k, (key, *phrase)) is not None]
    return {node for entry in helped for node in entries.get(entry, ())}


def _origin(run: RunState, step: Step) -> str:
    kinds = Counter(parse(source)[0] for source in step.sources)
    phrases = count(len(panel_of(step).get("suffixes", [])), "phrase")
    passes = panel_of(step).get("passes", [])
    drafted = _passes(step) if passes else f"{kinds['draft']} by the drafter"
    single = bool(passes) and max(passes) == 1
    if kinds["pool"]:
        beside = ", so phrases took no part in these, and" if single else ","
        return f": {drafted}{beside} {kinds['pool']} from {phrases} after them"
    alone = ", so phrases took no part" if single else ", and no phrase lengthened the draft"
    return f": {drafted}" + (alone if kinds["draft"] else "")


def _learned(run: RunState, step: Step) -> str:
    panel = panel_of(step)
    inspired, refined = len(_inspired_phrases(panel)), sum(before != after for before, after in _corrected(panel))
    done = [f"inspired {count(inspired, 'phrase')}"] if inspired else []
    done += [f"refined {count(refined, 'phrase')}"] if refined else []
    return f"The target {' and '.join(done)}." if done else ""


def _notes(run: RunState, step: Step, guesses: Sequence[int]) -> list[tuple[int, str]]:
    """Return the number of every phrase, after its last node."""
    parents, notes = set(step.parents), list[tuple[int, str]]()
    for node in guesses:
        kind, numbers = parse(step.sources[node])
        if kind == "pool" and numbers and node not in parents:
            notes.append((node, f"suffix {numbers[0] + 1}"))
    return notes


SCREEN = Screen(
    origin=_origin,
    learned=_learned,
    pool=Picture(base, frame, rows),
    stage=on_stage.picture(inspired),
    depth=lambda header: params_of(header).gamma + 4,
    notes=_notes,
    notes_follow=True,
    inspired=inspired,
)
