"""The three tables of a run folder: runs, their steps, and the steps' nodes.

They are the interface between their sources (an evaluation, an import of another engine's records) and their readers
(metrics, queries, the page). A column that a source does not know is null: a reader greys out what needs it. Columns
are only ever added, and one that an older file lacks is null as well.
"""

from __future__ import annotations

import pyarrow as pa

RUNS, STEPS, NODES = "runs", "steps", "nodes"
VERSION = 1  # raised when a reader of the old tables would misread the new ones

_text, _whole, _number, _yes = pa.string(), pa.int64(), pa.float64(), pa.bool_()
_ids = pa.list_(pa.int32())


def _schema(*columns: tuple[str, pa.DataType], required: tuple[str, ...]) -> pa.Schema:
    return pa.schema([pa.field(name, kind, nullable=name not in required) for name, kind in columns])


# One row a turn of a question, with one method in one setting. `run` numbers them in their order.
RUNS_SCHEMA = _schema(
    ("run", _whole),
    ("question", _text),  # the question's id in its prompt set
    ("category", _text),
    ("turn", _whole),  # from 1
    ("method", _text),  # ours, or the name that another engine gives its own
    ("setting", _text),  # the name that the user gave these settings, "tuned" of --tuned, else "default"
    ("params", _text),  # a JSON object
    ("sampling", _text),  # a JSON object
    ("engine", _text),  # "specscope", "vllm", ...: who decoded
    ("model", _text),
    ("draft", _text),
    ("device", _text),
    ("dtype", _text),
    ("attention", _text),
    ("experts", _whole),  # of a layer of the model, from which a router chooses; null: it has none
    ("lossless", _yes),
    ("reconstructed", _yes),  # rejected guesses were drafted again afterwards
    ("finish", _text),  # as in a trace's summary; "error" where the run failed
    ("error", _text),  # the sentence, where it failed
    ("prompt", _text),
    ("text", _text),  # the new text
    ("prompt_ids", _ids),
    ("ids", _ids),  # the new tokens
    ("prompt_tokens", _whole),
    ("new_tokens", _whole),
    ("steps", _whole),
    ("drafted", _whole),
    ("accepted", _whole),
    ("fed", _whole),  # rows that went through the target
    ("mean_acceptance_length", _number),
    ("prefill_seconds", _number),  # the first step: time to the first token
    ("decode_seconds", _number),  # all later steps
    ("tokens_per_second", _number),
    ("trace", _text),  # the run's trace file, relative to the folder
    required=("run", "question", "category", "turn", "method", "setting", "engine", "reconstructed"),
)

# One row a step.
STEPS_SCHEMA = _schema(
    ("run", _whole),
    ("step", _whole),  # from 0, which reads the prompt
    ("start", _whole),  # committed tokens before it: the context length
    ("drafted", _whole),
    ("accepted", _whole),
    ("written", _whole),  # tokens emitted: the accepted ones and one more, unless the run was cut
    ("fed", _whole),
    ("nodes", _whole),
    ("experts", _number),  # different ones that its pass read in a layer, on average over the layers that have any
    ("text", _text),  # of the emitted tokens
    ("entropy", _number),  # of the target's distribution at the root, in nats
    ("draft_ms", _number),
    ("forward_ms", _number),
    ("accept_ms", _number),
    ("commit_ms", _number),
    ("other_ms", _number),
    ("total_ms", _number),
    required=("run", "step", "accepted", "written"),
)

# One row a guess or window cell, the root included: its position in a step's tree, and its fate.
NODES_SCHEMA = _schema(
    ("run", _whole),
    ("step", _whole),
    ("node", _whole),
    ("parent", _whole),  # -1 of the root
    ("depth", _whole),
    ("role", _text),  # "root", "verify" or "explore"
    ("source", _text),  # kind of the source, as "draft" or "pool"
    ("detail", _text),  # the source's detail
    ("token", _whole),
    ("text", _text),
    ("accepted", _yes),
    ("judged", _yes),  # its parent was accepted, so that the target decided over it
    ("sibling", _whole),  # rank among the guesses of its parent, in the tree's order, from 0
    ("wanted", _whole),  # what the target chose in its place: at its parent
    ("wanted_text", _text),
    ("p", _number),  # the target's probability of the token at its parent
    ("q", _number),  # the drafter's, where it was sampled from a distribution
    ("confidence", _number),  # the drafter's probability of it also where it was not sampled; null where none is known
    ("rank", _whole),  # of the target's choice among the drafter's likeliest at its parent, from 0; null: not listed
    ("draftable", _yes),  # whether the drafter's vocabulary has the target's choice; null: it has all, or is unknown
    ("entropy", _number),  # of the target's distribution at its parent, in nats
    ("overlap", _number),  # the sum over all tokens of min(p, q) at its parent: the chance that a sample is accepted
    required=("run", "step", "node", "parent", "depth", "role", "source", "accepted", "judged"),
)

DENSE = "the model is dense: no layer of it chooses among experts"  # why the columns `experts` are null

SCHEMAS = {RUNS: RUNS_SCHEMA, STEPS: STEPS_SCHEMA, NODES: NODES_SCHEMA}
