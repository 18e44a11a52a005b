"""`run --from`: what if a step of a recorded run had written something else."""

from __future__ import annotations

from pathlib import Path

import pytest

from decoding.trace.file import read_trace

from .conftest import Command


@pytest.fixture
def recorded(command: Command, tmp_path: Path) -> str:
    path = tmp_path / "first run.jsonl"
    flags = ("--method", "lookahead", "--prompt", "Thursday", "--max-new-tokens", "24", "--trace", str(path))
    assert command("run", "--json", *flags).code == 0
    return str(path)


def test_a_branch_goes_on_with_the_runs_own_settings(command: Command, recorded: str, tmp_path: Path) -> None:
    """The toy is the trace's model: nothing but the place and the token is asked for."""
    out = tmp_path / "branch.jsonl"
    flags = ("--from", recorded, "--step", "3", "--token", " Monday", "--keep", "0", "--model", "toy")
    done = command("run", *flags, "--json", "--trace", str(out))
    assert (done.code, done.err) == (0, "")
    data, first = done.json, read_trace(recorded)
    at = first.steps[3].start - len(first.header.prompt)
    assert data["branch"]["run"] == "first run.jsonl" and data["branch"]["step"] == 3 and data["branch"]["at"] == at
    assert data["method"] == "lookahead" and data["params"] == dict(first.header.params)
    assert data["new_tokens"] + at + len(data["branch"]["forced"]) == 24 and data["rescore"]["violations"] == 0
    branch = read_trace(out).header
    assert branch.branch is not None and list(branch.branch.forced) == data["branch"]["forced"]
    assert command("run", "--from", str(out), "--step", "0", "--token", "a", "--model", "toy").code == 0


def test_the_chosen_token_writes_the_text_again(command: Command, recorded: str) -> None:
    first = read_trace(recorded)
    step = first.steps[4]
    done = command(
        "run", "--from", recorded, "--step", "4", "--token-id", str(step.emitted[-1]), "--json", "--model", "toy"
    )
    at = done.json["branch"]["at"]
    assert tuple(done.json["ids"]) == first.ids[at + 1 :]


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        (["--step", "1"], "name its file with --from"),
        (["--from", "RUN"], "--from needs --step"),
        (["--from", "RUN", "--step", "1"], "either the node"),
        (["--from", "RUN", "--step", "x", "--token", "a"], "--step must be a whole number"),
        (["--from", "RUN", "--step", "999", "--token", "a"], "step must be"),
        (["--from", "RUN", "--step", "1", "--node", "0"], "node must be"),
        (["--from", "RUN", "--step", "1", "--node", "1", "--token", "a"], "not allowed with"),
        (["--from", "RUN", "--step", "1", "--token", "a", "--prompt", "b"], "leave it out"),
        (["--from", "RUN", "--step", "1", "--token", "a", "--method", "jacobi"], "leave it out"),
        (["--from", "/no/such/run", "--step", "1", "--token", "a"], "cannot be read"),
    ],
)
def test_what_is_no_branch_ends_in_one_line(command: Command, recorded: str, flags: list[str], reason: str) -> None:
    done = command("run", *(recorded if flag == "RUN" else flag for flag in flags))
    assert done.code == 2 and done.out == "" and done.err.count("\n") == 1 and reason in done.err, done.err
