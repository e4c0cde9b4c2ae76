"""EmpathyEval: its files as released, recordings as options, and its score to the printed digit."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import pytest

from overtone.benchmarks import Selection
from overtone.benchmarks.empathyeval import ACC, BONUS, FINAL, SUITE, load
from overtone.errors import DataError
from overtone.results.column_values import Groups, Scored, reduced
from overtone.results.headline import read_scored, suite_tables
from overtone.results.load import open_run
from overtone.schema import Item
from tests.servers import OpenAIServer, tone


def question(name: str, options: int = 2, **more: object) -> dict[str, object]:
    return {
        "question_id": name, "context": "At the station.", "utterance": "Here it is.",
        "utterance_audio": f"./audio/{name.rsplit('_', 1)[0]}.wav", "response": "How kind.",
        "options": {f"opt-{letter}": f"./audio/{name}_{letter}.wav" for letter in "ABC"[:options]}, **more,
    }  # fmt: skip


def write(folder: Path, source: str, rows: list[dict[str, object]], answers: dict[str, str] | None = None) -> None:
    folder = folder / f"phase1-test_{source}"
    (folder / "audio").mkdir(parents=True)
    (folder / f"phase1-test_{source}_release.json").write_text(json.dumps(rows))
    for row in rows:
        for named in (row["utterance_audio"], *dict(row["options"]).values()):  # type: ignore[call-overload]
            path = folder / str(named)
            if not path.exists():
                path.write_bytes(tone(seconds=0.2))
    if answers:
        lines = [json.dumps({"question_id": name, "answer": letter}) for name, letter in answers.items()]
        (folder / "answers.jsonl").write_text("\n".join(lines))


def items(folder: Path) -> list[Item]:
    return list(load(folder).items(Selection()))


def test_questions_carry_context_recordings_and_their_group(tmp_path: Path) -> None:
    write(tmp_path, "meld", [question("meld_183_1", 3), question("meld_183_2", 3)], {"meld_183_1": "C"})
    write(tmp_path, "emovdb", [question("emovdb_12_e0"), question("emovdb_12_e3")])
    write(tmp_path, "gigaspeech", [question("gigaspeech_0_1"), question("gigaspeech_0_2")])
    found = {item.id.removeprefix("empathyeval/"): item for item in items(tmp_path)}
    one = found["meld_183_1"]
    assert one.task == "choose" and one.gold == "C" and one.context == "At the station."
    assert [(o.letter, o.clip.path if o.clip else "") for o in one.options] == [
        (letter, f"phase1-test_meld/audio/meld_183_1_{letter}.wav") for letter in "ABC"
    ]
    assert found["meld_183_2"].gold == ""
    assert {name: (item.category, item.group) for name, item in found.items()} == {
        "meld_183_1": ("context", "meld_183"),
        "meld_183_2": ("context", "meld_183"),
        "emovdb_12_e0": ("tone", "emovdb_12"),
        "emovdb_12_e3": ("tone", "emovdb_12"),
        "gigaspeech_0_1": ("context", "gigaspeech/gigaspeech_0"),
        "gigaspeech_0_2": ("context", "gigaspeech/gigaspeech_0"),
    }


def test_an_answer_inside_a_row_is_the_right_letter(tmp_path: Path) -> None:
    rows = [question("meld_1_1", answer="B"), question("meld_1_2", answer="opt-A"), question("meld_1_3", answer="")]
    write(tmp_path, "meld", rows, {"meld_1_2": "A", "meld_1_3": "B"})
    assert {item.case: item.gold for item in items(tmp_path)} == {"meld_1_1": "B", "meld_1_2": "A", "meld_1_3": "B"}
    write(tmp_path / "other", "meld", [question("meld_1_1", answer="B")], {"meld_1_1": "A"})
    with pytest.raises(DataError, match="the row's answer is B, but a file of answers says A"):
        load(tmp_path / "other")
    write(tmp_path / "words", "meld", [question("meld_1_1", answer="the first")])
    with pytest.raises(DataError, match="is not a letter"):
        load(tmp_path / "words")


def test_training_rows_are_pairs_of_deliveries_whose_right_letter_is_no_pattern(tmp_path: Path) -> None:
    folder = tmp_path / "empatheticDialogue_t_multi-context"
    contexts = [{"context": f"c{k}", "response": f"r{k}"} for k in (1, 2)]
    rows = [{"id": f"d{n}", "text": "I see.", "emotion": "sad", "contexts": contexts} for n in range(40)]
    tones = [{"id": "t0", "text": "Oh.", "contexts": {"Context": "c", "angry_response": "a", "happy_response": "h"}}]
    for sub in ("user_audio", "response_audio"):
        (folder / sub).mkdir(parents=True)
    stems = [(f"d{n}_{k}_sad", f"d{n}_{k}") for n in range(40) for k in (1, 2)]
    stems += [(f"t0_{tone_}", f"t0_{tone_}") for tone_ in ("angry", "happy")]
    for user, reply in stems:
        (folder / "user_audio" / f"{user}.wav").write_bytes(tone(seconds=0.1))
        for how in ("good", "bad"):
            (folder / "response_audio" / f"{reply}_{how}Para.wav").write_bytes(tone(seconds=0.1))
    (folder / "context_flat.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (folder / "tone_flat.jsonl").write_text("\n".join(map(json.dumps, tones)))
    found = items(tmp_path)
    assert len(found) == 82 and {i.category for i in found} == {"context", "tone"}
    for one in found:
        chosen = next(o for o in one.options if o.letter == one.gold)
        assert chosen.clip is not None and "goodPara" in chosen.clip.path
    assert 20 < sum(i.gold == "A" for i in found) < 62
    assert {i.group for i in found if i.category == "tone"} == {"train/tone/t0"}


def fill(right_items: int, right_groups: int, groups: int, size: int, category: str) -> list[list[Scored]]:
    """Groups of `size` with so many right answers in all, so many groups of them wholly right."""
    left = right_items - right_groups * size
    out = []
    for n in range(groups):
        if n < right_groups:
            values = [1.0] * size
        else:
            some = min(size - 1, left)
            values, left = [1.0] * some + [0.0] * (size - some), left - some
        out.append(
            [
                Scored(_item(f"{category}{n}", k, category), "task/audio", 0, {"accuracy": v})
                for k, v in enumerate(values)
            ]
        )
    assert left == 0
    return out


def _item(group: str, k: int, category: str) -> Item:
    return Item(f"{group}/{k}", "empathyeval", 2, "choose", category, f"{group}/{k}", group, "", ())


@pytest.mark.parametrize(
    ("row", "context", "tone_"),
    [(0, (345, 111), (112, 26)), (1, (189, 32), (60, 3)), (2, (182, 31), (66, 3))],
    ids=["best", "7B", "3B"],
)
def test_the_leaderboard_comes_out_to_the_printed_digit(
    row: int, context: tuple[int, int], tone_: tuple[int, int]
) -> None:
    """From the counts of right answers and whole groups by setting; context has 100 × 2 and 70 × 3, tone 30 × 4. How
    the best team's divide is not printed: theirs here are counts that give its four numbers."""
    giga = max(min(context[1], 20), context[1] - 70)
    right_giga = giga * 2 + min(100 - giga, context[0] - giga * 2 - (context[1] - giga) * 3)
    first = fill(right_giga, giga, 100, 2, "context")
    second = fill(context[0] - right_giga, context[1] - giga, 70, 3, "context")
    third = fill(*tone_, 30, 4, "tone")
    random.Random(1).shuffle(first)
    printed = dict(zip(SUITE.published[0].columns, SUITE.published[0].rows[row][1], strict=True))
    everything = [*first, *second, *third]
    assert (right(everything), bonus(everything)) == (printed["acc"], printed["bonus"])
    assert round(final(everything) or 0, 3) == printed["final"]
    assert round(final([*first, *second]) or 0, 3) == printed["final_context"]
    assert round(final(third) or 0, 3) == printed["final_tone"]


def right(groups: Groups) -> float | None:
    return reduced(ACC, "accuracy", groups)


def bonus(groups: Groups) -> float | None:
    return reduced(BONUS, "accuracy", groups)


def final(groups: Groups) -> float | None:
    return reduced(FINAL, "accuracy", groups)


def test_an_unanswered_question_is_wrong_and_unknown_answers_tell_nothing() -> None:
    known = [
        [
            Scored(_item("g", 0, "tone"), "task/audio", 0, {"accuracy": 1.0}),
            Scored(_item("g", 1, "tone"), "task/audio", 0, {}),
        ]
    ]
    assert (right(known), bonus(known), final(known)) == (1.0, 0.0, pytest.approx(1 / 3))
    hidden = [[Scored(_item("g", 0, "tone"), "task/audio", 0, {})]]
    assert (right(hidden), bonus(hidden), final(hidden)) == (None, None, None)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"options": {"opt-A": "./audio/x.wav"}}, "two or more"),
        ({"options": ["a", "b"]}, "a list"),
        ({"options": {"first": "./a.wav", "second": "./b.wav"}}, "opt-A"),
        ({"question_id": ""}, "no 'question_id'"),
        ({"utterance_audio": 3}, "a number"),
        ({"utterance_audio": "../../etc/passwd"}, "leaves its folder"),
    ],
)
def test_a_broken_question_is_an_error_that_says_where(tmp_path: Path, change: dict[str, object], says: str) -> None:
    write(tmp_path, "meld", [question("meld_1_1")])
    path = tmp_path / "phase1-test_meld" / "phase1-test_meld_release.json"
    path.write_text(json.dumps([question("meld_1_1") | change]))
    with pytest.raises(DataError, match=says):
        load(tmp_path)


def test_missing_recordings_doubled_questions_and_foreign_folders_are_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such folder"):
        load(tmp_path / "none")
    with pytest.raises(DataError, match="unpack the release"):
        load(tmp_path)
    write(tmp_path, "meld", [question("meld_1_1"), question("meld_1_2")])
    (tmp_path / "phase1-test_meld/audio/meld_1_2_B.wav").unlink()
    loaded = load(tmp_path)
    assert len(list(loaded.items(Selection()))) == 1 and "meld_1_2" in loaded.warnings[0]
    shutil.copytree(tmp_path / "phase1-test_meld", tmp_path / "copy")
    with pytest.raises(DataError, match="is duplicated"):
        load(tmp_path)


def test_a_run_sends_all_recordings_and_shows_the_headline(tmp_path: Path) -> None:
    from overtone.api import run

    rows = [question(f"meld_{n}_{k}", 2) for n in range(3) for k in (1, 2)]
    write(tmp_path / "data", "meld", rows, {str(row["question_id"]): "A" for row in rows})
    with OpenAIServer(keep_audio=True) as server:
        server.answer = lambda asked: "The answer is: [A]"
        run("empathyeval", data=tmp_path / "data", model=f"openai:m?base_url={server.base_url}", out=tmp_path / "run")
        assert {len(asked.sounds) for asked in server.asked} == {3}
        assert "Option B:" in server.asked[0].text
    reading = open_run(tmp_path / "run")
    assert len(read_scored(reading)) == 6
    cells = dict(zip((c.key for c in SUITE.headlines[0].columns), suite_tables(reading)[0].rows[0].cells, strict=True))
    assert cells["acc"] and cells["acc"].value == 6 and cells["bonus"] and cells["bonus"].value == 3
    assert cells["final"] and cells["final"].value == 1.0 and cells["final_tone"] is None
