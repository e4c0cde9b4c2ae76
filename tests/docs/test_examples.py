"""The worked examples of docs/how-to/extend/index.md, run as a reader would run them."""

from __future__ import annotations

import csv
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from overtone import registry
from overtone.benchmarks import Selection, selected
from overtone.build.manifest import read_manifest
from overtone.cli import main
from overtone.errors import DataError, UsageError
from overtone.metrics import Answered
from overtone.runs.store import Store
from overtone.schema import Item, Key, Score
from overtone.scoring import check
from overtone.spec import parse_spec
from tests.conftest import REPOSITORY
from tests.docs.conftest import EXAMPLES
from tests.docs.markdown import blocks

ALL = os.pathsep.join(str(EXAMPLES / name) for name in ("my_benchmark.py", "my_model.py", "my_metric.py"))


@pytest.fixture
def at_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)


def run_examples(clips: Path, out: Path, *more: str) -> int:
    assert main(["trust", "examples/run.toml"]) == 0
    return main(["run", "examples/run.toml", "--data", str(clips), "--out", str(out), "-q", *more])


def plugin(room: str, name: str) -> Any:
    registry.load_plugin(EXAMPLES / f"{name}.py")
    return registry.find(room, name)


def scores(store: Store, metric: str) -> dict[str, Score]:
    """Item and condition → score."""
    keys = {ask.id: f"{ask.item.id} {ask.condition}" for ask, _ in store.asks()}
    return {keys[ask]: score for ask, score in store.scores() if score.metric == metric}


@pytest.mark.usefixtures("at_home")
def test_the_run_file_asks_both_models_everything_and_scores_with_the_new_metric(clips: Path, tmp_path: Path) -> None:
    assert run_examples(clips, tmp_path / "runs") == 0
    folders = sorted((tmp_path / "runs").iterdir())
    assert len(folders) == 2
    first, longest = (Store.read(folder) for folder in folders)
    with first, longest:
        for store in (first, longest):
            assert [item.id.removeprefix("my-benchmark/") for item in store.items()] == [
                "transcribe/rain-1",
                "transcribe/tired-1",
                "choose/rain-1",
                "choose/tired-1",
                "choose/tired-2",
                "converse/rain-1",
                "converse/tired-1",
            ]
            assert store.counts() == {"pending": 0, "answered": 9, "failed": 0}
            assert {s.signature for s in scores(store, "apologies").values()} == {"apologies|v1|lang:en"}
        said = {f"{r.key.item} {r.key.condition}": r.text for r in longest.replies()}
        assert said["my-benchmark/choose/rain-1 task/audio"] == "The answer is: [C]"
        assert said["my-benchmark/transcribe/rain-1 task/audio"] == ""
        assert {k: s.value for k, s in scores(longest, "apologies").items()} == {
            f"my-benchmark/converse/{row} {prompt}/audio": 1.0
            for row in ("rain-1", "tired-1")
            for prompt in ("basic", "enhance")
        }
        assert {s.value for s in scores(first, "apologies").values()} == {0.0}
        assert {s.detail["words"] for s in scores(first, "apologies").values()} == {2}
        assert [s.value for s in scores(first, "accuracy").values()] == [1.0, 1.0, 0.0]
        assert [s.value for s in scores(longest, "accuracy").values()] == [0.0, 1.0, 0.0]
        assert {s.value for s in scores(longest, "wer").values()} == {1.0}


@pytest.mark.usefixtures("at_home")
def test_a_second_command_asks_nothing_and_a_clip_that_changed_is_refused(clips: Path, tmp_path: Path) -> None:
    assert run_examples(clips, tmp_path / "runs") == 0
    log = next((tmp_path / "runs").iterdir()) / "run.log"
    assert run_examples(clips, tmp_path / "runs") == 0
    assert "asking 0 of my-benchmark" in log.read_text().splitlines()[-2]
    shutil.copy(clips / "late.wav", clips / "outside.wav")
    assert run_examples(clips, tmp_path / "runs") == 2


def test_the_listing_shows_plug_ins_named_in_the_environment(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["list"]) == 0
    assert "my-m" not in capsys.readouterr().out
    monkeypatch.setenv("OVERTONE_PLUGINS", ALL)
    assert main(["list"]) == 0
    shown = capsys.readouterr().out
    assert "  my-benchmark  A folder of sounds and a table: clips.csv" in shown
    assert re.search(r"  my-model +A baseline that hears nothing", shown)
    assert re.search(r"  my-metric +How often a conversation's reply apologises", shown)


@pytest.mark.usefixtures("at_home")
def test_a_metric_can_be_added_to_a_run_that_was_made_without_it(
    clips: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(EXAMPLES, tmp_path / "examples")
    file = tmp_path / "examples" / "run.toml"
    file.write_text(file.read_text().replace(', "my_metric.py"', ""))
    run = tmp_path / "run"
    words = ["run", str(file), "--data", str(clips), "--out", str(run), "--model", "my-model:longest", "-q"]
    assert main(words) == 2, "a run file that is not trusted brings no plug-ins"
    assert main([*words, "--trust"]) == 0
    with Store.read(run) as store:
        assert not scores(store, "apologies")
    monkeypatch.setenv("OVERTONE_PLUGINS", str(EXAMPLES / "my_metric.py"))
    assert main(["score", str(run), "-q"]) == 0
    with Store.read(run) as store:
        assert len(scores(store, "apologies")) == 4


def test_a_reply_with_nothing_to_measure_is_unscored_with_a_reason() -> None:
    metric = plugin("metrics", "my_metric").load()
    item = Item("i", "b", 3, "converse", "conversation", "c", "g", "target", ())
    given = [("", False), ("Sorry!", True), ("Pardon me, I apologise.", False)]
    rows = metric.score([Answered(Key("i", "zero/audio"), item, text, refused) for text, refused in given])
    assert [(s.value, s.reason) for (s,) in rows] == [
        (None, "empty reply"),
        (None, "refused by the endpoint"),
        (2.0, ""),
    ]
    assert metric.version == 1


def test_the_model_refuses_what_it_cannot_be(tmp_path: Path) -> None:
    load = plugin("models", "my_model").load
    for spec, complaint in (
        ("my-model", "write my-model:first"),
        ("my-model:first?plite=no", "did you mean 'polite'"),
        ("my-model:first?polite=perhaps", "must be yes or no"),
    ):
        with pytest.raises(UsageError, match=complaint):
            load(parse_spec(spec))


def edited(clips: Path, row: str, **cells: str) -> Path:
    with (clips / "clips.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    with (clips / "clips.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows({**r, **cells} if r["id"] == row else r for r in rows)
    return clips


def test_the_benchmark_guesses_nothing_and_says_what_it_leaves_out(clips: Path) -> None:
    load = plugin("benchmarks", "my_benchmark").load
    table = load(edited(clips, "rain-1", answer="Hail"))
    items = {item.id: item for item in table.items(Selection())}
    assert items["my-benchmark/choose/rain-1"].gold == ""
    assert any("none of the options" in line for line in table.warnings)
    (clips / "late.wav").unlink()
    table = load(clips)
    assert {i.case for i in table.items(Selection())} == {"rain-1"}
    assert sum("does not exist" in line for line in table.warnings) == 2


def test_a_benchmark_without_levels_and_styles_is_selected_by_its_tasks(clips: Path) -> None:
    table = plugin("benchmarks", "my_benchmark").load(clips)
    tasks = {level: {i.task for i in selected(table, Selection(levels=frozenset({level})))} for level in (1, 2, 3)}
    assert tasks == {1: {"transcribe", "choose"}, 2: set(), 3: {"converse"}}
    assert len(list(selected(table, Selection(styles=frozenset({"neutral"}))))) == 7


def test_the_benchmark_has_a_headline_table_and_a_metric_that_is_its_own(
    clips: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, mine = str(tmp_path / "run"), str(EXAMPLES / "my_benchmark.py")
    model = f"{EXAMPLES / 'my_model.py'}:first"
    assert main(["run", mine, "--data", str(clips), "--model", model, "--out", run]) == 0
    assert re.search(r"(?s)Accuracy.*Exact.*WER", capsys.readouterr().out)
    with Store.read(Path(run)) as store:
        assert [s.value for s in scores(store, "exact").values()] == [0.0, 0.0, 0.0], "a letter is not the text"
    assert main(["table", "headline", run, "--plugin", mine]) == 0
    assert re.search(r"66\.7.*0\.0.*100\.0", capsys.readouterr().out)
    assert "exact" not in registry.listing("metrics")


@pytest.mark.local
def test_a_set_is_built_with_the_voice_by_several_processes(tmp_path: Path) -> None:
    voice = f"{EXAMPLES / 'my_voice.py'}?high=300"
    words = ["build", "open", "--voice", voice, "--only", "rain", "--per-cue", "1", "--no-gates", "--jobs", "2"]
    assert main([*words, "--out", str(tmp_path / "set")]) == 0
    voices = {one.source for one in read_manifest(tmp_path / "set").ingredients if one.what == "voice"}
    assert voices == {"my-voice 1 (110, 300 Hz)"}
    assert main([*words[:3], "my-voice?hihg=3", *words[4:], "--out", str(tmp_path / "x")]) == 2


def test_the_rubric_is_asked_by_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    rubric = str(EXAMPLES / "my_rubric.toml")
    assert main(["judge", "show", "my-rubric", "--plugin", rubric]) == 0
    assert "Could the same be said in fewer words?" in capsys.readouterr().out
    (judge,) = check((), [parse_spec("openai:x?base_url=http://127.0.0.1:9/v1&rubrics=my-rubric")])
    assert judge.rubrics == ("my-rubric",)


@pytest.mark.parametrize(
    ("cells", "complaint"),
    [
        ({"file": "../outside.wav"}, "leaves its folder"),
        ({"file": "/etc/passwd"}, "absolute path"),
        ({"id": "tired-2"}, "an id that no other row has"),
    ],
)
def test_a_table_that_is_wrong_or_hostile_is_refused(clips: Path, cells: dict[str, str], complaint: str) -> None:
    load = plugin("benchmarks", "my_benchmark").load
    with pytest.raises(DataError, match=complaint):
        list(load(edited(clips, "tired-1", **cells)).items(Selection()))


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("mine.py", "ROOM = 'metrics'\nraise ValueError('no')", r"mine\.py, line 2: ValueError: no"),
        ("mine.py", "ROOM = 'metrics'\n\ndef load(:", r"mine\.py, line 3: SyntaxError"),
        ("mine.py", "def load(): ...", "must define ROOM"),
        ("mine.py", "ROOM = 'tasks'\ndef messages(): ...", "must define ROOM"),
        ("mine.py", "ROOM = 'models'\nload = 3", r"has no function load\(\)"),
        ("wer.py", "ROOM = 'metrics'\ndef load(): ...", "the name of a built-in"),
        ("9lives.py", "ROOM = 'models'\ndef load(): ...", "a letter first"),
        ("mine.txt", "", "must be a file like"),
    ],
)
def test_a_broken_plug_in_is_one_clear_line(tmp_path: Path, name: str, text: str, complaint: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(UsageError, match=complaint):
        registry.load_plugin(tmp_path / name)


def test_two_plug_ins_of_one_name_in_a_run_file_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        shutil.copy(EXAMPLES / "my_metric.py", tmp_path / folder)
    (tmp_path / "run.toml").write_text('[run]\nplugins = ["a/my_metric.py", "b/my_metric.py"]\n')
    monkeypatch.chdir(tmp_path)
    assert main(["run", "run.toml", "--trust"]) == 2
    assert "two plug-ins are called 'my-metric'" in capsys.readouterr().err


def test_the_python_and_sql_of_the_page_on_reading_runs_do_what_it_says(clips: Path) -> None:
    page = REPOSITORY / "docs" / "how-to" / "read-a-run.md"
    (code,) = (block.text for block in blocks(page) if block.language == "python")
    around = {**os.environ, "OVERTONE_PLUGINS": ALL}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=clips.parent, env=around, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "my-model:longest 7 items" in done.stdout
    assert "apologies 1.0" in done.stdout
    queries = [block.text for block in blocks(page) if block.language == "sql"]
    assert len(queries) == 3
    with sqlite3.connect(f"file:{clips.parent / 'runs' / 'mine' / 'run.db'}?mode=ro", uri=True) as db:
        failures, metrics, wrong = (db.execute(query).fetchall() for query in queries)
    assert failures == []
    assert ("apologies", "apologies|v1|lang:en", 1.0, 2, 0) in metrics
    assert {row[0] for row in wrong} == {"my-benchmark/choose/rain-1", "my-benchmark/choose/tired-2"}
