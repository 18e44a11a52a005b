"""`landscape`: a strip of digits for every method."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Command

TOY = ("--model", "toy", "--methods", "jacobi,prompt_lookup")


def test_json_keeps_its_contract(command: Command) -> None:
    """Scripts break when a key goes missing or changes its type."""
    done = command("landscape", *TOY, "--prompt", "On Thursday the ship left the harbour", "--json")
    assert (done.code, done.err) == (0, "")
    data = done.json
    tokens = data["tokens"]
    assert data["first"] == 1 and data["finished"] and len(data["choices"]) == len(tokens)
    assert [one["name"] for one in data["methods"]] == ["jacobi", "prompt_lookup"]
    for one in data["methods"]:
        for column in ("accepted", "drafted", "written", "guesses"):
            assert len(one[column]) == len(tokens) - 1
        assert all(count + 1 == len(row) for count, row in zip(one["accepted"], one["written"], strict=True))


def test_an_answer_is_measured_without_its_prompt(command: Command, tmp_path: Path) -> None:
    """Written here, or recorded before: the same strip."""
    path = str(tmp_path / "run.jsonl")
    flags = ("--prompt", "On Thursday", "--model", "toy")
    assert command("run", "--json", *flags, "--max-new-tokens", "16", "--trace", path).code == 0
    recorded = command("landscape", *TOY, "--from", path, "--json").json
    here = command("landscape", *TOY, "--prompt", "On Thursday", "--write", "16", "--json").json
    assert recorded["greedy"] == 16 == len(recorded["tokens"]) - recorded["first"]
    assert [one["accepted"] for one in recorded["methods"]] == [one["accepted"] for one in here["methods"]]
    shown = command("landscape", *TOY, "--from", path)
    strip = "".join(str(min(9, count)) if count else "·" for count in here["methods"][0]["accepted"])
    assert shown.code == 0 and strip in shown.out and "16 of 16 tokens" in shown.out


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        ([], "required"),
        (["--prompt", "On Thursday", "--methods", "telepathy"], "unknown method"),
        (["--prompt", "On Thursday", "--methods", ","], "list of names"),
        (["--prompt", "On Thursday", "--write", "0"], "--write must be from 1"),
        (["--from", "/no/such/run"], "cannot be read"),
        (["--from", "/no/such/run", "--write", "4"], "leave it out"),
    ],
)
def test_what_cannot_be_measured_ends_in_one_line(command: Command, flags: list[str], reason: str) -> None:
    done = command("landscape", "--model", "toy", *flags)
    assert done.code == 2 and done.out == "" and done.err.count("\n") == 1 and reason in done.err, done.err
