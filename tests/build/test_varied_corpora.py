"""What a user has, as groups that vary: MELD's tables, a table of recordings, EmoV-DB's folder; and what is refused."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from overtone import audio
from overtone.build import aeq_set
from overtone.build.varied_corpora import MOST, cue_of, meld, tones
from overtone.errors import DataError, UsageError

SHARED = Path(os.environ.get("OVERTONE_SHARED", Path(__file__).parents[3] / "shared")) / "data"
HEAD = "Sr No.,Utterance,Speaker,Emotion,Sentiment,Dialogue_ID,Utterance_ID,Season,Episode,StartTime,EndTime\n"
shared = pytest.mark.shared


def _meld(folder: Path, *dialogues: list[tuple[str, str]], name: str = "train", season: int = 1) -> Path:
    folder.mkdir(exist_ok=True)
    lines = [HEAD]
    for d, dialogue in enumerate(dialogues):
        for u, (speaker, words) in enumerate(dialogue):
            lines.append(f'1,"{words}",{speaker},{"neutral" if d else "anger"},x,{d},{u},{season},{d},0,1\n')
    (folder / f"{name}_sent_emo.csv").write_text("".join(lines), "utf-8")
    return folder


def _wav(path: Path, loud: float = 0.1) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    noise = np.random.default_rng(len(str(path))).standard_normal(24_000) * loud
    path.write_bytes(audio.encode_wav(noise, 24_000))
    return path


SAME = [("Ann", "You are really late."), ("Bob", "I don’t know!")]
OTHER = [("Eve", "Where did I park it?"), ("Joe", "I don't know")]


def test_the_same_words_after_other_lines_are_a_group(tmp_path: Path) -> None:
    found = meld(_meld(tmp_path / "m", SAME, OTHER, [("Bob", "I don't know.")], [*SAME, ("Ann", "Oh no.")]))
    assert [len(v.variants) for v in found] == [2]  # the third has no context, the fourth repeats a scene
    first, second = found[0].variants
    assert found[0].words == "I don’t know!" and found[0].setting == "context" and found[0].id.startswith("meld-")
    assert "Ann: You are really late.\nNow Bob speaks." in first.context and "Where did I park it?" in second.context
    assert not first.reply and not found[0].file


def test_long_words_in_one_episode_and_short_ones_are_no_group(tmp_path: Path) -> None:
    long = "I would like to have the soup of the day with some bread"
    one = [("A", "Hello there my friend."), ("B", long), ("A", "Hi.")]
    two = [("C", "What would you like?"), ("B", long), ("A", "Hi.")]
    folder = _meld(tmp_path / "m", one, two)
    assert [len(v.variants) for v in meld(folder)] == [2]
    text = (folder / "train_sent_emo.csv").read_text().replace(",1,1,0,1", ",1,0,0,1")
    (folder / "train_sent_emo.csv").write_text(text)
    with pytest.raises(DataError, match="no utterance occurs in two dialogues"):
        meld(folder)


def test_words_said_twice_in_one_dialogue_only_are_no_group(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no utterance occurs in two dialogues"):
        meld(_meld(tmp_path / "m", [*SAME, *OTHER]))


def test_no_more_than_some_variants_are_taken(tmp_path: Path) -> None:
    scenes = [[("Ann", f"Line of its own number {n}."), ("Bob", "What are you doing?")] for n in range(9)]
    assert [len(v.variants) for v in meld(_meld(tmp_path / "m", *scenes))] == [MOST]


def test_recordings_of_meld_are_found_by_name_a_plain_one_first(tmp_path: Path) -> None:
    folder, clips = _meld(tmp_path / "m", SAME, OTHER), tmp_path / "clips"
    for name in ("dia0_utt1.wav", "dia1_utt1.wav"):
        _wav(clips / name)
    assert meld(folder, clips)[0].file.endswith("dia1_utt1.wav")  # the other is said in anger
    _meld(folder, SAME, name="dev")
    with pytest.raises(UsageError, match="may belong to any of 2 tables"):
        meld(folder, clips)
    (clips / "dia1_utt1.wav").rename(_wav(clips / "train/dia1_utt1.wav"))
    (clips / "dia0_utt1.wav").rename(_wav(clips / "dev/dia0_utt1.wav"))
    assert meld(folder, clips)[0].file.endswith("train/dia1_utt1.wav")


def _table(folder: Path, *rows: str, head: str = "file,words,tone,speaker") -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / "labels.csv"
    path.write_text("\n".join([head, *rows]) + "\n", "utf-8")
    return path


def test_one_speaker_with_the_same_words_in_three_tones_is_a_group(tmp_path: Path) -> None:
    for name in "abcdef":
        _wav(tmp_path / f"c/{name}.wav")
    rows = ["a.wav,It is late.,Anger,1", "b.wav,It is late,calm,1", "c.wav,it is late!,neutral,1",
            "d.wav,It is late.,angry,1", "e.wav,It is late.,sad,2", "f.wav,It is late.,happy,2"]  # fmt: skip
    found = tones(_table(tmp_path / "c", *rows))
    assert [(w.name, w.tone) for v in found for w in v.variants] == [("neutral", ""), ("anger", "angry"), ("calm", "")]
    assert (
        found[0].variants[1].file.endswith("a.wav") and found[0].source == "c" and found[0].recorded_by == "speaker 1"
    )


def test_emov_db_is_read_as_it_is_unpacked(tmp_path: Path) -> None:
    bea = "Angry/anger_1-28_0001 Sleepy/sleepiness_1-28_0001 Neutral/neutral_1-28_0001 Amused/amused_57-84_0666"
    names = [f"bea/{name}" for name in bea.split()] + ["bea_Amused/amused_1-15_0001", "josh_Neutral/neutral_1_0001"]
    for name in names:
        _wav(tmp_path / f"{name}.wav")
    with pytest.raises(UsageError, match=r"cmuarctic\.data"):
        tones(tmp_path)
    (tmp_path / "cmuarctic.data").write_text('( arctic_a0001 "Author of the danger trail, Philip Steels, etc." )\n')
    (found,) = tones(tmp_path)
    assert found.words.startswith("Author of the danger trail") and found.recorded_by == "speaker bea"
    assert {w.tone for w in found.variants} == {"", "angry", "laughter", "tired"}


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ("../a.wav,It is late.,sad,1", "line 2: .*leaves its folder"),
        ("/etc/passwd,It is late.,sad,1", "line 2: .*absolute path"),
        ("none.wav,It is late.,sad,1", r"line 2: none\.wav does not exist"),
        ("a.wav,,sad,1", "line 2: words must be"),
        ("a.wav,It is late.,sad,1", "no speaker says the same words in 3 tones"),
    ],
)
def test_a_bad_row_is_named(tmp_path: Path, row: str, complaint: str) -> None:
    _wav(tmp_path / "c/a.wav")
    with pytest.raises(DataError, match=complaint):
        tones(_table(tmp_path / "c", row))


def test_a_table_without_its_columns_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no column tone or emotion or style; it has: file, words, speaker"):
        tones(_table(tmp_path / "c", head="file,words,speaker"))
    with pytest.raises(UsageError, match="no such table"):
        tones(tmp_path / "nothing.csv")
    with pytest.raises(UsageError, match=r"train_sent_emo\.csv"):
        meld(tmp_path)
    (tmp_path / "bad.csv").write_text(HEAD + "1,Hi there you.,A,x,y,one,0,1,1,0,1\n")
    with pytest.raises(DataError, match="line 2: Dialogue_ID and Utterance_ID must be numbers"):
        meld(tmp_path)


def test_words_for_tones_become_our_cues() -> None:
    told = {"Amused": "laughter", "sleepiness": "tired", "anger": "angry", "fearful": "fear", "surprised": "surprise"}
    told |= {"calm": "", "neutral": "", "whisper": "whisper"}
    assert {word: cue_of(word) for word in told} == told


@shared
@pytest.mark.skipif(not (SHARED / "meld_text").is_dir(), reason="no MELD; set OVERTONE_SHARED")
def test_meld_itself_has_enough_groups() -> None:
    found = meld(SHARED / "meld_text")
    assert len(found) >= 80 and sum(len(v.variants) for v in found) >= 190
    assert all(len({w.context for w in v.variants}) == len(v.variants) >= 2 for v in found)


@shared
@pytest.mark.local
@pytest.mark.skipif(not (SHARED / "ravdess").is_dir(), reason="no RAVDESS; set OVERTONE_SHARED")
def test_ravdess_becomes_a_set_of_its_own_recordings(tmp_path: Path) -> None:
    found = tones(SHARED / "ravdess/labels.csv")
    assert len(found) == 36 and {len(v.variants) for v in found} == {8}
    built = aeq_set.build(tmp_path, tones=SHARED / "ravdess/labels.csv", per_setting=1, jobs=1)
    assert "1 of 1 groups" in built.lines[0] and built.verdict.licence == "none"
    assert all(m.seconds > 1 and m.voice == "speaker 1" for m in built.clips)
