"""`overtone study perspectives`: every job of a study, resumed after a kill, on a tiny model and made-up files."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from overtone.cli import main
from overtone.studies.perspectives import results
from overtone.studies.perspectives.answers import Key
from overtone.studies.perspectives.design import Study
from overtone.studies.perspectives.inputs import read_inputs
from overtone.studies.perspectives.outcomes import catalogue, cells
from overtone.studies.perspectives.study_folder import planned
from overtone.studies.perspectives.testability import check
from overtone.workers import model_source
from tests.studies.perspectives.toys import (
    write_corpus,
    write_dream,
    write_emobank,
    write_model,
    write_open,
    write_study,
)

pytestmark = pytest.mark.torch
FEW = (  # three arms where the test needs no more
    ('arms = ["both", "merged", "shuffled", "pseudo", "matched", "reader", "writer", "permuted"]', 'arms = ["both"]'),
    ('arms = ["both", "merged", "shuffled", "pseudo"]', 'arms = ["both", "merged", "shuffled"]'),
)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    write_model(folder / "lm")
    write_emobank(folder / "emobank")
    write_dream(folder / "dream")
    write_open(folder / "open.jsonl")
    write_study(folder / "study.toml")
    write_study(folder / "few.toml", *FEW)
    return folder


def words(files: Path, out: Path, *more: str, study: str = "study.toml") -> list[str]:
    """Return the command line; a flag of `more` that comes again replaces the one before."""
    return [
        "study", "perspectives", "--data", str(files / "emobank"), "--dream", str(files / "dream"),
        "--open", str(files / "open.jsonl"), "--model", str(files / "lm"), "--study", str(files / study),
        "--out", str(out), "--device", "cpu", *more,
    ]  # fmt: skip


def read(out: Path) -> dict[str, results.Result]:
    study, key = Study.read(out / "study.toml"), Key.read(out / "key.npz")
    return {job.key: result for job, result in results.read(out, study, key.sha256).items()}


def test_a_study_runs_all_arms_and_outcomes_and_can_be_analysed(files: Path, tmp_path: Path, capsys) -> None:
    out = tmp_path / "out"
    assert main(words(files, out)) == 0
    study, key = Study.read(out / "study.toml"), Key.read(out / "key.npz")
    assert (out / "study.toml").read_bytes() == (files / "study.toml").read_bytes()
    found = results.read(out, study, key.sha256)
    every = planned(study, {"emobank", "open", "dream", "tuned", "perplexity"}, ["blog", "letters", "news"])
    assert set(found) == set(every) and len(every) == 1 + 2 * (8 + 4 * 3) + 2 * 2 + 2 * 8 + 2 * 9
    assert {result.about["study"] for result in found.values()} == {study.sha256}
    assert key.sha256 == read_inputs(files / "emobank", files / "dream", files / "open.jsonl").sha256
    assert not (out / "state").exists()
    assert "f 4 primary tests" in (out / "report.html").read_text(encoding="utf-8")
    arrays = {job: result.arrays for job, result in found.items()}
    assert all(np.isfinite(a).any() for values in arrays.values() for a in values.values())
    for outcome in catalogue(key, study.tests):
        arms = cells(arrays, outcome)
        assert {"both", "shuffled"} <= set(arms), outcome.name
        assert not check(arrays, key, outcome, arms).pending, outcome.name
    assert key.answers["dream"].baselines.keys() == {"longest", "options", "window", "overlap"}
    printed = capsys.readouterr().out
    assert "[79/79]" in printed
    written = {path: path.stat().st_mtime_ns for path in out.glob("*.npz")}
    assert main(words(files, out)) == 0
    assert "79 of 79 jobs are done" in capsys.readouterr().out
    assert {path: path.stat().st_mtime_ns for path in out.glob("*.npz")} == written


@pytest.mark.full
def test_a_killed_study_resumes_without_repeating_a_job_and_ends_the_same(files: Path, tmp_path: Path, environment):
    more = ("--save-minutes", "0", "--seeds", "1")
    assert main(words(files, tmp_path / "whole", *more, study="few.toml")) == 0
    cut = tmp_path / "cut"
    source = str(Path(__file__).parents[3] / "src")
    path = os.pathsep.join((source, environment["PYTHONPATH"], os.environ.get("PYTHONPATH", "")))
    command = [sys.executable, "-m", "overtone", *words(files, cut, *more, study="few.toml")]
    for count in (2, 5):  # killed twice, in the middle of a job
        process = subprocess.Popen(command, env={**environment, "PYTHONPATH": path}, stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 120
        while not (len(list(cut.glob("*-*.npz"))) >= count and list(cut.glob("state/*/training/step-*"))):
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.wait()
    written = {path: path.stat().st_mtime_ns for path in cut.glob("*.npz")}
    assert main(words(files, cut, *more, study="few.toml")) == 0
    assert {path: path.stat().st_mtime_ns for path in written} == written
    whole, again = read(tmp_path / "whole"), read(cut)
    assert whole.keys() == again.keys() and len(whole) > len(written)
    for key, result in whole.items():
        for name, values in result.arrays.items():
            assert np.array_equal(values, again[key].arrays[name]), (key, name)


def test_more_seeds_can_be_added_to_a_study(files: Path, tmp_path: Path, capsys) -> None:
    out = tmp_path / "out"
    assert main(words(files, out, "--seeds", "1", study="few.toml")) == 0
    capsys.readouterr()
    assert main(words(files, out, "--minutes", "0.0001", study="few.toml")) == 4
    assert "16 of 31 jobs are done" in capsys.readouterr().out
    assert main(words(files, out, "--seeds", "3", study="few.toml")) == 2
    assert "fixes 2" in capsys.readouterr().err


def test_time_that_is_up_ends_the_study_with_its_exit_code_and_the_folder_resumes(files: Path, tmp_path: Path, capsys):
    out = tmp_path / "out"
    assert main(words(files, out, "--minutes", "0.02", study="few.toml")) == 4
    assert "continue with the same command" in capsys.readouterr().out
    assert (out / "key.npz").is_file() and not list(out.glob("*.part"))


@pytest.mark.full
def test_two_processes_run_the_study_that_one_does(files: Path, tmp_path: Path, environment) -> None:
    more = ("--seeds", "1")
    assert main(words(files, tmp_path / "one", *more, study="few.toml")) == 0
    source = str(Path(__file__).parents[3] / "src")
    path = os.pathsep.join((source, environment["PYTHONPATH"], os.environ.get("PYTHONPATH", "")))
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
               "-m", "overtone", *words(files, tmp_path / "two", *more, study="few.toml")]  # fmt: skip
    done = subprocess.run(command, env={**environment, "PYTHONPATH": path}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    one, two = read(tmp_path / "one"), read(tmp_path / "two")
    assert one.keys() == two.keys() and len(one) == 16
    for key, result in one.items():
        for name, values in result.arrays.items():
            assert np.allclose(values, two[key].arrays[name], atol=2e-2), (key, name)


def _changed_study(files: Path) -> tuple[str, str]:
    return "--study", str(write_study(files / "changed.toml", *FEW, ("margin_r = 0.02", "margin_r = 0.03")))


def _changed_data(files: Path) -> tuple[str, str]:
    return "--data", str(write_emobank(files / "more", 42))


def _changed_model(files: Path) -> tuple[str, str]:
    folder = files / "other-lm"
    if not folder.exists():
        shutil.copytree(files / "lm", folder)
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | {"rms_norm_eps": 1e-4}))
    return "--model", str(folder)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_changed_study, "a different study file"),
        (_changed_data, "a different EmoBank"),
        (_changed_model, "a different --model"),
        (lambda files: ("--lora",), "a different --lora"),
    ],
)
def test_a_folder_of_another_study_data_or_model_is_refused(
    files: Path, tmp_path: Path, capsys, change: Callable[[Path], tuple[str, ...]], said: str
) -> None:
    out = tmp_path / "out"
    assert main(words(files, out, "--minutes", "0.0001", study="few.toml")) == 4
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert main(words(files, out, *change(files), study="few.toml")) == 2
    assert said in capsys.readouterr().err
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before


def test_a_study_file_that_was_changed_in_the_folder_is_refused(files: Path, tmp_path: Path, capsys) -> None:
    out = tmp_path / "out"
    command = words(files, out, "--minutes", "0.0001", study="few.toml")
    assert main(command) == 4
    (out / "study.toml").write_text((out / "study.toml").read_text().replace("alpha = 0.05", "alpha = 0.5"))
    at = command.index("--study")
    assert main(command[:at] + command[at + 2 :]) == 2
    assert "a different study file" in capsys.readouterr().err


def test_a_folder_with_other_files_is_refused_and_left_alone(files: Path, tmp_path: Path, capsys) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    assert main(words(files, tmp_path)) == 2
    assert "not empty and not a study" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_second_process_on_the_same_study_is_refused(files: Path, tmp_path: Path, capsys) -> None:
    from overtone import locks

    out = tmp_path / "out"
    assert main(words(files, out, "--minutes", "0.0001", study="few.toml")) == 4
    with (out / "lock").open("a+") as file:
        assert locks.lock(file)
        assert main(words(files, out, study="few.toml")) == 2
    assert "another process" in capsys.readouterr().err


def _edited(name: str, old: str, new: str) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        path = folder / name
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, 1))

    return edit


def _without(folder: Path, who: str, name: str) -> None:
    for file in (f"{who}.csv", f"individual_{who}_ratings.csv"):
        path = folder / "emobank" / file
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join(line for line in lines if not line.startswith(f"{name},")))


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (_edited("emobank/reader.csv", "\ns3,", "\nother,"), "N is 4 for other"),
        (lambda folder: _without(folder, "reader", "s3"), "s3 has no reader's rating"),
        (_edited("emobank/meta.tsv", "\ns3\t", "\nother\t"), "s3 is not in meta.tsv"),
        (_edited("emobank/individual_writer_ratings.csv", "s3,", "s3,9"), "between 1 and 5"),
        (lambda folder: (folder / "emobank/writer.csv").unlink(), "writer.csv is missing"),
        (_edited("dream/test.json", '"W: It is awful."', '"It is awful."'), "does not begin with a speaker"),
        (_edited("open.jsonl", '"heard"', '"hear"'), "heard"),
        (_edited("open.jsonl", '"cue": "male"', '"cue": "mail"'), "mail"),
        (_edited("open.jsonl", '"gold": 1', '"gold": 7'), "gold"),
    ],
)
def test_damaged_data_is_named_before_anything_is_written(
    files: Path, tmp_path: Path, capsys, damage: Callable[[Path], None], said: str
) -> None:
    folder = tmp_path / "files"
    shutil.copytree(files, folder)
    damage(folder)
    assert main(words(folder, tmp_path / "out")) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("left_out", "said"),
    [("--open", "'open told', which needs --open"), ("--dream", "")],
)
def test_a_primary_test_without_its_data_is_refused(files: Path, tmp_path: Path, capsys, left_out, said) -> None:
    command = words(files, tmp_path / "out", "--minutes", "0.0001")
    at = command.index(left_out)
    assert main(command[:at] + command[at + 2 :]) == (2 if said else 4)
    assert said in capsys.readouterr().err
    assert (tmp_path / "out").exists() == (not said)


def test_a_study_of_another_corpus_runs_and_is_analysed_without_dream_and_overtone_open(
    files: Path, tmp_path: Path
) -> None:
    text = (files / "few.toml").read_text()
    first, second = text.index('[[primary]]\noutcome = "open told"'), text.index("[tests]")
    (tmp_path / "own.toml").write_text(text[:first] + text[second:])
    out = tmp_path / "out"
    assert main([
        "study", "perspectives", "--data", str(write_corpus(tmp_path / "corpus")), "--model", str(files / "lm"),
        "--study", str(tmp_path / "own.toml"), "--out", str(out), "--device", "cpu",
    ]) == 0  # fmt: skip
    study, key = Study.read(out / "study.toml"), Key.read(out / "key.npz")
    found = {job: result.arrays for job, result in results.read(out, study, key.sha256).items()}
    assert len(found) == 1 + 2 * (1 + 3 * 3) + 2 and not key.answers
    assert all(set(arrays) == {"emobank"} for arrays in found.values())
    seen = {outcome.name for outcome in catalogue(key, study.tests) if cells(found, outcome)}
    assert {"genre V", "document V gap", "official D"} <= seen
    assert not {name for name in seen if name.startswith(("open", "dream", "nats"))}


def test_a_genre_of_one_sentence_is_refused(files: Path, tmp_path: Path, capsys) -> None:
    folder = tmp_path / "emobank"
    shutil.copytree(files / "emobank", folder)
    _edited("meta.tsv", "\ns3\tletters 0\tletters", "\ns3\tpoem\tpoem")(folder)
    assert main(words(files, tmp_path / "out", "--data", str(folder))) == 2
    assert "genre poem has 35 sentences to learn and 1 held out" in capsys.readouterr().err


@pytest.mark.parametrize(
    "flags", [("--seeds", "0"), ("--minutes", "0"), ("--minutes", "nan"), ("--save-minutes", "-1")]
)
def test_wrong_numbers_are_refused(files: Path, tmp_path: Path, capsys, flags: tuple[str, str]) -> None:
    assert main(words(files, tmp_path / "out", *flags)) == 2
    assert flags[0] in capsys.readouterr().err and not (tmp_path / "out").exists()


def test_a_study_runs_on_an_openpangu_checkpoint(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    pytest.importorskip("sentencepiece", reason="sentencepiece is not installed; run 'make .venv-worker/.ready'")
    from tests.models import make_tiny_pangu

    folder = tmp_path / "pangu"
    make_tiny_pangu.main(folder)
    model = ("--model", f"openpangu:{folder}", "--seeds", "1")
    assert main(words(files, tmp_path / "out", *model, study="few.toml")) == 2
    assert "European Union" in capsys.readouterr().err
    monkeypatch.setenv(model_source.ACCEPTED, "openpangu")
    assert main(words(files, tmp_path / "out", *model, study="few.toml")) == 0
    found = read(tmp_path / "out")
    assert len(found) == 16 and {result.about["model"] for result in found.values()} == {f"openpangu:{folder}"}
