"""`overtone study report`: from an answer key, from a kept analysis, and what it refuses."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from overtone.cli import main
from overtone.studies.perspectives import report_tables, results, study_analysis
from overtone.studies.perspectives.answers import KEY_FILE, Key
from overtone.studies.perspectives.design import TOML, Job, Study
from overtone.studies.perspectives.study_analysis import Analysis, Number, Primary
from tests.studies.perspectives.test_testability import _results, key

__all__ = ["key"]
STUDY = Study.read()
PUBLISHED = Path(__file__).parents[3] / "experiments/perspectives/results"


@pytest.fixture
def folder(key: Key, tmp_path: Path) -> Path:
    """A study's folder with its key: base, three arms and the positive control on Overtone-Open."""
    out = tmp_path / "study"
    out.mkdir()
    shutil.copyfile(TOML, out / "study.toml")
    key.write(out / KEY_FILE)
    for job, arrays in _results(key, 0.7, 0.7, 0.9).items():
        about = {
            **{name: getattr(job, name) for name in ("split", "part", "arm", "seed", "tuned")},
            "key": job.key, "study": STUDY.sha256, "data": key.sha256, "seconds": 2.0, "model": "<b>tiny</b>",
        }  # fmt: skip
        results.write_file(out / f"{job.key}.npz", about, arrays)
    return out


def test_a_study_is_reported_with_verdict_numbers_pictures_and_the_jobs_left(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    assert main(["study", "report", str(folder), "-o", str(page)]) == 0
    printed = capsys.readouterr().out
    assert "No verdict: 2 of 4 primary tests have results. Run the jobs that are left." in printed
    text = page.read_text(encoding="utf-8")
    kept = json.loads((folder / "analysis.json").read_text())
    shown = next(test for test in kept["primary"] if test["control"] == "merged")
    assert shown["kind"] == "equivalent" and "equivalent within ±0.04" in text
    assert text.count("<svg") >= 2 and "official split: 0 of 40" in text
    assert "&lt;b&gt;tiny&lt;/b&gt;" in text and "<b>tiny" not in text
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "").replace("http-equiv", "")


def test_the_default_page_is_in_the_folder(folder: Path) -> None:
    assert main(["study", "report", str(folder)]) == 0
    assert (folder / "report.html").is_file()


def test_results_without_a_key_are_shown_from_their_analysis(folder: Path, tmp_path: Path) -> None:
    assert main(["study", "report", str(folder), "-o", str(tmp_path / "a.html")]) == 0
    (folder / KEY_FILE).rename(tmp_path / "kept.npz")
    before = (folder / "analysis.json").read_bytes()
    assert main(["study", "report", str(folder), "-o", str(tmp_path / "b.html")]) == 0
    assert (folder / "analysis.json").read_bytes() == before
    assert main(["study", "report", str(folder), "--key", str(tmp_path / "kept.npz")]) == 0
    assert (folder / "analysis.json").read_bytes() == before


def test_an_analysis_of_other_results_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study", "report", str(folder)]) == 0
    (folder / KEY_FILE).unlink()
    (folder / f"{Job('document', '0', 'both', 0).key}.npz").unlink()
    assert main(["study", "report", str(folder)]) == 2
    assert "from other results than those in the folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda folder: shutil.rmtree(folder), "there is no such folder"),
        (lambda folder: [path.unlink() for path in folder.glob("*.npz")], "has no results"),
        (lambda folder: (folder / KEY_FILE).unlink(), "has neither key.npz"),
        (lambda folder: (folder / KEY_FILE).write_bytes(b"no"), "not a study's answer key"),
        (lambda folder: next(folder.glob("document*.npz")).write_bytes(b"no"), "not a result of a study"),
        (lambda folder: (folder / "study.toml").write_text(TOML.read_text() + "\n"), "another study file"),
    ],
)
def test_a_folder_that_cannot_be_analysed_is_refused_and_gets_no_page(
    folder: Path, capsys: pytest.CaptureFixture[str], damage, said: str
) -> None:
    damage(folder)
    assert main(["study", "report", str(folder)]) == 2
    assert said in capsys.readouterr().err
    assert not (folder / "report.html").exists() and not (folder / "analysis.json").exists()


def test_the_published_analysis_is_of_the_published_results(tmp_path: Path) -> None:
    found = study_analysis.read(PUBLISHED, STUDY)
    assert found.done >= 199 and found.planned == 276 and len(found.primary) == 4
    page = tmp_path / "page.html"
    assert main(["study", "report", str(PUBLISHED), "-o", str(page)]) == 0
    assert report_tables.state(found) in page.read_text(encoding="utf-8")


def _analysis(*kinds: str) -> Analysis:
    outcomes = ("genre V", "genre V", "open told", "open told")
    tests = [
        Primary(outcome, outcome, "both", f"c{i}", 0.02, Number(0.5), Number(0.0), 0.5, 5, 5, kind, kind)
        for i, (outcome, kind) in enumerate(zip(outcomes, kinds, strict=False))
    ]
    return Analysis(
        version=1, study="", data="", results="", model="", seeds=[0], items={}, blocks=[], primary=tests,
        primary_planned=4, tables=[], power=[],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("kinds", "said"),
    [
        (("improves", "improves", "equivalent", "undecided"), "Yes: both improves on every control in genre V."),
        (("improves", "equivalent", "equivalent", "equivalent"), "No: both improves on some controls"),
        (("improves", "undecided", "equivalent", "equivalent"), "Undecided."),
        (("equivalent", "worse", "equivalent", "equivalent"), "No: both improves on no control"),
        (("not testable",) * 4, "Not testable with this model."),
        (("equivalent", "equivalent", "not testable", "not testable"), "Undecided."),
        (("equivalent", "equivalent", "equivalent"), "No verdict: 3 of 4 primary tests"),
    ],
)
def test_the_answer_follows_from_all_primary_verdicts(kinds: tuple[str, ...], said: str) -> None:
    assert report_tables.answer(_analysis(*kinds)).startswith(said)
