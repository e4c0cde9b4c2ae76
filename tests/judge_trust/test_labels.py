"""Label files: every layout becomes the same units and ratings, and what is wrong is named with its line."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

from overtone.errors import DataError
from overtone.judge_trust import labels
from overtone.judge_trust.labels import UNREAD


def _file(folder: Path, text: str, name: str = "labels.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode())
    return path


LONG = """id,group,rater,dimension,value,words,reply
1,g,ann,warm,4,Hi,Hello
1,g,ben,warm,5,,
2,h,ann,warm,1,Bye,So long
"""


def test_a_long_table_is_one_rating_per_row_and_texts_need_be_given_once(tmp_path: Path) -> None:
    found = labels.read(_file(tmp_path, LONG))
    assert found.dimensions == ["warm"]
    assert found.units["1"].texts == {"words": "Hi", "reply": "Hello"}
    assert {r: x.value for r, x in found.of("warm")["1"].items()} == {"ann": 4.0, "ben": 5.0}
    assert [unit.group for unit in found.units.values()] == ["g", "h"]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_wide_table_with_a_byte_order_mark_quotes_and_line_breaks_is_read(tmp_path: Path, delimiter: str) -> None:
    rows = [
        ["id", "rater", "reply", "warm", "clear"],
        ["1", "ann", '"Yes, ""dear"";\nyes"', "4", ""],
        ["2", "", "No", "2", "3.5"],
    ]
    found = labels.read(_file(tmp_path, "\ufeff" + "\r\n".join(delimiter.join(row) for row in rows)))
    assert found.layout == "wide"
    assert found.dimensions == ["warm", "clear"]
    assert found.units["1"].texts["reply"].replace("\r", "") == 'Yes, "dear";\nyes'
    assert "1" not in found.of("clear"), "an empty field is no rating"
    assert found.of("clear")["2"]["1"].value == 3.5
    assert found.notes


def test_json_lines_and_a_json_list_say_the_same_as_csv(tmp_path: Path) -> None:
    header, *lines = LONG.strip().split("\n")
    rows = [dict(zip(header.split(","), line.split(","), strict=True)) for line in lines]
    as_list = labels.read(_file(tmp_path, json.dumps(rows), "a.json"))
    as_lines = labels.read(_file(tmp_path, "\n".join(map(json.dumps, rows)) + "\n\n", "a.jsonl"))
    as_csv = labels.read(_file(tmp_path, LONG))

    def plain(found: labels.Labels) -> list[tuple[object, ...]]:
        return [(r.unit, r.rater, r.dimension, r.value) for r in found.ratings]

    assert plain(as_list) == plain(as_lines) == plain(as_csv)


def test_a_column_of_words_holds_ratings_when_it_is_asked_for(tmp_path: Path) -> None:
    path = _file(tmp_path, "id,mood,warm\n1,good,3\n2,bad,4\n")
    assert labels.read(path).dimensions == ["warm"]
    assert labels.read(path, ["mood"]).of("mood")["2"]["1"].value == "bad"


def test_replies_to_one_item_under_two_conditions_are_two_units(tmp_path: Path) -> None:
    found = labels.read(_file(tmp_path, "id,condition,warm\n1,zero/audio,3\n1,basic/audio,4\n"))
    assert list(found.units) == ["1@zero/audio", "1@basic/audio"]


def test_sounds_are_found_beside_the_file_and_nowhere_else(tmp_path: Path) -> None:
    (tmp_path / "a.wav").write_bytes(b"x")
    found = labels.read(_file(tmp_path, "id,reply,reply_sound,clip,warm\n1,Hello,a.wav,a.wav,3\n"))
    assert found.units["1"].sounds == {"reply": tmp_path / "a.wav", "clip": tmp_path / "a.wav"}
    assert found.units["1"].texts == {"reply": "Hello"}
    with pytest.raises(DataError, match=r"line 2.*there is no file 'b.wav'"):
        labels.read(_file(tmp_path, "id,clip,warm\n1,b.wav,3\n"))
    with pytest.raises(DataError, match=r"line 2.*leaves its folder"):
        labels.read(_file(tmp_path, "id,clip,warm\n1,../b.wav,3\n"))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "has no rows"),
        ("id,warm\n", "has no rows"),
        ("name,warm\n1,2\n", "has no column 'id'"),
        ("id,warm\n1,2,3\n", "line 2: has 3 fields"),
        ("id,reply,warm\n1,ok,2\n2,\"a\nb\",3\n3,x\n", "line 5: has 2 fields"),
        ("id,words\n1,hello\n", "no column has ratings"),
        ("id,dimension\n1,warm\n", "need each other"),
        ("id,dimension,value\n1,warm,\n", "but no ratings"),
        ("id,dimension,value\n,warm,3\n", "line 2: has no id"),
        ("id,dimension,value\n1,,3\n", "line 2: has no dimension"),
        ("id,warm\n1,nan\n", "line 2.*not a rating"),
        ("id,rater,warm\n1,ann,2\n2,ann,2\n1,ann,3\n", "line 4: 'ann' rates '1' in 'warm' again, after line 2"),
        ("id,rater,reply,warm\n1,ann,x,2\n1,ben,y,2\n", "line 3: 'reply' of '1' differs from line 2"),
        ("id,group,rater,warm\n1,g,ann,2\n1,h,ben,2\n", "line 3: group of '1'"),
        ("id,id,warm\n1,2,3\n", "line 1: a column name is missing or repeated"),
        ("id,repeat,warm\n1,-1,3\n", "line 2: repeat"),
        ('id,reply,warm\n1,"open,3\n', "line"),
        ('{"id": 1, "warm": 2}\n{"id": 2,\n', "line 2: is not a JSON object"),
        ("[1, 2]", "is not a JSON list of objects"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_its_line(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(DataError, match=problem) as error:
        labels.read(_file(tmp_path, text))
    assert "labels.csv" in str(error.value)


def test_a_file_in_another_encoding_is_said_to_be_so(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("id,warm\n1,3\n".encode("utf-16"))
    with pytest.raises(DataError, match="UTF-16"):
        labels.read(tmp_path / "a.csv")
    (tmp_path / "b.csv").write_bytes(b"id,reply,warm\n1,x,3\n2,\xe9,3\n")
    with pytest.raises(DataError, match="line 3: is not UTF-8"):
        labels.read(tmp_path / "b.csv")
    with pytest.raises(DataError, match="cannot be read"):
        labels.read(tmp_path / "none.csv")


def test_a_verdict_that_pandalm_could_not_read_stays_unread(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [{"idx": n, "gpt_result": said} for n, said in enumerate(("1", "2", "Tie", "garbage"))]
    found = labels.read(_file(tmp_path, json.dumps(rows), "v.json"))
    assert [rating.value for rating in found.ratings] == ["A", "B", "tie", UNREAD]


@pytest.mark.shared
def test_pandalms_annotators_agree_as_often_as_is_known(shared: Path) -> None:
    found = labels.read(shared / "data" / "pandalm" / "testset-v1.json").of("answer_preference")
    assert len(found) == 999
    raters = ("annotator1", "annotator2", "annotator3")
    shares = [mean(v[a].value == v[b].value for v in found.values()) for a, b in itertools.combinations(raters, 2)]
    assert shares == pytest.approx([0.913, 0.929, 0.918], abs=5e-4)


@pytest.mark.shared
def test_ievals_bots_are_as_empathetic_as_is_known(shared: Path) -> None:
    found = labels.read(shared / "data" / "ieval" / "ieval_data.json")
    assert (len(found.units), len({unit.group for unit in found.units.values()})) == (1920, 240)
    given = {dimension: found.of(dimension) for dimension in ("understood", "responded")}
    expected = {"Purple": (4.10, 3.86), "Pink": (2.98, 2.50), "Green": (2.80, 2.83), "Yellow": (2.72, 2.38)}
    for bot, means in expected.items():
        for valence, value in zip(("positive", "negative"), means, strict=True):
            units = [n for n, u in found.units.items() if u.systems["reply"] == bot and u.texts["valence"] == valence]
            scores = [float(r.value) for d in given.values() for n in units for r in d[n].values()]
            assert mean(scores) == pytest.approx(value, abs=0.005)
