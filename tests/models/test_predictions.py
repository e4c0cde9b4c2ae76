"""Predictions made elsewhere are scored like replies: under either name, by any end of an item's id, never guessed."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from overtone.cli import main
from overtone.errors import DataError, ModelFailure, UsageError
from overtone.models.predictions import load
from overtone.results.headline import suite_tables
from overtone.results.load import open_run
from overtone.schema import Key, Message, Request
from overtone.spec import parse_spec
from tests.benchmarks.test_mmau import question, write


def asked(path: Path, item: str, options: str = "") -> str:
    model = load(parse_spec(f"predictions:{path}{options}"))
    return asyncio.run(model.ask(Request(Key(item, "task/audio"), (Message("user", ("?",)),)))).text


def file(folder: Path, content: Any, name: str = "p.json") -> Path:
    (folder / name).write_bytes(content if isinstance(content, bytes) else msgspec.json.encode(content))
    return folder / name


@pytest.mark.parametrize("field", ["model_output", "model_prediction", "prediction", "response"])
def test_a_prediction_is_found_by_the_end_of_the_items_id(tmp_path: Path, field: str) -> None:
    path = file(tmp_path, [{"id": "q1", field: "Woman"}, {"id": "q2", field: "Man"}])
    assert asked(path, "mmau/test-mini/q2") == "Man"
    with pytest.raises(ModelFailure, match="not_recorded"):
        asked(path, "mmau/test-mini/q3")
    with pytest.raises(ModelFailure, match="not_recorded"):
        asked(path, "mmau/test-mini/xq1")


def test_lines_and_an_object_of_texts_are_read_too(tmp_path: Path) -> None:
    assert asked(file(tmp_path, b'{"id": 1, "text": "a"}\n\n{"id": 2, "text": "b"}\n', "l.jsonl"), "x/2") == "b"
    assert asked(file(tmp_path, {"u1": "hello"}), "sd-eval/emotion/u1") == "hello"
    assert asked(file(tmp_path, b'{"id": "only", "text": "one"}'), "x/only") == "one"


def test_air_benchs_numbers_count_within_a_task(tmp_path: Path) -> None:
    rows = [
        {"uniq_id": 0, "task_name": "Sound_AQA", "dataset_name": d, "response": d, "question": "?"}
        for d in ("avqa", "clothoaqa")
    ]
    path = file(tmp_path, rows)
    assert asked(path, "air-bench/foundation/Sound_AQA_clothoaqa/0") == "clothoaqa"


def test_what_is_ambiguous_or_broken_is_an_error_with_its_place(tmp_path: Path) -> None:
    for content, problem in (
        ([{"id": "a", "model_output": "x", "model_prediction": "y"}], "position 0: model_output and model_prediction"),
        ([{"id": "a", "text": "x"}, {"id": "a", "text": "y"}], "two different predictions for a"),
        ([{"text": "x"}], "has no id"),
        ([{"id": "a", "says": "x"}], r"no prediction under.*field="),
        (["x"], "an object is expected"),
        (b'{"id": "a", "text": "x"}\n{"id"', "line 2: not valid JSON"),
        (b"", "no prediction"),
    ):
        with pytest.raises(DataError, match=problem):
            load(parse_spec(f"predictions:{file(tmp_path, content)}"))
    path = file(tmp_path, [{"id": "a", "model_output": "x", "says": "y"}])
    assert asked(path, "a", "?field=says") == "y"
    with pytest.raises(UsageError, match="path is missing"):
        load(parse_spec("predictions"))
    with pytest.raises(DataError, match="cannot be read"):
        load(parse_spec(f"predictions:{tmp_path / 'none'}"))


def test_predictions_of_another_toolkit_get_mmaus_own_number(tmp_path: Path) -> None:
    rows = [question(n) for n in range(1, 5)]
    data = write(tmp_path / "data", rows)
    told = [row | {"model_prediction": said} for row, said in zip(rows, ("Woman", "woman.", "Man"), strict=False)]
    path = file(tmp_path, [*told, rows[3]])
    out = tmp_path / "run"
    code = main(["run", "mmau", "--data", str(data), "--out", str(out), "--model", f"predictions:{path}", "-q"])
    assert code == 3, "one question has no prediction, which is a failure of its item"
    total = suite_tables(open_run(out))[0].rows[0].cells[0]
    assert total is not None and total.value == pytest.approx(2 / 3)
    assert (total.scored, total.asked) == (3, 4), "MMAU passes over what has no prediction, too"
