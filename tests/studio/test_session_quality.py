"""The rules on scripted raters: which sessions are usable, which are paid, and which flags say why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from overtone.studio.fields import Value
from overtone.studio.session_quality import RULES, Verdict, assess
from overtone.studio.store.store_records import Answered, Kind
from tests.studio.store.helpers import arrive, make_study, open_study

RATINGS = (1, 2, 3, 4, 5, 3, 4, 2, 5, 4)


def screen(kind: Kind, seq: int, value: Any = 3, **changes: Any) -> Answered:
    values: dict[str, Value] = {"tones": str(value)} if kind == "trap" else {"C1": value}
    about: dict[str, Any] = {
        "slot": f"slot{seq}", "person": "ann", "session": 1, "seq": seq, "kind": kind, "unit": f"u{seq}", "swap": False,
        "target": 3 if kind == "trap" else 0, "state": "done", "values": values, "plays": {"reply": 1}, "ms": 9000,
        "at": 1.0, "consent_sha": "c",
    }  # fmt: skip
    return Answered(**{**about, **changes})


def session(*changed: Answered) -> list[Answered]:
    """Ten ratings, a right trap (3 tones) and a right gold question, with some screens replaced by their place."""
    screens = [screen("real", seq, value) for seq, value in enumerate(RATINGS, 1)]
    screens += [screen("trap", 11, 3), screen("gold", 12, 1)]
    by_place = {one.seq: one for one in (*screens, *changed)}
    return list(by_place.values())


def gold(unit: str, side: int) -> Mapping[str, Sequence[Value]]:
    return {"C1": [1, 2]}


def judge(screens: list[Answered], **more: Any) -> Verdict:
    must_play = {one.unit: ("reply",) for one in screens if one.unit}
    (verdict,) = assess(screens, gold=gold, must_play=must_play, **more)
    return verdict


def decided(verdict: Verdict) -> tuple[bool, bool, tuple[str, ...]]:
    return verdict.usable, verdict.payable, verdict.failed


def test_a_careful_session_is_usable_and_paid_without_flags() -> None:
    verdict = judge(session(), finished={("ann", 1)}, varied=True, seconds={"u1": 5.0})
    assert decided(verdict) == (True, True, ()) and verdict.flags == ()


@pytest.mark.parametrize(
    ("changed", "usable", "payable", "rule", "detail"),
    [
        (screen("trap", 11, 4), False, False, "trap", "answered 4, heard 3"),
        (screen("gold", 12, 4), False, True, "gold", "C1: answered 4"),
        (screen("real", 4, plays={}), False, False, "played", "not played to the end: reply"),
    ],
)
def test_a_wrong_check_decides_use_and_pay_separately(
    changed: Answered, usable: bool, payable: bool, rule: str, detail: str
) -> None:
    verdict = judge(session(changed))
    assert decided(verdict) == (usable, payable, (rule,))
    (flag,) = verdict.flags
    assert (flag.rule, flag.slot, flag.detail, flag.version) == (rule, changed.slot, detail, RULES[rule])


def test_one_right_trap_and_one_right_gold_question_are_enough() -> None:
    verdict = judge(session(screen("trap", 13, 5), screen("gold", 14, 5)))
    assert decided(verdict) == (True, True, ())
    assert sorted(flag.rule for flag in verdict.flags) == ["gold", "trap"]  # flagged all the same


def test_a_gold_answer_beside_the_worst_one_is_right() -> None:
    assert judge(session(screen("gold", 12, 2))).usable


def test_a_gold_question_that_the_screen_did_not_ask_does_not_count() -> None:
    assert judge(session(screen("gold", 12, values={"other": 5}))).usable


def test_a_design_without_gold_questions_needs_none() -> None:
    (verdict,) = assess(session(screen("gold", 12, 5)), gold=lambda unit, side: {}, must_play={})
    assert verdict.usable


def test_ratings_that_never_vary_matter_only_where_there_are_anchors() -> None:
    same = [screen("real", seq, 3) for seq in range(1, 11)] + [screen("gold", 12, 3)]
    lenient = {"gold": lambda unit, side: {"C1": [3]}, "must_play": {}}
    (plain,) = assess(same, varied=True, **lenient)  # type: ignore[arg-type]
    assert plain.usable
    anchored = [*same, screen("anchor", 13, 3)]
    (verdict,) = assess(anchored, varied=True, **lenient)  # type: ignore[arg-type]
    assert decided(verdict) == (False, True, ("variance",)) and "0.000, at least 0.1" in verdict.flags[0].detail
    (other,) = assess(anchored, varied=False, **lenient)  # type: ignore[arg-type]
    assert other.usable
    (varied,) = assess([*anchored, screen("anchor", 14, 5)], varied=True, **lenient)  # type: ignore[arg-type]
    assert varied.usable


def test_screens_that_are_quicker_than_their_sounds_are_flagged_and_two_make_a_session_unusable() -> None:
    seconds = {f"u{seq}": 5.0 for seq in range(1, 11)}
    once = judge(session(screen("real", 1, ms=2000)), seconds=seconds)
    assert once.usable and [flag.detail for flag in once.flags] == ["2.0 s, the sounds last 5.0 s"]
    twice = judge(session(screen("real", 1, ms=2000), screen("real", 2, ms=4999)), seconds=seconds)
    assert decided(twice) == (False, True, ("fast",))


def test_an_unfinished_session_is_not_paid_and_its_answers_can_be_used() -> None:
    assert decided(judge(session(), finished=set())) == (True, False, ("unfinished",))


@pytest.mark.parametrize("kind", ["trap", "gold"])
def test_a_session_that_skips_its_check_is_paid_and_not_used(tmp_path: Path, database: str, kind: str) -> None:
    with open_study(make_study(tmp_path, database)) as store:
        label = arrive(store).label
        for slot in store.sessions.enter(label):
            value: dict[str, Value] = {"tones": str(slot.target)} if slot.kind == "trap" else {"C1": 1}
            if slot.kind == kind:
                store.answers.skip(label, slot.id, slot.id, "")
            else:
                store.answers.add(label, slot.id, slot.id, value, plays={"reply": 1}, ms=9000, done=True)
        answers, sessions = store.answers.all(("real", "trap", "gold")), store.sessions
        judged = {"gold": gold, "must_play": {}, "finished": sessions.finished(), "skipped": sessions.skipped_checks()}
        (verdict,) = assess(answers, **judged)  # type: ignore[arg-type]
    assert decided(verdict) == (False, True, ("skipped",)) and kind in verdict.flags[0].detail


def test_more_sessions_than_p808_allows_are_not_used() -> None:
    late = [screen(one.kind, one.seq, session=61, values=one.values) for one in session()]
    assert decided(judge(late)) == (False, True, ("sessions",))


def test_a_person_whom_the_design_excludes_is_not_used() -> None:
    verdict = judge(session(), excluded={"ann": "rated the hidden reference below 90 in 4 of 12 screens"})
    assert decided(verdict) == (False, True, ("design",))


def test_each_session_gets_its_own_verdict() -> None:
    other = [screen(one.kind, one.seq, session=2, values=one.values, target=one.target) for one in session()]
    bad = [screen("trap", 11, 5, session=2)]
    verdicts = assess([*other[:10], *bad, *session()], gold=gold, must_play={})
    assert [(one.session, one.payable) for one in verdicts] == [(1, True), (2, False)]


def test_scripted_raters_in_a_stored_study_get_the_planted_verdicts(tmp_path: Path, database: str) -> None:
    with open_study(make_study(tmp_path, database)) as store:
        careful, deaf, hasty = (arrive(store).label for _ in range(3))
        for label in (careful, deaf, hasty):
            for slot in store.sessions.enter(label):
                right = slot.target if label != deaf else slot.target % 4 + 2
                value: dict[str, Value] = {"tones": str(right)} if slot.kind == "trap" else {"C1": 1}
                plays = {"reply": 0 if label == hasty and slot.kind == "real" else 1}
                store.answers.add(label, slot.id, slot.id, value, plays=plays, ms=9000, done=True)
        must_play = dict.fromkeys(store.units(), ("reply",))
        answers = store.answers.all(("real", "trap", "gold"))
        verdicts = assess(answers, gold=gold, must_play=must_play, finished=store.sessions.finished())
        assert {one.person: one.failed for one in verdicts} == {careful: (), deaf: ("trap",), hasty: ("played",)}
        store.log.set_flags([flag for one in verdicts for flag in one.flags])
        assert {flag.person for flag in store.log.flags()} == {deaf, hasty}
        assert len(store.answers.all()) == 18  # nothing is deleted
