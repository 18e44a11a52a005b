"""Replays every rule of a method on a record."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from decoding.errors import ParamError
from decoding.methods import METHODS
from decoding.params import Params
from decoding.sampling_params import Sampling
from decoding.types import JSON

from ..metrics.result import UnknownError
from ..metrics.selection import Selection
from .candidates import CHAINS, chain_candidates, is_tree, settings_candidates, tree_candidates
from .chains import ChainRecord, ChainRule
from .prices import Prices
from .replay import Replay
from .rerun import FROM_TOKENS, repeats_record, replay_settings, rerun, run_texts
from .trees import TreeRecord

REPLAYED = (*CHAINS, *FROM_TOKENS)
_NO_SHARES = "the record lacks the drafter's probabilities: record it with --record full"
_OTHER_SHARES = "the record lacks the drafter's confidence in guesses that were drawn or filtered"


@dataclass(frozen=True, slots=True)
class RuleOutcome:
    """A rule and its replay."""

    settings: Mapping[str, JSON] | None  # that the rule changes; None: no method of ours stops by this rule
    replay: Replay
    speedup: float | None = None  # over one token at a time; None without costs
    # What it surely reaches: if all guesses that are open are wrong; of an estimate, less its margin.
    least_speedup: float | None = None


@dataclass(frozen=True, slots=True)
class Unsaid:
    """Rules that a record cannot answer for."""

    rules: str
    because: str


@dataclass(frozen=True, slots=True)
class RecordedRuns:
    """The runs of one method in one setting."""

    selection: Selection
    method: str
    params: Params
    drawn: bool  # whether guesses may have been drawn, so that another rule writes another text
    plain: bool  # whether no filter or penalty changes the recorded probabilities

    @classmethod
    def of(cls, selection: Selection) -> RecordedRuns:
        """Check that a selection can be replayed; raise UnknownError if it cannot."""
        [(method, _)] = selection.methods
        if method not in REPLAYED:
            raise UnknownError(f"rules can be replayed only for {', '.join(REPLAYED)}")
        lossless = selection.runs.maybe("lossless")
        if not (lossless == 1).all():
            raise UnknownError("these runs are not lossless: with other guesses they would have written another text")
        if selection.runs.is_text("finish", "error").any():
            raise UnknownError("some of these runs failed")
        used = {json.dumps(json.loads(text or "null"), sort_keys=True) for text in _texts(selection, "params")}
        if len(used) != 1 or "null" in used:
            raise UnknownError("the record does not name one setting of the method for all of these runs")
        try:
            params = METHODS[method].Params.parse(json.loads(used.pop()))
        except ParamError as error:
            raise UnknownError(f"the record names settings that {method} does not have: {error}") from None
        drawn = not (selection.temperature == 0).all()
        return cls(selection, method, params, drawn, all(map(_is_plain, _texts(selection, "sampling"))))

    @property
    def is_tree(self) -> bool:
        """Whether EAGLE's trees were drafted."""
        return is_tree(self.params)

    def run_settings(self, rule: Mapping[str, JSON]) -> dict[str, JSON]:
        """Return the settings of a run by a rule: the record's that differ from the defaults, and the rule's."""
        defaults = METHODS[self.method].Params().to_json()
        return {name: value for name, value in self.params.to_json().items() if value != defaults[name]} | {**rule}

    @property
    def per_guess(self) -> bool:
        """Whether drafting takes time for every guess."""
        return self.method in CHAINS and not self.is_tree


def replay_rules(recorded: RecordedRuns, prices: Prices | None) -> tuple[list[RuleOutcome], list[Unsaid]]:
    """Replay all rules, the recorded one first; and name those that the record cannot answer for."""
    unsaid = list[Unsaid]()
    if recorded.method in FROM_TOKENS:
        rows = _of_settings(recorded)
    elif recorded.is_tree:
        rows = _of_trees(recorded, unsaid)
    else:
        rows = _of_chains(recorded, unsaid, prices)
    if prices is None:
        return [RuleOutcome(settings, replay) for settings, replay in rows], unsaid
    priced = [
        RuleOutcome(settings, replay, prices.speedup(replay), prices.least_speedup(replay)) for settings, replay in rows
    ]
    return priced, unsaid


def _texts(selection: Selection, column: str) -> list[str]:
    """Return the different texts of a column of runs; an empty one stands for null."""
    codes, texts = selection.runs.columns.codes(column)
    return [texts[code] if code >= 0 else "" for code in set(codes[selection.runs.rows].tolist())]


def _is_plain(sampling: str) -> bool:
    """Return whether sampling settings leave probabilities as they are."""
    try:
        settings = Sampling.parse(json.loads(sampling or "null"))
    except ParamError:
        return False
    return replace(settings, temperature=0.0, seed=0) == Sampling()


_Replays = Iterator[tuple[Mapping[str, JSON] | None, Replay]]


def _of_chains(recorded: RecordedRuns, unsaid: list[Unsaid], prices: Prices | None) -> _Replays:
    names, values = CHAINS[recorded.method], recorded.params.to_json()
    length, least = values["gamma"], values[names.least]
    record = ChainRecord.of(recorded.selection, length, from_text=names.from_text, drawn=recorded.drawn)
    why = _NO_SHARES
    if recorded.drawn or not recorded.plain:
        record, why = replace(record, confidence=None), _OTHER_SHARES
    unsaid.append(Unsaid(f"gamma above {length}", "the record lacks the guesses that would follow"))
    if record.confidence is None:
        unsaid.append(Unsaid(f"{names.least} above {least:g}", why))
    elif least > 0:
        unsaid.append(Unsaid(f"{names.least} below {least:g}", "the record lacks the guesses that would follow"))

    for most, above in chain_candidates(length, least):
        if record.confidence is None and above > 0:
            if above > least:
                continue
            # The recorded threshold, of which only the recorded ends are known.
            raise UnknownError(why)
        yield {"gamma": most, names.least: above}, record.replay(ChainRule(most, above, names.product))
    if prices is not None and record.confidence is not None and least == 0:
        steps = np.arange(length + 1.0)
        gain = prices.costs.times(1 + steps) + prices.drafting * length
        yield None, record.replay(ChainRule(length, gain=gain))


def _of_trees(recorded: RecordedRuns, unsaid: list[Unsaid]) -> _Replays:
    values = recorded.params.to_json()
    if not recorded.drawn and not recorded.plain:
        raise UnknownError(_OTHER_SHARES)
    record = TreeRecord.of(recorded.selection)
    size, least = values["m"], values["threshold"]
    why = "the record lacks the guesses that were not kept"
    unsaid += [Unsaid(f"m above {size}", why), Unsaid("other widths, depths and bounds of expansion", why)]
    if least > 0:
        unsaid.append(Unsaid(f"threshold below {least:g}", why))
    for most, above in tree_candidates(size, least):
        yield {"m": most, "threshold": above}, record.replay(most, above)


def _of_settings(recorded: RecordedRuns) -> _Replays:
    texts, ends = run_texts(recorded.selection)
    base = recorded.params.to_json()
    for settings in settings_candidates(recorded.method, recorded.params):
        runs = rerun(recorded.method, settings, texts, ends)
        if settings == base and not repeats_record(runs, recorded.selection):
            raise UnknownError(
                "run again with its own settings, the method takes other steps: it knew more than this record holds, "
                "such as earlier answers or which tokens end a text"
            )
        changed = {name: value for name, value in settings.items() if value != base[name]}
        yield changed, replay_settings(runs, texts)
