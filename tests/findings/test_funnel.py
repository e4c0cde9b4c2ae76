"""The funnel counted by hand, on runs made for it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from overtone.errors import UsageError
from overtone.findings.analysis import cases_behind
from overtone.findings.funnel.compute import SIGNATURE, Funnel, Gain, StageRow, funnel
from overtone.findings.funnel.funnel_sentences import sentences
from overtone.findings.funnel.funnel_stages import DEFAULT, Stages, signature
from overtone.results.load import Reading, open_run
from overtone.results.wording import Sentence
from overtone.schema import Item, Score
from tests.report.fake_run import make_run
from tests.results.small import Maker, item


class Cases:
    """A run of cases, each told stage by stage; None leaves a stage out."""

    def __init__(self, folder: Path) -> None:
        self.maker = Maker(folder)

    def add(
        self,
        script: str,
        *,
        style: str = "target",
        wer: float | None = None,
        fine: bool | None = None,
        coarse: bool | None = None,
        reasoning: tuple[bool | None, ...] = (),
        replies: dict[str, dict[str, float | None]] | None = None,
        **more: object,
    ) -> None:
        def made(name: str, task: str, level: int, category: str, options: int = 4) -> Item:
            case = {"case": f"synthesis/{script}/{style}", "style": style, **more}
            return item(
                f"{script}/{style}/{name}", task, level=level, category=category, script=script, options=options, **case
            )

        if wer is not None:
            self.maker.transcript(made("asr", "transcribe", 1, "asr"), round(wer * 10), 10)
        for category, right in (("emotion", fine), ("coarse", coarse)):
            if right is not None:
                self.maker.choice(made(category, "choose", 1, category), "A" if right else "B")
        for number, right in enumerate(reasoning):
            one = made(f"r{number}", "choose", 2, f"kind{number}", options=2)
            if right is None:
                self.maker.failed(one)
            else:
                self.maker.choice(one, "A" if right else "B")
        for condition, scores in (replies or {}).items():
            given = [Score(m, f"{m}|v1", v, "" if v is not None else "unread") for m, v in scores.items()]
            self.maker.answered(made("reply", "converse", 3, "conversation"), "Oh.", *given, condition=condition)

    def read(self, light: bool = True) -> Reading:
        return open_run(self.maker.done(), light=light)


def judged(c4: float | None, ves: float | None = None) -> dict[str, float | None]:
    return {"cspeechrel@a": c4} | ({"ves@a": ves} if ves is not None else {})


@pytest.fixture
def cases(tmp_path: Path) -> Cases:
    return Cases(tmp_path / "run")


def stage(found: Funnel, name: str, where: str = "enhance/audio/overall") -> StageRow:
    return next(row for row in found.rows if row.key == f"funnel/{where}/{name}")


def four(cases: Cases) -> Reading:
    """Four cases: s1 passes all, s2 fails at the words, s3 has heard and not used, s4 uses what it did not hear."""
    told = {"s1": (0.0, True, (True, True), 5.0, 4.0), "s2": (0.3, False, (True, False), 2.0, 2.0),
            "s3": (0.2, True, (True, False), 3.9, 3.0), "s4": (0.1, False, (False, False), 4.0, 4.5)}  # fmt: skip
    for script, (wer, fine, reasoning, c4, ves) in told.items():
        replies = {"enhance/audio": judged(c4, ves)}
        cases.add(script, wer=wer, fine=fine, coarse=not fine, reasoning=reasoning, replies=replies)
    return cases.read()


def test_each_stage_is_passed_at_its_threshold(cases: Cases) -> None:
    found = funnel(four(cases))
    values = {name: stage(found, name).reached.value for name in ("words", "cue", "reasoned", "used", "sounded")}
    assert values == {"words": 0.75, "cue": 0.5, "reasoned": 0.75, "used": 0.5, "sounded": 0.5}
    through = [stage(found, name).through.value for name in ("words", "cue", "reasoned", "used", "sounded")]
    assert through == [0.75, 0.5, 0.5, 0.25, 0.25]
    assert all(row.reached.scripts == 4 and row.reached.asked == 4 for row in found.rows if row.by == "overall")


def test_guessing_is_taken_off_by_the_options_there_are(cases: Cases) -> None:
    found = funnel(four(cases))
    cue, reasoned = stage(found, "cue"), stage(found, "reasoned")
    assert cue.chance == 0.25 and cue.corrected is not None
    assert cue.corrected.value == pytest.approx((0.5 - 0.25) / 0.75)
    assert reasoned.chance == pytest.approx(0.75), "at least one of two questions with two options"
    assert reasoned.corrected is not None and reasoned.corrected.value == pytest.approx(0.0)
    assert stage(found, "words").corrected is None and stage(found, "used").chance is None


def test_a_step_sets_cases_that_passed_against_those_that_did_not(cases: Cases) -> None:
    step = stage(funnel(four(cases)), "used").step
    assert step is not None and step.after == "reasoned"
    assert (step.given.value, step.given.scored) == pytest.approx((1 / 3, 3))
    assert (step.otherwise.value, step.otherwise.scored) == (1.0, 1)
    assert step.difference.value == pytest.approx(-2 / 3)
    assert (step.difference.low, step.difference.high) == (None, None), "one script failed: no spread is known"


def test_a_case_that_lacks_a_stage_is_counted_and_left_out_of_that_stage_only(cases: Cases) -> None:
    cases.add("s1", fine=True, replies={"enhance/audio": judged(5.0)})
    cases.add("s2", fine=False, replies={"enhance/audio": judged(None)})
    cases.add("s3", replies={"enhance/audio": judged(1.0)})
    found = funnel(cases.read())
    cue, used = stage(found, "cue"), stage(found, "used")
    assert (cue.reached.value, cue.reached.scored, cue.reached.missing) == (0.5, 2, 1)
    assert (used.reached.value, used.reached.scored, used.reached.missing) == (0.5, 2, 1)
    assert (used.reached.best, used.reached.worst) == pytest.approx((2 / 3, 1 / 3))
    assert used.step is not None and used.step.after == "cue", "no case was asked to reason"
    assert (used.step.given.value, used.step.otherwise.value, used.step.difference.scored) == (1.0, None, 1)
    assert stage(found, "words").reached.value is None and stage(found, "words").step is None
    assert "enhance/audio: no case has the stage words, reasoned, sounded." in found.notes


def test_half_of_the_reasoning_questions_must_be_right_and_missing_ones_may_leave_it_open(cases: Cases) -> None:
    told: dict[str, tuple[bool | None, ...]] = {
        "s1": (True, None), "s2": (False, None), "s3": (False, False, None), "s4": (True, False, False),
    }  # fmt: skip
    for script, reasoning in told.items():
        cases.add(script, reasoning=reasoning)
    reading = cases.read()
    row = stage(funnel(reading), "reasoned", "task/audio/overall")
    assert (row.reached.scored, row.reached.value) == pytest.approx((3, 1 / 3)), "s2 could still be either"
    assert cases_behind([reading], f"{row.key}/missing") == ["synthesis/s2/target"]


def test_without_a_judge_the_style_margin_tells_use_and_the_signature_says_so(cases: Cases) -> None:
    for script, margin in (("s1", 0.1), ("s2", 0.0), ("s3", -0.2)):
        cases.add(script, replies={"zero/audio": {"style_margin": margin}})
    found = funnel(cases.read())
    assert stage(found, "used", "zero/audio/overall").reached.value == pytest.approx(1 / 3)
    assert "|used:style_margin>0|" in found.signature and "No judge" in found.notes[0]


def test_the_panel_counts_only_where_every_judge_gave_a_value(cases: Cases) -> None:
    cases.add("s1", replies={"enhance/audio": {"cspeechrel@a": 5.0, "cspeechrel@b": 3.0}})
    cases.add("s2", replies={"enhance/audio": {"cspeechrel@a": 5.0, "cspeechrel@b": None}})
    cases.add("s3", replies={"enhance/audio": {"cspeechrel@a": 4.0, "cspeechrel@b": 3.0}})
    row = stage(funnel(cases.read()), "used")
    assert (row.reached.value, row.reached.scored) == (0.5, 2)


def test_the_coarse_question_is_a_variant_with_its_own_signature(cases: Cases) -> None:
    reading = four(cases)
    coarse = funnel(reading, Stages(cue="coarse"))
    row = next(row for row in coarse.rows if row.key == "funnel-coarse/enhance/audio/overall/cue")
    assert row.through.value == 0.25 and stage(funnel(reading), "cue").through.value == 0.5
    assert cases_behind([reading], f"{row.key}/passed") == ["synthesis/s2/target", "synthesis/s4/target"]
    assert "|cue:coarse|" in coarse.signature and "|cue:fine|" in SIGNATURE == signature(DEFAULT)


def test_what_telling_the_cue_gives_is_a_difference_on_the_same_cases(cases: Cases) -> None:
    for script, (plain, oracle) in {"s1": (2.0, 5.0), "s2": (4.0, 4.0), "s3": (1.0, 4.0), "s4": (1.0, None)}.items():
        cases.add(script, replies={"enhance/audio": judged(plain), "oracle/audio": judged(oracle)})
    reading = cases.read()
    found = funnel(reading)
    gain: Gain = next(g for g in found.gains if g.by == "overall")
    assert (gain.key, gain.stage) == ("funnel/gain/oracle/audio/overall/used", "used")
    assert (gain.told.value, gain.untold.value) == pytest.approx((1, 1 / 3))
    assert gain.difference.value == pytest.approx(2 / 3)
    assert (gain.difference.scored, gain.difference.asked) == (3, 4)
    assert cases_behind([reading], gain.key) == [f"synthesis/s{n}/target" for n in (1, 2, 3)]


def test_neutral_clips_stand_by_style_only_and_other_parts_nowhere(cases: Cases) -> None:
    cases.add("s1", fine=True, replies={"enhance/audio": judged(5.0)})
    cases.add("s1", style="neutral", cue="", wer=0.0, replies={"enhance/audio": {}})
    cases.add("s2", style="control", part="control", fine=True, replies={"enhance/audio": judged(1.0)})
    found = funnel(cases.read())
    assert stage(found, "words").reached.asked == 1
    assert {row.name for row in found.rows if row.by == "style"} == {"target", "neutral"}
    assert stage(found, "words", "enhance/audio/style/neutral").reached.value == 1.0
    assert {row.name for row in found.rows if row.by == "cue"} == {"sad"}


def test_cues_that_are_not_validated_stand_apart(cases: Cases) -> None:
    cases.add("s1", fine=True, status="validated")
    cases.add("s2", fine=False, status="unvalidated", cue="happy")
    found = funnel(cases.read())
    assert stage(found, "cue", "task/audio/overall").reached.value == 1.0
    assert stage(found, "cue", "task/audio/unvalidated/overall").reached.value == 0.0
    assert len(sentences(found)) == 1, "the headline speaks of validated cues"


def test_a_case_is_joined_only_with_questions_given_the_same_input(cases: Cases) -> None:
    cases.add("s1", fine=True, wer=0.0, replies={"zero/audio": judged(5.0), "zero/transcript": judged(1.0)})
    found = funnel(cases.read())
    assert stage(found, "cue", "zero/audio/overall").reached.scored == 1
    assert stage(found, "cue", "zero/transcript/overall").reached.scored == 0


def test_nothing_asked_and_one_script_give_no_wrong_certainty(tmp_path: Path) -> None:
    empty = funnel(Cases(tmp_path / "empty").read())
    assert empty.rows == [] and sentences(empty) == []
    alone = Cases(tmp_path / "alone")
    alone.add("s1", fine=True, replies={"enhance/audio": judged(5.0)})
    found = funnel(alone.read())
    assert stage(found, "cue").reached.value == 1.0 and stage(found, "cue").reached.low is None
    assert all("cannot" not in line for line in (s.text for s in sentences(found)))


def test_hearing_that_goes_with_using_is_told_and_noise_is_not(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    for name, strength in (("linked", 0.6), ("noise", 0.0)):
        made = Cases(tmp_path / name)
        for number in range(60):
            heard = bool(rng.random() < 0.5)
            used = rng.random() < 0.2 + strength * heard
            made.add(f"s{number}", fine=heard, replies={"enhance/audio": judged(5.0 if used else 1.0)})
        found = funnel(made.read())
        step = stage(found, "used").step
        assert step is not None and step.difference.low is not None
        assert (step.difference.low > 0) == (name == "linked")
        told = " ".join(s.text for s in sentences(found))
        assert ("interval of this row alone includes 0" in told) == (name == "noise")
        assert "significant" not in told, "the table has intervals, and no p-values"


def lost(cases: Cases, scripts: int, heard: int, cue: int, used: int) -> list[Sentence]:
    """The sentences of a funnel that so many of the scripts pass."""
    for number in range(scripts):
        reply = judged(5.0 if number < used else 1.0)
        cases.add(f"s{number}", wer=float(number >= heard), fine=number < cue, replies={"enhance/audio": reply})
    return sentences(funnel(cases.read()))


def test_the_stage_that_loses_most_is_told_first(cases: Cases) -> None:
    first = lost(cases, 50, heard=45, cue=40, used=10)[0]
    assert first.key == "funnel/enhance/audio/overall/used"
    assert first.text.startswith("enhance/audio: most is lost at “used it in the reply”: of the cases that passed")
    assert "25 % (14 to 41) of 40" in first.text and "89 % (76 to 95) of 45" in first.text


def test_the_first_stage_can_lose_most(cases: Cases) -> None:
    first = lost(cases, 100, heard=25, cue=25, used=24)[0]
    assert first.text.startswith("enhance/audio: most is lost at “heard the words”")


def test_no_stage_is_said_to_lose_most_where_one_case_makes_the_difference(cases: Cases) -> None:
    first = lost(cases, 44, heard=44, cue=44, used=43)[0]
    assert first.text.startswith("enhance/audio: no stage clearly loses most")
    assert "their intervals overlap" in first.text


def test_below_the_minimum_the_funnel_says_what_is_missing(cases: Cases) -> None:
    told = [sentence.text for sentence in lost(cases, 9, heard=9, cue=8, used=2)]
    assert all(text.startswith("Not enough data") for text in told)
    assert any("where most is lost" in text and "(8 of 20)" in text for text in told)
    assert any("heard the cue (9 of 10)" in text and "overtone run" in text for text in told)


def test_every_row_has_its_own_key_and_leads_back_to_its_cases(tmp_path: Path) -> None:
    light = open_run(make_run(tmp_path / "run", scripts=40, judges=("a", "b"), voice=True), light=True)
    found = funnel(light)
    keys = [row.key for row in found.rows] + [gain.key for gain in found.gains]
    assert len(keys) == len(set(keys)) > 100
    for row in found.rows[::37]:
        passed, failed = (cases_behind([light], f"{row.key}/{outcome}") for outcome in ("passed", "failed"))
        assert len(cases_behind([light], row.key)) == row.reached.scored == len(passed) + len(failed)
        if row.reached.value is not None:
            assert len(passed) / row.reached.scored == pytest.approx(row.reached.value)
    with pytest.raises(UsageError, match="funnel/nothing"):
        cases_behind([light], "funnel/nothing")


def test_a_light_reading_is_enough(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", scripts=12, judges=("a",))
    assert funnel(open_run(folder, light=True)) == funnel(open_run(folder))


def margins(maker: Maker, script: str, alike: dict[str, dict[str, float]]) -> None:
    """The reply to each style's clip, by its likeness to the references of all styles."""
    for style, similar in alike.items():
        others = [x for name, x in similar.items() if name != style]
        margin = similar[style] - sum(others) / len(others)
        detail: dict[str, float | int | str | None] = {f"sim_{name}": x for name, x in similar.items()}
        case = {"case": f"synthesis/{script}/{style}", "style": style}
        one = item(f"{script}/{style}/reply", "converse", level=3, category="conversation", script=script, **case)
        score = Score("style_margin", "style_margin|v3", margin, "", detail)
        maker.answered(one, "Oh.", score, condition="enhance/audio")


def test_replies_that_ignore_the_voice_score_chance_by_the_style_margin(cases: Cases) -> None:
    rng = np.random.default_rng(3)
    for number in range(15):
        similar = dict(zip(("target", "alternative", "neutral"), rng.uniform(size=3).tolist(), strict=True))
        margins(cases.maker, f"s{number}", {"target": similar, "alternative": similar})
    found = funnel(cases.read())
    used = stage(found, "used")
    assert used.chance is not None and used.corrected is not None
    assert used.reached.value == pytest.approx(used.chance)
    assert used.corrected.value == pytest.approx(0.0)
    (line,) = [s.text for s in sentences(found) if "used it in the reply" in s.text]
    assert "0 % (" in line and f"a model that ignores the delivery scores {100 * used.chance:.0f} %" in line


def test_replies_that_follow_the_voice_pass_beyond_chance_and_a_lone_reply_has_a_half(cases: Cases) -> None:
    for number in range(12):
        near = {style: {s: 0.9 if s == style else 0.3 for s in ("target", "alternative")} for style in
                ("target", "alternative")}  # fmt: skip
        margins(cases.maker, f"s{number}", near if number else {"target": near["target"]})
    used = stage(funnel(cases.read()), "used")
    assert (used.reached.value, used.chance) == (1.0, 0.5)
    assert used.corrected is not None and used.corrected.value == 1.0
