"""A run file end to end: several benchmarks on several models in one command, reported in one page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from overtone.cli import main
from overtone.runs.store import Store
from tests.benchmarks import test_empathyeval as empathyeval
from tests.benchmarks import test_mmau as mmau
from tests.benchmarks.built import write_built
from tests.servers import OpenAIServer

NOBODY = "http://127.0.0.1:9/v1"


def choosing(folder: Path) -> Path:
    """Six questions of EmpathyEval in three groups; A is right."""
    rows = [empathyeval.question(f"meld_{n}_{k}", 2) for n in range(3) for k in (1, 2)]
    empathyeval.write(folder, "meld", rows, {str(row["question_id"]): "A" for row in rows})
    return folder


def listening(folder: Path) -> Path:
    """Four questions of MMAU."""
    return mmau.write(folder, [mmau.question(n) for n in range(4)])


def run_file(folder: Path, benchmarks: dict[str, Path], models: dict[str, str], **run: str) -> Path:
    lines = ["[run]", *(f'{key} = "{value}"' for key, value in run.items())]
    for name, data in benchmarks.items():
        lines += ["[[benchmark]]", f'name = "{name}"', f'data = "{data}"']
    for name, url in models.items():
        lines += ["[[model]]", f'spec = "openai:{name}?base_url={url}"']
    path = folder / "a.toml"
    path.write_text("\n".join(lines))
    return path


def table(page: str, key: str) -> str:
    """The one table of a page whose caption has this key, as text."""
    tables: list[str] = re.findall(r"(?s)<table.*?</table>", page)
    (found,) = (one for one in tables if re.search(rf'<caption id="[^"]*{key}"', one))
    return found


def test_two_benchmarks_on_two_models_are_four_runs_on_one_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = {"empathyeval": choosing(tmp_path / "e"), "mmau": listening(tmp_path / "m")}
    out, report = tmp_path / "runs", tmp_path / "pages" / "all.html"
    with OpenAIServer(answer=lambda asked: "The answer is: [A]") as right, OpenAIServer() as other:
        models = {"sure": right.base_url, "unsure": other.base_url}
        assert main(["run", str(run_file(tmp_path, data, models, out=str(out), report=str(report)))]) == 0
        assert right.count == other.count == 6 + 4
    folders = [f"{benchmark}-openai-{model}" for benchmark in data for model in models]
    assert sorted(path.name for path in out.iterdir()) == sorted(folders)
    for folder in folders:
        with Store.read(out / folder) as store:
            assert store.counts() == {"pending": 0, "answered": 6 if "empathy" in folder else 4, "failed": 0}
        assert "report" not in (out / folder / "config.toml").read_text(), "the page is the command's, not a run's"
    assert f"report of 4 of 4 runs → {report}" in capsys.readouterr().out
    page = report.read_text(encoding="utf-8")
    assert "10 cases, 20 requests, 20 answered" in page
    for benchmark, key in (("empathyeval", "empathyeval"), ("mmau", "mmau")):
        headline = table(page, f"suite-{benchmark}-{key}")
        others = {*data} - {benchmark}
        assert all(f"openai:{model} ({benchmark})" in headline for model in models), "both models stand side by side"
        assert not any(f"({other})" in headline for other in others), "and nothing else does"
    assert "openai:unsure (mmau) against openai:sure (mmau)" in page
    assert "openai:unsure (empathyeval) against openai:sure (empathyeval)" in page
    assert len(re.findall(r" against openai:", page)) == 2, "runs of two benchmarks are not compared"


def test_a_run_that_cannot_be_done_is_named_on_the_page_and_the_others_stand(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = {"open": write_built(tmp_path / "o"), "empathyeval": choosing(tmp_path / "e")}
    report = tmp_path / "all.html"
    with OpenAIServer() as server:
        path = run_file(tmp_path, data, {"here": server.base_url, "gone": NOBODY}, out=str(tmp_path / "runs"))
        assert main(["run", str(path), "-q", "--limit", "6", "--report", str(report)]) == 2
    assert "open-openai-gone: the first request failed" in capsys.readouterr().err
    page = report.read_text(encoding="utf-8")
    for benchmark in data:
        folder = tmp_path / "runs" / f"{benchmark}-openai-gone"
        assert f"{folder} is not in this report: the first request failed" in page
    hearing = table(page, "hearing")
    assert "openai:here (open)" in hearing and "openai:gone" not in hearing
    assert "openai:here (empathyeval)" in table(page, "suite-empathyeval-empathyeval")


def test_a_missing_data_folder_loses_nothing_and_the_same_command_goes_on_when_it_is_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = {"empathyeval": choosing(tmp_path / "e"), "mmau": tmp_path / "m"}
    out, report = tmp_path / "runs", tmp_path / "all.html"
    with OpenAIServer(answer=lambda asked: "The answer is: [A]") as server:
        models = {"one": server.base_url, "two": server.base_url}
        words = ["run", str(run_file(tmp_path, data, models, out=str(out), report=str(report))), "-q"]
        assert main(words) == 2
        assert "mmau-openai-two: " in (said := capsys.readouterr()).err and "no such folder" in said.err
        assert server.count == 2 * 6 and "mmau-openai-one is not in this report" in report.read_text(encoding="utf-8")
        listening(tmp_path / "m")
        assert main(words) == 0
        assert server.count == 2 * (6 + 4), "what was answered is not asked again"
    assert "is not in this report" not in report.read_text(encoding="utf-8")


def test_where_no_run_could_be_done_no_page_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = run_file(tmp_path, {"mmau": listening(tmp_path / "m")}, {"a": NOBODY, "b": NOBODY}, out=str(tmp_path / "r"))
    assert main(["run", str(path), "-q", "--report", str(tmp_path / "all.html")]) == 2
    assert "no report written, because all runs failed" in capsys.readouterr().err
    assert not (tmp_path / "all.html").exists()


@pytest.mark.parametrize(
    ("report", "said"),
    [
        ("pages.html", "pages.html is a folder; give the report a file name"),
        ("m/mmau-test-mini.json/all.html", "all.html could not be written"),
        ("all.txt", "is not an HTML file; name one, e.g. report.html"),
        ("mine.html", "is not a report of Overtone"),
    ],
)
@pytest.mark.parametrize("by", ["flag", "file", "environment"])
def test_a_page_that_could_not_be_written_is_refused_before_anything_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], report: str, said: str, by: str
) -> None:
    (tmp_path / "pages.html").mkdir()
    (tmp_path / "mine.html").write_text("<p>my page</p>")
    listening(tmp_path / "m")
    told = str(tmp_path / report)
    if by == "environment":
        monkeypatch.setenv("OVERTONE_REPORT", told)
    with OpenAIServer() as server:
        more = {"report": told} if by == "file" else {}
        path = run_file(tmp_path, {"mmau": tmp_path / "m"}, {"a": server.base_url}, out=str(tmp_path / "runs"), **more)
        assert main(["run", str(path), *(["--report", told] if by == "flag" else [])]) == 2
        assert server.count == 0
    assert said in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


def test_the_page_belongs_to_the_command_not_to_a_benchmark(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = run_file(tmp_path, {"mmau": listening(tmp_path / "m")}, {"a": NOBODY})
    path.write_text(path.read_text().replace("[[model]]", 'report = "x.html"\n[[model]]'))
    assert main(["run", str(path)]) == 2
    assert "unknown key 'report' in [[benchmark]]" in capsys.readouterr().err


def test_a_plan_of_the_same_file_writes_no_page(tmp_path: Path) -> None:
    data = {"mmau": listening(tmp_path / "m")}
    path = run_file(tmp_path, data, {"a": NOBODY, "b": NOBODY}, report=str(tmp_path / "all.html"))
    assert main(["plan", str(path)]) == 0
    assert not (tmp_path / "all.html").exists()
