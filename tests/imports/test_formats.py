"""Every format gives the same steps of the same runs, as far as it goes, and says what it lacks."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from typing import Any

import pytest

from analysis.export import vllm
from analysis.imports import FORMATS, Imported, merged, read_any
from analysis.metrics import Selection, measure
from analysis.store.checks import check_table, check_tables
from analysis.store.folder import read_folder, write_folder
from analysis.store.schema import NODES, RUNS, STEPS
from decoding import load
from decoding.errors import TraceError
from decoding.trace.file import read_trace, write_trace
from tools import samples as recipe

from .samples import FOLDER, changed, sample, whole
from .samples import FORMATS as NAMES

TIMES = {"time_to_first_token_ms", "generation_time_ms", "mean_itl_ms", "tokens_per_second", "wall_time", "e2e_latency"}
TIMES |= {"ttft_ms", "itl_ms", "time_to_first_token", "request_latency"}
TIMES |= {f"{part}_{name}" for part in ("prompt", "predicted") for name in ("ms", "per_token_ms", "per_second")}
WITH_STEPS = [name for name in NAMES if name != "llama_cpp.jsonl"]  # which counts those of a whole answer


def accepted(imported: Imported, *, guessing: bool = True) -> Counter[int]:
    """How many steps accepted how many guesses; of those with guesses, or all."""
    rows = imported.steps.select(["accepted", "drafted"]).to_pylist()
    return Counter(row["accepted"] for row in rows if not guessing or row["drafted"] != 0)


def without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_times(each) for key, each in value.items() if key not in TIMES}
    return [without_times(each) for each in value] if isinstance(value, list) else value


def rows_of(text: str) -> list[Any]:
    lines = text.splitlines()
    return [json.loads(line) for line in lines] if lines[0].endswith("}") else [json.loads(text)]


def test_the_samples_are_what_the_recipe_makes() -> None:
    """A sample that nothing makes any more shows what no run of ours wrote. Times are the machine's."""
    engine = load("pocket")
    answers = recipe.answers(engine)
    files = [path for path in FOLDER.iterdir() if path.is_file()]
    assert set(recipe.FILES) == set(NAMES) == {path.name for path in files}
    assert sum(path.stat().st_size for path in files) < 300_000
    for name, make in recipe.FILES.items():
        made = make(engine, answers[:1] if name.startswith("specdecode") else answers)
        kept = sample(name).decode()
        if name.endswith(".csv"):
            assert made == kept
        elif name.startswith("specdecode"):
            assert kept.startswith(made)
        else:
            assert without_times(rows_of(made)) == without_times(rows_of(kept)), name


@pytest.mark.parametrize("name", NAMES)
def test_a_sample_is_recognised_and_makes_good_tables(name: str) -> None:
    imported = read_any(FOLDER / name)
    assert imported.summary["format"] == NAMES[name] and imported.summary["name"] == name
    for table, rows in ((RUNS, imported.runs), (STEPS, imported.steps), (NODES, imported.nodes)):
        check_table(rows, table, table)
    check_tables(imported.runs, imported.steps, imported.nodes)
    assert len(imported.runs) and bool(len(imported.steps)) == (name in WITH_STEPS) and not len(imported.nodes)
    again = read_any(gzip.compress(sample(name)), NAMES[name])
    assert again[:3] == imported[:3]
    assert not imported.runs["reconstructed"].to_pylist()[0]


@pytest.mark.parametrize("name", NAMES)
def test_what_a_format_lacks_has_its_reason(name: str) -> None:
    """A reader greys a chart out by it: no column that is empty may be without one."""
    imported = read_any(sample(name))
    missing = imported.summary["missing"]
    for table, rows in ((RUNS, imported.runs), (STEPS, imported.steps), (NODES, imported.nodes)):
        empty = {f"{table}.{column}" for column in rows.column_names if rows[column].null_count == len(rows)}
        assert empty <= missing.keys()
    assert all(len(reason) > 10 for reason in missing.values())


def test_all_formats_tell_of_the_same_steps() -> None:
    """One run of ours in nine spellings, and in a tenth that has sums alone."""
    imported = {name: read_any(sample(name)) for name in NAMES}
    exact = accepted(imported["vllm.jsonl"])
    assert sum(exact.values()) > 50 and len(exact) > 3
    for name in ("vllm_summary.json", "sglang.jsonl", "aiperf.jsonl", "acceptance.csv", "speculation_profile.json"):
        assert accepted(imported[name]) == exact, name
    for name in ("vllm_vcr.jsonl", "spec_bench.jsonl"):  # these do not say which steps had guesses
        written = Counter(imported[name].steps["written"].to_pylist())
        assert written == Counter(imported["vllm.jsonl"].steps["written"].to_pylist()), name
    ordered = imported["vllm.jsonl"].steps.select(["run", "step", "start", "accepted", "written", "drafted"])
    assert imported["aiperf.jsonl"].steps.select(ordered.column_names) == ordered
    assert imported["vllm_vcr.jsonl"].steps["start"] == ordered["start"]


def test_the_same_answers_have_the_same_mean_in_every_format() -> None:
    """A histogram's steps wrote four tokens more than the answers had: the end of a text had cut its last step."""
    whole = {"vllm.jsonl", "vllm_summary.json", "sglang.jsonl", "aiperf.jsonl", "vllm_vcr.jsonl", "spec_bench.jsonl"}
    lengths = {
        name: measure("mean_acceptance_length", Selection.from_folder(read_any(sample(name)))) for name in WITH_STEPS
    }
    assert {round(lengths[name]["value"], 3) for name in whole} == {3.621}
    assert {round(lengths[name]["rows"][3][1], 3) for name in whole} == {3.573}
    for name in ("acceptance.csv", "speculation_profile.json"):  # which have no pass that reads the prompt
        assert lengths[name]["sentence"].startswith("A step with guesses writes 3.90 tokens")
    assert "as vLLM counts, 1 + accepted guesses per step with guesses, 3.90" in lengths["vllm.jsonl"]["sentence"]


def test_tokens_and_places_are_those_of_the_run() -> None:
    imported = read_any(sample("vllm.jsonl"))
    runs, steps = imported.runs.to_pylist(), imported.steps.to_pylist()
    for run in runs:
        run_steps = [step for step in steps if step["run"] == run["run"]]
        assert [step["step"] for step in run_steps] == list(range(run["steps"]))
        assert sum(step["written"] for step in run_steps) == len(run["ids"]) == run["new_tokens"]
        assert run_steps[0]["start"] == len(run["prompt_ids"]) == run["prompt_tokens"] and run_steps[0]["drafted"] == 0
        assert all(b["start"] == a["start"] + a["written"] for a, b in zip(run_steps, run_steps[1:], strict=False))
        assert run["accepted"] == sum(step["accepted"] for step in run_steps)
        assert run["mean_acceptance_length"] == pytest.approx(len(run["ids"]) / len(run_steps))


def test_a_histogram_knows_no_order() -> None:
    histogram = read_any(sample("vllm_summary.json"))
    assert histogram.steps["start"].null_count == len(histogram.steps)
    assert "histogram" in histogram.summary["missing"]["steps.start"]
    by_length = read_any(changed("vllm.jsonl", 1, lambda row: drop_steps(row)))
    drafted = [step["drafted"] for step in by_length.steps.to_pylist() if step["run"] == 0]
    assert drafted == sorted(drafted) and None not in drafted


def drop_steps(row: Any) -> None:
    spec = row["metrics"]["speculative_decoding"]
    del spec["per_step_accepted"], spec["per_step_drafted"]


def test_steps_without_a_guess_are_counted_where_their_place_is_unknown() -> None:
    """Engines leave them out: there are as many as the text has tokens more."""

    def longer(row: Any) -> None:
        row["choices"][0].pop("token_ids"), row["choices"][0].pop("prompt_token_ids")
        row["usage"]["completion_tokens"] += 3
        row["usage"]["total_tokens"] += 3
        del row["metrics"]["tokens_per_second"], row["metrics"]["mean_itl_ms"]

    before, after = read_any(sample("vllm.jsonl")), read_any(changed("vllm.jsonl", 1, longer))
    assert len(after.steps) >= len(before.steps) + 2
    assert "without a guess" in after.summary["missing"]["steps.start"]
    assert after.steps["start"].null_count and not before.steps["start"].null_count


def test_a_last_step_that_the_end_cuts_is_cut() -> None:
    """vLLM counts guesses that were accepted behind the end."""

    def shorter(row: Any) -> None:
        spec = row["metrics"]["speculative_decoding"]
        spec["per_step_accepted"][:] = [2, 3]
        spec["per_step_drafted"][:] = [4, 4]
        spec |= {"acceptance_histogram": [0, 0, 1, 1, 0], "num_spec_steps": 2, "num_accepted_draft_tokens": 5}
        spec |= {"num_draft_tokens": 8, "mean_acceptance_length": 3.5, "draft_acceptance_rate": 0.625}
        spec.pop("acceptance_histogram_by_draft_length")
        row["choices"][0].pop("token_ids"), row["choices"][0].pop("prompt_token_ids")
        row["usage"] = {"completion_tokens": 6, "prompt_tokens": 9, "total_tokens": 15}
        del row["metrics"]["tokens_per_second"], row["metrics"]["mean_itl_ms"]

    steps = [step for step in read_any(changed("vllm.jsonl", 1, shorter)).steps.to_pylist() if step["run"] == 0]
    assert [(s["start"], s["accepted"], s["written"]) for s in steps] == [(9, 0, 1), (10, 2, 3), (13, 3, 2)]


def test_spec_benchs_turns_are_parted_by_their_steps_or_tokens() -> None:
    def two_turns(steps: str | None) -> bytes:
        def change(row: Any) -> None:
            choice = {"index": 0, "turns": ["a", "b"], "new_tokens": [4, 3], "wall_time": [0.5, 0.25]}
            choice |= {"accept_lengths": [1, 3, 2, 2]} | ({steps: [2, 2]} if steps == "decoding_steps" else {})
            row["choices"] = [choice | ({"idxs": [1, 1]} if steps == "idxs" else {})]

        return changed("spec_bench.jsonl", 1, change)

    for steps in ("decoding_steps", "idxs", None):  # the last step of the second turn was cut by its end
        runs = read_any(two_turns(steps)).runs.to_pylist()[:2]
        assert [(run["turn"], run["steps"], run["accepted"], run["new_tokens"]) for run in runs] == [
            (1, 2, 2, 4),
            (2, 2, 2, 3),
        ]
        assert runs[1]["tokens_per_second"] == 12.0 and runs[0]["question"] == runs[1]["question"]


def test_older_and_newer_names_of_sglang_are_read() -> None:
    def older(row: Any) -> None:
        info = row["meta_info"]
        info["spec_accept_token_num"] = info.pop("spec_num_correct_drafts")
        info["spec_draft_token_num"] = info.pop("spec_num_proposed_drafts")
        info["spec_accept_histogram"] = info.pop("spec_correct_drafts_histogram")

    def chat(row: Any) -> None:
        info = row.pop("meta_info")
        names = [name for name in info if name.startswith("spec_")]
        row["sglext"] = {"spec_tokens_details": {name: info.pop(name) for name in names}}
        row["usage"] = {name: info[name] for name in ("prompt_tokens", "completion_tokens")}
        row["choices"] = [{"message": {"content": row.pop("text")}, "finish_reason": "stop", "output_ids": None}]

    newer = read_any(sample("sglang.jsonl"))
    for change in (older, chat):
        again = read_any(changed("sglang.jsonl", 1, change))
        assert again.steps == newer.steps


def test_our_own_traces_and_their_export_are_read_back(tmp_path: Any) -> None:
    """What a run recorded is what an import of it holds; the export has all but the guesses."""
    trace = load("pocket").generate("What is the dish of Ablow?", "draft_model", {}, {"temperature": 0}, 40).trace
    write_trace(trace, tmp_path / "run.jsonl.gz")
    recorded = read_any(tmp_path / "run.jsonl.gz")
    exported = read_any(json.dumps(vllm(read_trace(tmp_path / "run.jsonl.gz"))).encode())
    assert recorded.summary["source"] == exported.summary["source"] == "specscope"
    columns = ["run", "step", "start", "drafted", "accepted", "written"]
    assert recorded.steps.select(columns) == exported.steps.select(columns)
    assert len(recorded.nodes) == sum(len(step.tokens) for step in trace.steps)
    alike = ["method", "params", "sampling", "model", "draft", "prompt_ids", "ids", "text"]
    assert recorded.runs.select(alike) == exported.runs.select(alike)


def test_several_files_make_one_folder(tmp_path: Any) -> None:
    parts = [read_any(sample(name)) for name in ("vllm.jsonl", "acceptance.csv")]
    both = merged(parts, "both")
    assert both.runs["run"].to_pylist() == list(range(len(parts[0].runs) + len(parts[1].runs)))
    folder = read_folder(write_folder(tmp_path / "out", *both))
    assert folder.runs == both.runs and folder.steps == both.steps and folder.summary["name"] == "both"
    assert folder.summary["source"] == "vllm, speculators"
    assert "runs.ids" not in folder.summary["missing"]  # one of the files has them


def test_a_format_can_be_named() -> None:
    assert read_any(sample("vllm.jsonl"), format="vllm").summary["format"] == "vllm"
    assert set(NAMES.values()) | {"trace"} == set(FORMATS)


def test_a_profile_tells_of_its_categories() -> None:
    profile = read_any(sample("speculation_profile.json"))
    assert profile.summary["per_category"]["chat"]["mean_accept_length"] > 1
    placeholder = whole("speculation_profile.json", lambda row: row.update(per_category=None))
    assert "per_category" not in read_any(placeholder).summary


def without_lengths(row: Any) -> None:
    """As before vLLM told drafts of different lengths apart: a histogram, and the guesses of all steps together."""
    drop_steps(row)
    del row["metrics"]["speculative_decoding"]["acceptance_histogram_by_draft_length"]


def test_guesses_that_are_counted_for_a_whole_run_are_kept() -> None:
    """An acceptance rate needs no more than their sum, which every one of these formats has."""
    exact = read_any(sample("vllm.jsonl"))
    counts = [run["drafted"] for run in exact.runs.to_pylist()]
    assert None not in counts
    for name in ("vllm_summary.json", "sglang.jsonl", "aiperf.jsonl", "llama_cpp.jsonl"):
        imported = read_any(sample(name))
        assert imported.runs["drafted"].to_pylist() == counts, name
        assert "runs.drafted" not in imported.summary["missing"]
    rows = [json.loads(row) for row in sample("vllm.jsonl").splitlines()]
    for row in rows:
        without_lengths(row)
    old = read_any("\n".join(map(json.dumps, rows)).encode())
    assert old.runs["drafted"].to_pylist() == counts and old.steps["drafted"].null_count
    sides = [Selection.of(*each[:3], each.summary["missing"]) for each in (exact, old)]
    rates = [measure("draft_acceptance_rate", side) for side in sides]
    assert rates[0] == rates[1] and rates[0]["value"]


def test_a_summary_says_how_long_drafts_were() -> None:
    """vLLM counts the accepted guesses of each draft's length apart, which a histogram of all steps mixes."""
    summed, exact = read_any(sample("vllm_summary.json")), read_any(sample("vllm.jsonl"))
    pairs = [
        Counter(zip(*(each.steps[name].to_pylist() for name in ("drafted", "accepted")), strict=True))
        for each in (summed, exact)
    ]
    assert pairs[0] == pairs[1] and not summed.steps["drafted"].null_count


def test_a_mean_that_is_a_whole_number_by_chance_says_nothing_of_each_step() -> None:
    """Two drafts of three guesses, or one of two and one of four: the second one accepted four."""
    head = "subset,num_drafts,num_draft_tokens,num_accepted_tokens,acceptance_length,"
    head += ",".join(f"acceptance_at_pos_{place}" for place in range(4))
    vague = read_any(f"{head}\nchat,2,6,5,3.5,1.0,0.5,0.5,0.5\n".encode())
    assert vague.steps["drafted"].to_pylist() == [None, None] and vague.runs["drafted"].to_pylist() == [6]
    full = read_any(f"{head}\nchat,2,8,5,3.5,1.0,0.5,0.5,0.5\n".encode())
    assert full.steps["drafted"].to_pylist() == [4, 4]
    for drafts in (4, 9):
        with pytest.raises(TraceError, match=f"num_draft_tokens is {drafts}, but 2 drafts of 4 positions accepted 5"):
            read_any(f"{head}\nchat,2,{drafts},5,3.5,1.0,0.5,0.5,0.5\n".encode())
    spec = {"spec_verify_ct": 2, "spec_num_correct_drafts": 5, "spec_num_proposed_drafts": 6}
    spec |= {"spec_correct_drafts_histogram": [0, 1, 0, 0, 1], "completion_tokens": 8}
    answer = read_any(json.dumps({"text": "", "meta_info": spec}).encode(), "sglang")
    assert answer.steps["drafted"].to_pylist() == [0, None, None] and answer.runs["drafted"].to_pylist() == [6]


@pytest.mark.parametrize("lengths", [[1, 2, 3], [2, 2]])
def test_spec_benchs_tokens_a_second_are_the_files(lengths: list[int]) -> None:
    """The end of the text cut the last step, or the prompt's pass wrote a token that nobody counts as a step's."""
    answer = {"turns": ["a"], "new_tokens": [5], "wall_time": [0.5], "accept_lengths": lengths}
    imported = read_any(json.dumps({"question_id": 1, "category": "c", "choices": [answer]}).encode())
    selection = Selection.of(*imported[:3], imported.summary["missing"])
    assert [row[1] for row in measure("throughput", selection)["rows"]] == [10.0, 10.0]
    assert measure("mean_acceptance_length", selection)["value"] == sum(lengths) / len(lengths)
    assert imported.runs["mean_acceptance_length"].to_pylist() == [sum(lengths) / len(lengths)]
