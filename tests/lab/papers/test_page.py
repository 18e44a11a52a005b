"""The page and the command: names from files of tasks cannot spoil it, and one call writes all of it."""

from __future__ import annotations

import json
import re
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from cli import paper_checks
from cli.arguments import Parser
from cli.progress import ProgressBar
from decoding.embedded import MEDUSA_2, PARTS
from decoding.engine import Engine
from decoding.errors import ParamError
from decoding.run import Run
from decoding.toy import toy
from lab.papers import PAPERS, variants
from lab.papers.claims import CheckedClaim, ClaimOutcome, combine, more
from lab.papers.experiment import PLAIN, Experiment, Setting, using
from lab.papers.kangaroo import MATHS
from lab.papers.other_page import OtherPage
from lab.papers.page import conditions, document, page
from lab.papers.tables import ResultTable
from tests.toys import counted_text, engine

from .conftest import make_experiment

HOSTILE = "a|b <script>\n# c [d](e) `f` " + "g" * 900

ON_SMOLLM2 = "docs/paper_checks_smollm2.md"


def run(*argv: str) -> int:
    """The command on the toy."""
    parser, threads = Parser(), torch.get_num_threads()
    paper_checks.add_flags(parser)
    try:
        return paper_checks.main(parser.parse_args(["--model", "toy", *argv]))
    finally:
        torch.set_num_threads(threads)


def test_names_from_files_mean_nothing_to_markdown() -> None:
    paper = PAPERS["lookahead"]
    claim = paper.claims[-1]
    table = ResultTable(("setting", HOSTILE), ((HOSTILE, 1.5),), {"x": 0.25})
    checked = CheckedClaim(paper, claim, table, combine(more(HOSTILE, 1.0, "b", 2.0)))
    text = page([checked], conditions(make_experiment(engine(counted_text()), 4, kinds=(HOSTILE,))))
    assert "<script" not in text and "\n# c" not in text and "](e)" not in text.replace("\\[d](e)", "")
    [row] = [line for line in text.splitlines() if line.endswith(" | 1.500 |")]
    assert row.startswith("| a\\|b &lt;script&gt; # c \\[d](e) 'f' g") and len(row) < 130
    assert "With so few prompts" in " ".join(text.split())
    assert "Besides: x 0.250." in text and "**Does not hold here.**" in text


@pytest.mark.parametrize(("path", "columns"), [(paper_checks.DEFAULT_OUT, 4), (ON_SMOLLM2, 5)])
def test_the_pages_that_ship_have_a_verdict_on_every_claim(path: str, columns: int) -> None:
    """A paper that was added, or a claim that was changed, without measuring it."""
    shipped = Path(path).read_text(encoding="utf-8")
    begins = [
        f"| {paper.title} | {claim.place} | {claim.title} | " for paper in PAPERS.values() for claim in paper.claims
    ]
    first_table = shipped.split("\n|---", 1)[1].split("\n\n", 1)[0]
    overview = [row.removesuffix(" |").split(" | ") for row in first_table.splitlines()[1:]]
    assert {len(row) for row in overview} == {columns}
    assert [" | ".join([*row[:3], ""]) for row in overview] == begins
    verdicts = Counter(row[3] for row in overview)
    counts = "; ".join(f"{verdict}: {verdicts[verdict]}" for verdict in ClaimOutcome if verdicts[verdict])
    assert f"Claims: {len(begins)}. {counts.capitalize()}." in shipped
    for paper in PAPERS.values():
        for claim in paper.claims:
            assert f"### {claim.place}: {claim.title}\n" in shipped


def test_prose_never_becomes_a_list() -> None:
    """A line that the wrapping begins with a minus or a number would."""
    paper, claim = PAPERS["speculative"], PAPERS["speculative"].claims[0]
    words = "a - b + c 1. d * e > f "
    for shift in range(12):
        checked = CheckedClaim(paper, claim, None, combine(more("x" * shift + " " + words * 30, 2.0, "y", 1.0)))
        text = page([checked], conditions(make_experiment(engine(counted_text()), 2, kinds=("a",))))
        assert not re.search(r"^([-+*>]|\d+[.)])\s", text, flags=re.MULTILINE)


def test_the_command_writes_page_and_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One question of every kind: what can be measured is, and the rest says why not."""
    out = tmp_path / "checks.md"
    flags = ["--limit", "1", "--max-new-tokens", "5", "--out", str(out), "--only", "medusa, speculative,jacobi"]
    assert run(*flags, "--json") == 0
    data = json.loads(capsys.readouterr().out)
    assert {claim["paper"] for claim in data["claims"]} == {"jacobi", "speculative", "medusa"}
    assert data["model"] == "toy" and data["questions"] == 8 and data["threads"] == 1
    verdicts = {claim["title"]: claim["verdict"] for claim in data["claims"]}
    assert verdicts["a sparse tree beats a much larger dense one"] == ClaimOutcome.UNMEASURED
    assert verdicts["it hardly saves steps"] in {ClaimOutcome.HOLDS, ClaimOutcome.PARTLY, ClaimOutcome.FAILS}
    text = out.read_text(encoding="utf-8")
    assert text.startswith("# What the papers found, on toy\n") and "## Jacobi decoding" in text
    asked = "--model toy --only 'medusa, speculative,jacobi' --limit 1 --max-new-tokens 5"
    assert f"This page is written by `python -m decoding paper-checks {asked}`." in " ".join(text.split())
    assert "Medusa needs Medusa heads" in text and "## Lookahead" not in text
    blocks = {
        str(row[0]): row[1] for claim in data["claims"] if claim["paper"] == "jacobi" for row in claim["table"]["rows"]
    }
    assert blocks["block of 4"] >= 1.0 and f"| block of 4 | {blocks['block of 4']:.3f} |" in text
    assert run(*flags[:-1], "jacobi") == 0
    assert re.search(r"Jacobi decoding: it hardly saves steps\nsaved in .*checks.md\n$", capsys.readouterr().out)


def test_stopped_checks_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was measured before the stop is not measured again, and counts as if there had been none."""
    out = str(tmp_path / "a.md")
    flags = ["--limit", "1", "--max-new-tokens", "5", "--out", out, "--only", "jacobi,speculative"]  # none by the clock
    decode, left = Experiment._decode, [0]

    def stopped(self: Experiment, engine: Engine, setting: Setting, *rest: Any) -> Run:
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt
        return decode(self, engine, setting, *rest)

    def measured(runs: int, *more: str) -> int:
        """Start the command, and stop it after so many runs; returns the runs that it began."""
        left[0] = runs
        with suppress(KeyboardInterrupt):
            run(*flags, *more, "--json")
        return runs - left[0]

    monkeypatch.setattr(Experiment, "_decode", stopped)
    whole = measured(10_000)
    unbroken = json.loads(capsys.readouterr().out)
    assert measured(whole - 3) == whole - 3
    part = tmp_path / "a.md.part"
    assert "stopped; the same command resumes where it stopped: a.md.part holds" in capsys.readouterr().err
    with part.open("a") as file:
        file.write('{"setting": "cut')  # by the end of a process
    with pytest.raises(ParamError, match="other questions, flags, models or versions: delete it, or name another page"):
        measured(10, "--threads", "2")
    assert measured(10_000) < whole / 2 and not part.exists()
    assert json.loads(capsys.readouterr().out) == unbroken


@pytest.mark.parametrize("content", ["{}\n", "[1]\n", "what\n", '{"conditions": 3}\n{"cut', "my notes", "my\nnotes"])
def test_another_file_beside_the_page_is_not_written_over(tmp_path: Path, content: str) -> None:
    (tmp_path / "a.md.part").write_text(content)
    with pytest.raises(ParamError, match=r"a\.md\.part holds .*delete it, or name another page with --out"):
        run("--only", "jacobi", "--limit", "1", "--max-new-tokens", "2", "--out", str(tmp_path / "a.md"))
    assert (tmp_path / "a.md.part").read_text() == content


def test_another_models_page_is_read_whole() -> None:
    """Its sections say what its overview says, of every claim."""
    path = Path(paper_checks.DEFAULT_OUT)
    other, shipped = OtherPage.read(path), path.read_text(encoding="utf-8")
    assert other.model == "pocket" and len(other.outcomes) == sum(len(paper.claims) for paper in PAPERS.values())
    for paper in PAPERS.values():
        for claim in paper.claims:
            verdict, says = other.outcome(paper, claim.title)
            assert f"| {paper.title} | {claim.place} | {claim.title} | {verdict} |\n" in shipped
            assert says in " ".join(shipped.split()) and says.endswith(".") and "The rule:" not in says


def test_verdicts_stand_beside_another_models(tmp_path: Path) -> None:
    """Both explanations are laid side by side where the verdicts differ, and only there."""
    paper = PAPERS["lookahead"]
    one, two, three, *_ = paper.claims
    holds, fails = combine(more("one", 2.0, "two", 1.0)), combine(more("one", 1.0, "two", 2.0))
    measured = conditions(make_experiment(engine(counted_text()), 2, kinds=("a",)))
    there = [CheckedClaim(paper, one, None, holds), CheckedClaim(paper, two, None, fails)]
    (tmp_path / "there.md").write_text(page(there, measured | {"model": "m|n"}))
    here = [CheckedClaim(paper, claim, None, holds) for claim in (one, two, three)]
    text = page(here, measured, OtherPage.read(tmp_path / "there.md"))
    for claim, verdict in ((one, "holds"), (two, "does not hold here"), (three, "not measured")):
        assert f"| {claim.place} | {claim.title} | holds | {verdict} |\n" in text
    words = " ".join(text.split())
    assert f"**Lookahead decoding, {two.title}**: holds here, does not hold on m\\|n. Here: One reaches 2.000" in words
    assert "On m\\|n: One reaches 1.000, against 2.000 for two." in words
    other = page([CheckedClaim(paper, one, None, fails)], measured, OtherPage.read(tmp_path / "there.md"))
    assert f"{one.title}**: does not hold here, holds on m\\|n." in " ".join(other.split())
    assert words.count("holds here,") == 1 and one.title not in words[words.index("## Where") : words.index("## Look")]


@pytest.mark.parametrize("content", ["", "# What the papers found, on pocket\n", "[1, 2]", None])
def test_a_page_of_something_else_is_refused(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "b.md"
    if content is not None:
        file.write_text(content)
    with pytest.raises(ParamError, match="--beside: .*b.md (is no page that paper-checks has written|cannot be read)"):
        run("--only", "jacobi", "--beside", str(file), "--out", str(tmp_path / "a.md"))


def test_pocket_brings_the_model_that_learnt_with_its_heads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it one claim of the page would be lost by forgetting a flag."""
    monkeypatch.setattr(variants, "load_medusa_2", lambda engine, folder, progress: {str(folder): None})
    monkeypatch.setattr(variants, "build_stores", lambda engine, text, progress: {})
    parser = Parser()
    paper_checks.add_flags(parser)
    for flags, names in (([], [str(PARTS[MEDUSA_2]["medusa"])]), (["--medusa-2", "b"], ["b"]), (["--model", "m"], [])):
        assert list(paper_checks._variants(parser.parse_args(flags), toy(), ProgressBar())) == names


@pytest.mark.parametrize("violations", [0, 1])
def test_the_page_tells_what_is_wrong_with_answers_that_differ(
    monkeypatch: pytest.MonkeyPatch, violations: int
) -> None:
    """A cause that nobody measured must not be named."""
    experiment = make_experiment(engine(counted_text()), 6)
    experiment.questions = tuple(replace(question, answer=(0,)) for question in experiment.questions)
    if violations:
        real = Engine.rescore
        monkeypatch.setattr(Engine, "rescore", lambda self, trace: replace(real(self, trace), violations=1))
    experiment.tally(using("prompt_lookup"), using("jacobi"), using("prompt_lookup", temperature=1.0), PLAIN)
    text = " ".join(page([], conditions(experiment)).split())
    wrong = 6 * violations
    assert "Of 6 greedy answers by the methods, 0 are autoregressive decoding's to the last token; the 6" in text
    assert f"others were checked against plain passes of the target: in {6 - wrong} every token" in text
    assert f"rounding reaches, in {wrong} some token is neither." in text


def test_kinds_of_mt_bench_are_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As in the papers: eight kinds of ten questions would outweigh the others, and none of them would be chat."""
    names = ["writing", "roleplay", "reasoning", "math", "coding", "extraction", "stem", "humanities", "math_reasoning"]
    for kinds, got in ((names, ["mt_bench", "math_reasoning"]), (["coding", "math"], ["coding", "math"])):
        file = tmp_path / "questions.jsonl"
        file.write_text("".join(json.dumps({"category": kind, "turns": ["Every evening"]}) + "\n" for kind in kinds))
        flags = ["--tasks", str(file), "--max-new-tokens", "2", "--out", str(tmp_path / "a.md"), "--only", "jacobi"]
        assert run(*flags, "--json") == 0
        assert json.loads(capsys.readouterr().out)["kinds"] == got
        assert " --tasks questions.jsonl" in (tmp_path / "a.md").read_text(encoding="utf-8"), "it tells where files lie"
    experiment = make_experiment(engine(counted_text()), 2, kinds=("mt_bench", "math", "math_reasoning"))
    assert experiment.find_kind(*MATHS) == "math_reasoning"


@pytest.mark.parametrize(
    ("argv", "reason"),
    [
        (["--only", "telepathy"], "--only knows jacobi, lookahead"),
        (["--only", ","], "--only must name some of"),
        (["--only", "jacobi", "--out", "docs/../docs/paper_checks.md"], "name another file for some of them"),
        (["--limit", "0"], "--limit must be from 1"),
        (["--max-new-tokens", "many"], "must be a whole number"),
        (["--out", "/no/such/folder/page.md"], "folder that exists"),
        (["--tasks", "/no/such/file"], "cannot read"),
        (["--kangaroo-variants", "."], "is a table"),
        (["--medusa-2", "."], "--medusa-2 must name"),
        (["--max-new-tokens", "999999"], "lower --max-new-tokens"),
    ],
    ids=range(10),
)
def test_nonsense_ends_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, argv: list[str], reason: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").mkdir()
    with pytest.raises(ParamError, match=re.escape(reason)):
        run("--out", "page.md", *argv)
    assert not (tmp_path / "page.md").exists()


def test_json_holds_every_number() -> None:
    paper, claim = PAPERS["jacobi"], PAPERS["jacobi"].claims[0]
    table = ResultTable(("a", "b"), (("x", 1.23456789), ("y", None), ("z", 3)), {"c": 0.5})
    [entry] = document([CheckedClaim(paper, claim, table, combine(more("x", 2, "y", 1)))], {})["claims"]
    assert entry["table"] == {
        "heads": ["a", "b"],
        "rows": [["x", 1.234568], ["y", None], ["z", 3]],
        "facts": {"c": 0.5},
    }
    assert entry["verdict"] == "holds" and entry["rule"] == claim.rule
