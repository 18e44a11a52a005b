"""The page's state in its address."""

from __future__ import annotations

from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.address import Fork, PageState, missing_texts, parse, write, write_race
from app.controls import Order, order, runnable
from app.examples import EXAMPLES
from app.lanes import check_lanes
from app.presets import preset, presets
from app.server.limits import LIMITS
from decoding import METHODS
from viz.cells import STEP_PHASES

from .conftest import CATALOG, TOY, asked

TEXTS = st.text(min_size=1, max_size=60).filter(
    lambda text: text.strip() and text.encode(errors="replace").decode() == text
)


def read(query: str) -> PageState:
    return parse(dict(parse_qsl(query, keep_blank_values=True)), CATALOG)


def asked_again(state: PageState) -> Order:
    return order(
        CATALOG,
        model=state.model,
        method=state.method,
        params=state.params,
        sampling=state.sampling,
        prompt=state.prompt,
        max_new_tokens=state.length,
        reference=state.reference,
        raw=state.raw,
    )


@given(
    st.sampled_from(runnable(TOY)),
    TEXTS | st.lists(TEXTS, min_size=1, max_size=3).map(lambda texts: [{"role": "user", "content": t} for t in texts]),
    st.floats(0.0, 2.0),
    st.integers(0, 2**40),
    st.integers(1, LIMITS.new_tokens),
    st.booleans(),
)
def test_what_is_written_is_read_again(
    method: str, prompt: object, warmth: float, seed: int, length: int, raw: bool
) -> None:
    made = asked(
        method=method,
        params={},
        prompt=prompt,
        sampling={"temperature": warmth, "seed": seed},
        max_new_tokens=length,
        raw=raw and isinstance(prompt, str),
    )
    state = read(write(made))
    assert state.problems == [] and asked_again(state) == made


def test_every_parameter_of_every_method_travels() -> None:
    for name in runnable(TOY):
        for row in METHODS[name].Params.describe():
            if row["type"] == "str" and not row["choices"]:
                continue
            other = (
                not row["default"] if row["type"] == "bool" else row["choices"][-1] if row["choices"] else row["min"]
            )
            made = asked(method=name, params={row["name"]: other})
            assert asked_again(read(write(made))).params == made.params


def test_an_example_is_named_and_not_spelled_out() -> None:
    example = EXAMPLES["sum"]
    query = write(asked(prompt=example.prompt), "sum")
    assert "example=sum" in query and "Romy" not in query
    assert "Romy" in write(asked(prompt=example.prompt + " Now."), "sum")  # the visitor changed it
    assert read("example=sum").example == "sum"


def test_a_race_has_its_own_page() -> None:
    chosen = list(presets(METHODS["lookahead"]))[-1]
    lanes = [asked(method="jacobi", params={}), asked(params=preset(METHODS["lookahead"], chosen))]
    state = read(write_race(lanes))
    assert state.screen == "race" and list(state.lanes) == ["jacobi", "lookahead"] and state.problems == []
    assert state.lanes == {"jacobi": ("defaults",), "lookahead": (chosen,)}


def test_a_method_races_with_several_settings_of_its_own() -> None:
    """Only its presets could race, and each method once."""
    own = [asked(params={"W": width}) for width in (3, 7)]
    state = read(write_race([own[0], asked(params={}), own[1]]))
    assert state.problems == [] and state.lanes == {"lookahead": ("W=3", "defaults", "W=7")}
    assert [params for _, params in check_lanes(state.lanes)] == [own[0].params, asked(params={}).params, own[1].params]


def test_an_address_from_when_methods_raced_once_opens_the_same_race() -> None:
    state = read("screen=race&methods=autoregressive,lookahead,jacobi&preset.lookahead=7B+on+A100")
    assert state.problems == [] and list(state.lanes) == ["autoregressive", "lookahead", "jacobi"]
    assert [*state.lanes.values()] == [("defaults",), ("7B on A100",), ("defaults",)]


def test_a_reference_travels_with_the_method_that_copies() -> None:
    made = asked(method="prompt_lookup", params={}, reference="The tide \ud800is high.")
    assert made.reference == "The tide \ufffdis high."
    assert asked_again(read(write(made))) == made
    assert asked(reference="The tide is high.").reference == ""  # Lookahead copies from none


LONG = [{"role": role, "content": "Ebbe und Flut " * 140} for role in ("user", "assistant") * 11 + ("user",)]


@pytest.mark.parametrize(
    ("prompt", "lacks"),
    [
        ("x" * 2_000, ""),
        ("\u00e9" * 500, "prompt"),
        ([{"role": "user", "content": "\u00e9" * 200}], ""),
        (LONG, "conversation"),
        ("a \ud800 half", ""),
    ],
)
def test_an_address_that_is_written_can_be_read(prompt: object, lacks: str) -> None:
    """A long text is left out and named, and not with it everything else."""
    made = asked(prompt=prompt, max_new_tokens=7)
    query = write(made) + f"&run={'x' * 22}&step=12"
    state = read(query)
    assert len(query) < 2_500 and state.problems == []
    assert (state.run, state.length, state.method, state.params) == ("x" * 22, 7, "lookahead", made.params.to_json())
    assert state.prompt == (None if lacks else made.prompt) and missing_texts(made) == lacks


@pytest.mark.parametrize("phase", STEP_PHASES)
def test_an_address_may_name_any_phase_of_a_step(phase: str) -> None:
    state = read(f"step=3&phase={phase}")
    assert not state.problems and state.place["phase"] == phase


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("screen=admin", "'screen' in the address was left out: choose one of run, race"),
        ("run=../../etc/passwd", "'run' in the address was left out: a run's id consists of"),
        ("model=org/evil", "'model' in the address was left out: this page has no such model"),
        ("method=__class__", "'method' in the address was left out: unknown method"),
        ("methods=lookahead", "'methods' in the address was left out: a race has 2 to 6"),
        ("methods=lookahead,lookahead", "'methods' in the address was left out: name each method once"),
        ("methods=lookahead&preset.lookahead=defaults|paper", "'defaults' and 'paper' are the same settings"),
        ("methods=jacobi,lookahead&preset.lookahead=W=1|W=2|W=3|W=4|W=5|W=6", "a race has 2 to 6 lanes, not 7"),
        ("method=lookahead&p.W=1e9", "'p.W' in the address was left out: W must be a whole number"),
        ("method=lookahead&p.W=200", "'p.W' in the address was left out: with these settings a step has"),
        ("method=lookahead&p.evil=1", "unknown parameter 'evil'"),
        ("temperature=nan", "'temperature' in the address was left out"),
        ("step=-1", "'step' in the address was left out"),
        ("node=99999999999999999999", "'node' in the address was left out"),
        ("view=%3Cscript%3E", "'view' in the address was left out"),
        ("phase=later", "'phase' in the address was left out"),
        *(
            (f"methods=jacobi,lookahead&preset.lookahead={names}", f"'preset.lookahead' in the address was {why}")
            for names, why in (
                ("evil", "left out: choose one of defaults"),
                ("defaults|", "left out: choose one of defaults"),
                ("W=4|evil=1", "left out: unknown parameter 'evil'"),
                ("W=4|" * 4_000, "left out: a race has 2 to 6 lanes, not 4001"),
                ("W=200", "left out: with these settings a step has 860 tokens"),
            )
        ),
        ("reference=" + "a" * 9_000, "'reference' in the address was left out: the reference has 9000 characters"),
        ("length=999", "'length' in the address was left out"),
        ("chat=%5B%5B%5B", "'chat' in the address was left out: it must be a JSON list"),
        ("temperature=99", "'temperature' in the address was left out: the temperature must be at most 2"),
        ("p.W=4&p.N=3", "'p.W', 'p.N' in the address were left out: name the method"),
        ("foo=1&x.y=2&__theme=dark&utm_source=3", "'foo', 'x.y' in the address were left out: this page has no such"),
        ("&".join(f"{name * 99}=1" for name in "abcde"), f"'{'c' * 40}' and 2 more in the address were left out"),
        ("chat=%7B%7D", "it must be a JSON list"),
        ("prompt=" + "a" * 20_000, "the address is longer than"),
    ],
)
def test_what_is_wrong_is_left_out_and_told(query: str, sentence: str) -> None:
    state = read(query)
    assert len(state.problems) == 1 and sentence in state.problems[0]
    name = query.partition("=")[0]
    assert getattr(state, name, None) in (
        None,
        (),
        getattr(PageState(), name, None),
        "lookahead",
        ("jacobi", "lookahead"),
    )


def test_settings_that_fit_take_effect_beside_one_that_does_not() -> None:
    """One wrong value left all others out."""
    state = read("method=lookahead&p.W=7&p.N=x&p.G=3&temperature=99&top_k=5&seed=4")
    assert (state.params["W"], state.params["N"], state.params["G"]) == (7, 5, 3)
    assert (state.sampling["temperature"], state.sampling["top_k"], state.sampling["seed"]) == (0.0, 5, 4)
    assert [problem.partition(" ")[0] for problem in state.problems] == ["'p.N'", "'temperature'"]


@given(st.dictionaries(st.sampled_from(["screen", "run", "p.W", "seed", "chat", "step", "x"]) | st.text(), st.text()))
def test_no_address_breaks_the_page(query: dict[str, str]) -> None:
    parse(query, CATALOG)


@given(st.integers(0, 4096), st.integers(0, 9999), TEXTS)
def test_a_branch_is_read_as_it_was_written(step: int, place: int, text: str) -> None:
    """Another guess of a step's tree, or a text of any letters."""
    for fork in (Fork(step, place), Fork(step, None, place, text)):
        assert read(fork.query).fork == fork


@pytest.mark.parametrize(
    "text", ["", "n", "1", "1n", "n1", "-1n1", "1n-1", "1n1n1", "1x1", "\u0661n1", "1n1\n", "9999999n1", "1k1"]
)
def test_what_is_no_branch_is_left_out(text: str) -> None:
    state = parse({"run": "lookahead", "branch": text}, CATALOG)
    assert state.fork is None and len(state.problems) == 1 and "'branch' in the address" in state.problems[0]
