"""SD-Eval: its four files as released, sounds that lie elsewhere or nowhere, and its ratings by subset."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from pathlib import Path

import pytest

from overtone.benchmarks import Selection
from overtone.benchmarks.sd_eval import SUITE, load
from overtone.cli import main
from overtone.errors import DataError
from overtone.judges.reply_texts import style
from overtone.results.column_values import Scored
from overtone.results.headline import number, suite_tables
from overtone.results.load import open_run
from overtone.schema import Item
from tests.judges.server import JudgeServer
from tests.servers import OpenAIServer, tone

SHARED = Path(os.environ.get("OVERTONE_SHARED", Path(__file__).parents[3] / "shared")) / "data" / "sd_eval"


def utterance(name: str, info: str, wav: str, words: str = "Kids are talking.", **more: object) -> dict[str, object]:
    target = [{"reply": f"Reply {n} to {name}.", "reply_emotion": "joy"} for n in range(5)]
    fields = {"wav_path": wav, "transcript": words, "utt_id": name, "target": target, "info": info}
    return {**fields, "dataset_name": "RAVDESS-Speech", **more}


def write(folder: Path, file: str, rows: list[dict[str, object]], sounds: bool = True) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{file}.json").write_text(json.dumps(rows))
    for seed, row in enumerate(rows if sounds else []):
        path = folder / str(row["wav_path"])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(tone(seed, 0.2, 16_000))
    return folder


def items(folder: Path) -> list[Item]:
    return list(load(folder).items(Selection()))


def test_an_utterance_has_its_label_words_and_five_references(tmp_path: Path) -> None:
    write(tmp_path, "test-emo", [utterance("a", "sad", "RAVDESS-Speech/Actor_01/a.wav")])
    (one,) = items(tmp_path)
    assert (one.id, one.task, one.level, one.category) == ("sd-eval/emotion/a", "converse", 3, "emotion")
    assert (one.cue, one.cue_text, one.dimension, one.source) == ("sad", "sad", "paralinguistic", "RAVDESS-Speech")
    assert one.turns[0].words == "Kids are talking." and one.turns[0].clip is not None
    assert one.turns[0].clip.path == "RAVDESS-Speech/Actor_01/a.wav"
    assert one.references == tuple(f"Reply {n} to a." for n in range(5))


def test_a_clips_corpus_and_speaker_come_from_its_files(tmp_path: Path) -> None:
    rows = [
        utterance("03-01-04-02-01-01-17", "sad", "RAVDESS-Speech/Actor_17/03-01-04-02-01-01-17.wav"),
        utterance("female1_angry_10a_1", "angry", "JL_corpus/female1_angry_10a_1.wav", dataset_name="JL_corpus"),
        utterance("M003_angry_level3_003", "angry", "MEAD/M003/angry/003.wav", dataset_name="MEAD"),
        utterance("p225_001", "sad", "VCTK/p225_001.wav", dataset_name="VCTK"),
        utterance("cv_1", "sad", "common_voice/cv_1.mp3", dataset_name="common_voice"),
        utterance("made", "sad", "made.wav", dataset_name="synthesized"),
    ]
    found = load(write(tmp_path, "test-emo", rows))
    origins = [[(o.corpus, o.speaker) for o in found.origins(item)] for item in found.items(Selection())]
    assert origins == [
        [("RAVDESS-Speech", "17")], [("JL_corpus", "female1")], [("MEAD", "M003")], [("VCTK", "p225")],
        [("common_voice", "")], [],
    ]  # fmt: skip


def test_labels_that_are_one_of_our_cues_are_it_and_others_keep_their_word(tmp_path: Path) -> None:
    told = {"driving": "car", "sea beach": "waves", "children's voice": "children", "bells": "", "sports center": ""}
    rows = [utterance(f"e{n}", label, f"test-env/{n}.wav") for n, label in enumerate(told)]
    write(tmp_path, "test-env", rows)
    write(tmp_path, "test-age", [utterance("c", "child", "myst/c.flac"), utterance("d", "adult", "adult/c.wav")])
    write(tmp_path, "test-acc", [utterance("p225", "Scottish", "VCTK/p225.flac")])
    found = items(tmp_path)
    assert {i.cue_text: i.cue for i in found if i.category == "environment"} == told
    assert {i.cue_text: i.cue for i in found if i.category == "age"} == {"child": "child", "adult": "adult"}
    assert [(i.cue_text, i.cue, i.dimension) for i in found if i.category == "accent"] == [("Scottish", "", "speaker")]
    assert [i.category for i in found] == ["accent", "age", "age", *["environment"] * 5]


def test_the_same_words_in_another_voice_are_not_independent(tmp_path: Path) -> None:
    rows = [
        utterance("a", "sad", "x/a.wav"),
        utterance("b", "happy", "x/b.wav"),
        utterance("c", "sad", "x/c.wav", "No."),
    ]
    write(tmp_path, "test-emo", rows)
    a, b, c = items(tmp_path)
    assert a.group == b.group != c.group and a.case != b.case


def test_a_missing_clip_is_a_warning_with_its_corpus(tmp_path: Path) -> None:
    rows = [utterance("m1", "sad", "MEAD/MEAD_wav/W021/audio/sad/level_3/001.wav", dataset_name="MEAD")]
    rows.append(utterance("a", "sad", "RAVDESS-Speech/a.wav"))
    write(tmp_path, "test-emo", rows, sounds=False)
    (tmp_path / "RAVDESS-Speech").mkdir()
    (tmp_path / "RAVDESS-Speech" / "a.flac").write_bytes(tone())
    found = load(tmp_path)
    assert [i.id for i in found.items(Selection())] == ["sd-eval/emotion/a"]
    (line,) = found.warnings
    assert "get MEAD" in line and "(1: MEAD/MEAD_wav/W021/audio/sad/level_3/001.wav)" in line


def test_a_sound_is_found_flat_only_where_its_name_can_mean_nothing_else(tmp_path: Path) -> None:
    """A child and an adult say the same under one file name; MEAD has hundreds of 001.wav."""
    rows = [utterance("c", "child", "myst/s1.flac"), utterance("d", "adult", "adult/s1.wav")]
    write(tmp_path, "test-age", [*rows, utterance("e", "child", "myst/s2.flac")], sounds=False)
    (tmp_path / "audio").mkdir()
    for name in ("s1", "s2"):
        (tmp_path / "audio" / f"{name}.wav").write_bytes(tone())
    assert [(i.id, i.turns[0].clip.path) for i in items(tmp_path) if i.turns[0].clip] == [
        ("sd-eval/age/e", "audio/s2.wav")
    ]


def test_a_copy_of_the_repository_is_read_with_sounds_in_audio_data(tmp_path: Path) -> None:
    write(tmp_path / "data", "test-emo", [utterance("a", "sad", "RAVDESS-Speech/a.wav")], sounds=False)
    sound = tmp_path / "audio_data" / "RAVDESS-Speech" / "a.wav"
    sound.parent.mkdir(parents=True)
    sound.write_bytes(tone())
    assert [i.turns[0].clip.path for i in items(tmp_path) if i.turns[0].clip] == ["audio_data/RAVDESS-Speech/a.wav"]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"wav_path": "../../etc/passwd"}, "position 1"),
        ({"wav_path": "/etc/passwd"}, "absolute"),
        ({"utt_id": "a"}, "is duplicated"),
        ({"utt_id": ""}, "no 'utt_id'"),
        ({"transcript": ["no"]}, "holds a list"),
        ({"info": ""}, "no 'info'"),
        ({"target": "hello"}, "'target' holds text"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, change: dict[str, object], problem: str) -> None:
    rows = [utterance("a", "sad", "x/a.wav"), utterance("b", "sad", "x/b.wav")]
    write(tmp_path, "test-emo", rows)
    (tmp_path / "test-emo.json").write_text(json.dumps([rows[0], {**rows[1], **change}]))
    with pytest.raises(DataError, match=problem):
        load(tmp_path)


def test_a_folder_without_its_files_says_what_to_give(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"test-emo\.json"):
        load(tmp_path)
    with pytest.raises(DataError, match="no such folder"):
        load(tmp_path / "none")


def test_the_mean_counts_each_subset_once(tmp_path: Path) -> None:
    rows = [utterance("a", "sad", "x/a.wav"), utterance("b", "sad", "x/b.wav")]
    write(tmp_path, "test-emo", rows)
    write(tmp_path, "test-env", [utterance("c", "bells", "y/c.wav")])
    a, b, c = items(tmp_path)
    ratings = {a.id: 4.0, b.id: 7.0, c.id: 10.0}
    scored = [Scored(i, "zero/audio", 0, {f"rating_{i.category}": ratings[i.id]}) for i in (a, b, c)]
    mean = number(SUITE.headlines[0].columns[0], scored)
    assert mean is not None and mean.value == pytest.approx((5.5 + 10) / 2)


def test_every_accent_and_background_has_a_line_of_its_own(tmp_path: Path) -> None:
    data, out = tmp_path / "data", tmp_path / "run"
    heard = {
        "test-acc": ("england", "indian"),
        "test-env": ("driving", "bells", "sports center", "raining or thundering"),
    }
    for file, labels in heard.items():
        rows = [utterance(f"{file}{n}", label, f"{file}/{n}.wav", label) for n, label in enumerate(labels)]
        write(data, file, rows)

    def verdict(asked: object) -> dict[str, int | str]:
        about_accent = '"rating_accent"' in str(getattr(asked, "text", ""))
        return {"rating_accent" if about_accent else "rating_environment": 4}

    with OpenAIServer(speech=False) as model, JudgeServer(verdict=verdict) as judge:
        spec = f"openai:any?base_url={model.base_url}&speech=no"
        flags = ["--data", str(data), "--out", str(out), "--model", spec, "--prompt", "zero", "-q"]
        assert main(["run", "sd-eval", *flags, "--judge", judge.spec()]) == 0
    _, by_cue = suite_tables(open_run(out))
    assert [row.name for row in by_cue.rows] == ["england", "indian", "car", *heard["test-env"][1:]]
    assert all(style(item) == "target" for item in items(data)), "rubrics that go by a cue are asked about all of them"


def test_a_run_is_rated_by_the_question_of_each_subset(tmp_path: Path) -> None:
    data, out = tmp_path / "data", tmp_path / "run"
    write(data, "test-emo", [utterance("a", "sad", "x/a.wav"), utterance("b", "happy", "x/b.wav", "No.")])
    write(data, "test-age", [utterance("c", "child", "myst/c.flac", "Yes.")])
    given = {"Sad": 3, "sad": 3, "happy": 8, "child": 10}

    def verdict(asked: object) -> dict[str, int | str]:
        text = str(getattr(asked, "text", ""))
        key = "rating_age" if '"rating_age"' in text else "rating_emotion"
        return {key: next(n for word, n in given.items() if f"\n{word}\n" in text)}

    with OpenAIServer(speech=False) as model, JudgeServer(verdict=verdict) as judge:
        spec = f"openai:any?base_url={model.base_url}&speech=no"
        flags = ["--data", str(data), "--out", str(out), "--model", spec, "--prompt", "zero", "-q"]
        assert main(["run", "sd-eval", *flags, "--judge", judge.spec("seed=1337")]) == 0
        assert judge.count == 3, "one question about each reply"
        assert all(asked.body["temperature"] == 0 and asked.body["seed"] == 1337 for asked in judge.asked)
        assert all("rating_environment" not in asked.text for asked in judge.asked)
    reading = open_run(out)
    assert reading.notes == []
    main_table, by_cue = suite_tables(reading)
    cells = dict(zip([c.key for c in SUITE.headlines[0].columns], main_table.rows[0].cells, strict=True))
    values = {key: cell.value if cell else None for key, cell in cells.items()}
    assert values == {"mean": (5.5 + 10) / 2, "emotion": 5.5, "accent": None, "age": 10, "environment": None}
    assert {row.name for row in by_cue.rows} == {"sad", "happy", "child"}


@pytest.mark.shared
@pytest.mark.skipif(not SHARED.is_dir(), reason="no SD-Eval sample; set OVERTONE_SHARED to the folder that holds data/")
def test_the_real_files_load_and_name_what_is_missing() -> None:
    found = load(SHARED)
    real = list(found.items(Selection()))
    assert len(real) == 80 and Counter(i.cue for i in real) == dict.fromkeys(
        ("happy", "sad", "angry", "disgust", "fear"), 16
    )
    assert all(len(i.references) == 5 for i in real)
    left = "\n".join(found.warnings)
    assert all(f"({count}:" in left for count in (384, 825, 507, 690))


@pytest.mark.shared
@pytest.mark.skipif(not SHARED.is_dir(), reason="no SD-Eval sample; set OVERTONE_SHARED to the folder that holds data/")
def test_real_recordings_are_sent_and_rated(tmp_path: Path) -> None:
    verdicts = iter((9, 6, 3, 4))
    with (
        OpenAIServer(speech=False) as model,
        JudgeServer(verdict=lambda asked: {"rating_emotion": next(verdicts)}) as judge,
    ):
        spec = f"openai:any?base_url={model.base_url}&speech=no"
        flags = ["--data", str(SHARED), "--out", str(tmp_path / "run"), "--model", spec, "--prompt", "zero", "-q"]
        assert main(["run", "sd-eval", *flags, "--limit", "4", "--judge", judge.spec("connections=1")]) == 0
        assert len({sound for asked in model.asked for sound in asked.sounds}) == 4
        cues = ("happy", "sad", "angry", "disgust", "fear")
        told = [cue for a in judge.asked for cue in cues if f"\n{cue}\n" in a.text]
        assert len(told) == len(set(told)) == 4, "a limit spreads over the cues"
        assert all(re.search("(Kids are talking|Dogs are sitting) by the door", a.text) for a in judge.asked)
    mean, emotion, *_ = suite_tables(open_run(tmp_path / "run"))[0].rows[0].cells
    assert emotion is not None and emotion.value == 5.5 and mean is not None and mean.value == 5.5
