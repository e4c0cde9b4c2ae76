"""The verdict on a run: a model that hears, one that does not, and too little data."""

from __future__ import annotations

from pathlib import Path

import pytest

from overtone.findings.verdict import Verdict, verdict
from overtone.results.load import open_run
from tests.findings.test_funnel import Cases, judged
from tests.findings.test_text_only import Made, question
from tests.results.small import Maker, item
from tests.results.test_headline import toy  # noqa: F401


def of_cases(folder: Path, scripts: int, *, heard: int, wer: float = 0.0, c4: float | None = None) -> Verdict:
    """The verdict on a run of that many scripts, of which `heard` have their cue named."""
    cases = Cases(folder)
    for number in range(scripts):
        replies = {"enhance/audio": judged(c4)} if c4 is not None else None
        cases.add(f"s{number}", wer=wer, fine=number < heard, replies=replies)
    return verdict(cases.read())


def against_words(folder: Path, audio: int, text: int, scripts: int = 20) -> Verdict:
    """The verdict on a run whose questions were answered with audio and with transcripts, that many correctly."""
    made = Made(folder)
    for number in range(scripts):
        one = question(f"s{number}")
        made.choice(one, "audio", number < audio)
        made.choice(one, "transcript", number >= scripts - text)
    return verdict(made.read())


def test_a_hearing_model_hears_the_words_and_the_cue(tmp_path: Path) -> None:
    told = of_cases(tmp_path / "run", 20, heard=19, c4=5.0)
    assert told.text == (
        "Hears the words, hears the cue, takes up the delivery in its replies: 95 % of cues named; blind guessing "
        "names 25 %."
    )
    assert told.hears == "yes"


def test_a_deaf_model_hears_the_words_and_misses_the_cue(tmp_path: Path) -> None:
    told = of_cases(tmp_path / "run", 40, heard=10, c4=1.0)
    assert told.text.startswith(
        "Hears the words, misses the cue, rarely takes up the delivery in its replies: 25 % of cues named;"
    )
    assert told.hears == "no"


def test_a_model_that_mishears_and_hears_half_of_the_cues_is_put_so(tmp_path: Path) -> None:
    told = of_cases(tmp_path / "run", 20, heard=10, wer=0.9)
    assert told.text.startswith("Mishears the words, hears some cues: 50 % of cues named;")


def test_the_same_model_without_sound_is_the_stricter_comparison(tmp_path: Path) -> None:
    hearing = against_words(tmp_path / "hearing", 19, 4)
    assert hearing.hears == "yes" and hearing.text.startswith("Hears the cue: 95 % of questions about the voice")
    assert "the same model without sound answers 20 %, a statistically significant difference (p " in hearing.text
    deaf = against_words(tmp_path / "deaf", 4, 6)
    assert deaf.hears == "no" and deaf.text.startswith("Misses the cue: 20 % of questions about the voice")
    assert "the same model without sound answers 30 %" in deaf.text and "significant" not in deaf.text
    unclear = against_words(tmp_path / "unclear", 9, 8)
    assert unclear.hears == "unclear" and "not statistically significant (p " in unclear.text
    words_do = against_words(tmp_path / "words", 19, 20)
    assert words_do.hears == "no" and words_do.text.startswith("Gains nothing from the sound: 95 %")


def test_with_nine_scripts_it_says_what_is_missing_and_with_ten_it_speaks(tmp_path: Path) -> None:
    few = of_cases(tmp_path / "nine", 9, heard=9)
    assert few.text == "Not enough data for a verdict." and few.hears == "unknown"
    assert "heard the cue (9 of 10)" in few.missing[0] and "`overtone run`" in few.missing[0]
    assert of_cases(tmp_path / "ten", 10, heard=10).hears == "yes"


def test_a_stage_that_was_not_asked_is_named_with_its_command(tmp_path: Path) -> None:
    cases = Cases(tmp_path / "run")
    for number in range(12):
        cases.add(f"s{number}", wer=0.0)
    told = verdict(cases.read())
    assert told.text == "Hears the words, whether it hears the cue was not measured."
    assert any("run with --levels 1, which asks about the cue" in line for line in told.missing)
    assert any("--input audio,transcript" in line for line in told.missing)


def test_too_few_questions_about_the_cue_are_counted_in_the_sentence(tmp_path: Path) -> None:
    cases = Cases(tmp_path / "run")
    for number in range(12):
        cases.add(f"s{number}", wer=0.0, fine=True if number < 4 else None)
    assert verdict(cases.read()).text == "Hears the words, too little data on the cue (4 of 10 scripts)."


def test_a_run_without_replies_has_no_verdict(tmp_path: Path) -> None:
    made = Made(tmp_path / "failed")
    for number in range(3):
        made.choice(question(f"s{number}"), "audio", None)
    told = verdict(made.read())
    assert told.text == "No verdict: all 3 requests failed." and "retries" in told.missing[0]
    waiting = Made(tmp_path / "waiting")
    waiting.maker.pending(question("s1"))
    assert verdict(waiting.read()).text == "No verdict: none of the 1 requests was answered."


@pytest.mark.usefixtures("toy")
def test_a_benchmark_with_its_own_tables_gets_their_first_numbers(tmp_path: Path) -> None:
    for scripts, expected in ((12, "Main: Accuracy 50.0 % ("), (4, "Not enough data for a verdict.")):
        maker = Maker(tmp_path / str(scripts))
        for number in range(scripts):
            maker.choice(item(f"q{number}", "choose", script=f"s{number}"), "AB"[number % 2])
        told = verdict(open_run(maker.done(), light=True))
        assert told.text.startswith(expected) and told.hears == "unknown"
        assert bool(told.missing) == (scripts == 4)
