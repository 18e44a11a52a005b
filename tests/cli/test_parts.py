"""Methods that need more than a model, from the command line: their parts named, missing and wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from decoding import load
from decoding.model.decoder import Decoder
from lab.training.eagle_folder import save_eagle
from lab.training.part_folder import save_adapter, save_heads
from tests import families
from tests.test_load import save

from .conftest import Command

QUICK = ("--prompt", "w3 w4 w5 w3 w4", "--max-new-tokens", "20", "--device", "cpu", "--dtype", "float32")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a model with everything that its methods need, in folders beside it."""
    home = tmp_path_factory.mktemp("parts")
    save(home / "model")
    machine = families.machine("llama")
    target, heads = machine.model, machine.part("medusa")
    assert isinstance(target, Decoder)
    save_heads(home / "heads", heads.weights, "model", [[0.6, 0.2, 0.1], [0.4, 0.2], [0.2, 0.1]])
    save_adapter(home / "adapter", *families.adapter(target))
    save_eagle(home / "eagle", *families.drafter(target), 3)
    (home / "corpus.txt").write_text(" ".join(f"w{3 + i * i % 7} w{i % 5}" for i in range(400)))
    return home


@pytest.fixture(scope="module")
def plain(home: Path) -> list[int]:
    engine = load(str(home / "model"), device="cpu", dtype="float32")
    return [*engine.generate("w3 w4 w5 w3 w4", max_new_tokens=20).ids]


@pytest.mark.parametrize(
    ("method", "flags"),
    [
        ("medusa", ("--medusa", "heads")),
        ("kangaroo", ("--kangaroo", "adapter")),
        ("eagle3", ("--eagle", "eagle")),
        ("ngrammys", ()),
    ],
)
def test_a_run_with_its_part_writes_the_models_text(
    command: Command, home: Path, plain: list[int], method: str, flags: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))
    monkeypatch.chdir(home)
    data = command("run", "--json", "--method", method, "--model", "model", *flags, *QUICK).json
    assert data["ids"] == plain and data["lossless"] is True and data["rescore"]["violations"] == 0


def test_a_store_is_built_and_drafted_from(
    command: Command, home: Path, plain: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    built = command("datastore", "build", "corpus.txt", "--model", "model", "--out", "store", "--json")
    assert (built.code, built.json["tokens"]) == (0, 800)
    data = command("run", "--json", "--method", "rest", "--model", "model", "--datastore", "store", *QUICK).json
    assert data["ids"] == plain


def test_typical_acceptance_says_that_it_is_not_lossless(
    command: Command, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever compares two texts must see which of them has left the model's distribution."""
    monkeypatch.chdir(home)
    flags = ("--method", "medusa", "--model", "model", "--medusa", "heads", "--param", "acceptance=typical", *QUICK)
    assert command("run", "--json", *flags).json["lossless"] is True  # greedy: what is typical there is the likeliest
    warm = (*flags, "--temperature", "1")
    assert command("run", "--json", *warm).json["lossless"] is False
    assert "not the target's own" in command("run", *warm).out
    assert "not the target's own" not in command("run", *flags).out


def test_trees_are_grown_and_measured(command: Command, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home)
    (home / "questions.jsonl").write_text(json.dumps({"prompt": "w3 w4 w5"}) + "\n")
    flags = ("--model", "model", "--medusa", "heads", "--device", "cpu", "--dtype", "float32")
    asked = ("--measure", "1,8", "--tasks", "questions.jsonl", "--max-new-tokens", "16")
    trees = command("tree-search", "--json", *flags, *asked).json["trees"]
    sizes = [row["guesses"] for row in trees]
    assert sizes[:4] == [1, 2, 4, 8] and sizes == sorted(sizes)
    assert trees[0]["expected"] == pytest.approx(1.6) and trees[0]["paths"] == "0"
    assert trees[1]["expected"] == pytest.approx(1.6 + 0.6 * 0.4)
    assert all((row["measured"] is None) == (row["guesses"] not in (1, 8)) for row in trees)
    assert "measured" in command("tree-search", *flags).out


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["run", "--method", "medusa"], "medusa needs Medusa heads: load the engine with medusa= (--medusa)"),
        (["run", "--method", "rest", "--datastore", "nowhere"], "nowhere"),
        (["run", "--method", "kangaroo", "--kangaroo", "heads"], "heads"),
        (["run", "--method", "eagle3"], "eagle3 needs an EAGLE-3 drafter: load the engine with eagle= (--eagle)"),
        (["run", "--method", "eagle3", "--eagle", "heads"], "name an EAGLE-3 drafter"),
        (["run", "--method", "eagle3", "--eagle", "nowhere"], "nowhere"),
        (["run", "--method", "medusa", "--medusa", "corpus.txt"], "corpus.txt"),
        (["tree-search"], "tree-search needs Medusa heads"),
    ],
)
def test_what_is_missing_or_wrong_is_named(
    command: Command, home: Path, argv: list[str], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    more = QUICK if argv[0] == "run" else QUICK[4:]
    done = command(*argv, "--model", "model", *more)
    assert done.code == 2 and done.err.count("\n") == 1 and says in done.err


def test_the_toy_has_no_place_for_parts(command: Command, home: Path) -> None:
    done = command("run", "--model", "toy", "--medusa", str(home / "heads"))
    assert done.code == 2 and "leave it out" in done.err


def test_threads_make_a_part_once() -> None:
    """Tables of a large model take minutes: two visitors must not make them twice, nor wait for each other's."""
    import threading

    from decoding.parts import Parts

    made, barrier = list[str](), threading.Barrier(4)

    class Made:
        about = "made"

    def maker(progress: object) -> Made:
        made.append("x")
        return Made()

    parts = Parts({"tables": maker})

    def take() -> None:
        barrier.wait()
        parts.take(frozenset({"tables", "hidden"}), lambda what, share: None)

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == ["x"]
