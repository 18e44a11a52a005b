"""`run` and `rescore`: the contract, the trace, and what a person sees."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest

from cli import recorded
from cli.paint import visible
from cli.screen import RunScreen
from cli.stream import PieceCutter, Stream
from decoding import load
from decoding.trace.file import read_trace, write_trace
from decoding.types import Step, Timing
from tests.test_load import save

from .conftest import ON_THE_TOY, Command

KEYS = {
    "method": str,
    "params": dict,
    "text": str,
    "ids": list,
    "prompt_tokens": int,
    "new_tokens": int,
    "steps": int,
    "mean_acceptance_length": float,
    "tokens_per_second": float,
    "seconds": float,
    "device": str,
    "dtype": str,
    "attention": str,
    "model": str,
    "finish": str,
    "draft_acceptance_rate": (float, type(None)),
    "acceptance_histogram": list,
    "per_position_acceptance_rate": list,
}
QUICK = ("--max-new-tokens", "24")
ANSI = re.compile(r"\x1b\[[0-9;]*m")


@pytest.mark.sampled
@pytest.mark.parametrize("method", ON_THE_TOY)
def test_json_keeps_its_contract(command: Command, method: str) -> None:
    """Scripts break when a key goes missing or changes its type."""
    done = command("run", "--json", "--method", method, "--prompt", "Thursday", *QUICK)
    assert (done.code, done.err) == (0, "")
    data = done.json
    for key, kind in KEYS.items():
        assert isinstance(data[key], kind), key
    assert set(data["timing"]) == {"draft_ms", "forward_ms", "accept_ms", "commit_ms", "other_ms"}
    assert data["rescore"] == {"checked": 24, "exact": 24, "near_ties": 0, "violations": 0}
    assert sum(data["acceptance_histogram"]) == data["steps"]
    assert data["mean_acceptance_length"] == 24 / data["steps"]
    assert len(data["per_position_acceptance_rate"]) == len(data["acceptance_histogram"]) - 1


def test_text_and_ids_are_new_tokens_only(command: Command) -> None:
    """A text that begins with the prompt would be counted, scored and shown twice."""
    engine = load("toy")
    expected = engine.generate("Thursday", max_new_tokens=24)
    data = command("run", "--json", "--prompt", "Thursday", *QUICK).json
    assert (data["text"], tuple(data["ids"])) == (expected.text, expected.ids)
    assert data["prompt_tokens"] == len(engine.encode("Thursday"))
    assert data["new_tokens"] == len(data["ids"]) == 24


def test_every_flag_reaches_the_engine(command: Command, tmp_path: Path) -> None:
    """A flag that is parsed and dropped changes nothing, and nobody notices."""
    (tmp_path / "reference.txt").write_text("Zebra crossing ahead.")
    (tmp_path / "prompt.txt").write_text("The sea is")
    flags = "--method prompt_lookup --param K=4 --param tie=earliest --temperature 0.9 --top-k 30 --top-p 0.95"
    flags += " --min-p 0.01 --repetition-penalty 1.1 --seed 5 --record full --prefill-chunk 2 --threads 1"
    trace = tmp_path / "run.jsonl.gz"
    reference, prompt = str(tmp_path / "reference.txt"), str(tmp_path / "prompt.txt")
    files = ["--prompt-file", prompt, "--reference", reference, "--trace", str(trace), "--chat"]
    data = command("run", "--json", *flags.split(), *files, *QUICK, "--stop", "QQ", "--stop", "ZZ").json
    assert data["params"] | {"K": 4, "tie": "earliest"} == data["params"]
    assert data["sampling"] == {
        "temperature": 0.9,
        "top_k": 30,
        "top_p": 0.95,
        "min_p": 0.01,
        "repetition_penalty": 1.1,
        "seed": 5,
    }
    header = read_trace(trace).header
    assert (header.record, header.stop, header.max_new_tokens) == ("full", ("QQ", "ZZ"), 24)
    assert list(header.prompt) == load("toy").encode([{"role": "user", "content": "The sea is"}])


def test_ids_can_be_the_prompt(command: Command) -> None:
    """Models without a tokenizer can be driven by ids only."""
    ids = load("toy").encode("Thursday")
    by_ids = command("run", "--json", "--prompt-ids", ",".join(map(str, ids)), *QUICK).json
    assert by_ids["ids"] == command("run", "--json", "--prompt", "Thursday", *QUICK).json["ids"]


def test_a_stop_string_ends_text_and_stream(command: Command) -> None:
    """The stream must not show what the final text no longer holds, also where a step runs past the stop."""
    flags = ("--prompt", "Thursday", "--method", "draft_model", "--stop", "low tide", "--max-new-tokens", "60")
    data = command("run", "--json", *flags).json
    assert data["finish"] == "stop" and "low tide" not in data["text"]
    shown = command("run", *flags).out
    assert data["text"] in shown and "low tide" not in shown


@pytest.mark.sampled
@pytest.mark.parametrize("method", ON_THE_TOY)
@pytest.mark.parametrize("seed", range(3))
def test_the_stream_is_the_text(command: Command, method: str, seed: int) -> None:
    """Bytes of one character spread over tokens, or held-back pieces, must neither be lost nor doubled."""
    flags = ("--method", method, "--prompt", "世界 ü", "--temperature", "3", "--seed", str(seed), *QUICK)
    data = command("run", "--json", *flags).json
    shown = command("run", *flags).out
    assert shown.split("\n\n", 1)[1].startswith(visible(data["text"]))


def test_characters_spread_over_tokens_come_whole() -> None:
    """Half a character printed at once stays on the screen as a question mark for ever."""
    codec = load("toy").codec
    text = "a世界ü!\U0001f40b, and"
    steps = [Step(0, 0, 0, (token,), 0, 0, 1, Timing()) for token in codec.encode(text)]
    pieces = PieceCutter(codec, codec.encode("Thursday"))
    assert "".join(piece.text for step in steps for piece in pieces.of(step)) == text


def test_an_unfinished_character_is_shown_at_the_end() -> None:
    """A run may end between two bytes of one character: the stream must show what the final text shows."""
    codec, written = load("toy").codec, list[str]()
    stream, pieces = Stream(lambda piece: written.append(piece.text), []), PieceCutter(codec, codec.encode("a"))
    token = codec.encode("世")[0]
    stream.add(pieces.of(Step(0, 0, 0, (token,), 0, 0, 1, Timing())))
    assert written == []
    stream.finish("\N{REPLACEMENT CHARACTER}")
    assert written == ["\N{REPLACEMENT CHARACTER}"]


def test_a_trace_is_written_while_running_and_never_overwritten(command: Command, tmp_path: Path) -> None:
    """A run of hours must not be lost to a second start with the same command."""
    path = tmp_path / "run.jsonl"
    first = command("run", "--json", "--trace", str(path), "--prompt", "Thursday", *QUICK).json
    trace = read_trace(path)
    assert list(trace.ids) == first["ids"] and trace.summary is not None
    assert {*trace.ids, *trace.header.prompt} <= set(trace.texts)
    before = path.read_bytes()
    refused = command("run", "--trace", str(path), *QUICK)
    assert refused.code == 2 and "--force" in refused.err and path.read_bytes() == before
    assert command("run", "--json", "--trace", str(path), "--force", "--prompt", "Monday", *QUICK).code == 0
    assert read_trace(path).header.prompt != trace.header.prompt


@pytest.mark.parametrize("name", ["run.jsonl", "run.jsonl.gz"])
def test_a_refused_run_leaves_files_alone(command: Command, tmp_path: Path, name: str) -> None:
    """A mistyped setting must neither leave an empty trace behind nor, with --force, destroy an old one."""
    path = tmp_path / name
    largest = [flag for value in ("W=256", "N=16", "G=256") for flag in ("--param", value)]
    refused = ("run", "--method", "lookahead", *largest, "--trace", str(path))
    assert command(*refused).code == 2 and not path.exists()
    path.write_bytes(b"an old trace")
    done = command(*refused, "--force")
    assert done.code == 2 and "step of lookahead" in done.err and done.err.count("\n") == 1 and done.out == ""
    assert path.read_bytes() == b"an old trace"


@pytest.mark.parametrize("name", ["org/model", "gpt2", "m" * 5000])
def test_rescore_fetches_nothing_that_a_trace_names(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A trace from a stranger must not make this machine download, and load, whatever it names."""
    import huggingface_hub

    fetched = list[str]()
    monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda name, **options: fetched.append(name))
    path = tmp_path / "run.jsonl"
    command("run", "--trace", str(path), "--prompt", "Thursday", *QUICK)
    trace = read_trace(path)
    card = dataclasses.replace(trace.header.model, name=name)
    write_trace(dataclasses.replace(trace, header=dataclasses.replace(trace.header, model=card)), path)
    done = command("rescore", str(path))
    assert done.code == 2 and fetched == []
    expected = (
        f"the trace names the model {name[:200]!r}, which is no folder here: name it with --model if you trust it"
    )
    assert done.err == f"specscope: {expected}\n"


def test_a_trace_names_the_model_and_not_its_folder(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Traces are passed on. Where the model's folder is at hand, one's own runs are checked without naming it again."""
    path = tmp_path / "run.jsonl"
    flags = ("--model", save(tmp_path / "model"), "--device", "cpu", "--dtype", "float32")
    assert command("run", "--json", "--trace", str(path), *flags, "--prompt", "w3 w4 w5", *QUICK).code == 0
    assert str(tmp_path) not in path.read_text()
    again = ("rescore", str(path), "--device", "cpu", "--dtype", "float32", "--json")
    assert "name it with --model" in command(*again).err
    assert command(*again, "--model", str(tmp_path / "model")).json["violations"] == 0
    monkeypatch.chdir(tmp_path)
    assert command(*again).json["violations"] == 0


def test_rescore_computes_in_the_runs_own_dtype(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In another one rounding alone tells tokens apart, and a right run looks wrong."""
    path, used = tmp_path / "run.jsonl", list[str]()
    load_engine = recorded.load_engine

    def loaded(*arguments: Any, **options: Any) -> Any:
        engine = load_engine(*arguments, **options)
        used.append(str(engine.model.dtype))
        return engine

    monkeypatch.setattr(recorded, "load_engine", loaded)
    flags = ("--model", save(tmp_path / "model"), "--device", "cpu", "--dtype", "float16")
    assert command("run", "--json", "--trace", str(path), *flags, "--prompt", "w3 w4 w5", *QUICK).code == 0
    again = ("rescore", str(path), "--model", str(tmp_path / "model"), "--device", "cpu", "--json")
    assert command(*again).json["violations"] == 0
    command(*again, "--dtype", "bfloat16")
    assert used == ["torch.float16", "torch.bfloat16"]
    trace = read_trace(path)
    write_trace(dataclasses.replace(trace, header=dataclasses.replace(trace.header, dtype="\x1b[2Jint8")), path)
    done = command(*again[:-1])
    assert done.code == 2 and done.err.count("\n") == 1 and "\x1b" not in done.err
    assert "the trace names the dtype" in done.err and "name one with --dtype" in done.err


def test_rescore_tells_by_its_exit_code(command: Command, tmp_path: Path) -> None:
    """A script that checks a recorded run must be able to trust the exit code."""
    path = tmp_path / "run.jsonl"
    command("run", "--trace", str(path), "--prompt", "Thursday", "--method", "jacobi", *QUICK)
    done = command("rescore", str(path), "--json")
    assert done.code == 0 and done.json["exact"] == done.json["checked"] == 24
    assert "all 24 tokens" in command("rescore", str(path)).out
    trace = read_trace(path)
    step = trace.steps[-1]
    wrong = dataclasses.replace(
        step, emitted=(*step.emitted[:-1], 300), tokens=(), parents=(), roles=(), sources=(), path=(), choices=()
    )
    write_trace(dataclasses.replace(trace, steps=(*trace.steps[:-1], wrong)), path)
    done = command("rescore", str(path))
    assert done.code == 1 and "1 of 24 tokens are not" in done.out and "new token 23" in done.out


def test_rescore_refuses_other_weights(command: Command, tmp_path: Path) -> None:
    """Against changed weights a correct run looks wrong, and nobody can tell why."""
    path = tmp_path / "run.jsonl"
    command("run", "--trace", str(path), "--prompt", "Thursday", *QUICK)
    trace = read_trace(path)
    card = dataclasses.replace(trace.header.model, hash="1" * 64)
    write_trace(dataclasses.replace(trace, header=dataclasses.replace(trace.header, model=card)), path)
    done = command("rescore", str(path))
    assert done.code == 2 and "has changed" in done.err
    assert command("rescore", str(path), "--model", "toy").code == 0
    card = dataclasses.replace(card, name="/no/such/model")
    write_trace(dataclasses.replace(trace, header=dataclasses.replace(trace.header, model=card)), path)
    done = command("rescore", str(path))
    assert done.code == 2 and "--model" in done.err and done.err.count("\n") == 1


def test_colours_mark_accepted_guesses(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Colour must never be the only sign, and must be gone where nobody sees it."""
    flags = ("run", "--method", "draft_model", "--prompt", "Thursday", *QUICK)
    plain = command(*flags).out
    assert "\x1b" not in plain
    monkeypatch.setenv("FORCE_COLOR", "1")
    painted = command(*flags).out
    assert "\x1b[4;38;5;75m" in painted and "written by the drafter" in painted
    monkeypatch.setenv("NO_COLOR", "1")
    styled = command(*flags).out
    assert "38;5" not in styled and "\x1b[4m" in styled
    text = command("run", "--json", *flags[1:]).json["text"]
    assert text in plain and text in ANSI.sub("", painted) and text in ANSI.sub("", styled)


def test_a_run_without_its_tree_still_shows(command: Command) -> None:
    """record=off leaves no sources to look up."""
    done = command("run", "--record", "off", "--method", "draft_model", "--prompt", "Thursday", *QUICK)
    assert done.code == 0 and "24 tokens" in done.out


def test_the_summary_says_what_the_numbers_say(command: Command) -> None:
    """A report that disagrees with the JSON is worse than none."""
    flags = ("--method", "draft_model", "--prompt", "Thursday", *QUICK)
    data, out = command("run", "--json", *flags).json, command("run", *flags).out
    assert f"24 tokens in {data['steps']} steps" in out
    assert f"{data['mean_acceptance_length']:.2f} tokens per step" in out
    assert "all 24 tokens are the target's first choice" in out
    assert "not a neural network" in out
    bars = [int(count) for count in re.findall(r"^.{20,22}\d\+? .*?(\d+)$", out, flags=re.MULTILINE)]
    assert bars == data["acceptance_histogram"]


def test_the_screen_follows_the_run(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Text that appears only at the end is no stream."""
    lengths: list[int] = []
    add = RunScreen.add

    def spy(screen: Any, step: Any) -> None:
        add(screen, step)
        lengths.append(screen._stream._written)

    monkeypatch.setattr(RunScreen, "add", spy)
    command("run", "--prompt", "Thursday", "--method", "draft_model", *QUICK)
    assert lengths == sorted(lengths) and lengths[0] > 0 and len(set(lengths)) == len(lengths)


@pytest.mark.slow
def test_a_prompt_is_a_turn_of_a_chat_unless_it_is_raw(command: Command) -> None:
    """A model that was made for chats ends at once after a plain text."""
    flags = ("run", "--json", "--model", "smollm2", "--max-new-tokens", "4", "--device", "cpu", "--prompt", "Hello")
    turn, raw = command(*flags).json, command(*flags, "--raw").json
    assert turn["prompt_tokens"] > 20 and raw["prompt_tokens"] == 1
    assert command(*flags, "--chat").json["ids"] == turn["ids"]
    assert command(*flags, "--chat", "--raw").code == 2


def test_a_model_is_prepared_for_its_first_run(command: Command) -> None:
    """It says where the weights lie, which may be large."""
    assert command("prepare", "--model", "toy").out.startswith("toy is ready: ")
    done = command("prepare", "--model", "pocket", "--device", "cpu")
    assert done.code == 0 and "pocket is ready: 7 million parameters, autoregressive, jacobi" in done.out
    assert "weights: " in done.out


def test_rescore_reports_what_a_record_makes_up(command: Command, tmp_path: Path) -> None:
    """Tokens that are the target's own said nothing of the numbers beside them."""
    path = tmp_path / "run.jsonl"
    command("run", "--trace", str(path), "--record", "full", "--method", "draft_model", "--prompt", "Thursday", *QUICK)
    done = command("rescore", str(path), "--again")
    assert done.code == 0 and "run again, it takes the same steps" in done.out and "not checked: times" in done.out
    trace = read_trace(path)
    step = trace.steps[1]
    wrong = dataclasses.replace(step, entropy=(step.entropy[0] + 1.0, *step.entropy[1:]))
    write_trace(dataclasses.replace(trace, steps=(trace.steps[0], wrong, *trace.steps[2:])), path)
    done = command("rescore", str(path))
    assert done.code == 1 and "step 1: entropy[0] is" in done.out and "all 24 tokens" in done.out
    data = command("rescore", str(path), "--json").json
    assert data["contradictions"][0]["step"] == 1 and data["violations"] == 0 and data["unchecked"]


def test_a_record_without_its_end_or_with_an_unknown_method_is_said_to_be_so(command: Command, tmp_path: Path) -> None:
    """It took "the same steps", and its end was missing."""
    path, done = tmp_path / "run.jsonl", "how the run ended: the record stops before its summary"
    command("run", "--trace", str(path), "--prompt", "Thursday", *QUICK)
    trace = read_trace(path)
    write_trace(dataclasses.replace(trace, summary=None), path)
    again = command("rescore", str(path), "--again")
    assert again.code == 0 and "as far as the record goes, which lacks its end" in again.out and done in again.out
    assert f"not checked: {done}" in command("import", str(path), "--out", str(tmp_path / "cut")).out
    write_trace(dataclasses.replace(trace, header=dataclasses.replace(trace.header, method="zzz")), path)
    for asked in (("rescore", str(path)), ("import", str(path), "--out", str(tmp_path / "unknown"))):
        shown = command(*asked)
        assert shown.code == 0 and "guesses of the method 'zzz', which is none of ours" in shown.out


def test_what_a_record_names_cannot_command_the_terminal(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    command("run", "--trace", str(path), "--prompt", "Thursday", *QUICK)
    trace = read_trace(path)
    header = dataclasses.replace(trace.header, method="\x1b[2J", parts={"\x1b]0;x": "\x1b"}, record="\x1b[1m")
    write_trace(dataclasses.replace(trace, header=header), path)
    shown = command("rescore", str(path)).out
    assert "not checked" in shown and "\x1b" not in shown


def test_import_refuses_a_record_that_contradicts_itself(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    command("run", "--trace", str(path), "--prompt", "Thursday", *QUICK)
    trace = read_trace(path)
    assert trace.summary is not None
    summary = dataclasses.replace(trace.summary, mean_acceptance_length=9.0)
    write_trace(dataclasses.replace(trace, summary=summary), path)
    done = command("import", str(path), "--out", str(tmp_path / "out"))
    assert done.code == 2 and "summary.mean_acceptance_length is 9, but the steps give 1" in done.err
    assert not (tmp_path / "out").exists()
