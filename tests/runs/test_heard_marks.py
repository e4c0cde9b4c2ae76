"""Runs of models that state what they heard: items are marked, kept out of the headline, and read without the model."""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import Any

import pytest

import overtone
from overtone import audio
from overtone.benchmarks.sd_eval import load
from overtone.cli import main
from overtone.errors import UsageError
from overtone.heard import HeardInTraining, Origin, heard_clip, sound_hash, union
from overtone.results.headline_condition import by_condition
from overtone.results.load import open_run
from overtone.results.summary import summarise
from overtone.runs.marks import read_marks
from overtone.runs.store import Store
from tests.benchmarks.test_sd_eval import utterance, write
from tests.runs.old_store import as_version_6

SHARED = Path(os.environ.get("OVERTONE_SHARED", Path(__file__).parents[3] / "shared")) / "data"


class Model:
    """A model of this process that states what it heard."""

    def __init__(self, heard: Any) -> None:
        self._heard = heard

    def ask(self, request: overtone.Request) -> str:
        return f"That is sad, {request.key.item}."

    def describe(self) -> dict[str, Any]:
        return {"name": "toy"}

    def heard(self) -> Any:
        return self._heard


def take(actor: int, repetition: int = 1) -> str:
    return f"03-01-04-02-01-{repetition:02}-{actor:02}"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Four takes of RAVDESS by three actors, a clip of the JL corpus, and a synthesised clip."""
    takes = [take(1), take(1, 2), take(2), take(3)]
    rows = [utterance(name, "sad", f"RAVDESS-Speech/Actor_{name[-2:]}/{name}.wav") for name in takes]
    rows.append(
        utterance("female1_angry_10a_1", "angry", "JL_corpus/female1_angry_10a_1.wav", dataset_name="JL_corpus")
    )
    write(tmp_path / "sd", "test-emo", rows)
    made = [utterance("myst_1_adult", "adult", "adult/a.wav", dataset_name="synthesized")]
    write(tmp_path / "sd", "test-age", made)
    return tmp_path / "sd"


def ravdess(*names: str, corpus: str = "ravdess") -> HeardInTraining:
    return union(heard_clip([Origin(corpus, name[-2:], f"{name}.ogg")], "CC-BY-NC-SA-4.0", b"") for name in names)


def ran(data: Path, out: Path, heard: Any) -> Path:
    overtone.run("sd-eval", data=data, model=Model(heard), out=out).close()
    return out


def levels(run: Path) -> dict[str, str]:
    with Store.read(run) as store:
        return {name.rpartition("/")[2]: mark.level for name, mark in read_marks(store).items()}


def test_every_item_is_marked_by_the_closest_thing_that_was_heard(data: Path, tmp_path: Path) -> None:
    run = ran(data, tmp_path / "run", ravdess(take(1), take(3, 2)))
    assert levels(run) == {take(1): "clip", take(1, 2): "speaker", take(2): "corpus", take(3): "speaker"}


def test_marked_items_have_rows_of_their_own_and_the_headline_says_how_many(data: Path, tmp_path: Path) -> None:
    run = ran(data, tmp_path / "run", ravdess(take(1), take(3, 2)))
    reading = open_run(run, light=True)
    assert {name: len(answers) for name, answers in by_condition(reading).items()} == {
        "enhance/audio": 2,
        "enhance/audio (clip heard)": 1,
        "enhance/audio (speaker heard)": 2,
        "enhance/audio (corpus heard)": 1,
    }
    with Store.read(run) as store:
        note = summarise(store).clips_note
    assert note == (
        "4 of 6 items are not in the headline, because they were heard in training (the clip of 1, the speaker of 2, "
        "the corpus of 1); --heard corpus, speaker or clip counts them too."
    )


def test_nothing_left_is_said_plainly_by_every_command(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (data / "test-age.json").unlink()
    both = union([ravdess(take(1), take(2), take(3), take(1, 2)), heard_clip([Origin("JL corpus")], "", b"")])
    run = ran(data, tmp_path / "run", both)
    said = "No headline: all 5 items were heard in training (the clip of 4, the corpus of 1); --heard"
    capsys.readouterr()
    for words in (
        ["table", "results", str(run)],
        ["report", str(run), "-o", str(tmp_path / "r.html")],
        ["export", str(run), "-o", str(tmp_path / "r.csv")],
        ["analyze", str(run)],
    ):
        assert main(words) == 0, words
    for found in (" ".join(capsys.readouterr().out.split()), (tmp_path / "r.html").read_text()):
        assert said in found
    for command in ("check", "compare"):
        words = [command, str(run), *(["--require", "failures <= 1%"] if command == "check" else [str(run)])]
        assert main(words) == UsageError.exit_code
        assert said in capsys.readouterr().err
    assert main(["check", str(run), "--require", "failures <= 1%", "--heard", "clip"]) == 0
    assert "Items whose clip, speaker or corpus the model heard in training count too" in capsys.readouterr().out
    assert main(["case", str(run), f"emotion/{take(1)}"]) == 0
    assert "clip heard in training" in capsys.readouterr().out
    assert "clip heard in training" in (tmp_path / "r.html").read_text()
    with (tmp_path / "r.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {(row["heard"], row["heard_origin"]) for row in rows if take(1) in row["item"]} == {
        ("clip", f"ravdess:{take(1)}")
    }


def test_a_level_counts_what_is_less_close(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = ran(data, tmp_path / "run", ravdess(take(1), take(3, 2)))
    capsys.readouterr()
    for level, left in (("corpus", "3 of 6"), ("speaker", "1 of 6")):
        assert main(["check", str(run), "--require", "failures <= 1%", "--heard", level]) == 0
        assert f"{left} items are not in the headline" in " ".join(capsys.readouterr().out.split())
    assert main(["check", str(run), "--require", "failures <= 1%", "--heard", "all"]) == UsageError.exit_code


def test_runs_are_compared_on_the_items_that_no_model_heard(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = ran(data, tmp_path / "first", ravdess(take(1)))
    second = ran(data, tmp_path / "second", None)
    with pytest.raises(UsageError, match="No headline"):
        overtone.compare(first, ran(data, tmp_path / "third", everything(data)))
    assert overtone.compare(first, second).result.shared == 2
    capsys.readouterr()
    assert main(["table", "results", str(first), str(second)]) == 0
    assert "another model in this comparison heard 4" in " ".join(capsys.readouterr().out.split())


def everything(data: Path) -> HeardInTraining:
    """What a model heard that learnt from the files themselves, without names."""
    paths = sorted(path for path in data.rglob("*.wav"))
    return union(heard_clip([], "", sound_hash(audio.read(path, rate=16_000)[0]), made="mine") for path in paths)


def test_clips_are_recognised_by_their_samples_without_any_name(data: Path, tmp_path: Path) -> None:
    run = ran(data, tmp_path / "run", everything(data))
    assert set(levels(run).values()) == {"clip"} and len(levels(run)) == 6


def test_a_model_that_states_nothing_has_no_marks(data: Path, tmp_path: Path) -> None:
    run = ran(data, tmp_path / "run", None)
    with Store.read(run) as store:
        assert read_marks(store) == {} and "heard" not in store.meta()
        assert summarise(store).clips_note == ""


def test_a_model_that_heard_something_else_says_so(data: Path, tmp_path: Path) -> None:
    run = ran(data, tmp_path / "run", union([heard_clip([Origin("esd")], "", b""), HeardInTraining(complete=False)]))
    with Store.read(run) as store:
        note = summarise(store).clips_note
    assert note.startswith("The model heard none of these items in training, nor their speakers or corpora.")
    assert "may have heard more" in note


def test_another_statement_marks_all_items_again(data: Path, tmp_path: Path) -> None:
    run = ran(data, tmp_path / "run", ravdess(take(1)))
    assert levels(run)[take(2)] == "corpus"
    assert levels(ran(data, run, ravdess(take(2))))[take(2)] == "clip"


def test_an_invalid_statement_is_refused_before_anything_is_asked(data: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"heard\(\) returned dict; return an overtone.heard.HeardInTraining"):
        ran(data, tmp_path / "run", {"corpora": []})
    assert not (tmp_path / "run").exists()


def test_a_run_of_a_version_without_marks_is_read_and_upgraded(data: Path, tmp_path: Path) -> None:
    run = ran(data, tmp_path / "run", None)
    as_version_6(run)
    with Store.read(run) as store:
        assert read_marks(store) == {}
        assert summarise(store).answered == 6
    assert levels(ran(data, run, ravdess(take(1))))[take(1)] == "clip"
    assert (run / "run.db.v6.bak").is_file()


@pytest.mark.shared
def test_sd_evals_items_are_the_takes_of_ravdess() -> None:
    if not (SHARED / "people" / "ravdess").is_dir():
        pytest.skip("needs people/ravdess; set OVERTONE_SHARED")
    with (SHARED / "people" / "ravdess" / "labels.csv").open() as file:
        rows = list(csv.DictReader(file))
    heard = union(heard_clip([Origin("ravdess", row["speaker"], row["file"])], "", b"") for row in rows)
    without = union(
        heard_clip([Origin("ravdess", row["speaker"], row["file"])], "", b"")
        for row in rows
        if row["speaker"] not in ("01", "02")
    )
    benchmark = load(SHARED / "sd_eval")
    items = [item for item in benchmark.items(overtone_selection()) if item.category == "emotion"]
    assert {heard.mark(benchmark.origins(item)).level for item in items} == {"clip"} and len(items) == 80
    marks = [without.mark(benchmark.origins(item)).level for item in items]
    assert marks.count("corpus") == sum(item.id.endswith(("-01", "-02")) for item in items) == 20


def overtone_selection() -> Any:
    from overtone.benchmarks import Selection

    return Selection()
