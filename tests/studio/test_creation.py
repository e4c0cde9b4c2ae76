"""`overtone studio new`: what it writes, and what it refuses."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from pathlib import Path

import pytest
from msgspec.structs import replace

from overtone.cli import main
from overtone.runs.store import Store
from overtone.studio import contents, study
from tests.arena.helpers import make_run, voiced
from tests.benchmarks.built import write_built
from tests.servers import tone
from tests.studio.helpers import new_study, spoken_runs


def test_a_study_of_ratings_is_written_with_one_gain_per_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = new_study(tmp_path, "--raters", "7", "--show", "words")
    assert (made.design, made.rubrics, made.raters, made.shows) == ("acr", ("echomind",), 7, ("words",))
    assert [run.name for run in made.sources] == ["monday", "friday"]
    assert [run.path for run in made.sources] == ["monday", "friday"]  # relative to the study file
    assert all(run.gain_db < 0 for run in made.sources)  # the test's tones are louder than the common level
    assert made.session == 6  # nine scripts, less two for training and one for gold
    printed = capsys.readouterr().out
    assert "36 replies of 9 scripts" in printed and "minutes" in printed and "± " in printed


def test_a_study_of_pairs_asks_about_requests_that_both_runs_answered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = new_study(tmp_path, "--design", "ab")
    assert (made.design, made.rubrics) == ("ab", ("pair-voice",))
    printed = capsys.readouterr().out
    assert "18 pairs of 9 scripts; systems: monday|friday" in printed
    assert "(share of the votes for one minus share for the other)." in printed
    assert "assumed spread of an answer: scripts 0.6, people 0.16, rest 0.6" in printed
    assert "more pairs compare systems better than more votes: 54 answers on 18 scripts with 3 votes give" in printed


@pytest.mark.parametrize("design", ["cmos", "transcribe", "label"])
def test_the_other_designs_are_written_with_settings_that_can_be_served(tmp_path: Path, design: str) -> None:
    made = new_study(tmp_path, "--design", design)
    read = contents.read(made)
    assert (made.design, made.rubrics, made.checks.gold) == (design, (), 0 if design == "label" else 1)
    assert read.units and read.fields and all(read.stages(unit) for unit in read.units[:3])


def test_mushra_needs_spoken_references_of_the_benchmark(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "clips").mkdir()
    (tmp_path / "clips/reference.wav").write_bytes(tone(9, 0.5, 16_000))
    spoken = voiced(99, "human")
    others = (replace(spoken, reference_audio="reference.wav"),)
    more = tuple(replace(voiced(number, "human"), reference_audio="reference.wav") for number in range(80, 90))
    runs = [
        make_run(tmp_path / name, 1.0, spoken=True, root=tmp_path / "clips", others=(*others, *more))
        for name in ("low", "high")
    ]
    path = tmp_path / "m.toml"
    assert main(["studio", "new", str(path), "--design", "mushra", "--from", *map(str, runs)]) == 0
    made = study.read(path)
    assert made.mushra.gain_db < 0 and len(contents.read(made).units) == 11
    assert "11 screens of 11 scripts" in capsys.readouterr().out
    (tmp_path / "clips/reference.wav").unlink()
    said = refused(capsys, str(tmp_path / "n.toml"), "--design", "mushra", "--from", *map(str, runs))
    assert "no spoken reference replies, or their files are not there" in said and not (tmp_path / "n.toml").exists()


def test_clips_of_a_set_and_of_its_runs_are_labelled_once(tmp_path: Path) -> None:
    made = new_study(tmp_path, "--design", "label", "--of", "clips")
    units = contents.read(made).units
    assert (made.of, len(units)) == ("clips", 18) and units[0].sources == ("monday", "friday")
    assert [source.kind for source in made.sources] == ["run", "run"]


def test_the_clips_of_a_built_set_can_be_labelled(tmp_path: Path) -> None:
    built = write_built(tmp_path / "clips")
    path = tmp_path / "heard.toml"
    assert main(["studio", "new", str(path), "--from", str(built), "--design", "label", "--of", "clips"]) == 0
    made = study.read(path)
    units = contents.read(made).units
    assert (made.sources[0].kind, made.sources[0].path) == ("set", "clips")
    assert {unit.cells["cue"] for unit in units} == {"sad", "happy", "rain", "wind", "male", "female", ""}
    assert len({unit.sounds["clip"].path for unit in units}) == len(units)


def test_a_set_that_lost_a_clip_of_its_manifest_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    built = write_built(tmp_path / "clips")
    manifest = json.loads((built / "manifest.json").read_text())
    clip = "data_synthesis/audio/sad/s1_sad_work_target.wav"
    manifest["clips"] = [{"path": clip, "sha256": hashlib.sha256((built / clip).read_bytes()).hexdigest()}]
    (built / "manifest.json").write_text(json.dumps(manifest))
    words = (str(tmp_path / "s.toml"), "--from", str(built), "--design", "label", "--of", "clips")
    (built / clip).write_bytes(tone(9, 0.2, 16_000))
    assert f"{clip} has changed since the run" in refused(capsys, *words)
    (built / clip).unlink()
    assert f"has lost {clip}" in refused(capsys, *words)


def test_a_wage_prints_the_pay_of_a_person(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new_study(tmp_path, "--pay-per-hour", "12 GBP", "--raters", "10")
    printed = capsys.readouterr().out
    each, total = (float(part.split()[0]) for part in printed.split("pay: ")[1].split(" for ")[0].split(", "))
    assert total == pytest.approx(10 * each, abs=0.06) and 1 < each < 3


def test_one_question_per_person_needs_more_people(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = new_study(tmp_path, "--one-question")
    assert made.one_question_per_person and "36 people give every one 3 answers" in capsys.readouterr().out


def test_more_votes_than_people_are_noted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new_study(tmp_path, "--raters", "2")
    assert "note: 2 people cannot give 3 answers" in capsys.readouterr().out


def test_replies_that_no_question_applies_to_are_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = new_study(tmp_path, "--rubric", "ves")  # does not ask about neutral clips
    assert "18 of 36 replies are left out, because no question applies to their style" in capsys.readouterr().out
    read = contents.read(made)
    assert len(read.units) == 18 and all(read.stages(unit) for unit in read.units)


def test_with_one_question_each_question_applies_to_every_reply(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = new_study(tmp_path, "--rubric", "echomind", "--one-question")  # C4 is not asked about neutral clips
    assert "18 of 36 replies are left out, because a question does not apply" in capsys.readouterr().out
    read = contents.read(made)
    assert all(read.stages(unit, question_group=group) for unit in read.units for group in range(read.question_groups))


def test_a_study_with_crying_warns_people_before_they_consent(tmp_path: Path) -> None:
    crying = tuple(voiced(number, "human") for number in range(5))
    crying = tuple(replace(one, cue="sobbing", id=one.id + "/sob", group=one.group + "/sob") for one in crying)
    run = make_run(tmp_path / "run", 1.0, spoken=True, root=tmp_path / "clips", others=crying)
    assert main(["studio", "new", str(tmp_path / "s.toml"), "--from", str(run)]) == 0
    made = study.read(tmp_path / "s.toml")
    assert "crying" in made.people.warning
    read = contents.read(made)
    assert sum(read.may_skip(unit) for unit in read.units) == 5
    (tmp_path / "other").mkdir()
    assert new_study(tmp_path / "other").people.warning == ""


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["studio", "new", *words]) == 2
    return capsys.readouterr().err


def test_a_run_without_audio_is_refused_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run(tmp_path / "mute", 1.0)
    said = refused(capsys, str(tmp_path / "s.toml"), "--from", str(run))
    assert "none of its 18 answered conversations has audio" in said
    assert not (tmp_path / "s.toml").exists()


def test_a_lost_sound_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (run,) = spoken_runs(tmp_path, "monday")
    lost = next((run / "audio").rglob("*.wav"))
    lost.unlink()
    said = refused(capsys, str(tmp_path / "s.toml"), "--from", str(run))
    assert lost.name in said and "overtone verify" in said


@pytest.mark.parametrize("folder", ["monday/audio", "clips"])
def test_a_changed_sound_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], folder: str) -> None:
    (run,) = spoken_runs(tmp_path, "monday")
    with Store.create(run) as store:
        for path in (tmp_path / "clips").glob("*.wav"):
            data = path.read_bytes()
            store.add_clip(path.name, hashlib.sha256(data).hexdigest(), len(data), 0, 0.2)
        store.commit()
    sound = next((tmp_path / folder).rglob("*.wav"))
    sound.write_bytes(tone(7, 0.3, 16_000))
    said = refused(capsys, str(tmp_path / "s.toml"), "--from", str(run))
    assert sound.name in said and "has changed since the run" in said and not (tmp_path / "s.toml").exists()


def test_runs_of_different_benchmarks_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = spoken_runs(tmp_path, "monday", "friday")
    with sqlite3.connect(runs[1] / "run.db") as db:
        db.execute("UPDATE meta SET value = 'open' WHERE key = 'benchmark'")
    said = refused(capsys, str(tmp_path / "s.toml"), "--from", *map(str, runs))
    assert "different benchmarks (monday of toy, friday of open)" in said


def test_too_few_scripts_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (run,) = spoken_runs(tmp_path, "monday", scripts=3)
    assert "3 different scripts" in refused(capsys, str(tmp_path / "s.toml"), "--from", str(run))


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--design", "ab"], "needs at least 2 runs"),
        (["--rubric", "pair"], "acr rates single replies"),
        (["--raters", "0"], "--raters must be from 1"),
        (["--design", "acs"], "did you mean 'acr'"),
        (["--of", "clips"], "--of clips belongs to the design label"),
        (["--design", "label", "--one-question"], "needs the design acr"),
        (["--design", "label", "--rubric", "ves"], "has its own questions"),
        (["--design", "transcribe", "--show", "reply"], "gives the answer away"),
        (["--design", "mushra", "--reference", "clip"], "not the clips again"),
        (["--pay-per-hour", "much"], "must be an amount"),
        (["--rubric", "echomind", "--rubric", "echomint"], "echomint"),
    ],
)
def test_flags_that_do_not_fit_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], flags: list[str], message: str
) -> None:
    (run,) = spoken_runs(tmp_path, "monday")
    assert message in refused(capsys, str(tmp_path / "s.toml"), "--from", str(run), *flags)


def test_an_existing_study_is_not_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = new_study(tmp_path)
    before = made.path.read_bytes()
    assert "exists" in refused(capsys, str(made.path), "--from", str(tmp_path / "monday"))
    assert made.path.read_bytes() == before


def test_a_name_with_quotes_survives_the_file(tmp_path: Path) -> None:
    made = new_study(tmp_path, "--title", 'He said "ä\\" \x7f\t]]')
    assert made.title == 'He said "ä\\" \x7f\t]]'
    assert study.read(made.path) == made


def test_a_study_of_clips_compares_styles_and_its_precision_is_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new_study(tmp_path, "--design", "label", "--of", "clips", "--raters", "1")
    printed = capsys.readouterr().out
    assert "; styles: " in printed and "systems" not in printed
    assert "With 1 person, expect the difference between two styles to have a 95 % interval of about ± " in printed
    assert "(share of people who hear a cue)." in printed
