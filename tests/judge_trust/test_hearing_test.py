"""The known-answer test of hearing: balanced pairs, right and wrong counted as they are, proofs kept and taken back."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec
import numpy as np
import pytest

from overtone.audio import read
from overtone.cli import main
from overtone.errors import DataError
from overtone.judge_trust import hearing_test
from overtone.judges import rubric, trust_record
from overtone.judges.judgement import Draw, Judgement
from tests.judges.server import JudgeServer, Verdict
from tests.judges.voices import always, ears, recordings
from tests.servers import Asked


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OVERTONE_JUDGES", str(tmp_path / "proofs"))
    monkeypatch.chdir(tmp_path)
    return recordings(tmp_path / "voices")


def test_pairs_share_actor_and_sentence_and_are_balanced_over_emotions_and_sides(folder: Path) -> None:
    clips = {clip.path: clip for clip in hearing_test.clips(folder)}
    for part in hearing_test.PARTS:
        drawn = hearing_test.pairs(list(clips.values()), part, limit=30, seed=1)
        assert len(drawn) == len({pair.subject.id for pair in drawn}) == 30
        assert set(Counter(pair.emotion for pair in drawn).values()) == {10}
        assert Counter(pair.right for pair in drawn) == {"A": 15, "B": 15}
        for pair in drawn:
            a, b = (clips[pair.subject.sounds[side]] for side in ("a", "b"))
            right, wrong = (a, b) if pair.right == "A" else (b, a)
            assert (a.actor, a.text) == (b.actor, b.text)
            assert right.emotion == pair.emotion
            if part == "emotion":
                assert a.intensity == b.intensity and wrong.emotion != pair.emotion
            else:
                assert a.emotion == b.emotion and (right.intensity, wrong.intensity) == ("strong", "normal")


def test_the_same_two_recordings_asked_about_either_emotion_are_two_subjects(folder: Path) -> None:
    drawn = hearing_test.pairs(hearing_test.clips(folder), "emotion", limit=None, seed=0)
    assert len({pair.subject.id for pair in drawn}) == len(drawn)
    sounds = {frozenset(pair.subject.sounds.values()) for pair in drawn}
    assert len(sounds) < len(drawn)


def test_the_draw_is_the_same_with_the_same_seed_and_another_with_another(folder: Path) -> None:
    clips = hearing_test.clips(folder)
    first, again, other = (hearing_test.pairs(clips, "emotion", limit=20, seed=seed) for seed in (1, 1, 2))
    assert first == again != other


def test_what_is_off_the_menu_is_wrong_and_what_did_not_come_is_missing(folder: Path) -> None:
    drawn = hearing_test.pairs(hearing_test.clips(folder), "emotion", limit=6, seed=0)
    found = rubric.load("hears-emotion")
    said = [
        Draw(0, False, {"hears_emotion": drawn[0].right}, {}),
        Draw(0, False, {"hears_emotion": drawn[1].right}, {}),
        Draw(0, False, {"hears_emotion": "A" if drawn[2].right == "B" else "B"}, {}),
        Draw(0, False, {}, {}, "hears_emotion is not on the menu"),
        Draw(0, False, {}, {}, "the judge did not answer: timeout: slow"),
        Draw(0, False, {}, {}, "not judged: budget"),
    ]
    judgements = [Judgement(p.subject, found.name, "j", (d,)) for p, d in zip(drawn, said, strict=True)]
    heard = hearing_test.heard("emotion", found, drawn, judgements)
    assert (heard.accuracy.value, heard.verdicts, heard.missing, heard.unread) == (0.5, 4, 2, 1)
    with pytest.raises(DataError, match="answered none of the emotion test's 3 pairs: hears_emotion is not"):
        hearing_test.heard("emotion", found, drawn[3:], judgements[3:])


def test_a_judge_that_hears_passes_and_is_validated_for_rubrics_that_hear(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with JudgeServer(verdict=ears(folder)) as server:
        command = ["judge", "hear", server.spec(), "--data", str(folder), "--limit", "30", "--out", "out"]
        assert main(command) == 0
        asked = server.count
        assert asked == 2 * 30 * 2, "two parts, both orders"
        assert main(command) == 0
        assert server.count == asked, "verdicts are paid once"
    result = msgspec.json.decode(Path("out/hearing.json").read_bytes())
    assert result["passed"] == [True]
    assert [part["accuracy"]["value"] for part in result["tests"][0]["parts"]] == [1.0, 1.0]
    out = capsys.readouterr().out
    assert "passed" in out and "angry" in out
    ves, words = rubric.load("ves"), rubric.load("echomind")
    proof = trust_record.validated("openai:scripted|hears:audio|calls:apart", ves)
    assert proof is not None and proof.how == trust_record.HEARING
    assert trust_record.validated("openai:scripted|hears:audio|calls:together", words) is None
    assert trust_record.validated("openai:scripted|hears:description|calls:together", ves) is None
    assert main(["judge", "list"]) == 0
    assert "openai:scripted|hears:audio hears" in capsys.readouterr().out


def test_a_judge_that_always_says_the_first_is_at_chance_and_loses_its_proof(folder: Path) -> None:
    with JudgeServer(verdict=always("A")) as server:
        identity = "openai:scripted|hears:audio"
        trust_record.write(identity, None, (), "before", how=trust_record.HEARING)
        assert main(["judge", "hear", server.spec(), "--data", str(folder), "--limit", "12", "--out", "out"]) == 0
    result = msgspec.json.decode(Path("out/hearing.json").read_bytes())
    parts = result["tests"][0]["parts"]
    assert result["passed"] == [False]
    assert [(part["accuracy"]["value"], part["first_place"]) for part in parts] == [(0.5, 1.0), (0.5, 1.0)]
    assert trust_record.validated(f"{identity}|calls:together", rubric.load("ves")) is None


def test_a_judge_that_always_names_the_wrong_recording_is_asked_whether_a_and_b_are_exchanged(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    right = ears(folder)

    def wrong(asked: Asked) -> Verdict:
        return {key: {"A": "B", "B": "A"}[str(value)] for key, value in right(asked).items()}

    command = ["--data", str(folder), "--limit", "30", "--out"]
    with JudgeServer(verdict=wrong) as server:
        main(["judge", "hear", server.spec(), *command, "out"])
        assert "are A and B exchanged?" in " ".join(capsys.readouterr().out.split())
        server.always = "words"
        assert main(["judge", "hear", server.spec(name="mute"), *command, "other"]) == 3
        assert "exchanged" not in capsys.readouterr().out


def test_ears_and_a_description_are_compared_on_the_same_pairs(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hears, deaf = ears(folder), always("A")
    with JudgeServer(verdict=lambda asked: hears(asked) if asked.sounds else deaf(asked)) as server:
        command = ["judge", "hear", server.spec(), "--compare", "--data", str(folder), "--limit", "30", "--out", "out"]
        assert main(command) == 0
    result = msgspec.json.decode(Path("out/hearing.json").read_bytes())
    assert [test["judge"] for test in result["tests"]] == ["scripted.audio", "scripted.description"]
    assert result["passed"] == [True, False]
    assert result["differences"]["emotion"]["value"] == 0.5
    assert "on the same pairs: 50.0 %" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        (None, "has no labels.csv"),
        ("file,actor\na.wav,1\n", "has no column emotion, intensity, text"),
        ("file,actor,emotion,intensity,text\na.wav,1,angry,,Hi\n", "line 2: a field is empty"),
        ("file,actor,emotion,intensity,text\na.wav,1,angry,normal,Hi\n", "line 2: there is no file a.wav"),
        ("file,actor,emotion,intensity,text\n../a.wav,1,angry,normal,Hi\n", "leaves its folder"),
    ],
)
def test_a_folder_that_is_not_laid_out_so_is_told_what_is_missing(
    tmp_path: Path, table: str | None, problem: str
) -> None:
    if table is not None:
        (tmp_path / "labels.csv").write_text(table)
    with pytest.raises(DataError, match=problem):
        hearing_test.clips(tmp_path)


def test_recordings_of_one_emotion_make_no_pair(folder: Path) -> None:
    clips = [clip for clip in hearing_test.clips(folder) if clip.emotion == "angry" and clip.intensity == "normal"]
    for part in hearing_test.PARTS:
        with pytest.raises(DataError, match="test needs two recordings"):
            hearing_test.pairs(clips, part, limit=None, seed=0)


@pytest.mark.shared
def test_real_recordings_make_balanced_pairs_over_all_actors(shared: Path) -> None:
    clips = hearing_test.clips(shared / "data" / "ravdess")
    for part in hearing_test.PARTS:
        drawn = hearing_test.pairs(clips, part, limit=hearing_test.LIMIT, seed=0)
        assert len(drawn) == hearing_test.LIMIT
        assert len({pair.subject.group for pair in drawn}) == 18
        counts = Counter(pair.emotion for pair in drawn)
        assert max(counts.values()) - min(counts.values()) <= 1


@pytest.mark.shared
def test_a_judge_of_loudness_alone_passes_the_intensity_part_and_not_the_test(shared: Path) -> None:
    clips = hearing_test.clips(shared / "data" / "ravdess")
    heard = {}
    for part, name in hearing_test.PARTS.items():
        found = rubric.load(name)
        drawn = hearing_test.pairs(clips, part, limit=112, seed=0)
        judgements = []
        for pair in drawn:
            level = {side: float(np.sqrt(np.mean(read(path)[0] ** 2))) for side, path in pair.subject.sounds.items()}
            said: dict[str, int | str] = {found.dimensions[0].key: "A" if level["a"] > level["b"] else "B"}
            judgements.append(Judgement(pair.subject, name, "loud", (Draw(0, False, said, {}),)))
        heard[part] = hearing_test.heard(part, found, drawn, judgements)
    assert heard["intensity"].accuracy.value == pytest.approx(0.88, abs=0.05) and heard["intensity"].passed
    assert heard["emotion"].accuracy.value == pytest.approx(0.48, abs=0.06) and not heard["emotion"].passed
    assert not hearing_test.Test("loud", "", list(heard.values())).passed
