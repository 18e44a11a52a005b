"""The recorded runs that come with the page."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from analysis.tuned import TUNED
from app.controls import runnable
from app.jobs.opening_step import is_word, opening_step
from app.models.catalog import EMBEDDED, POCKET
from app.presets import presets
from app.server.limits import LIMITS
from app.state import AppState
from app.store.recordings import FOLDER, INDEX, LANDINGS, MOST_BYTES, Recordings, read_index, speedup_over, task
from app.ui import build
from decoding import METHODS, load
from decoding.engine import Engine
from decoding.errors import TraceError
from decoding.trace.file import parse_trace
from decoding.trace.metrics import credible_speedup
from decoding.types import Timing, Trace
from tests.event_loops import discard_event_loops
from tests.tiers import choose, nightly, sampled, slow
from tools import record_gallery
from tools.gallery_recipes import recipes

from .conftest import lines

RECORDINGS = Recordings()
TOLERANCE = 1e-3  # of a probability
LANDING = LANDINGS[1]  # the embedded family's, which is always there
ALL = list(RECORDINGS)
FIRST = {recording.method: recording.id for recording in reversed(ALL)}.values()  # of every method


def without_times(trace: Trace) -> Trace:
    """Return what must come out the same on every machine; sizes in bytes depend on how weights are laid out there."""
    steps = tuple(replace(step, timing=Timing()) for step in trace.steps)
    model = replace(trace.header.model, weight_bytes=None, pass_bytes=None, token_bytes=None)
    header = replace(
        trace.header, versions={}, attention="", model=model, bandwidth=None, processor=None, threads=None, cache=None
    )
    return replace(trace, header=header, steps=steps, summary=None)


def without_shares(trace: Trace) -> Trace:
    """Return what is exact on every machine: the last digits of a probability depend on how a processor adds.

    Entropy and overlap are such sums too, and most recordings are older than these columns.
    """
    bare: Mapping[str, tuple[()]] = dict.fromkeys(("p", "q", "top", "draft_top", "entropy", "overlap"), ())
    return replace(trace, steps=tuple(replace(step, **bare) for step in trace.steps))


def shares(trace: Trace) -> list[float]:
    """Return all probabilities of a trace, the tokens they are of between them, and -1 for none.

    Where two tokens have as good as the same share, or one only just made it into the list, rounding decides which it
    is: there the share counts alone.
    """
    numbers: list[float] = []
    for step in trace.steps:
        numbers += [-1.0 if value is None else value for value in (*step.p, *step.q)]
        for best in (*step.top, *step.draft_top):
            for rank, (token, *both) in enumerate(best):
                near = [other[1] for other in (*best[max(0, rank - 1) : rank], *best[rank + 1 : rank + 2])]
                clear = rank + 1 < len(best) and min(abs(both[0] - share) for share in near) > TOLERANCE
                numbers += [token if clear else -1, *both]
    return numbers


def test_every_method_and_preset_has_one() -> None:
    made = {(recording.method, recording.preset) for recording in ALL}
    for name in runnable(POCKET):
        plain = METHODS[name].Params().to_json()
        for preset, values in presets(METHODS[name]).items():
            if preset in TUNED:
                continue  # a question of speed, not of pictures
            assert (name, preset) in made or (values == plain and (name, "defaults") in made), f"{name}, {preset}"


def recordings() -> list[Any]:
    """Return all recordings: the first of every method by default, and every third of the others with --all."""
    marks = [() if each.id in FIRST else nightly if at % 3 else slow for at, each in enumerate(ALL)]
    return [pytest.param(each.id, marks=mark) for each, mark in zip(ALL, marks, strict=True)]


@sampled
@pytest.mark.parametrize("run", recordings())
def test_each_is_whole_proven_and_small_enough(run: str) -> None:
    recording, text = RECORDINGS.get(run), RECORDINGS.lines(run)
    assert recording is not None
    got = lines(text)
    assert len(text) <= LIMITS.stream_bytes * 1.1
    steps = [line for line in got if line["kind"] == "step"]
    assert 0 <= recording.step < len(steps) and recording.title and recording.shows
    end: Mapping[str, Any] = got[-1]
    assert end["kind"] == "end" and end["finish"] in ("length", "end_of_text")
    assert end["check"]["violations"] == 0 and end["check"]["checked"] == end["summary"]["new_tokens"]
    assert end["speedup"] == credible_speedup(recording.speedup, recording.tokens_per_step)
    assert end["summary"]["mean_acceptance_length"] == pytest.approx(recording.tokens_per_step, abs=0.006)


@pytest.fixture(scope="module")
def traces() -> list[Trace]:
    """Return all of them, parsed."""
    parsed = [RECORDINGS.trace(each.id) for each in ALL]
    return [trace for trace in parsed if trace is not None]


@slow
def test_the_index_opens_each_at_the_step_that_the_rule_says(traces: list[Trace]) -> None:
    """A rule that was changed without the index would describe other steps than those that are shown."""
    assert [each.step for each in ALL] == [opening_step(trace) for trace in traces]


@pytest.mark.slow
def test_a_card_shows_the_speedup_of_the_recorded_race_and_none_that_cannot_be(traces: list[Trace]) -> None:
    """The same run was 1.50 times as fast on its card as autoregressive decoding, and 1.20 times in the race."""
    plain = {str(task(trace)): trace for trace in traces if trace.header.method == "autoregressive"}
    cards = {row["id"]: row for row in RECORDINGS.gallery()}
    measured = 0
    for recording, trace in zip(ALL, traces, strict=True):
        base = plain.get(str(task(trace)))
        card = cards[recording.id]
        if recording.method == "autoregressive" or base is None:
            continue
        assert card["speedup"] == speedup_over(trace, base), recording.id
        if card["speedup"] is not None:
            times = [sum(step.timing.total_ms for step in each.steps) / len(each.ids) for each in (base, trace)]
            assert card["speedup"] == pytest.approx(times[0] / times[1], abs=0.001), recording.id
            measured += 1
    assert measured > 30
    assert all(row["speedup"] is None or row["speedup"] < row["tokens_per_step"] + 0.005 for row in cards.values())


def test_runs_of_one_prompt_take_turns_while_they_are_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine's speed swings within minutes: of each method the run of median speed is kept."""
    names = ("autoregressive-defaults", "jacobi-defaults")
    group = [replace(recipe, length=8) for recipe in recipes() if recipe.id in names]
    turns, generate = list[str](), Engine.generate

    def noted(engine: Engine, prompt: Any, method: str, *more: Any, **options: Any) -> Any:
        turns.append(method)
        return generate(engine, prompt, method, *more, **options)

    monkeypatch.setattr(Engine, "generate", noted)
    made = record_gallery.record(load("pocket", device="cpu", dtype="float32"), group)
    assert turns == [recipe.method for recipe in group] * 5
    (plain,) = (trace for _, trace in made if trace.header.method == "autoregressive")
    for recording, trace in made:
        expected = None if trace is plain else speedup_over(trace, plain)
        assert recording.speedup == expected


def test_the_page_opens_at_a_step_worth_seeing() -> None:
    landing = RECORDINGS.landing
    assert landing is not None and landing.id == next(run for run in LANDINGS if RECORDINGS.get(run))
    packed = RECORDINGS.packed(landing.id)
    assert packed is not None
    trace = parse_trace(packed.data)
    step = trace.steps[landing.step]
    assert any(is_word(trace.texts[token]) for token in step.emitted[: step.accepted])


@pytest.mark.parametrize("name", choose([LANDING, "prompt-lookup-defaults"], ["prompt-lookup-defaults"]))
def test_the_recipe_makes_them_again(name: str) -> None:
    """Anything but the times is the same: a recording cannot be prettier than the engine."""
    recipe = next(recipe for recipe in recipes() if recipe.id == name)
    engine = load("pocket", device="cpu", dtype="float32")
    ((recording, trace),) = record_gallery.record(engine, [recipe])
    packed, known = RECORDINGS.packed(name), RECORDINGS.get(name)
    assert packed is not None and known is not None
    made, kept = without_times(trace), without_times(parse_trace(packed.data))
    assert without_shares(made) == without_shares(kept)
    assert shares(made) == pytest.approx(shares(kept), rel=0, abs=TOLERANCE)
    assert (recording.step, recording.tokens_per_step) == (known.step, known.tokens_per_step)


def test_one_of_them_is_made_again_beside_the_others(tmp_path: Path) -> None:
    """Its entry is new, theirs are what they were."""
    shutil.copy(FOLDER / INDEX, tmp_path)
    assert record_gallery.main(["--only", "prompt-lookup-defaults", "--out", str(tmp_path)]) == 0
    assert [path.name for path in tmp_path.glob("*.gz")] == ["prompt-lookup-defaults.jsonl.gz"]
    before, after = read_index(FOLDER), read_index(tmp_path)
    assert [each.id for each in after] == [each.id for each in before]
    for old, new in zip(before, after, strict=True):
        if new.id == "prompt-lookup-defaults":  # whose speed and roundings are this machine's
            new = replace(new, speedup=old.speedup, check={**new.check, "noise": old.check["noise"]})
        assert new == old


def test_all_of_them_are_small_together() -> None:
    """Every clone and every Space carries them."""
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) <= MOST_BYTES


def test_the_index_is_in_the_order_of_the_recipes() -> None:
    """The gallery shows them in the index's order: first the prompts that all methods share."""
    order = {recipe.id: number for number, recipe in enumerate(recipes())}
    places = [order[recording.id] for recording in ALL]
    assert places == sorted(places)


def test_lines_are_made_once() -> None:
    """Replaying takes half a second of the interpreter, and anybody may ask as often as they like."""
    assert RECORDINGS.lines(LANDING) is RECORDINGS.lines(LANDING)


def test_what_is_not_a_recording_is_not_read() -> None:
    assert RECORDINGS.packed("../pocket/tasks") is None and RECORDINGS.get(7) is None


class Folder:
    """A copy of some recordings, to be spoilt, and what the host is told of it."""

    def __init__(self, path: Path, log: pytest.LogCaptureFixture) -> None:
        self.path, self._log = path, log
        self.rows = [asdict(each) for each in ALL if each.id in SOME]
        for each in SOME:
            shutil.copy(FOLDER / f"{each}.jsonl.gz", path)
        self.write()

    def write(self) -> None:
        (self.path / INDEX).write_text(json.dumps(self.rows))

    def file(self, run: str) -> Path:
        return self.path / f"{run}.jsonl.gz"

    @property
    def warnings(self) -> list[str]:
        return [record.getMessage() for record in self._log.records]


SOME = (LANDING, "autoregressive-defaults", "jacobi-defaults")


@pytest.fixture
def folder(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Folder:
    return Folder(tmp_path, caplog)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def replace_by_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def holding(change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    """Write what becomes of a file's bytes."""

    def spoil(path: Path) -> None:
        path.write_bytes(change(path.read_bytes()))

    return spoil


BAD_FILES: dict[str, Callable[[Path], None]] = {
    "gone": Path.unlink,
    "a folder": replace_by_a_folder,
    "empty": holding(lambda data: b""),
    "no gzip": holding(lambda data: b"PK\x03\x04"),
    "another gzip": holding(lambda data: gzip.compress(b"hello\n" * 9)),
    "one long line": holding(lambda data: gzip.compress(b"[" * 2**22)),
    "cut off": holding(lambda data: data[: len(data) // 2]),
    "damaged": holding(lambda data: data[:900] + bytes(900)),
    "spoilt behind its head": holding(lambda data: gzip.compress(gzip.decompress(data).split(b"\n")[0] + b"\n{}\n")),
}


@sampled
@pytest.mark.parametrize("spoil", BAD_FILES.values(), ids=BAD_FILES)
def test_the_page_comes_up_without_a_landing_run_that_is_broken(folder: Folder, spoil: Callable[[Path], None]) -> None:
    spoil(folder.file(LANDING))
    app_state = AppState(dict(EMBEDDED), recordings=Recordings(folder.path))
    landing = app_state.recordings.landing
    assert landing is not None and landing.id == "autoregressive-defaults"
    assert [row["id"] for row in app_state.recordings.gallery()] == ["autoregressive-defaults", "jacobi-defaults"]
    assert lines(app_state.calls.recording_lines(landing.id))[-1]["kind"] == "end"
    (warning,) = folder.warnings
    assert (
        str(folder.file(LANDING)) in warning and "make traces" in warning and "\n" not in warning and len(warning) < 400
    )
    with pytest.raises(TraceError) as caught:
        app_state.calls.open_run(LANDING)
    assert str(folder.path) not in str(caught.value)


@slow
@pytest.mark.parametrize("spoil", [Path.unlink, cut], ids=["gone", "cut off"])
def test_without_the_real_models_landing_the_page_opens_on_the_embedded_familys(
    folder: Folder, spoil: Callable[[Path], None]
) -> None:
    """Although others of the real model stand before it in the index."""
    others = [dict(folder.rows[1], id="smollm2-prime-autoregressive"), dict(folder.rows[0], id=LANDINGS[0])]
    for row, source in zip(others, ("autoregressive-defaults", LANDING), strict=True):
        shutil.copy(folder.file(source), folder.file(row["id"]))
    folder.rows = others + folder.rows
    folder.write()
    landing = Recordings(folder.path).landing
    assert landing is not None and landing.id == LANDINGS[0]
    spoil(folder.file(LANDINGS[0]))
    landing = Recordings(folder.path).landing
    assert landing is not None and landing.id == LANDING


@pytest.mark.parametrize("spoil", BAD_FILES.values(), ids=BAD_FILES)
def test_a_recording_that_breaks_later_is_a_sentence_to_the_visitor(
    folder: Folder, spoil: Callable[[Path], None]
) -> None:
    """By its address, its steps and its downloads; the host is told once, however often it is asked for."""
    run = "jacobi-defaults"
    app_state = AppState(dict(EMBEDDED), recordings=Recordings(folder.path))
    functions = {function.__name__: function for function in app_state.calls.functions()}
    assert [row["id"] for row in app_state.recordings.gallery()] == list(SOME)
    spoil(folder.file(run))
    answers = [functions[name](asked) for name, asked in [("open_recording", run), ("run_detail", [run, 0])] * 2]
    answers.append(functions["run_export"]([run, "csv"]))
    for answer in answers:
        assert set(answer) == {"fault"} and str(folder.path) not in answer["fault"]
    assert "cannot be read on this server: choose another one" in answers[0]["fault"]
    assert len(folder.warnings) == 1 and str(folder.file(run)) in folder.warnings[0]
    assert run not in [row["id"] for row in app_state.recordings.gallery()]


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # of the event loops that Gradio leaves behind
def test_a_page_without_any_recording_comes_up(folder: Folder) -> None:
    for run in SOME:
        folder.file(run).unlink()
    app_state = AppState(dict(EMBEDDED), recordings=Recordings(folder.path))
    assert app_state.recordings.landing is None and app_state.recordings.gallery() == [] and len(folder.warnings) == 3
    assert "app-viewer" in str(build(app_state).config)
    discard_event_loops()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (None, "No such file"),
        ("", "is no JSON"),
        ("{", "is no JSON"),
        ("\ud800", "is no JSON"),
        ("[" * 10**5, "is no JSON"),
        ("{}", "lists no recorded runs"),
        ("[]", "lists no recorded runs"),
        ('{"id": "lookahead"}', "is no list"),
    ],
)
def test_an_index_that_cannot_be_read_is_told(folder: Folder, text: str | None, sentence: str) -> None:
    index = folder.path / INDEX
    if text is None:
        index.unlink()
    else:
        index.write_text(text, encoding="utf-8", errors="surrogatepass")
    recordings = Recordings(folder.path)
    assert list(recordings) == [] and recordings.landing is None
    (warning,) = folder.warnings
    assert sentence in warning and str(index) in warning and "make traces" in warning and "\n" not in warning


@sampled
@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"colour": "red"}, "entry 1 has the unknown key 'colour'"),
        ({"id": "../pocket/tasks"}, "entry 1 has an id that is no plain name"),
        ({"id": ""}, "entry 1 has an id that is no plain name"),
        ({"id": 7}, "entry 1.id must be"),
        ({"id": "autoregressive-defaults"}, "entry 2 has the id of an earlier one"),
        ({"step": -1}, "entry 1 opens at a step below 0"),
        ({"step": 10**6}, "opens it at a step that it does not have"),
        ({"title": None}, "entry 1.title must be"),
        ({"tokens_per_step": "2"}, "entry 1.tokens_per_step must be"),
        ({"speedup": "fast"}, "entry 1.speedup must be"),
        ({"check": {"checked": 1}}, "entry 1.check.exact is missing"),
    ],
)
def test_an_entry_that_is_wrong_is_left_out(folder: Folder, change: dict[str, Any], sentence: str) -> None:
    folder.rows[0] |= change
    folder.write()
    recordings = Recordings(folder.path)
    assert recordings.landing is not None and recordings.landing.id == "autoregressive-defaults"
    (warning,) = folder.warnings
    assert sentence in warning and str(folder.path) in warning


@pytest.mark.parametrize("row", [None, 7, "lookahead", [], {}])
def test_what_is_no_entry_is_left_out(folder: Folder, row: Any) -> None:
    folder.rows.append(row)
    folder.write()
    assert [each.id for each in Recordings(folder.path)] == list(SOME) and "entry 4" in folder.warnings[0]
