"""EchoMind's folder becomes items: both layouts, missing pieces, hostile paths, and nothing left out in silence."""

from __future__ import annotations

import io
import os
import re
import time
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from overtone.benchmarks import Selection, selected
from overtone.benchmarks.echomind import SUITE, EchoMind, load
from overtone.errors import DataError
from overtone.results.load import Answer, Reading
from overtone.results.measure_names import find_one
from overtone.results.published import COLUMNS, PublishedColumn, papers
from overtone.runs.store import ANSWERED
from overtone.schema import Item, Score, Turn

STYLES = ("target", "alternative", "neutral")  # EchoMind has no control


def script(case_id: str = "id_7", slug: str = "sad", **changes: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"case_id": case_id, "spoken_info": "sad-toned expressive voice", "topic": "work"}
    made["speak_A"] = f"The meeting of {case_id} is over."
    for style in STYLES:
        stem = f"{slug}/{case_id}_{slug}_work_{style}"
        made[f"{style}_audio_info"] = {
            f"{style}_input_audio_file": f"{stem}.wav",
            f"{style}_response_audio_file": f"{stem}_response.wav",
            f"{style}_response_text": f"Reply to the {style} voice.",
        }
    made["alternative_audio_info"]["alternative_spoken_info"] = "happy-toned expressive voice"
    return made | changes


def question(identity: str = "q_1", name: str = "id_7_sad_work_target.wav", **changes: Any) -> dict[str, Any]:
    made = {"question_id": identity, "question_type": "Fine Grained Gender Recognition", "audio_dir": "sad"}
    return (
        made
        | {"audio_name": name, "question": "Who speaks?", "options_text": "A. Ann\nB. Bob", "answer": "B"}
        | changes
    )


def write(
    root: Path,
    scripts: Any = None,
    understanding: Any = None,
    reasoning: Any = None,
    *,
    source: str = "synthesis",
    sounds: bool = True,
) -> Path:
    """A folder in EchoMind's layout, with an empty file for every clip its scripts name."""
    folder = root / f"data_{source}"
    (folder / "MCQ").mkdir(parents=True)
    scripts = [script()] if scripts is None else scripts
    (folder / f"script_info_{source}.json").write_bytes(_bytes(scripts))
    for name, given in (("understanding", understanding), ("reasoning", reasoning)):
        if given is not None:
            (folder / "MCQ" / f"{name}.json").write_bytes(_bytes(given))
    for made in scripts if sounds and isinstance(scripts, list) else ():
        for style in STYLES:
            told = made.get(f"{style}_audio_info") or {}
            put(root, f"data_{source}/audio/" + told.get(f"{style}_input_audio_file", "unused.wav"))
            put(root, "audio_response/" + told.get(f"{style}_response_audio_file", "unused.wav"))
    return root


def _bytes(given: Any) -> bytes:
    return given if isinstance(given, bytes) else msgspec.json.encode(given)


def put(root: Path, path: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).touch()


def items(benchmark: EchoMind, asr: Any = "target") -> list[Item]:
    return list(selected(benchmark, Selection(asr=asr)))


@pytest.mark.shared
def test_the_demo_loads_with_six_questions_of_which_two_are_linked_to_scripts(demo: Path) -> None:
    benchmark = load(demo)
    found = items(benchmark)
    assert Counter((i.level, i.task) for i in found) == {
        (1, "transcribe"): 5,
        (1, "choose"): 3,
        (2, "choose"): 3,
        (3, "converse"): 15,
    }
    cases = {i.case for i in found if i.level == 3}
    questions = [i for i in found if i.task == "choose"]
    assert sorted(i.case for i in questions if i.case in cases) == [
        "synthesis/id_355/target",
        "synthesis/id_854/target",
    ]
    assert {i.category: i.gold for i in questions} == {
        "coarse": "C", "age": "C", "pace": "A", "laughter": "B", "suggestion": "C", "empathy": "C",
    }  # fmt: skip
    assert len(benchmark.warnings) == 1 and "(4: " in benchmark.warnings[0] and "id_1629" in benchmark.warnings[0]
    assert all((benchmark.root / i.turns[0].clip.path).is_file() for i in found if i.turns[0].clip)
    assert all((benchmark.root / i.reference_audio).is_file() for i in found if i.level == 3)
    assert len({i.id for i in found}) == len(found)


@pytest.mark.shared
def test_the_demo_says_which_cue_each_style_carries(demo: Path) -> None:
    by_id = {i.id: i for i in items(load(demo), "all")}
    wind = [by_id[f"echomind/synthesis/conversation/id_2471/{style}"] for style in STYLES]
    assert [(i.cue, i.other_cue) for i in wind] == [("wind", "waves"), ("waves", "wind"), ("", "wind")]
    assert {i.dimension for i in wind} == {"environment"} and {i.topic for i in wind} == {"no_specific_topics"}
    assert wind[0].cue_text == "sound of wind blowing" and wind[2].cue_text == ""
    assert sum(i.task == "transcribe" for i in by_id.values()) == 15
    cough = by_id["echomind/synthesis/reasoning/reasoning_6"]
    assert (cough.group, cough.cue, cough.topic) == ("synthesis/id_579", "cough", "games") and cough.turns[0].words


@pytest.mark.parametrize("given", ["", "dataset", "EchoMind/dataset"])
def test_the_folder_above_the_data_will_do(tmp_path: Path, given: str) -> None:
    write(tmp_path / given)
    assert load(tmp_path).root == (tmp_path / given).resolve()


def test_one_sources_own_folder_will_do(tmp_path: Path) -> None:
    write(tmp_path)
    write(tmp_path, source="human")
    benchmark = load(tmp_path / "data_human")
    assert {i.source for i in items(benchmark)} == {"human"} and benchmark.root == tmp_path.resolve()
    assert items(benchmark)[0].turns[0].clip.path.startswith("data_human/audio/sad/")  # type: ignore[union-attr]


def test_synthesis_comes_before_human_and_levels_before_sources(tmp_path: Path) -> None:
    for source in ("human", "amateur", "synthesis"):
        write(tmp_path, None, [question()], source=source)
    seen = [(i.level, i.task, i.source) for i in items(load(tmp_path)) if i.style == "target"]
    order = ["synthesis", "human", "amateur"]
    tasks = [(1, "transcribe"), (1, "choose"), (3, "converse")]
    assert seen == [(level, task, source) for level, task in tasks for source in order]


def test_levels_and_styles_choose_what_is_asked(tmp_path: Path) -> None:
    write(tmp_path, None, [question(), question("q_2", "id_7_sad_work_neutral.wav")], [question("r_1")])
    benchmark = load(tmp_path)
    asked = [i.id for i in selected(benchmark, Selection(frozenset({1, 3}), frozenset({"neutral"}), asr="all"))]
    assert asked == [
        "echomind/synthesis/asr/id_7/neutral",
        "echomind/synthesis/understanding/q_2",
        "echomind/synthesis/conversation/id_7/neutral",
    ]
    assert [i.id for i in selected(benchmark, Selection(frozenset({2})))] == ["echomind/synthesis/reasoning/r_1"]


def test_another_name_and_option_provenance_are_taken_over(tmp_path: Path) -> None:
    given = question(
        question_type="suggestion", option_provenance={"A": "target", "B": "words"}, style_profile={"x": 1}
    )
    write(tmp_path, None, None, [given])
    item = next(i for i in items(EchoMind(tmp_path, name="starter")) if i.level == 2)
    assert (
        item.id == "starter/synthesis/reasoning/q_1" and item.benchmark == "starter" and item.category == "suggestion"
    )
    assert [o.provenance for o in item.options] == ["target", "words"]


def test_flat_and_renamed_keys_are_understood(tmp_path: Path) -> None:
    flat = {
        "Case_ID": 7,
        "cue": "shout",
        "scenario": "family",
        "utterance": "Come here.",
        "target_input_audio_file": "shout/7_shout_family_target.wav",
        "target_response": "Coming!",
        "alternative": {"audio": "shout/7_whisper_family_alternative.wav", "reply": "Why so quiet?"},
    }
    write(tmp_path, [flat])
    for name in ("7_shout_family_target", "7_whisper_family_alternative"):
        put(tmp_path, f"data_synthesis/audio/shout/{name}.wav")
    target, alternative = (i for i in items(load(tmp_path)) if i.level == 3)
    assert (target.case, target.topic, target.turns[0].words) == ("synthesis/7/target", "family", "Come here.")
    assert target.references == ("Coming!",) and alternative.references == ("Why so quiet?",)
    assert (target.cue, target.other_cue) == ("shout", "whisper"), "the alternative's cue is read from its file name"


def test_a_clip_in_another_folder_is_found_by_its_name(tmp_path: Path) -> None:
    write(tmp_path, sounds=False)
    for style in STYLES:
        put(tmp_path, f"data_synthesis/audio/all_env/id_7_sad_work_{style}.wav")
    assert items(load(tmp_path))[0].turns[0].clip.path == "data_synthesis/audio/all_env/id_7_sad_work_target.wav"  # type: ignore[union-attr]


def test_missing_clips_are_left_out_and_counted(tmp_path: Path) -> None:
    write(
        tmp_path,
        [script(f"id_{n}") for n in range(5)],
        [question(f"q_{n}", "id_9_sad_work_target.wav") for n in (1, 2)],
    )
    for n in range(4):
        (tmp_path / f"data_synthesis/audio/sad/id_{n}_sad_work_neutral.wav").unlink()
    benchmark = load(tmp_path)
    assert sum(i.level == 3 for i in items(benchmark)) == 11 and not any(i.task == "choose" for i in items(benchmark))
    (line,) = [w for w in benchmark.warnings if "do not exist" in w]
    assert "(5: " in line and "id_0_sad_work_neutral.wav" in line and "…" in line
    assert any(
        "understanding questions whose clip is missing" in w and "(2: q_1, q_2)" in w for w in benchmark.warnings
    )


def test_a_question_on_an_unknown_script_takes_its_case_from_the_file_name(tmp_path: Path) -> None:
    name = "id_99_sound of crowd's chatter_no_specific_topics_alternative.wav"
    asked = question("q_9", name, audio_dir="sound of crowd's chatter", script="Hello there.")
    write(tmp_path, None, [asked])
    put(tmp_path, f"data_synthesis/audio/sound of crowd's chatter/{name}")
    benchmark = load(tmp_path)
    item = next(i for i in items(benchmark) if i.task == "choose")
    assert (item.case, item.topic, item.style) == ("synthesis/id_99/alternative", "no_specific_topics", "alternative")
    assert (item.cue, item.other_cue, item.dimension) == ("", "chatter", "environment")
    assert item.turns[0].words == "Hello there." and any("id_99" in w for w in benchmark.warnings)


def test_a_question_on_the_alternative_carries_the_alternatives_cue(tmp_path: Path) -> None:
    write(
        tmp_path, None, [question(name="id_7_sad_work_alternative.wav"), question("q_2", "id_7_sad_work_neutral.wav")]
    )
    first, second = (i for i in items(load(tmp_path)) if i.task == "choose")
    assert (first.cue, first.other_cue, first.turns[0].cue) == ("happy", "sad", "happy")
    assert (second.cue, second.other_cue, second.cue_text) == ("", "sad", "")


def test_an_unknown_question_type_still_loads_with_a_warning(tmp_path: Path) -> None:
    write(tmp_path, None, [question(question_type="Accent Recognition", question="Whence?")])
    benchmark = load(tmp_path)
    (item,) = (i for i in items(benchmark) if i.task == "choose")
    assert (item.category, item.level) == ("accent-recognition", 1)
    assert any("unknown type" in w and "Accent Recognition" in w for w in benchmark.warnings)


def test_a_cue_outside_the_taxonomy_keeps_its_text_and_warns(tmp_path: Path) -> None:
    write(tmp_path, [script(spoken_info="sound of fireworks")])
    benchmark = load(tmp_path)
    item = next(i for i in items(benchmark) if i.level == 3)
    assert (item.cue, item.cue_text, item.dimension) == ("", "sound of fireworks", "environment")
    assert any("taxonomy" in w for w in benchmark.warnings)


def test_questions_that_cannot_be_asked_or_scored_are_named(tmp_path: Path) -> None:
    asked = [question("no_options", options_text="whatever"), question("no_gold", answer="E"), question("no_clip", "")]
    write(tmp_path, None, asked)
    benchmark = load(tmp_path)
    assert [(i.id.rsplit("/", 1)[-1], i.gold) for i in items(benchmark) if i.task == "choose"] == [("no_gold", "")]
    assert all(any(name in w for w in benchmark.warnings) for name in ("no_options", "no_gold", "no_clip"))


def test_equal_ids_are_told_apart_and_exact_repetitions_left_out(tmp_path: Path) -> None:
    write(tmp_path, [script(), script(), script(topic="school")], [question(), question(), question(answer="A")])
    benchmark = load(tmp_path)
    found = items(benchmark)
    assert [i.id.rsplit("/", 1)[-1] for i in found if i.task == "choose"] == ["q_1", "q_1#2"]
    assert {i.group for i in found if i.level == 3} == {"synthesis/id_7", "synthesis/id_7#2"}
    assert len({i.id for i in found}) == len(found) and len(benchmark.warnings) == 4


def test_prompts_beside_the_data_are_read_by_dimension(tmp_path: Path) -> None:
    write(tmp_path)
    folder = tmp_path / "instruction" / "generate_audio_response"
    folder.mkdir(parents=True)
    (folder / "basic_prompt.txt").write_text("You help. Topic {topic}.\n", encoding="utf-8-sig")
    (folder / "enhance_environment_prompt.txt").write_text("Mind the noise.")
    assert load(tmp_path).prompts == {
        "basic.system": "You help. Topic {topic}.",
        "enhance.environment.system": "Mind the noise.",
    }


@pytest.mark.parametrize(
    "path", ["../../../outside.wav", "/etc/hostname", "C:\\windows\\a.wav", "..\\..\\..\\outside.wav"]
)
def test_a_path_that_leaves_the_folder_is_refused_with_its_place(tmp_path: Path, path: str) -> None:
    put(tmp_path, "outside.wav")
    hostile = script()
    hostile["neutral_audio_info"]["neutral_input_audio_file"] = path
    write(tmp_path / "root", [script("id_1"), hostile], sounds=False)
    with pytest.raises(DataError, match=r"script_info_synthesis\.json: position 1"):
        load(tmp_path / "root")


def test_hostile_reply_and_question_paths_are_refused(tmp_path: Path) -> None:
    hostile = script()
    hostile["target_audio_info"]["target_response_audio_file"] = "../../secret.wav"
    write(tmp_path / "a", [hostile], sounds=False)
    put(tmp_path / "a", "data_synthesis/audio/sad/id_7_sad_work_target.wav")
    with pytest.raises(DataError, match="leaves its folder"):
        load(tmp_path / "a")
    write(tmp_path / "b", None, [question(audio_dir="../../..", name="secret.wav")])
    with pytest.raises(DataError, match=r"understanding\.json: position 0.*leaves its folder"):
        load(tmp_path / "b")


def test_a_link_that_leads_out_is_refused_and_one_that_stays_in_is_followed(tmp_path: Path) -> None:
    root = write(tmp_path / "root")
    clip = root / "data_synthesis/audio/sad/id_7_sad_work_target.wav"
    clip.rename(root / "moved.wav")
    clip.symlink_to(root / "moved.wav")
    assert items(load(root))[0].turns[0].clip.path.endswith("id_7_sad_work_target.wav")  # type: ignore[union-attr]
    put(tmp_path, "outside.wav")
    clip.unlink()
    clip.symlink_to(tmp_path / "outside.wav")
    with pytest.raises(DataError, match="leaves its folder"):
        load(root)


def test_a_linked_script_file_that_leads_out_is_refused(tmp_path: Path) -> None:
    root = write(tmp_path / "root")
    file = root / "data_synthesis" / "script_info_synthesis.json"
    file.rename(tmp_path / "elsewhere.json")
    file.symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(DataError, match="leaves its folder"):
        load(root)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b'[{"case_id": "id_1",}]', r"script_info_synthesis\.json: not valid JSON.*byte 20"),
        (b'[{"case_id": "a\xff"}]', "not valid JSON"),
        (b'"text"', "holds text, but a list of objects is expected"),
        (b'[{"case_id": "a"}, 3]', "position 1 holds a number"),
        (b'[{"topic": "a"}]', "position 0: no 'case_id'"),
        (b'[{"case_id": ["a"]}]', "'case_id' holds a list"),
        (b'[{"case_id": "a", "target_audio_info": "x"}]', "'target_audio_info' holds text, but an object"),
        (b"[" * 100_000, "not valid JSON|not valid JSON"),
    ],
)
def test_broken_files_are_named_with_the_place(tmp_path: Path, content: bytes, says: str) -> None:
    write(tmp_path, content)
    with pytest.raises(DataError, match=says):
        load(tmp_path)


def test_a_folder_without_the_benchmark_says_what_is_expected(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="data_synthesis"):
        load(tmp_path)
    with pytest.raises(DataError, match="no such folder"):
        load(tmp_path / "nowhere")


def test_a_name_too_long_for_the_file_system_is_only_a_missing_clip(tmp_path: Path) -> None:
    write(tmp_path, None, [question(name="x" * 5000 + ".wav")])
    assert any("do not exist" in w for w in load(tmp_path).warnings)


def test_the_size_of_the_real_set_loads_within_a_second_without_opening_a_sound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripts = [script(f"id_{n}") for n in range(1137)]
    asked = [question(f"q_{n}", f"id_{n % 1137}_sad_work_target.wav") for n in range(9323)]
    thought = [q | {"question_type": "Speaker Intent Recognition"} for q in asked[4576:]]
    write(tmp_path, scripts, asked[:4576], thought)
    opened: list[str] = []
    really = io.open
    monkeypatch.setattr(io, "open", lambda file, *a, **k: (opened.append(str(file)), really(file, *a, **k))[1])
    start = time.process_time()
    benchmark = load(tmp_path)
    total = sum(1 for _ in benchmark.items(Selection()))
    spent = time.process_time() - start
    assert total == 3 * 1137 * 2 + 9323 and benchmark.warnings == []
    assert spent < 1.0, f"{spent:.2f} s"
    assert len(opened) == 3 and all(name.endswith(".json") for name in opened)


def test_only_the_sounds_of_the_source_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given one source's folder, its parent may be anything, such as a home: a missing clip must not walk it."""
    write(tmp_path, sounds=False)
    put(tmp_path, "private/photos/cat.jpg")
    listed: list[str] = []
    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", lambda p: (listed.append(str(p)), scandir(p))[1])
    load(tmp_path / "data_synthesis")
    assert not any("private" in path for path in listed)


def test_the_published_table_has_every_column_for_fourteen_rows() -> None:
    (table,) = SUITE.published
    rows = {model: dict(zip(table.columns, values, strict=True)) for model, values in table.rows}
    assert len(rows) == len(table.rows) == 14
    assert "2510.22758" in table.source and table.comparable
    assert len(table.columns) == 16 and [k for k, label in table.columns.items() if label.endswith("↓")] == ["wer"]
    gpt = rows["GPT-4o-Audio"]
    assert (gpt["wer"], gpt["voice_accuracy"], gpt["c4"], gpt["ves"]) == (10.74, 66.25, 3.42, 3.34)
    assert rows["Step-Audio"]["wer"] is None


TASKS = {
    "wer_raw": "transcribe", "semsim": "transcribe", "voice_accuracy": "choose", "reasoning_accuracy": "choose"
}  # fmt: skip


def replies_to(column: PublishedColumn, printed: float) -> list[Answer]:
    """Replies whose scores come to a printed number: so many right of so many, or two that lie either side of it."""
    task = TASKS.get(column.measure, "converse")
    level = {"transcribe": 1, "converse": 3}.get(task, 2 if column.measure.startswith("reasoning") else 1)
    value = printed / 100 if column.kind == "percent" else printed
    if task == "choose":
        shares = ((right, n) for n in range(1, 1000) for right in [round(value * n)])
        right, count = next((k, n) for k, n in shares if f"{100 * k / n:.2f}" == f"{printed:.2f}")
        values, name = [float(n < right) for n in range(count)], "accuracy"
    else:
        values = [value - 0.001, value + 0.001]
        name = f"{column.measure}@judge" if column.key in ("c1", "c2", "c3", "c4", "ves") else column.measure
    answers = []
    for n, one in enumerate(values):
        case = f"synthesis/{n}/target"
        item = Item(
            f"{n}", "echomind", level, task, "emotion", case, f"synthesis/{n}", "target", (Turn(None),), gold="A"
        )
        answers.append(Answer(n, item, "task/audio", 0, ANSWERED, scores={name: Score(name, f"{name}|v1", one)}))
    return answers


def test_every_printed_number_comes_out_of_our_measure_of_its_column() -> None:
    """Fourteen rows of sixteen columns, each through the measure that stands beside it on the leaderboard."""
    seen = 0
    for model, values in papers().items():
        for column in COLUMNS:
            printed = values[column.key]
            if printed is None:
                continue
            answers = replies_to(column, printed)
            signatures = {name: score.signature for a in answers for name, score in a.scores.items()}
            reading = Reading(Path(), {}, [], answers, signatures, [], len(answers), Path)
            found = find_one(column.measure, [reading]).estimate(answers)
            assert found.value is not None, (model, column.key)
            shown = 100 * found.value if column.kind == "percent" else found.value
            assert f"{shown:.2f}" == f"{printed:.2f}", (model, column.key)
            seen += 1
    assert seen == sum(value is not None for values in papers().values() for value in values.values()) > 150


@pytest.mark.shared
def test_no_run_of_six_words_of_the_benchmark_is_in_our_files(demo: Path) -> None:
    """Its texts are not ours to pass on: prompts, rubrics and data files are in our own words."""
    theirs: set[tuple[str, ...]] = set()
    for file in demo.rglob("*.json"):
        for text in re.findall(r'"((?:[^"\\]|\\.)*)"', file.read_text(encoding="utf-8")):
            theirs |= _runs(text)
    package = Path(__file__).parents[2] / "src" / "overtone"
    for room in ("tasks", "benchmarks"):
        for file in (package / room).rglob("*"):
            if file.suffix in (".toml", ".json", ".py", ".txt"):
                assert not _runs(file.read_text(encoding="utf-8")) & theirs, file.name


def _runs(text: str) -> set[tuple[str, ...]]:
    words = re.findall(r"[a-z']+", text.lower())
    return {tuple(words[i : i + 6]) for i in range(len(words) - 5)}
