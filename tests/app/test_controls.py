"""What a visitor sends -> an order, or one sentence."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.controls import as_integer, check_prompt, order, runnable, typed
from app.presets import preset, presets
from app.server.limits import LIMITS
from decoding import METHODS
from decoding.errors import ParamError

from .conftest import CATALOG, TOY, asked

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=8,
)
LONG = "a" * (LIMITS.prompt_characters + 1)


@given(st.fixed_dictionaries(dict.fromkeys(("model", "method", "params", "sampling", "prompt"), ANYTHING)), ANYTHING)
def test_anything_ends_in_an_order_or_a_sentence(values: dict[str, Any], length: object) -> None:
    """Another exception than ParamError would show as a failed server."""
    for name, value in values.items():
        try:
            asked(**{name: value})
        except ParamError as error:
            assert str(error) and "\n" not in str(error)
    try:
        order(CATALOG, **values, max_new_tokens=length)
    except ParamError as error:
        assert str(error)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"model": "org/other"}, "this page has no such model; choose one of toy"),
        ({"model": "../toy"}, "no such model"),
        ({"method": "medusa"}, "toy lacks the parts that medusa needs; choose one of"),
        ({"method": METHODS["lookahead"]}, "unknown method"),
        ({"params": {"W": 200, "N": 16, "G": 200}}, f"a step has 6000 tokens, above {LIMITS.nodes}: lower them"),
        ({"params": {"W": float("nan")}}, "W must be"),
        ({"sampling": {"temperature": -1}}, "temperature must be between"),
        ({"sampling": [1]}, "sampling must be an object"),
        ({"max_new_tokens": LIMITS.new_tokens + 1}, "the number of new tokens must be a whole number from 1 to 256"),
        ({"max_new_tokens": None}, "the number of new tokens must be"),
        ({"prompt": "  \n"}, "the prompt is empty"),
        ({"prompt": LONG}, f"shorten it to {LIMITS.prompt_characters}"),
        ({"prompt": []}, "must be a text or a conversation"),
        ({"prompt": [{"role": "assistant", "content": "Hello."}]}, "a conversation ends with the user's"),
        ({"prompt": [{"role": "root", "content": "Hello."}]}, "needs a role and a text"),
        ({"prompt": [{"role": "user", "content": " "}]}, "the user's message is empty"),
        ({"prompt": [{"role": "user", "content": LONG}]}, f"shorten it to {LIMITS.message_characters}"),
        ({"prompt": [{"role": "user", "content": "a"}] * 99}, f"more than {LIMITS.turns} messages"),
        ({"prompt": [{"role": "user", "content": "a"}, {"role": "system", "content": "b"}] * 2}, "ends with the user"),
    ],
)
def test_every_cap_holds_on_the_server(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ParamError) as caught:
        asked(**change)
    assert sentence in str(caught.value)


def test_a_system_message_stands_first_only() -> None:
    system, user = {"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello."}
    assert check_prompt([system, user]) == (system, user)
    with pytest.raises(ParamError, match="only the first message"):
        check_prompt([user, system, user])


def test_controls_values_come_in_the_fields_types() -> None:
    """Sliders and number fields send floats, addresses send texts."""
    kind = METHODS["draft_model"].Params
    assert typed(kind, {"gamma": 5.0, "threshold": None}) == {"gamma": 5}
    assert [as_integer(value) for value in (3.0, "12", "-4", "x", 1.5, None)] == [3, 12, -4, "x", 1.5, None]


def test_presets_are_whole_settings() -> None:
    for method in METHODS.values():
        for name, values in presets(method).items():
            assert method.Params.parse(values).to_json() == values == preset(method, name)
    with pytest.raises(ParamError, match="Lookahead has no preset 'nonsense'"):
        preset(METHODS["lookahead"], "nonsense")


def test_only_methods_with_their_parts_are_offered() -> None:
    names = runnable(TOY)
    assert "lookahead" in names and "draft_model" in names
    assert not {"medusa", "kangaroo", "rest"} & {*names}
