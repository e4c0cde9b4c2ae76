"""The contract: it writes what may be answered, reads exactly that, and says why it does not read the rest."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overtone.judges import rubric
from overtone.judges.contract import MAX_REASON, Contract, Unread
from tests.judges.server import spoiled, written

FOUR = Contract(rubric.load("echomind").dimensions)
CUE = Contract(rubric.load("false-cue").dimensions)
VALUES = {"cctxfit": 4, "crespnat": 5, "ccolloqdeg": 1, "cspeechrel": 3}


def test_the_instruction_names_every_key_and_every_menu() -> None:
    for key in VALUES:
        assert f'"{key}": a whole number from 1 to 5' in FOUR.instruction
        assert FOUR.instruction.index(f'"{key}_reason"') < FOUR.instruction.index(f'"{key}":'), "reasons come first"
    assert '"false_cue": "yes" or "no"' in CUE.instruction


def test_a_good_answer_is_read_with_its_reasons() -> None:
    verdict = FOUR.read(written(VALUES))
    assert verdict.values == VALUES
    assert set(verdict.reasons) == set(VALUES)
    assert CUE.read(written({"false_cue": "no"})).values == {"false_cue": "no"}


@pytest.mark.parametrize(
    "around",
    ["{}", "\n\n{}\n", "```json\n{}\n```", "```\n{}\n```", "<think>5, or 4?\n{{</think>\n{}", "\ufeff {}"[1:]],
)
def test_thinking_and_a_fence_are_no_part_of_the_answer(around: str) -> None:
    assert FOUR.read(around.format(written(VALUES))).values == VALUES


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("prose", "does not begin with"),
        ("broken", "not one JSON object"),
        ("words", "does not begin with"),
        ("off_menu", "cctxfit is not on the menu"),
        ("text", "cctxfit is not on the menu"),
        ("half", "cctxfit is not on the menu"),
        ("null", "cctxfit is not on the menu"),
        ("wrong_type", "cctxfit is not on the menu"),
        ("missing", "cctxfit"),
        ("extra", "overall"),
        ("twice", "answered twice"),
        ("blank", "empty"),
        ("injected", "does not begin with"),
        ("array", "does not begin with"),
    ],
)
def test_what_the_contract_does_not_allow_is_unread_with_the_reason(name: str, reason: str) -> None:
    text = spoiled(name, VALUES)
    assert text is not None
    with pytest.raises(Unread, match=reason):
        FOUR.read(text)


@pytest.mark.parametrize("value", [0, -1, 6, 10**30, True, "4", "four", 4.5, None, [4], {"value": 4}])
def test_only_what_is_on_the_menu_is_read(value: object) -> None:
    with pytest.raises(Unread, match="cctxfit is not on the menu"):
        FOUR.read(written({**VALUES, "cctxfit": value}))


@pytest.mark.parametrize("value", ["Yes", "yes ", "maybe", "", "yes or no", True, 1, None])
def test_a_choice_is_read_only_as_it_is_written_on_the_menu(value: object) -> None:
    with pytest.raises(Unread, match="false_cue is not on the menu"):
        CUE.read(written({"false_cue": value}))


@pytest.mark.parametrize(
    "text",
    [
        "{" * 100_000,
        '{"cctxfit_reason": ' + "[" * 100_000,
        written(VALUES) + written(VALUES),
        written(VALUES) + " and that is final",
        written(VALUES).replace('"', "'"),
        '{"cctxfit_reason": "\\ud800", ' + written(VALUES)[1:],
        "\0",
        "NaN",
        written(VALUES).replace("4", "NaN"),
        written(VALUES).replace('"because', '7, "because'),
    ],
)
def test_hostile_text_is_unread_and_never_more(text: str) -> None:
    with pytest.raises(Unread):
        FOUR.read(text)


def test_a_key_given_twice_is_unread_even_when_it_is_spelt_with_escapes() -> None:
    good = written({"false_cue": "no"})
    with pytest.raises(Unread):
        CUE.read(good[:-1] + ', "false\\u005fcue": "yes"}')


def test_a_reason_may_quote_the_keys_and_the_braces() -> None:
    why = 'the reply says {"cctxfit": 5, "crespnat": 5} and "cctxfit": 5'
    assert FOUR.read(written(VALUES, why)).reasons["cctxfit"] == why


def test_a_reason_without_end_is_kept_in_part() -> None:
    assert len(FOUR.read(written(VALUES, "x" * 1_000_000)).reasons["cctxfit"]) == MAX_REASON


@given(st.text())
def test_any_text_is_a_verdict_or_unread(text: str) -> None:
    try:
        verdict = CUE.read(text)
    except Unread as error:
        assert str(error)
    else:
        assert verdict.values["false_cue"] in ("yes", "no")


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(max_size=5), lambda x: st.lists(x, max_size=3)))
def test_any_json_value_is_unread_unless_it_is_on_the_menu(value: object) -> None:
    text = json.dumps({"false_cue_reason": "", "false_cue": value})
    if value in ("yes", "no"):
        assert CUE.read(text).values == {"false_cue": value}
    else:
        with pytest.raises(Unread):
            CUE.read(text)
