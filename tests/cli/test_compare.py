"""`overtone compare`: its three formats, what it refuses, and text of strangers."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest

from overtone.cli import main
from tests.report.fake_run import make_run
from tests.results.pairs import answers
from tests.servers import OpenAIServer

FIRST = [True] * 4 + [False] * 8
SECOND = [False] + [True] * 11


def test_the_table_says_what_differs_and_which_items_flipped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = answers(tmp_path / "a", FIRST), answers(tmp_path / "b", SECOND)
    assert main(["compare", str(a), str(b)]) == 0
    out = capsys.readouterr().out
    assert "12 asks in both" in out
    assert "33.3" in out
    assert "91.7" in out
    assert "+58.3 [" in out
    assert "right → wrong (1)" in out
    assert "wrong → right (8)" in out
    assert "q0  sad  A → B" in out


def test_markdown_and_json_hold_the_same_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = answers(tmp_path / "a", FIRST), answers(tmp_path / "b", SECOND)
    assert main(["compare", str(a), str(b), "--format", "markdown"]) == 0
    text = capsys.readouterr().out
    assert "| task/audio | Voice accuracy | 1 | all cues | 33.3 | 91.7 | +58.3 " in text
    assert main(["compare", str(a), str(b), "--format", "json"]) == 0
    told = msgspec.json.decode(capsys.readouterr().out)
    row = told["tables"][0]["rows"][0]
    assert (row["first"], row["second"], row["by"]["value"]) == pytest.approx((4 / 12, 11 / 12, 7 / 12))
    assert [flip["item"] for flip in told["flips"][0]["worse"]] == ["q0"]
    assert told["sentences"]
    assert told["signature"].startswith("compare|v2")


def test_a_table_in_which_no_pair_has_a_value_is_not_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = answers(tmp_path / "a", FIRST), answers(tmp_path / "b", [None] * len(SECOND))
    assert main(["compare", str(a), str(b)]) == 0
    out = capsys.readouterr().out
    assert "no item has a score in both runs" in out
    assert "by cue" not in out and "All shared items" not in out


def test_a_row_leads_back_to_its_cases(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = str(answers(tmp_path / "a", FIRST)), str(answers(tmp_path / "b", [None, *SECOND[1:]]))
    assert main(["compare", a, b, "--behind", "compare/task/audio/voice_accuracy/all"]) == 0
    assert capsys.readouterr().out.split() == [f"synthesis/s{number}/target" for number in range(1, 12)]
    assert main(["compare", a, b, "--behind", "compare/task/audio/wer/all"]) == 2
    assert main(["compare", a, b, "--behind", "nonsense"]) == 2
    assert "--format json shows the keys" in capsys.readouterr().err


def test_runs_of_one_name_are_told_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = (answers(tmp_path / name, FIRST, meta={"label": "run"}) for name in "ab")
    assert main(["compare", str(a), str(b)]) == 0
    out = capsys.readouterr().out
    assert "first: run (A)" in out
    assert "second: run (B)" in out


def test_runs_that_do_not_compare_are_refused_with_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = answers(tmp_path / "a", FIRST), answers(tmp_path / "b", SECOND, version=2)
    assert main(["compare", str(a), str(b)]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert "signature of accuracy: accuracy|v1 against accuracy|v2" in told.err
    assert told.err.endswith(
        "score both runs in the same way with 'overtone score', or compare other measures, named with --metric, "
        "or look at the numbers anyway with --force\n"
    )
    assert main(["compare", str(a), str(b), "--force"]) == 0
    assert "THESE RUNS ARE NOT COMPARABLE: signature of accuracy" in capsys.readouterr().out


def test_an_item_that_flipped_can_be_shown_by_the_id_that_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = answers(tmp_path / "a", FIRST), answers(tmp_path / "b", SECOND)
    assert main(["compare", str(a), str(b)]) == 0
    item = capsys.readouterr().out.split("right → wrong (")[1].splitlines()[1].split()[0]
    assert main(["case", str(b), item]) == 0
    assert f"synthesis/s{item[1:]}/target" in capsys.readouterr().out


def test_a_row_with_too_few_scripts_has_no_p_value_beside_a_sentence_that_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = answers(tmp_path / "a", [True] * 5), answers(tmp_path / "b", [False] * 5)
    assert main(["compare", str(a), str(b), "--format", "markdown"]) == 0
    out = capsys.readouterr().out
    assert "points: 5 scripts are too few" in out
    assert "| 100.0 | 0.0 | −100.0 (too few scripts)¹ | – | – | 5 of 5 |" in out


def test_nothing_shared_and_unknown_names_are_errors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = answers(tmp_path / "a", FIRST), answers(tmp_path / "b", SECOND)
    assert main(["compare", str(a), str(b), "--condition", "zero/audio"]) == 2
    assert "A has task/audio" in capsys.readouterr().err
    assert main(["compare", str(a), str(b), "--metric", "voice_acuracy"]) == 2
    assert "did you mean 'voice_accuracy'" in capsys.readouterr().err
    assert main(["compare", str(a), str(b), "--metric", "VOICE_ACCURACY"]) == 2
    told = capsys.readouterr().err
    assert "no measure is called 'VOICE_ACCURACY'; did you mean 'voice_accuracy'; known: " in told
    assert " wer_corpus" in told
    assert main(["compare", str(a), str(b), "--metric", "latency_p95"]) == 2
    assert "overtone check RUN --require" in capsys.readouterr().err
    assert main(["compare", str(a), str(tmp_path)]) == 2
    assert "is not a run" in capsys.readouterr().err


@pytest.mark.parametrize("form", ["table", "markdown", "json"])
def test_text_of_strangers_is_harmless(tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str) -> None:
    evil = "x\x1b[31m|<script>[bold]\n# y"
    a = answers(tmp_path / "a", FIRST, meta={"label": evil, "model": evil})
    b = answers(tmp_path / "b", SECOND, meta={"label": evil, "model": evil})
    assert main(["compare", str(a), str(b), "--format", form]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    if form == "markdown":
        assert "\\<script" in out
        assert "|<" not in out
        assert "\n# y" not in out
    elif form == "table":
        assert "[bold]" in out


def test_runs_with_everything_in_them_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a = make_run(tmp_path / "a", judges=("one", "two"), repeats=2)
    b = make_run(tmp_path / "b", judges=("one", "two"), repeats=2, seed=5, skill=0.9)
    assert main(["compare", str(a), str(b), "--metric", "c4", "--metric", "c4@one", "--metric", "semsim"]) == 0
    out = capsys.readouterr().out
    assert "Speech relevance (C4), one" in out
    assert "largest losses" in out
    assert main(["compare", str(a), str(a)]) == 0
    assert "is not statistically significant (p = 1.000" in capsys.readouterr().out


def test_real_runs_compare_check_and_plan_and_a_changed_clip_is_noticed(
    small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other"
    shutil.copytree(small, other)
    for path in other.rglob("*.wav"):
        data = bytearray(path.read_bytes())
        data[-1] ^= 1
        path.write_bytes(bytes(data))
    with OpenAIServer() as server:
        for name, data_folder in (("a", small), ("b", small), ("c", other)):
            model = f"openai:{name}?base_url={server.base_url}"
            where = ["--data", str(data_folder), "--out", str(tmp_path / name)]
            assert main(["run", "echomind", "--model", model, *where, "-q"]) == 0
    a, b, c = (str(tmp_path / name) for name in "abc")
    capsys.readouterr()
    assert main(["compare", a, b, "--format", "json"]) == 0
    told = msgspec.json.decode(capsys.readouterr().out)
    assert told["shared"] > 0
    assert told["only_first"] == told["only_second"] == 0
    assert told["unlike"] == []
    values = {row["measure"]: row["by"]["value"] for row in told["tables"][0]["rows"]}
    assert {"voice_accuracy", "wer_raw"} <= values.keys()
    assert values["wer_raw"] == 0  # the server says the same to both
    assert main(["check", b, "--require", "wer <= 10000%"]) == 0
    assert main(["check", b, "--baseline", a]) == 3  # three scripts can show no difference
    capsys.readouterr()
    assert main(["compare", a, c]) == 2
    told = capsys.readouterr().err
    assert "shared clips" in told and "run one of the models again with the same benchmark data and prompts" in told
    assert "score" not in told and "--metric" not in told  # neither would help
    assert main(["check", c, "--baseline", a]) == 2
    assert "run one of the models again" in capsys.readouterr().err
    assert main(["plan", "echomind", "--data", str(small), "--detect", "0.1"]) == 0
    assert "3 ✗" in capsys.readouterr().out
