"""EChat-eval: the open set and EChat's raw records, five categories, and three judged questions as one number."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from overtone.benchmarks import Selection
from overtone.benchmarks.echat_eval import CATEGORIES, DIMENSIONS, SUITE, load, marks
from overtone.build.echat_texts import EVENTS, read, spoken
from overtone.cli import main
from overtone.errors import DataError
from overtone.results.column_values import Groups, Scored, reduced
from overtone.results.headline import number, suite_tables
from overtone.results.load import open_run
from overtone.schema import Item
from tests.judges.server import JudgeServer
from tests.servers import Asked, OpenAIServer, tone


def record(key: str, words: str = "Where are you now?", txt: str = "Here I am.", **extra: object) -> dict[str, object]:
    return {
        "key": key,
        "txt": txt,
        "wav": f"wavs/{key}.wav",
        "extra": {"question": words, **extra},
        "task": "<S2TCHAT>",
    }


def sounds(folder: Path, *names: str) -> None:
    for place, name in enumerate(names):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(tone(place, 0.2, 16_000))


def write(folder: Path, rows: list[dict[str, object]], file: str = "data.jsonl") -> Path:
    (folder / file).parent.mkdir(parents=True, exist_ok=True)
    (folder / file).write_text("\n".join(json.dumps(row) for row in rows))
    sounds(folder, *(str(row["wav"]) for row in rows if "wav" in row))
    return folder


def items(folder: Path) -> list[Item]:
    return list(load(folder).items(Selection()))


def built(folder: Path) -> Path:
    """The open set as it is built, with a beep in place of each clip."""
    rows = [one.record() for one in spoken(read())]
    folder.mkdir(exist_ok=True)
    (folder / "echat_eval.json").write_text(json.dumps(rows))
    sounds(folder, *(row["wav"] for row in rows), rows[0]["extra"]["a_wav_path"])
    return folder


def test_the_open_set_loads_whole_with_the_labels_it_was_written_with(tmp_path: Path) -> None:
    found = {i.id: i for i in items(built(tmp_path))}
    assert Counter(i.category for i in found.values()) == dict.fromkeys(CATEGORIES, 44)
    assert load(tmp_path).warnings == []
    for one in spoken(read()):
        item = found[f"echat-eval/{one.query.category}/{one.id}"]
        cues = one.said.cues
        assert item.cue == (cues[0].slug if cues else "") == item.turns[0].cue
        assert all(cue.phrase in item.cue_text for cue in cues) and item.cue_text
        assert (item.gold, item.references) == (one.said.reply_emotion, (one.said.reply,))
        assert (item.turns[0].words, item.topic, item.source) == (one.query.words, one.query.topic, "overtone")
        assert (item.level, item.task, item.language) == (3, "converse", "en")
    assert Counter(Counter(i.group for i in found.values()).values()) == {2: 110}, "each sentence is said in two ways"
    assert [i.reference_audio for i in found.values() if i.reference_audio] == [
        "audio_response/emotion/emotion-01-happy_response.wav"
    ]


def test_a_clip_is_as_sure_as_the_least_sure_of_its_cues(tmp_path: Path) -> None:
    built(tmp_path)
    told = {
        "happy": "validated",
        "child": "validated",
        "male": "validated",
        "wind": "validated",
        "angry": "unvalidated",
    }
    (tmp_path / "manifest.json").write_text(json.dumps({"status": told}))
    found = {i.case.partition("/")[2]: i.status for i in items(tmp_path)}
    assert found["emotion-01-happy"] == found["multi-17-happy-child-male"] == "validated"
    assert found["emotion-02-angry"] == found["multi-04-angry-wind"] == "unvalidated"
    assert found["emotion-06-neutral"] == found["multi-04-happy-dog"] == ""


def test_every_event_of_the_texts_is_read_back_as_our_cue(tmp_path: Path) -> None:
    rows = [record(f"e{place}", caption=f"<{tag}>") for place, tag in enumerate(EVENTS.values())]
    assert [i.cue for i in items(write(tmp_path, rows))] == list(EVENTS)


def test_labels_decide_the_category_and_defaults_are_no_labels(tmp_path: Path) -> None:
    rows = [
        record("a", q_emotion="<SAD>", age="<&&>", caption="<OTHER>"),
        record("b", age="<YOUTH>"),
        record("c", gender="<FEMALE>"),
        record("d", caption="<SNEEZE>"),
        record("e", age="<OLD>", gender="<MALE>", caption="<COUGH>"),
        record("f", q_emotion="<NEUTRAL>"),
        record("g"),
    ]
    found = {i.case: i for i in items(write(tmp_path, rows))}
    assert list(found) == ["emotion/a", "age/b", "gender/c", "event/d", "multi/e", "emotion/f"]
    assert [i.cue for i in found.values()] == ["sad", "adult", "female", "", "elderly", ""]
    assert found["multi/e"].cue_text == "an old person's voice; a man's voice; coughing"
    assert (found["event/d"].cue_text, found["event/d"].dimension) == ("sneeze", "paralinguistic")
    assert found["emotion/f"].cue_text == "an even voice without any particular emotion"
    assert load(tmp_path).warnings == ["records without a label of their category are left out (1: g)"]


@pytest.mark.parametrize("file", ["emotion.jsonl", "test_emotion_zh.list", "emotion/data.list"])
def test_the_name_of_a_file_or_folder_decides_before_the_labels(tmp_path: Path, file: str) -> None:
    rows = [record("a", "你在哪里?", age="<ADULT>", gender="<FEMALE>", q_emotion="<ANGER>", dataset="KeSpeech")]
    (one,) = items(write(tmp_path, rows, file))
    assert (one.category, one.cue, one.cue_text) == ("emotion", "angry", "a voice full of anger")
    assert (one.language, one.source) == ("zh", "KeSpeech")


def test_a_reply_loses_its_thinking_and_its_tag_tells_the_wanted_emotion(tmp_path: Path) -> None:
    told = "<think>用户说的话是:x<think end><安慰鼓励>别担心。"
    rows = [record("a", txt=told, q_emotion="<SAD>"), record("b", txt="<愤怒>Go.", q_emotion="<SAD>")]
    a, b = items(write(tmp_path, rows))
    assert (a.references, a.gold) == (("别担心。",), "comforting and encouraging")
    assert (b.references, b.gold) == (("Go.",), "angry")


def test_an_unpacked_shard_is_read_and_lists_of_archives_are_not(tmp_path: Path) -> None:
    sounds(tmp_path, "event/k1.wav")
    (tmp_path / "event" / "k1.txt").write_text("Bless you.")
    (tmp_path / "event" / "k1.extra").write_text(json.dumps({"question": "Hello.", "caption": "<SNEEZE>"}))
    (tmp_path / "shards.list").write_text("/lab/shard_0001.tar\n")
    found = load(tmp_path)
    (one,) = found.items(Selection())
    assert (one.id, one.references) == ("echat-eval/event/k1", ("Bless you.",))
    assert one.turns[0].clip is not None and one.turns[0].clip.path == "event/k1.wav"
    assert "lists of archives hold no records" in found.warnings[0]


def test_a_path_of_another_machine_is_found_by_its_name_and_a_missing_clip_left_out(tmp_path: Path) -> None:
    rows = [record("a", age="<OLD>"), record("b", age="<OLD>")]
    write(tmp_path, rows)
    moved = [{**row, "wav": f"/home/lab/{row['key']}.wav"} for row in rows]
    (tmp_path / "data.jsonl").write_text("\n".join(json.dumps(row) for row in moved))
    (tmp_path / "wavs" / "b.wav").unlink()
    found = load(tmp_path)
    (one,) = found.items(Selection())
    assert one.turns[0].clip is not None and one.turns[0].clip.path == "wavs/a.wav"
    assert found.warnings == ["questions whose recording is missing are left out (1: b.wav)"]


def test_dialogues_are_left_out_and_shared_keys_told_apart(tmp_path: Path) -> None:
    rows = [record("a", age="<OLD>"), record("a", "Other words.", age="<OLD>"), record("a", age="<OLD>")]
    talk: dict[str, object] = {"key": "d", "wav_1": "x.wav", "txt_1": "Yes.", "extra": {}}
    found = load(write(tmp_path, [*rows, talk]))
    assert [i.id for i in found.items(Selection())] == ["echat-eval/age/a", "echat-eval/age/a#2"]
    assert any(line.startswith("dialogues of several turns") for line in found.warnings)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"wav": "../../etc/passwd"}, "line 2"),
        ({"wav": ""}, "no 'wav'"),
        ({"key": ""}, "no 'key'"),
        ({"extra": {}}, "no 'question'"),
        ({"extra": [1]}, "'extra' holds a list"),
        ({"extra": "{"}, "'extra' is not JSON"),
        ({"extra": {"question": "Q.", "age": ["old"]}}, "'age' holds a list"),
        ({"extra": {"question": "Q.", "age": "<OLD>", "a_wav_path": "../x.wav"}}, "line 2"),
        ({"category": "colour"}, "unknown category 'colour'"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, change: dict[str, object], problem: str) -> None:
    rows = [record("a", age="<OLD>"), record("b", age="<OLD>")]
    write(tmp_path, rows)
    (tmp_path / "data.jsonl").write_text("\n".join(json.dumps(row) for row in [rows[0], {**rows[1], **change}]))
    with pytest.raises(DataError, match=problem):
        load(tmp_path)


def test_a_folder_without_records_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="overtone build echat-eval"):
        load(tmp_path)
    (tmp_path / "shard_0.tar").touch()
    with pytest.raises(DataError, match="unpack them there"):
        load(tmp_path)
    with pytest.raises(DataError, match="no such folder"):
        load(tmp_path / "none")


def scored(item: Item, *values: float | None) -> Scored:
    return Scored(item, "zero/audio", 0, dict(zip(DIMENSIONS, values, strict=True)))


def test_three_questions_of_equal_weight_become_one_number_up_to_a_hundred(tmp_path: Path) -> None:
    a, b, c = items(write(tmp_path, [record("a", age="<OLD>"), record("b", age="<OLD>"), record("c", gender="<MALE>")]))

    def all_three(groups: Groups) -> float | None:
        return reduced(marks(*DIMENSIONS), "", groups)

    def balanced(groups: Groups) -> float | None:
        return reduced(marks(*DIMENSIONS, by="category"), "", groups)

    assert all_three([[scored(a, 1, 1, 1)]]) == 0 and all_three([[scored(a, 5, 5, 5)]]) == 100
    rows = [[scored(a, 5, 4, 3), scored(b, 2, 2, 5)], [scored(c, 4, 1, 1)]]
    # (4 − 1) × 25 = 75 and (3 − 1) × 25 = 50; (2 − 1) × 25 = 25
    assert all_three(rows) == pytest.approx((75 + 50 + 25) / 3)
    assert balanced(rows) == pytest.approx((62.5 + 25) / 2), "each category counts once"
    silent = [[scored(a, 5, 3, None)]]
    assert all_three(silent) is None and balanced(silent) is None, "without a voice there is no whole number"
    assert reduced(marks("echat_words", "echat_labels"), "", silent) == 75


def test_published_numbers_come_out_of_our_columns_as_printed() -> None:
    """Scores that mean what was printed give the printed digits; a dash gives none."""
    columns = {column.key: column for column in SUITE.headlines[0].columns}
    for published in SUITE.published:
        assert published.comparable and list(published.columns) == list(CATEGORIES)
        for _, printed in published.rows:
            for category, value in zip(CATEGORIES, printed, strict=True):
                made = [
                    scored(Item(f"{n}", "echat-eval", 3, "converse", category, f"{n}", f"{n}", "", ()), *[mark] * 3)
                    for n, mark in enumerate((1 + (value + gap) / 25 for gap in (-4, 4)) if value is not None else ())
                ]
                found = number(columns[category], made)
                assert (found and f"{found.value:.1f}") == (None if value is None else f"{value:.1f}")


def test_the_published_tables_are_whole() -> None:
    automatic, ablated, human = SUITE.published
    assert [len(table.rows) for table in SUITE.published] == [7, 4, 3]
    assert dict(automatic.rows)["OSUM-EChat"] == dict(ablated.rows)["OSUM-EChat"] == (58.0, 63.1, 62.7, 87.1, 72.0)
    assert [name for name, _ in ablated.rows[1:]] == ["− U-Driven", "− Dual Think", "− both"]
    assert dict(human.rows)["Doubao"] == (78.0, 42.2, 39.0, None, 60.7)
    shared = [name for name, _ in human.rows if name in dict(automatic.rows)]
    for people, machine in [(dict(human.rows)[name], dict(automatic.rows)[name]) for name in shared]:
        assert all(p > m for p, m in zip(people, machine, strict=True) if p is not None and m is not None)


def verdict(asked: Asked) -> dict[str, int | str]:
    """By what is shown: a sad voice is answered better than an old one."""
    sad = "<cue>\na voice full of sadness\n</cue>" in asked.text
    if '"echat_voice"' in asked.text:
        assert "<emotion>\n" in asked.text and ("<wanted>\nneutral" in asked.text) == (not sad)
        return {"echat_voice": 3 if sad else 1}
    assert "<emotion>" not in asked.text
    return {"echat_words": 5, "echat_labels": 4 if sad else 3}


@pytest.mark.parametrize("speech", [True, False])
def test_a_run_is_judged_by_words_and_voice(tmp_path: Path, speech: bool) -> None:
    data, out = tmp_path / "data", tmp_path / "run"
    rows = [record("a", q_emotion="<SAD>"), record("b", "And now?", age="<OLD>", a_emotion="<NEUTRAL>")]
    write(data, rows)
    with OpenAIServer(speech=speech) as model, JudgeServer(verdict=verdict) as judge:
        spec = f"openai:any?base_url={model.base_url}&speech={'yes' if speech else 'no'}"
        flags = ["--data", str(data), "--out", str(out), "--model", spec, "--prompt", "zero", "-q"]
        assert main(["run", "echat-eval", *flags, "--judge", judge.spec()]) == 0
        assert judge.count == (4 if speech else 2), "the voice is asked about where there is one"
    reading = open_run(out)
    assert reading.notes == []
    tables = {table.headline.key: table for table in suite_tables(reading)}
    by_category = {
        row.name: [cell.value if cell else None for cell in row.cells] for row in tables["echat-eval-dimensions"].rows
    }
    if not speech:
        assert "echat-eval" not in tables
        assert by_category == {"emotion": [100, 75, None, 87.5], "age": [100, 50, None, 75]}
        return
    assert by_category == {"emotion": [100, 75, 50, 87.5], "age": [100, 50, 0, 75]}
    (row,) = tables["echat-eval"].rows
    values = dict(zip([c.key for c in SUITE.headlines[0].columns], row.cells, strict=True))
    # emotion: (5 + 4 + 3) / 3 = 4 → 75; age: (5 + 3 + 1) / 3 = 3 → 50
    assert {k: cell.value for k, cell in values.items() if cell} == {"mean": 62.5, "emotion": 75, "age": 50}
    assert {row.name for row in tables["echat-eval-cues"].rows} == {"sad", "elderly"}
