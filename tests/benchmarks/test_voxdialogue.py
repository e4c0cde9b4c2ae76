"""VoxDialogue: both shapes of its files, whose side the model plays, given lines in the history, ten draws averaged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from overtone.benchmarks import Selection
from overtone.benchmarks.voxdialogue import SUITE, load
from overtone.cli import main
from overtone.errors import DataError
from overtone.judges.contract import Contract
from overtone.judges.judge_input import Subject
from overtone.judges.judge_messages import build_messages
from overtone.judges.reply_texts import style as style_of
from overtone.judges.reply_texts import texts
from overtone.judges.rubric import load as load_rubric
from overtone.results.headline import suite_tables
from overtone.results.load import open_run
from overtone.runs.store import Ask, StoredReply
from overtone.schema import UNKNOWN, Condition, Item, Key, Usage
from overtone.tasks import conditions, load_prompts
from tests.judges.server import JudgeServer
from tests.servers import Asked, OpenAIServer, tone


def items(folder: Path) -> list[Item]:
    return list(load(folder).items(Selection()))


def record(path: Path, seed: int = 0) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(tone(seed, 0.2, 16_000))


def line(number: int, speaker: str, words: str, how: str = "happy", wav: str = "") -> dict[str, object]:
    style = f"A female speaker with normal pitch, fast speaking rate, and {how} emotion."
    path = wav or f"War/dialog_00001_000/{number + 1:03d}.wav"
    told = {"turn_id": number, "speaker_id": speaker, "insturct_style": style, "spk_info": "英文女"}
    return {**told, "content": words, "wav_path": path}


LINES = [
    line(0, "A", "I am glad."),
    line(1, "B", "So am I."),
    line(2, "A", "The news is bad."),
    line(3, "B", "It is."),
    line(4, "A", "We stay strong.", "fearful"),
    line(5, "B", "We try."),
]
SCRIPT: dict[str, object] = {
    "history_turns": ["A (male, happy, 75): Back in my day: tea.", "B (female, surprised, 20): Really, Grandpa?"],
    "current_turn": "A: Do you like it, dear?",
    **{f"current_turn_style_{n}": f"(male,  neutral,  {70 + n})" for n in (1, 2, 3)},
    **{f"response_of_current_style_{n}": f"B (female, happy, 20): Reply {n}." for n in (1, 2, 3)},
    "aspect_list": "Tea time",
}


def audio(folder: Path, attribute: str, lines: list[dict[str, object]] = LINES, name: str = "dialog_00001_000") -> Path:
    place = folder / "data" / attribute
    place.mkdir(parents=True, exist_ok=True)
    (place / "processed_dialog_0.05.json").write_text(json.dumps({"War": {name: lines}}))
    for number in range(len(lines)):
        record(place / "War" / "dialog_00001_000" / f"{number + 1:03d}.wav", number)
    return folder / "data"


def test_the_model_plays_b_and_its_earlier_lines_are_given(tmp_path: Path) -> None:
    (one,) = items(audio(tmp_path, "emotion"))
    assert one.id == "voxdialogue/emotion/War/dialog_00001_000"
    assert (one.category, one.group, one.topic) == ("emotion", "emotion/War/dialog_00001", "War")
    assert [(t.words, t.given) for t in one.turns] == [
        ("I am glad.", "So am I."),
        ("The news is bad.", "It is."),
        ("We stay strong.", ""),
    ]
    assert [t.clip.path for t in one.turns if t.clip] == [f"emotion/War/dialog_00001_000/00{n}.wav" for n in (1, 3, 5)]
    assert (one.cue, one.cue_text, one.references) == ("fear", "fearful", ("We try.",))
    assert [t.cue for t in one.turns] == ["", "", "fear"] and one.context == ""


@pytest.mark.parametrize("attribute", ["volume", "speed", "fidelity"])
def test_where_a_request_is_wanted_the_model_plays_a(tmp_path: Path, attribute: str) -> None:
    (one,) = items(audio(tmp_path, attribute))
    assert one.context == "Before this, you said: “I am glad.”"
    assert [(t.words, t.given) for t in one.turns] == [("So am I.", "The news is bad."), ("It is.", "")]
    assert one.references == ("We stay strong.",), "A's request; B's answer to it is not needed"
    if attribute == "speed":
        assert (one.cue, one.cue_text) == ("fast", "fast")


def test_machine_paths_of_the_release_are_cut_down_and_lead_nowhere_else(tmp_path: Path) -> None:
    far = [
        line(n, "AB"[n % 2], f"Line {n}.", wav=f"/nfs/somebody/x/War/dialog_00001_000/{n + 1:03d}.wav")
        for n in range(6)
    ]
    (one,) = items(audio(tmp_path, "emotion", far))
    assert one.turns[0].clip is not None and one.turns[0].clip.path == "emotion/War/dialog_00001_000/001.wav"
    out = [*LINES[:4], line(4, "A", "Hm.", wav="../../../../etc/passwd"), LINES[5]]
    with pytest.raises(DataError, match="leaves its folder"):
        load(audio(tmp_path / "other", "emotion", out))


def test_a_generation_file_is_read_where_its_recordings_lie_beside_it(tmp_path: Path) -> None:
    place = tmp_path / "speaker_info" / "age"
    place.mkdir(parents=True)
    (place / "0.json").write_text(json.dumps([SCRIPT]))
    for style in (0, 2):
        for number in range(1, 5):
            record(place / "Tea_time" / f"dialog_00001_{style:03d}" / f"{number:03d}.wav", style * 10 + number)
    found = load(tmp_path)
    one, two = list(found.items(Selection()))
    assert one.id == "voxdialogue/age/Tea_time/dialog_00001_000" and two.id.endswith("dialog_00001_002")
    assert one.group == two.group and one.case != two.case
    assert [(t.words, t.given) for t in one.turns] == [
        ("Back in my day: tea.", "Really, Grandpa?"),
        ("Do you like it, dear?", ""),
    ]
    assert (one.cue, one.cue_text, one.references) == ("elderly", "71 years old", ("Reply 1.",))
    assert one.turns[-1].clip is not None and one.turns[-1].clip.path.endswith("dialog_00001_000/003.wav")
    (told,) = found.warnings
    assert "generation files" in told and "Tea_time/dialog_00001_001" in told


@pytest.mark.parametrize(
    ("folder", "current", "words", "label", "cue"),
    [
        (
            "stress",
            "A (female, neutral) I <stress> really </stress> hope so.",
            "I really hope so.",
            "stress on “really”",
            "",
        ),
        (
            "non",
            "A (female, happy) Well, [laughter] you know.",
            "Well, you know.",
            "laughter in the middle, after “Well,”",
            "laughter",
        ),
        ("non", "A (female, happy) [laughter] You know.", "You know.", "laughter at the beginning", "laughter"),
        ("non", "A (female, happy) You know [laughter]!", "You know!", "laughter at the end", "laughter"),
    ],
)
def test_marks_in_the_text_are_the_label_and_no_words(
    tmp_path: Path, folder: str, current: str, words: str, label: str, cue: str
) -> None:
    script = {k: v for k, v in SCRIPT.items() if k != "current_turn"} | {
        f"current_turn_style_{n}": current for n in (1, 2, 3)
    }
    place = tmp_path / folder
    place.mkdir()
    (place / "0.json").write_text(json.dumps([script]))
    for number in range(4):
        record(place / "Tea_time" / "dialog_00000_000" / f"{number:03d}.wav", number)
    (one,) = items(tmp_path)
    assert (one.turns[-1].words, one.cue_text, one.cue) == (words, label, cue)
    assert one.turns[-1].clip is not None and one.turns[-1].clip.path.endswith("dialog_00000_000/002.wav")


def test_a_generation_file_may_name_its_topics_as_keys(tmp_path: Path) -> None:
    place = tmp_path / "language"
    place.mkdir()
    told = {k: v for k, v in SCRIPT.items() if k not in ("aspect_list", "history_turns")}
    told |= {"history turns": ["A (female, neutral, normal)：你好。", "B (male, happy, normal): 你好！"]}
    (place / "dialog_data.json").write_text(json.dumps({"快速 时尚": told}))
    for number in range(1, 5):
        record(place / "快速_时尚" / "dialog_00001_000" / f"{number:03d}.wav", number)
    (one,) = items(tmp_path)
    assert one.id == "voxdialogue/language/快速_时尚/dialog_00001_000" and one.language == "zh"
    assert [(t.words, t.given) for t in one.turns] == [("你好。", "你好！"), ("Do you like it, dear?", "")]


def test_both_shapes_of_one_dialogue_are_one_item(tmp_path: Path) -> None:
    root = audio(tmp_path, "emotion")
    history = [f"{one['speaker_id']} (female, happy, normal, normal): {one['content']}" for one in LINES[:4]]
    script = {"history turns": history, "current_turn": "A: We stay strong.", "aspect_list": "War"}
    script |= {f"current_turn_style_{n}": "(female, fearful, slow, low)" for n in (1, 2, 3)}
    script |= {f"response_of_current_style_{n}": "B (male, sad, slow, low): We try." for n in (1, 2, 3)}
    (root / "emotion" / "0.json").write_text(json.dumps([script]))
    (root / "emotion" / "War" / "dialog_00001_000" / "dialog.json").write_text(json.dumps(LINES))
    assert len(items(root)) == 1
    (root / "emotion" / "War" / "dialog_00001_000" / "dialog.json").write_text(
        json.dumps([*LINES[:5], line(5, "B", "No.")])
    )
    with pytest.raises(DataError, match="another dialogue is called"):
        load(root)


def sentence(emotion: str = "neutral", more: str = "") -> str:
    """A style as the release's audio files give it."""
    return f"A male speaker with normal pitch, normal speaking rate, and {emotion} emotion.{more}"


def released(folder: Path, attribute: str, how: str, **more: object) -> Path:
    return audio(folder, attribute, [{**one, "insturct_style": how, **more} for one in LINES])


@pytest.mark.parametrize(
    ("attribute", "how", "label", "cue"),
    [
        ("gender", sentence(), "male", "male"),
        ("emotion", sentence("fearful"), "fearful", "fear"),
        ("emotion", sentence("neutral"), "neutral", ""),
        ("speed", sentence().replace("normal speaking", "slow speaking"), "slow", "slow"),
        ("volume", sentence(more=" Volume is loud"), "loud volume", ""),
        ("volume", sentence(more=" Volume is normal"), "", ""),
        ("fidelity", sentence(more=" Fidelity is bad."), "bad sound quality", ""),
        ("fidelity", sentence(more=" Fidelity is good."), "", ""),
    ],
)
def test_a_label_is_what_the_release_says_and_no_scrap_of_its_sentence(
    tmp_path: Path, attribute: str, how: str, label: str, cue: str
) -> None:
    found = load(released(tmp_path, attribute, how))
    (one,) = found.items(Selection())
    assert (one.cue_text, one.cue, one.status) == (label, cue, "")
    assert one.turns[-1].cue == cue and not any(turn.cue for turn in one.turns[:-1])
    assert found.warnings == []


@pytest.mark.parametrize("attribute", ["age", "accent"])
def test_a_label_that_the_files_do_not_tell_is_unknown_and_used_nowhere(tmp_path: Path, attribute: str) -> None:
    found = load(released(tmp_path, attribute, sentence()))
    (one,) = found.items(Selection())
    assert (one.cue_text, one.cue, one.status) == ("", "", UNKNOWN)
    assert "do not say what is heard" in found.warnings[0] and "generation files" in found.warnings[0]
    asked = conditions(one, ("zero", "enhance", "oracle", "oracle-false"), ("audio",))
    assert [condition.name for condition in asked] == ["zero/audio", "enhance/audio"]
    assert style_of(one) == UNKNOWN and not load_rubric("implicit").dimensions[0].asked(style_of(one), one)
    rubric = load_rubric("voxdialogue-told")
    key = Key(one.id, "zero/audio", 0, len(one.turns) - 1)
    reply = StoredReply(1, key, "Yes.", "", "", False, "", (), Usage(), 0.0, 1)
    subject = Subject("x", "g", texts(Ask(1, one, "zero/audio", 0, (reply,))), item=one)
    with pytest.raises(DataError, match="do not say what was heard"):
        build_messages(rubric, rubric.dimensions, Contract(rubric.dimensions), subject, False, "nothing")


def test_the_age_of_the_copied_voice_is_the_label(tmp_path: Path) -> None:
    root = released(tmp_path, "age", sentence(), reference_speaker="id02022/Ahk1sThoa0c/00001.m4a")
    table = "speaker_age,birth_year,Name,VoxCeleb_ID,video_id\n75.0,1940.0,A_B,id02022,Ahk1sThoa0c\n"
    (root / "voxceleb_age.csv").write_text(table)
    (one,) = items(root)
    assert (one.cue_text, one.cue, one.status) == ("75 years old", "elderly", "")
    assert style_of(one) == "target" and load_rubric("implicit").dimensions[0].asked(style_of(one), one)
    prompt = load_prompts("openai:m", {}).converse_system(one, Condition.parse("oracle/audio"), len(one.turns) - 1)
    assert prompt.endswith("besides the words: 75 years old.")
    (root / "voxceleb_age.csv").write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match="not the table of ages"):
        load(root)


def test_a_generation_file_beside_the_audio_file_adds_the_age(tmp_path: Path) -> None:
    root = released(tmp_path, "age", sentence())
    history = [f"{one['speaker_id']} (male, neutral, 75): {one['content']}" for one in LINES[:4]]
    script = {"history_turns": history, "current_turn": "A: We stay strong.", "aspect_list": "War"}
    script |= {f"current_turn_style_{n}": "(male, neutral, 8)" for n in (1, 2, 3)}
    script |= {f"response_of_current_style_{n}": "B (male, sad, 30): We try." for n in (1, 2, 3)}
    (root / "age" / "0.json").write_text(json.dumps([script]))
    (one,) = items(root)
    assert (one.cue_text, one.cue, one.status, one.turns[-1].cue) == ("8 years old", "child", "", "child")


def test_the_repositorys_two_files_side_by_side_are_one_set(tmp_path: Path) -> None:
    """dialog_data.json and processed_dialog.json, where the second repeats a line in place of the current turn."""
    root = tmp_path / "emotion"
    lines = [*LINES[:4], line(4, "A", "It is.", "fearful"), LINES[5]]
    (root / "War" / "dialog_00000_000").mkdir(parents=True)
    for number in range(6):
        record(root / "War" / "dialog_00000_000" / f"{number:03d}.wav", number)
    lines = [{**one, "wav_path": f"/nfs/x/War/dialog_00000_000/{n:03d}.wav"} for n, one in enumerate(lines)]
    (root / "processed_dialog.json").write_text(json.dumps({"War": {"dialog_00000_000": lines}}))
    history = [f"{one['speaker_id']} (female, happy, normal, normal): {one['content']}" for one in LINES[:4]]
    data = {"history turns": history, "current_turn": "A: We stay strong."}
    data |= {f"current_turn_style_{n}": "(female, fearful, slow, low)" for n in (1, 2, 3)}
    data |= {f"response_of_current_style_{n}": "B (male, sad, slow, low): We try." for n in (1, 2, 3)}
    (root / "dialog_data.json").write_text(json.dumps({"War": data}))
    found = load(root)
    (one,) = found.items(Selection())
    assert one.turns[-1].words == "It is.", "what the recording says"
    assert any("repeats the words before it" in warning for warning in found.warnings)
    data["history turns"][0] = "A (female, happy, normal, normal): Something else."  # type: ignore[index]
    (root / "dialog_data.json").write_text(json.dumps({"War": data}))
    found = load(root)
    assert len(list(found.items(Selection()))) == 1
    assert any("has other words" in warning for warning in found.warnings)


def test_the_judge_is_told_where_the_laugh_is(tmp_path: Path) -> None:
    lines = [*LINES[:4], line(4, "A", "Can you imagine [laughter] our luck?"), LINES[5]]
    root, out = audio(tmp_path, "non", lines), tmp_path / "run"
    with (
        OpenAIServer(answer=lambda asked: "Ha!", speech=False) as model,
        JudgeServer(verdict=lambda asked: {"vox_nonverbal": 4}) as judge,
    ):
        spec = f"openai:any?base_url={model.base_url}&speech=no"
        flags = ["--data", str(root), "--out", str(out), "--model", spec, "--prompt", "zero", "-q"]
        assert main(["run", "voxdialogue", *flags, "--judge", judge.spec()]) == 0
        assert "laughter in the middle, after “Can you imagine”" in judge.asked[0].text
        assert "<words>\nCan you imagine our luck?\n</words>" in judge.asked[0].text


def test_what_is_missing_or_odd_is_a_warning(tmp_path: Path) -> None:
    root = audio(tmp_path, "emotion")
    (root / "emotion" / "War" / "dialog_00001_000" / "001.wav").unlink()
    found = load(root)
    (one,) = found.items(Selection())
    assert one.turns[0].clip is None and "given in writing" in found.warnings[0]
    (root / "emotion" / "War" / "dialog_00001_000" / "005.wav").unlink()
    found = load(root)
    assert list(found.items(Selection())) == [] and "has no recording" in found.warnings[0]
    same = [*LINES[:4], line(4, "A", "It is."), LINES[5]]
    assert "repeats the words before it" in load(audio(tmp_path / "same", "emotion", same)).warnings[0]
    twice = [*LINES[:4], line(4, "B", "It is!"), line(5, "A", "So?")]
    assert "do not take turns" in load(audio(tmp_path / "twice", "emotion", twice)).warnings[0]
    assert "none of the twelve" in load(audio(tmp_path / "what", "weather")).warnings[0]
    assert "without a line" in load(audio(tmp_path / "empty", "emotion", [])).warnings[0]


def test_what_is_wrong_is_said_with_its_place(tmp_path: Path) -> None:
    bad = [*LINES[:4], {**LINES[4], "content": ["x"]}, LINES[5]]
    with pytest.raises(DataError, match=r"War, dialog_00001_000, line 4: 'content' holds a list"):
        load(audio(tmp_path, "emotion", bad))
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="holds no dialogue files"):
        load(tmp_path / "empty")
    (tmp_path / "empty" / "emotion.json").write_text("[{")
    with pytest.raises(DataError, match="not valid JSON"):
        load(tmp_path / "empty")


def test_ten_draws_are_averaged_for_each_attribute(tmp_path: Path) -> None:
    root, out = audio(tmp_path, "emotion"), tmp_path / "run"
    audio(tmp_path, "speed")
    draws = {"vox_emotion": [5, 4, 4, 3, 5, 4, 4, 4, 5, 3], "vox_speed": [1, 2] * 5}

    def verdict(asked: Asked) -> dict[str, int | str]:
        key = next(key for key in draws if f'"{key}"' in asked.text)
        return {key: draws[key][asked.body["seed"]]}

    with (
        OpenAIServer(answer=lambda asked: "Slow down, please.", speech=False) as model,
        JudgeServer(verdict=verdict) as judge,
    ):
        spec = f"openai:any?base_url={model.base_url}&speech=no"
        flags = ["--data", str(root), "--out", str(out), "--model", spec, "--prompt", "zero", "-q"]
        assert main(["run", "voxdialogue", *flags, "--judge", judge.spec("repeats=10&temperature=1.5")]) == 0
        assert model.count == 2 and judge.count == 20
        assert {asked.body["temperature"] for asked in judge.asked} == {1.5}
        emotion = next(asked.text for asked in judge.asked if '"vox_emotion"' in asked.text)
        speed = next(asked.text for asked in judge.asked if '"vox_speed"' in asked.text)
    assert "The user said: The news is bad.\nThe reply was: It is." in emotion and "fearful" not in emotion
    assert "<reference>\nWe stay strong.\n</reference>" in speed and "<reply>\nSlow down, please.\n</reply>" in speed
    (table,) = suite_tables(open_run(out))
    cells = dict(zip([c.key for c in SUITE.headlines[0].columns], table.rows[0].cells, strict=True))
    values = {key: cell.value for key, cell in cells.items() if cell}
    assert values == {
        "mean": pytest.approx((4.1 + 1.5) / 2),
        "emotion": pytest.approx(4.1),
        "speed": pytest.approx(1.5),
    }
