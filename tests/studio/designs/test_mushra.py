"""MUSHRA: needs a reference, hides it among the sounds, and excludes people who do not recognise it."""

from __future__ import annotations

from pathlib import Path

import pytest

from overtone.errors import DataError
from overtone.studio import designs
from overtone.studio.designs import Answered, mushra
from overtone.studio.fields import Slider
from overtone.studio.replies import Sound, SpokenReply
from overtone.studio.study import MushraSettings, Study
from tests.servers import tone
from tests.studio.designs.helpers import clips_of, fields_of, gold_of, run_of, sound, study_of, units_of

REFERENCE = sound("reference")


def small_study(**more: object) -> Study:
    return study_of("mushra", "low", "high", mushra=MushraSettings(**more))  # type: ignore[arg-type]


def test_a_screen_has_every_system_the_hidden_reference_and_the_anchor() -> None:
    study = small_study()
    (unit, *others) = units_of(study, run_of("low", reference=REFERENCE), run_of("high"))
    assert len(others) == 2 and unit.system == "low|high" and unit.sounds == {"reference": REFERENCE}
    first, *rated = designs.played(designs.find("mushra"), unit, study, slot="x")
    assert (first.name, first.label, first.sound) == ("reference", "Reference", REFERENCE)
    assert [one.name for one in rated] == [field.key for field in fields_of(study)] == ["s1", "s2", "s3", "s4"]
    assert sorted((one.sound.path, one.process) for one in rated) == [
        ("high0.wav", ""), ("low0.wav", ""), ("reference.wav", ""), ("reference.wav", "lowpass-3500"),
    ]  # fmt: skip
    assert all(isinstance(field, Slider) and (field.low, field.high) == (0, 100) for field in fields_of(study))
    assert not any(name in f"{one.name}{one.label}" for one in rated for name in ("low", "high", "anchor"))


def test_without_an_anchor_there_is_one_sound_less() -> None:
    assert len(fields_of(small_study(anchor=False))) == 3


def test_a_benchmark_without_spoken_references_is_refused_with_the_alternatives() -> None:
    with pytest.raises(DataError, match=r"no spoken reference replies.*--design cmos or ab"):
        units_of(small_study(), run_of("low"), run_of("high"))


def spoken(folder: Path, name: str, seconds: float) -> Sound:
    path = folder / f"{name}.wav"
    path.write_bytes(tone(1, seconds, 16_000))
    return Sound(str(path), name)


def codec_run(folder: Path, seconds: float) -> list[SpokenReply]:
    one = run_of("codec").replies[0]
    made = {"sound": spoken(folder, "coded", seconds), "clip": spoken(folder, "clip", 1.0)}
    return [SpokenReply(**{name: getattr(one, name) for name in one.__struct_fields__} | made)]


def test_a_codec_is_compared_with_the_clip_that_it_was_given(tmp_path: Path) -> None:
    study = study_of("mushra", "codec", mushra=MushraSettings(reference="clip"))
    run = run_of("codec", scripts=1)
    same = type(run)(run.name, run.folder, tuple(codec_run(tmp_path, 1.02)), 0)
    (unit,) = units_of(study, same)
    assert unit.sounds["reference"].path == str(tmp_path / "clip.wav")


def test_replies_that_are_not_the_clip_again_have_no_reference(tmp_path: Path) -> None:
    study = study_of("mushra", "codec", mushra=MushraSettings(reference="clip"))
    run = run_of("codec", scripts=1)
    other = type(run)(run.name, run.folder, tuple(codec_run(tmp_path, 3.0)), 0)
    with pytest.raises(DataError, match=r"lengths differ by 200%.*codes and decodes"):
        units_of(study, other)


def test_too_many_systems_for_a_screen_are_refused() -> None:
    with pytest.raises(DataError, match="at most 9 systems; there are 10"):
        units_of(small_study(), *(run_of(f"run{number}", reference=REFERENCE) for number in range(10)))


def test_only_requests_that_all_runs_answered_are_compared() -> None:
    units = units_of(small_study(), run_of("low", scripts=5, reference=REFERENCE), run_of("high", scripts=3))
    assert [unit.group for unit in units] == ["s0", "s1", "s2"]


def answers(study: Study, rater: str, *of_reference: int) -> list[Answered]:
    units = units_of(study, run_of("low", scripts=20, reference=REFERENCE), run_of("high", scripts=20))
    made = []
    for number, (unit, value) in enumerate(zip(units, of_reference, strict=False)):
        screen = mushra.on_screen(unit, study, False, f"{rater}{number}")
        values = {key: value if what == mushra.REFERENCE else 40 for key, what in screen.items()}
        made.append(Answered(rater, unit, values, slot=f"{rater}{number}"))  # type: ignore[arg-type]
    return made


def test_a_person_who_often_misses_the_hidden_reference_is_excluded() -> None:
    study = small_study()
    good = answers(study, "good", *[100] * 17, 89, 80, 10)  # 15 % is allowed
    bad = answers(study, "bad", *[100] * 16, 89, 80, 10, 0)
    edge = answers(study, "edge", *[90] * 20)
    assert mushra.screened([*good, *bad, *edge], study) == {
        "bad": "rated the hidden reference below 90 on 4 of 20 screens"
    }


def test_there_is_no_gold_question() -> None:
    assert gold_of(small_study(), 0) == {} and clips_of("x").clips == ()
