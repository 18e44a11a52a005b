"""Writes the target's greedy texts, once for all probes: greedy text does not depend on the draft."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch

from decoding.errors import ParamError

from ..prompts.tasks import Task

if TYPE_CHECKING:
    from decoding.codec import Prompt
    from decoding.engine import Engine
    from decoding.model.split import AnyDecoder

    from ..reporting import Reporting

_CHUNK = 256  # rows that are read at once
_PLACES = 24  # of a text at which guesses are made
_LONGEST = 1024  # tokens of a prompt; a longer one is left out, since every probe reads it again


@dataclass(frozen=True, slots=True)
class Text:
    """A prompt, the target's text after it, and the target's states at every token."""

    prompt: Prompt
    ids: tuple[int, ...]
    prompt_length: int
    hidden: torch.Tensor  # (T, H) after the final norm
    states: Mapping[int, torch.Tensor] = field(default_factory=dict)  # (T, H) entering a layer

    def places(self, depth: int) -> range:
        """Return where a step can begin: its root is the target's own token, and `depth` tokens follow.

        Neighbouring positions give nearly the same result, so where there are many only every second or third is used.
        """
        every = range(self.prompt_length, len(self.ids) - depth)
        return every[:: max(1, -(-len(every) // _PLACES))]


def write_texts(engine: Engine, tasks: Sequence[Task], new_tokens: int, layers: Sequence[int]) -> Reporting[list[Text]]:
    """Write the target's text for the first turn of every task, and record the states entering those layers."""
    texts = list[Text]()
    for number, task in enumerate(tasks):
        yield "the target writes its own texts", number / len(tasks)
        prompt = engine.as_turn(task.turns[0])
        ids = engine.encode(prompt)
        if len(ids) > _LONGEST or len(ids) + new_tokens > engine.model.card.context:
            continue
        written = engine.generate(prompt, max_new_tokens=new_tokens, record="off").ids
        texts.append(read_text(_decoder(engine), prompt, ids, written, layers))
    if not texts:
        raise ParamError("none of these prompts fits the model: name shorter ones with --tasks")
    return texts


def read_text(
    model: AnyDecoder, prompt: Prompt, ids: Sequence[int], written: Sequence[int], layers: Sequence[int]
) -> Text:
    """Read a whole text in plain passes, and keep what enters the layers."""
    text = (*ids, *written)
    session = model.open(len(text), min(_CHUNK, len(text)))
    session.reset(len(ids))
    session.tap(*layers)
    hidden, states = list[torch.Tensor](), list[torch.Tensor]()
    for first in range(0, len(text), _CHUNK):
        part = text[first : first + _CHUNK]
        hidden.append(session.read(part, tuple(range(-1, len(part) - 1))).hidden)
        session.commit(range(len(part)))
        states.append(session.tapped())
    width = model.shape.hidden
    each = torch.split(torch.cat(states), width, 1) if layers else ()
    return Text(prompt, text, len(ids), torch.cat(hidden), dict(zip(layers, each, strict=True)))


def _decoder(engine: Engine) -> AnyDecoder:
    from decoding.model.decoder import Decoder
    from decoding.model.split import SplitDecoder

    if not isinstance(engine.model, Decoder | SplitDecoder):
        raise ParamError("the toy is a table without drafters to examine: load a model")
    return engine.model
