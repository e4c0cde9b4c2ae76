"""A built set becomes items: EchoMind's part as ever, the other parts marked, dialogues turn by turn."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from overtone.benchmarks import Selection, selected
from overtone.benchmarks.echomind import load as load_echomind
from overtone.benchmarks.open import Open, load
from overtone.errors import DataError
from overtone.schema import STYLES, Item
from tests.benchmarks.built import put_json, write_built


def items(benchmark: Open, asr: Any = "target", styles: tuple[str, ...] = STYLES) -> list[Item]:
    return list(selected(benchmark, Selection(styles=frozenset(styles), asr=asr)))


def test_every_part_is_there_and_marked(tmp_path: Path) -> None:
    benchmark = load(write_built(tmp_path))
    assert benchmark.warnings == []
    assert Counter((i.part, i.task) for i in items(benchmark)) == {
        ("", "transcribe"): 3, ("", "choose"): 3 + 7, ("", "converse"): 3 + 3 + 2,
        ("control", "choose"): 2, ("control", "converse"): 3,
        ("false-cue", "choose"): 4, ("fixed", "choose"): 1, ("dialogue", "converse"): 2,
        ("conflict", "transcribe"): 1, ("conflict", "choose"): 6, ("conflict", "converse"): 2,
    }  # fmt: skip
    assert all((benchmark.root / t.clip.path).is_file() for i in items(benchmark) for t in i.turns if t.clip)
    assert len({i.id for i in items(benchmark, "all")}) == len(items(benchmark, "all"))


def test_control_clips_are_transcribed_only_when_all_are(tmp_path: Path) -> None:
    benchmark = load(write_built(tmp_path))
    spoken = [i for i in items(benchmark, "all") if i.task == "transcribe" and i.style == "control"]
    assert [i.part for i in spoken] == ["control"] * 3
    assert not [i for i in items(benchmark) if i.task == "transcribe" and i.style == "control"]


def test_a_control_clip_carries_what_its_twin_carries(tmp_path: Path) -> None:
    found = {i.case: i for i in items(load(write_built(tmp_path))) if i.task == "converse"}
    neutral, target = found["synthesis/s1/control"], found["synthesis/s3/control"]
    assert (neutral.cue, neutral.references) == ("", ("Reply to the neutral voice of s1.",))
    assert (target.cue, target.references) == ("male", ("Reply to the target voice of s3.",)), "it has no neutral style"


def test_a_status_is_that_of_the_cue_the_clip_carries(tmp_path: Path) -> None:
    found = {i.case: i.status for i in items(load(write_built(tmp_path))) if i.level == 3}
    assert found["synthesis/s1/target"] == found["synthesis/s1/alternative"] == "validated"
    assert found["synthesis/s2/target"] == "unvalidated"
    assert found["synthesis/s2/neutral"] == "", "there is no cue to validate"
    assert found["synthesis/s3/alternative"] == "", "the manifest says nothing of female voices"
    assert found["synthesis/d1/changed"] == "validated"


def test_a_row_may_say_its_language_and_its_questions_have_the_same(tmp_path: Path) -> None:
    home = write_built(tmp_path) / "data_synthesis"
    scripts = msgspec.json.decode((home / "script_info_synthesis.json").read_bytes())
    dialogues = msgspec.json.decode((home / "dialogues.json").read_bytes())
    put_json(home / "script_info_synthesis.json", [scripts[0] | {"language": "zh-Hans"}, *scripts[1:]])
    put_json(home / "dialogues.json", [dialogues[0] | {"language": "German"}])
    found = items(load(tmp_path))
    assert {i.language for i in found if i.group == "synthesis/s1"} == {"zh"}
    assert {i.language for i in found if i.group == "synthesis/s2"} == {""}
    assert {i.language for i in found if i.part == "dialogue"} == {"de"}
    put_json(home / "script_info_synthesis.json", [scripts[0] | {"language": "mostly German"}])
    with pytest.raises(DataError, match="not a BCP-47 tag"):
        load(tmp_path)
    put_json(home / "script_info_synthesis.json", [scripts[0] | {"language": "jp"}])
    with pytest.raises(DataError, match="did you mean 'ja'"):
        load(tmp_path)


@pytest.mark.parametrize("status", [None, {}])
def test_a_set_that_marks_no_cue_has_no_status(tmp_path: Path, status: dict[str, str] | None) -> None:
    assert {i.status for i in items(load(write_built(tmp_path, status)))} == {""}


def test_a_dialogue_is_as_unsure_as_its_least_sure_cue(tmp_path: Path) -> None:
    status = {"sad": "validated", "happy": "unvalidated"}
    found = {i.style: i.status for i in items(load(write_built(tmp_path, status))) if i.part == "dialogue"}
    assert found == {"changed": "unvalidated", "steady": "validated"}


def test_a_dialogue_has_two_turns_each_with_its_cue_and_its_own_reference(tmp_path: Path) -> None:
    changed, steady = (i for i in items(load(write_built(tmp_path))) if i.category == "dialogue")
    assert [t.cue for t in changed.turns] == ["sad", "happy"] and [t.cue for t in steady.turns] == ["sad", "sad"]
    assert (changed.cue, changed.other_cue) == ("happy", "sad") and (steady.cue, steady.other_cue) == ("sad", "happy")
    assert [t.reference for t in changed.turns] == ["I am sorry to hear that.", "Now that is good news!"]
    assert steady.turns[1].reference == "Still hard, I see." and steady.turns[1].reference_audio.endswith(".wav")
    assert changed.turns[0].clip == steady.turns[0].clip and changed.turns[1].clip != steady.turns[1].clip
    assert {changed.group, steady.group} == {"synthesis/d1"} and changed.case == "synthesis/d1/changed"
    assert (changed.level, changed.style, changed.dimension) == (3, "changed", "paralinguistic")


def test_dialogues_are_asked_where_target_clips_are(tmp_path: Path) -> None:
    benchmark = load(write_built(tmp_path))
    assert sum(i.part == "dialogue" for i in items(benchmark, styles=("target",))) == 2
    assert not any(i.part == "dialogue" for i in items(benchmark, styles=("alternative", "neutral", "control")))


def test_questions_of_the_extensions_keep_their_kind_and_provenance(tmp_path: Path) -> None:
    found = items(load(write_built(tmp_path)))
    assert {i.category for i in found if i.part == "conflict" and i.task == "choose"} == {
        "conflict-words", "conflict-voice", "conflict-agreement",
    }  # fmt: skip
    false_cue = next(i for i in found if i.part == "false-cue" and i.style == "neutral")
    assert (false_cue.category, false_cue.gold, false_cue.cue) == ("false-cue", "D", "")
    assert [o.provenance for o in false_cue.options][3] == "nothing"
    assert next(i.category for i in found if i.part == "fixed") == "intent"


def test_a_dialogue_whose_clip_is_missing_is_left_out_and_counted(tmp_path: Path) -> None:
    write_built(tmp_path)
    (tmp_path / "data_synthesis/audio/dialogue/d1_2_steady.wav").unlink()
    benchmark = load(tmp_path)
    assert [i.style for i in items(benchmark) if i.part == "dialogue"] == ["changed"]
    assert any("dialogues with a missing clip" in w and "d1/steady" in w for w in benchmark.warnings)


@pytest.mark.parametrize(
    ("file", "value", "why"),
    [
        ("data_synthesis/dialogues.json", [{"case_id": "d"}], "variants"),
        ("data_synthesis/dialogues.json", [{"variants": {}}], "no 'case_id'"),
        ("data_synthesis/dialogues.json", [{"case_id": "d", "variants": {"stedy": []}}], "did you mean 'steady'"),
        ("data_synthesis/dialogues.json", [{"case_id": "d", "variants": {"steady": [{}]}}], "two or more turns"),
        ("data_synthesis/dialogues.json", [{"case_id": "d", "variants": {"steady": [{}, {}]}}], "audio_file"),
        ("manifest.json", {"status": {"sad": "good"}}, "status of sad"),
        ("manifest.json", {"status": ["sad"]}, "not a manifest"),
    ],
)
def test_a_broken_file_is_an_error_that_says_what_is_wrong(tmp_path: Path, file: str, value: Any, why: str) -> None:
    write_built(tmp_path)
    (tmp_path / file).write_bytes(msgspec.json.encode(value))
    with pytest.raises(DataError, match=why):
        load(tmp_path)


def test_an_unknown_part_is_an_error(tmp_path: Path) -> None:
    write_built(tmp_path)
    put_json(tmp_path / "data_synthesis/script_info_synthesis.json", [{"case_id": "x", "part": "conflikt"}])
    with pytest.raises(DataError, match="did you mean 'conflict'"):
        load(tmp_path)


def test_read_as_echomind_the_folder_has_neither_parts_nor_dialogues(tmp_path: Path) -> None:
    found = list(selected(load_echomind(write_built(tmp_path)), Selection()))
    assert {i.part for i in found} == {"", "control"} and {i.status for i in found} == {""}


@pytest.mark.parametrize(
    "file", ["manifest.json", "data_synthesis/dialogues.json", "data_synthesis/MCQ/false_cue.json"]
)
def test_a_file_that_is_a_link_out_of_the_folder_is_refused(tmp_path: Path, file: str) -> None:
    built = write_built(tmp_path / "set")
    (built / file).rename(tmp_path / "outside.json")
    (built / file).symlink_to(tmp_path / "outside.json")
    with pytest.raises(DataError, match="leaves its folder"):
        load(built)
