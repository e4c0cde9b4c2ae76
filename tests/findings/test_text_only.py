"""Audio against transcript on the same items, by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from overtone.errors import UsageError
from overtone.findings.analysis import cases_behind
from overtone.findings.text_only.compute import TextOnly, TextRow, UnsolvedRow, sentences, text_only
from overtone.results.load import Reading, open_run
from overtone.schema import Item, Score
from tests.report.fake_run import make_run
from tests.results.small import RUBRICS, Maker, item


def question(script: str, level: int = 1, **more: Any) -> Item:
    return item(
        f"{script}/{level}",
        "choose",
        level=level,
        category="emotion" if level == 1 else "empathy",
        script=script,
        **more,
    )


class Made:
    def __init__(self, folder: Path, model: str = "m") -> None:
        self.maker = Maker(folder)
        self.maker.store.set_meta({"model": model})

    def choice(self, one: Item, given: str, right: bool | None, version: int = 1) -> None:
        condition = f"task/{given}"
        if right is None:
            self.maker.failed(one, condition=condition)
            return
        detail: dict[str, float | int | str | None] = {"status": "parsed", "answer": "A" if right else "B"}
        score = Score("accuracy", f"accuracy|v{version}", float(right), detail=detail)
        self.maker.answered(one, "A", score, condition=condition)

    def reply(self, one: Item, condition: str, **scores: float) -> None:
        given = [Score(name.replace("_at_", "@"), f"{name}|v1", value) for name, value in scores.items()]
        self.maker.answered(one, "Oh.", *given, condition=condition)

    def read(self, light: bool = True) -> Reading:
        return open_run(self.maker.done(), light=light)


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path / "run")


def row(found: TextOnly, end: str) -> TextRow:
    return next(r for r in found.rows if r.key == f"text-only/{end}")


def left(found: TextOnly, end: str = "voice_accuracy/overall") -> UnsolvedRow:
    return next(r for r in found.unsolved if r.key == f"text-only/unsolved/{end}")


def eight(made: Made) -> None:
    """Eight questions: sound right on six, words on two of these; one has no answer to the words."""
    for number in range(8):
        one = question(f"s{number}")
        made.choice(one, "audio", number < 6)
        made.choice(one, "transcript", None if number == 7 else number < 2)


def test_the_difference_is_over_items_answered_both_ways(made: Made) -> None:
    eight(made)
    reading = made.read()
    found = row(text_only(reading), "task/voice_accuracy/overall")
    assert (found.audio.value, found.text.value) == pytest.approx((6 / 7, 2 / 7))
    assert found.difference.value == pytest.approx(4 / 7)
    assert (found.difference.scored, found.difference.asked, found.difference.scripts) == (7, 8, 7)
    assert found.p == pytest.approx(2 / 16), "four scripts differ, all one way: 2 of their 2^4 patterns of signs"
    assert len(cases_behind([reading], found.key)) == 7 and "synthesis/s7/target" not in cases_behind(
        [reading], found.key
    )


def test_questions_that_no_text_only_run_gets_stand_apart(made: Made) -> None:
    eight(made)
    reading = made.read()
    found = left(text_only(reading))
    assert (found.questions, found.unsolved, found.tries) == (7, 5, 1.0)
    assert (found.accuracy.value, found.chance) == (0.8, 0.25), "s2 to s5 right, s6 wrong"
    assert found.corrected.value == pytest.approx((0.8 - 0.25) / 0.75)
    assert cases_behind([reading], found.key) == [f"synthesis/s{n}/target" for n in range(2, 7)]


def test_text_only_runs_of_any_model_and_deaf_runs_solve_questions_too(made: Made, tmp_path: Path) -> None:
    eight(made)
    other, deaf = Made(tmp_path / "other", "another"), Made(tmp_path / "deaf", "cascade")
    other.choice(question("s2"), "transcript", True)
    other.choice(question("s3"), "audio", True)
    deaf.choice(question("s4"), "audio", True)
    reading, texts, ears = made.read(), other.read(), deaf.read()
    found = left(text_only(reading, [texts], deaf=[ears]))
    assert (found.unsolved, found.accuracy.value) == pytest.approx((3, 2 / 3)), "s2 and s4 are solved, s3 was heard"
    assert row(text_only(reading, [texts]), "task/voice_accuracy/overall").difference.scored == 7, "another model's"


def test_transcripts_may_come_from_a_second_run_of_the_model(tmp_path: Path) -> None:
    sound, words = Made(tmp_path / "sound"), Made(tmp_path / "words")
    for number in range(3):
        sound.choice(question(f"s{number}"), "audio", True)
        words.choice(question(f"s{number}", topic="changed" if number == 2 else ""), "transcript", False)
    reading, other = sound.read(), words.read()
    found = text_only(reading, [other])
    assert row(found, "task/voice_accuracy/overall").difference.value == 1.0
    assert row(found, "task/voice_accuracy/overall").difference.scored == 2
    assert any("1 items differ" in note for note in found.notes) and any("words" in note for note in found.notes)
    assert cases_behind([reading, other], "1:text-only/task/voice_accuracy/overall") == [
        "synthesis/s0/target",
        "synthesis/s1/target",
    ]


def test_scores_made_differently_are_not_compared(tmp_path: Path) -> None:
    sound, words = Made(tmp_path / "sound"), Made(tmp_path / "words")
    sound.choice(question("s1"), "audio", True)
    words.choice(question("s1"), "transcript", True, version=2)
    found = text_only(sound.read(), [words.read()])
    assert found.rows == [] and any("scored differently" in note for note in found.notes)


def test_replies_are_compared_prompt_by_prompt_and_by_the_panel(made: Made) -> None:
    for number, (heard, told) in enumerate([(4.0, 2.0), (3.0, 3.0)]):
        one = item(f"c{number}", "converse", level=3, category="conversation", script=f"s{number}")
        made.reply(one, "enhance/audio", cspeechrel_at_a=heard, cspeechrel_at_b=heard + 1, style_margin=0.2)
        made.reply(one, "enhance/transcript", cspeechrel_at_a=told, cspeechrel_at_b=told, style_margin=0.1)
        made.reply(one, "zero/audio", style_margin=0.5)
    found = text_only(made.read())
    c4 = row(found, "enhance/cspeechrel/overall")
    assert (c4.audio.value, c4.text.value, c4.difference.value) == (4.0, 2.5, 1.5)
    assert row(found, "enhance/style_margin/overall").difference.value == pytest.approx(0.1)
    assert {r.prompt for r in found.rows} == {"enhance"}, "no transcript was asked for under zero"


def test_breakdowns_and_bases_have_their_own_rows_and_other_parts_none(made: Made) -> None:
    told: dict[str, dict[str, Any]] = {
        "s1": {"status": "validated"},
        "s2": {"status": "unvalidated", "cue": "rain", "dimension": "environment"},
        "s3": {"part": "false-cue"},
    }
    for script, more in told.items():
        for given in ("audio", "transcript"):
            made.choice(question(script, **more), given, given == "audio")
    found = text_only(made.read())
    assert [r.key.removeprefix("text-only/task/voice_accuracy/") for r in found.rows] == [
        "overall", "dimension/paralinguistic", "style/target", "category/emotion", "cue/sad",
        "unvalidated/overall", "unvalidated/dimension/environment", "unvalidated/style/target",
        "unvalidated/category/emotion", "unvalidated/cue/rain",
    ]  # fmt: skip
    assert found.rows[0].difference.value == 1.0 and found.rows[0].difference.low is None, "one script"
    assert len(sentences(found)) == 2


def test_without_transcripts_the_finding_says_what_to_run(made: Made) -> None:
    made.choice(question("s1"), "audio", True)
    found = text_only(made.read())
    assert found.rows == [] and found.unsolved == [] and sentences(found) == []
    assert "--input audio,transcript" in found.notes[0]
    with pytest.raises(UsageError, match="hold theirs"):
        cases_behind([made.read()], "text-only/nothing")


def test_only_a_difference_that_is_there_is_told(tmp_path: Path) -> None:
    rng = np.random.default_rng(8)
    for name, gain in (("hears", 0.4), ("reads", 0.0)):
        run = Made(tmp_path / name)
        for number in range(80):
            for given in ("audio", "transcript"):
                right = rng.random() < 0.4 + gain * (given == "audio")
                run.choice(question(f"s{number}"), given, bool(right))
        found = text_only(run.read())
        overall = found.rows[0]
        assert overall.p is not None and (overall.p < 0.01) == (name == "hears")
        assert ("not statistically significant" in sentences(found)[0].text) == (name == "reads")
        cue = row(found, "task/voice_accuracy/cue/sad")
        assert cue.adjusted == cue.p, "one cue: nothing to adjust for"


def test_a_light_reading_is_enough(tmp_path: Path) -> None:
    heard = make_run(tmp_path / "a", scripts=10)
    deaf = make_run(tmp_path / "b", scripts=10, seed=2)
    light, whole = ([open_run(folder, light=given) for folder in (heard, deaf)] for given in (True, False))
    assert text_only(light[0], deaf=light[1:]) == text_only(whole[0], deaf=whole[1:])
    assert text_only(light[0], deaf=light[1:]).unsolved


def test_intervals_of_few_scripts_stay_within_the_scale(made: Made) -> None:
    sound, words = [1.0, 1.0, 1.0, 1.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.9]
    for number, (heard, told) in enumerate(zip(sound, words, strict=True)):
        one = item(f"c{number}", "converse", level=3, category="conversation", script=f"s{number}")
        made.reply(one, "enhance/audio", semsim=heard)
        made.reply(one, "enhance/transcript", semsim=told)
    found = row(text_only(made.read()), "enhance/reply_semsim/overall")
    assert found.label == "Reply SemSim"
    assert found.audio.high == 1.0 and 0 < (found.audio.low or 0) < 1
    assert found.text.low == 0.0 and 0 < (found.text.high or 0) < 1
    assert found.difference.high == 1.0 and -1 < (found.difference.low or 0) < 1


def test_replies_that_a_dimension_is_not_asked_about_do_not_count_as_missing(made: Made) -> None:
    for number, style in enumerate(("target", "neutral")):
        one = item(f"c{number}", "converse", level=3, script=f"s{number}", style=style)
        scores = {"cspeechrel_at_a": 3.0} if style == "target" else {}
        for given in ("audio", "transcript"):
            made.reply(one, f"enhance/{given}", semsim=0.5, **scores)
    reading = made.read()
    reading.meta["rubrics"] = RUBRICS
    found = text_only(reading)
    assert (row(found, "enhance/cspeechrel/overall").difference.asked) == 1
    assert row(found, "enhance/cspeechrel/overall").label == "Speech relevance (C4)"
    assert row(found, "enhance/reply_semsim/overall").difference.asked == 2
    assert not [r for r in found.rows if (r.measure, r.name) == ("cspeechrel", "neutral")]
