"""Outputs of stored runs are written for reference, and compared by their numbers."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from scripts import reference_outputs
from scripts.reference_compare import compare_files, compare_folders
from scripts.reference_reading import numbers
from tests.results.pairs import answers

PAGE = """<h2>Results</h2><p>It is right in 60 % of 5 cases.</p>
<table><caption id="c-acc">Accuracy</caption><tr><th>run</th><th>value</th></tr><tr><td>one</td><td>60.0</td></tr>
</table><svg><text x="1">60</text></svg><script type="application/json" id="index">{"n": 5}</script>"""
CSV = "table,run,column,value,note,key\nhead,one,ACC,3,,k1\nhead,one,WER,4.5,few,k2\n"
SETS = '<script type="application/json" id="sets">{"sets": ["a", "b"], "behind": {"x": 0, "y": 1}}</script>'
JSON = '{"rows": [{"key": "x", "n": 0.12345678901}]}'
MARKDOWN = "## T\n| run | x |\n|---|---|\n| a | 1 % |"
LATEX = "\\label{t}\na & 1 \\\\"
SVG = '<svg><text x="1">5 s</text></svg>'
COLUMNS = "run  wins  n\none  40   9"


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Two runs of one question a script, and all quick outputs of them."""
    for name in ("XDG_CONFIG_HOME", "COLUMNS", "OVERTONE_JUDGES"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.chdir(tmp_path)
    answers(tmp_path / "runs" / "monday", [True, False, True, False, None, True], meta={"benchmark": "echomind"})
    answers(tmp_path / "runs" / "friday", [True, True, True, True, False, True], meta={"benchmark": "echomind"})
    groups = {"groups": {"days": ["monday", "friday"]}, "quick": ["days"]}
    (tmp_path / "runs" / "reference.json").write_text(json.dumps(groups))
    reference_outputs.make(tmp_path / "runs", tmp_path / "out", quick=True, old_names=False)
    return tmp_path / "runs", tmp_path / "out"


def test_a_changed_number_of_an_output_fails_and_is_named(
    made: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, out = made
    again = Path(shutil.copytree(out, tmp_path / "again"))
    assert compare_folders(out, again) == 0
    assert "Changed or missing: 0" in capsys.readouterr().out
    table = again / "group" / "days" / "table-results.csv"
    assert "83.3333333333" in table.read_text(), "five of Friday's six answers are right"
    table.write_text(table.read_text().replace("83.3333333333", "84.3333333333"))
    assert compare_folders(out, again) == 1
    assert "83.3333333 → 84.3333333" in capsys.readouterr().out


def test_a_missing_file_another_exit_code_and_a_changed_run_fail(
    made: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, out = made
    again = Path(shutil.copytree(out, tmp_path / "again"))
    (again / "group" / "days" / "compare.json").unlink()
    said = again / "run" / "monday" / "export.jsonl.said"
    said.write_text(said.read_text().replace("exit 0", "exit 2"))
    (again / "about.json").write_text(json.dumps({"quick": True, "changed_runs": ["monday/run.db"]}))
    assert compare_folders(out, again) == 1
    told = capsys.readouterr().out
    assert "MISSING  group/days/compare.json" in told
    assert "exit 0 → exit 2" in told
    assert "CHANGED BY READING  runs  monday/run.db" in told


def test_reading_leaves_the_stored_runs_as_they_were(made: tuple[Path, Path]) -> None:
    runs, out = made
    assert json.loads((out / "about.json").read_text()) == {"quick": True, "changed_runs": []}
    assert (runs / "monday" / "run.db").exists() and not (out / "runs").exists()
    rows = (out / "run" / "monday" / "export.jsonl").read_text().splitlines()
    assert [json.loads(row)["state"] for row in rows].count("failed") == 1


def test_a_renamed_word_keeps_the_name_of_its_output(
    made: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, out = made
    monkeypatch.setattr(reference_outputs, "RENAMED", {"export": "no-such-command"})
    monkeypatch.chdir(tmp_path)
    command = next(c for c in reference_outputs.COMMANDS if c.name == "export.jsonl")
    for old_names, code in ((True, "exit 0"), (False, "exit 2")):
        folder = tmp_path / f"called-{old_names}"
        reference_outputs.call(command, {"run": "runs/monday", "runs": []}, folder, old_names)
        assert (folder / "export.jsonl.said").read_text().startswith(code)
    assert (tmp_path / "called-True" / "export.jsonl").read_bytes() == (out / "run/monday/export.jsonl").read_bytes()


@pytest.mark.parametrize(
    ("name", "before", "changes", "failures", "extra"),
    [
        ("a.html", PAGE, {'x="1"': 'x="2"', "It is right": "Right"}, [], []),
        ("a.html", PAGE, {"60.0": "61.0"}, ["60.0 → 61.0"], []),
        ("a.html", PAGE, {"of 5": "of 6"}, ["5 → 6"], []),
        ("a.html", PAGE, {": 5}": ": 7}"}, ["5 → 7"], []),
        ("a.html", PAGE, {"</table>": "<tr><td>two</td><td>7</td></tr></table>"}, [], ["two"]),
        ("a.html", SETS, {'["a", "b"]': '["b", "a"]', '"x": 0, "y": 1': '"x": 1, "y": 0'}, [], []),
        ("a.html", SETS, {'"y": 1': '"y": 0'}, ["1908338681 → 3904355907"], []),
        ("a.csv", CSV, {"ACC": "Accuracy", "few": "not many"}, [], []),
        ("a.csv", CSV, {",3,": ",4,"}, ["3 → 4"], []),
        ("a.csv", CSV, {"head,one,WER,4.5,few,k2\n": ""}, ["missing row"], []),
        ("a.json", JSON, {"8901": "8902"}, [], []),
        ("a.json", JSON, {"0.123": "0.124"}, ["0.123456789 → 0.124456789"], []),
        ("a.json", JSON, {"[": '[{"key": "y", "n": 2}, '}, [], ["2"]),
        ("a.md", MARKDOWN, {"1 %": "2 %", "T": "U"}, ["1% → 2%"], []),
        ("a.tex", LATEX, {"1": "−1"}, ["1 → -1"], []),
        ("a.svg", SVG, {"5": "6"}, ["5s → 6s"], []),
        ("a.svg", SVG, {'"1"': '"2"'}, [], []),
        ("a.svg", "<svg><text>People&#39;s 5 s</text></svg>", {"People&#39;s": "Their"}, [], []),
        ("a.out", "Of 9 cases 3 fail.", {"Of 9 cases 3 fail.": "3 of 9 cases fail (p = 0.2)."}, [], ["0.2"]),
        ("a.out", COLUMNS, {"40   9": "9   40"}, ["9 → nothing"], ["9"]),
        ("export.csv", "a,b\n1,x\n", {"x": "y"}, ["line 2"], []),
    ],
)
def test_numbers_are_compared_and_words_are_not(
    tmp_path: Path, name: str, before: str, changes: dict[str, str], failures: list[str], extra: list[str]
) -> None:
    after = before
    for old, new in changes.items():
        assert old in after
        after = after.replace(old, new)
    paths = []
    for side, text in (("before", before), ("after", after)):
        (tmp_path / side).mkdir()
        paths.append(tmp_path / side / name)
        paths[-1].write_text(text)
    found = compare_files(*paths)
    for lines, wanted in ((found.failures, failures), (found.extra, extra)):
        assert len(lines) == len(wanted), lines
        assert all(part in line for part, line in zip(wanted, lines, strict=True)), lines


def test_numbers_have_their_sign_and_unit_and_names_have_none() -> None:
    assert numbers("−3 points (1,234.5 to 20 %), gpt-4o, C4, id_12, v1.2, 0.3 s") == ("-3", "1234.5", "20%", "0.3s")
