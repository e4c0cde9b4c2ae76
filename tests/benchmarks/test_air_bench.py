"""AIR-Bench's files become questions and open questions; letters, and ratings in both orders, to the digit by hand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from overtone.benchmarks import Selection
from overtone.benchmarks.air_bench import FOUNDATION, SUITE, load, slug
from overtone.cli import main
from overtone.errors import DataError
from overtone.results.column_values import Scored, counted_replies, reduced
from overtone.results.headline import SuiteTable, number, suite_tables
from overtone.results.load import open_run
from overtone.schema import Item
from tests.judges.server import JudgeServer
from tests.servers import Asked, OpenAIServer, tone


def choice(n: int, task: str = "Speaker_Gender_Recognition", **changes: Any) -> dict[str, Any]:
    made = {
        "path": f"f{n}.wav",
        "question": f"Who speaks in {n}?",
        "choice_a": "male",
        "choice_b": "female",
        "answer_gt": "female",
        "task_name": task,
        "dataset_name": "meld",
        "uniq_id": n,
    }
    return made | changes


def chat(n: int, task: str, **changes: Any) -> dict[str, Any]:
    made = {
        "path": f"c{n}.wav",
        "question": f"What of {n}?",
        "answer_gt": "two words",
        "meta_info": f"a description of {n}",
        "task_name": task,
        "dataset_name": "clotho",
        "uniq_id": n,
    }
    return made | changes


def write(
    root: Path, foundation: list[dict[str, Any]] | None = None, open_ones: list[dict[str, Any]] | None = None
) -> Path:
    for part, rows in (("Foundation", foundation), ("Chat", open_ones)):
        if rows is None:
            continue
        (root / part).mkdir(parents=True)
        (root / part / f"{part}_meta.json").write_bytes(msgspec.json.encode(rows))
        for n, row in enumerate(rows):
            folder = root / part / f"{row.get('task_name')}_{row.get('dataset_name')}"
            if ".." not in str(row.get("path")) and not str(row.get("path")).startswith("/"):
                folder.mkdir(exist_ok=True)
                (folder / str(row.get("path"))).write_bytes(tone(n, 0.2))
    return root


def items(root: Path) -> list[Item]:
    return list(load(root).items(Selection()))


def test_both_parts_load_and_either_alone(tmp_path: Path) -> None:
    write(tmp_path, [choice(1), choice(2, "Sound_AQA")], [chat(1, "speech_and_sound_QA")])
    first, second, third = items(tmp_path)
    assert (first.id, first.level, first.task) == (
        "air-bench/foundation/Speaker_Gender_Recognition_meld/1", 1, "choose",
    )  # fmt: skip
    assert (first.topic, first.category, first.gold, first.cue) == (
        "speech",
        "speaker-gender-recognition",
        "B",
        "female",
    )
    assert (second.topic, second.cue) == ("sound", "")
    assert (third.level, third.task, third.topic) == (3, "converse", "speech_and_sound")
    assert (third.context, third.references, third.turns[0].words) == (
        "What of 1?", ("two words",), "a description of 1",
    )  # fmt: skip
    assert first.group == "Foundation/Speaker_Gender_Recognition_meld/f1.wav"
    assert [i.id for i in items(tmp_path / "Chat")] == [third.id]


def test_choices_may_be_two_to_four_and_the_answer_a_text_or_a_letter(tmp_path: Path) -> None:
    rows = [
        choice(1, choice_c=None, choice_d=""),
        choice(2, choice_c="child", answer_gt="C"),
        choice(3, choice_a="B", choice_b="A", answer_gt="A"),  # the text goes first
        choice(4, choice_b="male", answer_gt="male"),  # the first of two equal ones, as there
        choice(5, answer_gt="alien"),
    ]
    benchmark = load(write(tmp_path, rows))
    found = list(benchmark.items(Selection()))
    assert [(i.gold, len(i.options)) for i in found] == [("B", 2), ("C", 3), ("B", 2), ("A", 2), ("", 2)]
    assert "not one of their choices" in benchmark.warnings[0]


def test_a_recording_kept_as_flac_is_found(tmp_path: Path) -> None:
    write(tmp_path, [choice(1, "Audio_Grounding")])
    wav = tmp_path / "Foundation/Audio_Grounding_meld/f1.wav"
    wav.rename(wav.with_suffix(".flac"))
    (found,) = items(tmp_path)
    assert found.turns[0].clip is not None and found.turns[0].clip.path.endswith("f1.flac")


def test_several_questions_on_one_recording_are_one_group(tmp_path: Path) -> None:
    first, second = items(write(tmp_path, [choice(1), choice(2, path="f1.wav")]))
    assert first.group == second.group and first.id != second.id


def test_what_was_met_is_said(tmp_path: Path) -> None:
    rows = [choice(1), choice(1), choice(1, question="Other?"), choice(2), choice(3, "New_Task")]
    write(tmp_path, rows, [chat(1, "sound_QA", meta_info="", answer_gt=""), chat(2, "sound_QA", meta_info=[{"a": 1}])])
    (tmp_path / "Foundation/Speaker_Gender_Recognition_meld/f2.wav").unlink()
    benchmark = load(tmp_path)
    found = list(benchmark.items(Selection()))
    assert len(found) == 5 and found[-1].turns[0].words == '[{"a":1}]'
    said = " | ".join(benchmark.warnings)
    for words in (
        "repeat an earlier one", "get a number after it", "recording is missing", "not known", "without a reference",
        "without a description",
    ):  # fmt: skip
        assert words in said, words


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (choice(1, uniq_id=None), "position 0: task_name"),
        (choice(1, choice_b=None), "choice_a, choice_b"),
        (choice(1, choice_d="x"), "without a gap"),
        (choice(1, path="../../../etc/x.wav"), "leaves its folder"),
        (choice(1, path="/etc/x.wav"), "absolute"),
        (choice(1, question=["x"]), "'question' holds a list"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, row: dict[str, Any], problem: str) -> None:
    write(tmp_path, [row])
    with pytest.raises(DataError, match=problem):
        load(tmp_path)


def test_a_folder_without_the_files_is_told_their_names(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"Foundation_meta\.json"):
        load(tmp_path)


# ── numbers ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def cells(table: SuiteTable, row: int = 0) -> dict[str, float | None]:
    return {c.key: e.value if e else None for c, e in zip(table.headline.columns, table.rows[row].cells, strict=True)}


LETTERS = {1: "B", 2: "A", 3: "It is female.", 4: "B"}
WORDS = {1: "one", 2: "one two three", 3: "one two", 4: "one two three four", 5: "one two three four five"}


def reply(asked: Asked) -> str:
    if found := re.search(r"Who speaks in (\d)", asked.text):
        assert "letter and nothing else" in asked.text
        return LETTERS[int(found[1])]
    found = re.search(r"What of (\d)", asked.text)
    assert found is not None and "a description" not in asked.text
    return WORDS[int(found[1])]


def rates(asked: Asked) -> dict[str, int]:
    """As many points as words, and one more for coming first."""
    a, b = (re.search(rf"<reply_{side}>\n(.*)\n</reply_{side}>", asked.text) for side in "ab")
    assert a and b and "a description of" in asked.text and "What of" in asked.text
    return {"air_a": len(a[1].split()) + 1, "air_b": len(b[1].split())}


def test_from_files_to_letters_and_ratings(tmp_path: Path) -> None:
    foundation = [choice(1), choice(2), choice(3), choice(4, "Sound_AQA")]
    kinds = ("speech_QA", "sound_QA", "music_QA", "speech_and_sound_QA", "speech_and_music_QA")
    data = write(tmp_path / "data", foundation, [chat(n, kind) for n, kind in enumerate(kinds, 1)])
    out = tmp_path / "run"
    with OpenAIServer(answer=reply, speech=False) as model, JudgeServer(verdict=rates) as judge:
        flags = ["--data", str(data), "--out", str(out), "--model", f"openai:any?base_url={model.base_url}", "-q"]
        assert main(["run", "air-bench", *flags, "--prompt", "zero", "--judge", judge.spec("least=2")]) == 0
        assert (model.count, judge.count) == (9, 10), "each open answer is rated in both orders"
    tables = {table.headline.key: table for table in suite_tables(open_run(out, light=True))}
    letters = cells(next_row(tables["air-foundation"], "task/audio"))
    # By its rule the third reply is skipped: one of two right; by ours two of three.
    assert letters["speech_air_letter"] == pytest.approx(1 / 2)
    assert letters["speech_accuracy"] == pytest.approx(2 / 3)
    assert letters["tasks_air_letter"] == pytest.approx((1 / 2 + 1) / 2)
    assert letters["tasks_accuracy"] == pytest.approx((2 / 3 + 1) / 2)
    assert letters["music_air_letter"] is None
    tasks = {row.name: row for row in tables["air-foundation-tasks"].rows}
    assert set(tasks) == {"speaker-gender-recognition", "sound-aqa"}
    # A reply of n words is rated n + 1 and n, the reference 2 and 3: n + .5 and 2.5.
    rated = cells(next_row(tables["air-chat"], "zero/audio"))
    assert rated["speech"] == pytest.approx(1.5)
    assert rated["sound"] == pytest.approx(3.5)
    assert rated["music"] == pytest.approx(2.5)
    assert rated["mixed"] == pytest.approx((4.5 + 5.5) / 2)
    assert rated["average"] == pytest.approx((1.5 + 3.5 + 2.5 + 5.0) / 4)
    assert rated["reference"] == pytest.approx(2.5)
    assert rated["ratio"] == pytest.approx(3.125 / 2.5)
    # Above the reference: n + 1 > 2 in one order, n > 3 in the other.
    wins = {row.name: [cell.value if cell else None for cell in row.cells] for row in tables["air-chat-wins"].rows}
    assert wins == {
        "speech": [0.0, 1.5, 2.5],
        "sound": [0.5, 3.5, 2.5],
        "music": [0.5, 2.5, 2.5],
        "speech_and_sound": [1.0, 4.5, 2.5],
        "speech_and_music": [1.0, 5.5, 2.5],
    }


def test_an_open_answer_is_asked_for_in_text_unless_the_spec_wants_speech(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = write(tmp_path / "data", [], [chat(1, "speech_QA")])
    with OpenAIServer() as model:
        for name, asked, tokens in (("auto", False, "25 to 120"), ("yes", True, "125 to 620")):
            spec = f"openai:any?base_url={model.base_url}&speech={name}"
            flags = ["--data", str(data), "--model", spec, "--prompt", "zero"]
            assert main(["plan", "air-bench", *flags]) == 0
            assert f"tokens out   {tokens}\n" in capsys.readouterr().out
            assert main(["run", "air-bench", *flags, "--out", str(tmp_path / name), "-q"]) == 0
            assert model.asked[-1].speech is asked


def next_row(table: SuiteTable, condition: str) -> SuiteTable:
    return msgspec.structs.replace(table, rows=tuple(row for row in table.rows if row.condition == condition))


def test_the_printed_averages_are_the_means_of_the_printed_columns_but_for_two() -> None:
    """Two of the printed averages, Next-gpt's and Macaw-LLM's, do not follow from the columns beside them."""
    (table,) = [p for p in SUITE.published if p.title == "AIR-Bench, chat"]
    (headline,) = [h for h in SUITE.headlines if h.key == "air-chat"]
    column = next(c for c in headline.columns if c.key == "average")
    off = []
    for model, (speech, sound, music, mixed, printed) in table.rows:
        if printed is None:
            continue
        told = {"speech": speech, "sound": sound, "music": music, "speech_and_sound": mixed, "speech_and_music": mixed}
        replies = [
            Scored(Item("", "air-bench", 3, "converse", t, "", t, "", (), topic=t), "zero/audio", 0, {"air_a": value})
            for t, value in told.items()
        ]
        found = number(column, replies)
        assert found is not None and found.value is not None
        if abs(found.value - printed) > 0.0076:  # the columns are rounded, and so is the average
            off.append(model)
    assert off == ["Next-gpt", "Macaw-LLM"]


def test_the_printed_accuracies_come_out_of_as_many_right_letters() -> None:
    """Every model's row of foundation tasks: a thousand questions a task, as many right as the printed per cent say;
    half as many again that are skipped change nothing, as in its own script."""
    (table,) = [p for p in SUITE.published if "nine" in p.title]
    (headline,) = [h for h in SUITE.headlines if h.key == "air-foundation-tasks"]
    (column,) = [c for c in headline.columns if c.score == "air_letter"]
    (whole,) = [c for h in SUITE.headlines for c in h.columns if c.key == "tasks_air_letter"]
    for model, printed in table.rows:
        everything = []
        for task, value in zip(table.columns, printed, strict=True):
            assert value is not None
            told = [float(n < round(10 * value)) for n in range(1000)] + [None] * 500
            replies = [
                Scored(
                    Item("", "air-bench", 1, "choose", task, "", f"{task}/{n}", "", (), topic="speech"),
                    "task/audio", 0, {"air_letter": right},
                )
                for n, right in enumerate(told)
            ]  # fmt: skip
            found = number(column, counted_replies(column, replies))
            assert found is not None and found.value is not None and (found.scored, found.asked) == (1000, 1500)
            assert f"{100 * found.value:.{table.digits[task]}f}" == f"{value:.1f}", (model, task)
            everything += replies
        mean = sum(value for value in printed if value is not None) / len(printed)
        assert whole.reduce is not None
        assert 100 * (reduced(whole.reduce, whole.score, [[one] for one in everything]) or 0) == pytest.approx(mean), (
            model
        )


def test_the_tables_of_tasks_are_complete() -> None:
    assert sum(map(len, FOUNDATION.values())) == 19
    (table,) = [p for p in SUITE.published if "nine" in p.title]
    assert list(table.columns) == [slug(task) for task in FOUNDATION["speech"]]
    assert all(len(row) == 9 for _, row in table.rows)
