"""Runs in experiment trackers: what is sent, and that MLflow and Weights & Biases hold it, offline."""

from __future__ import annotations

from pathlib import Path

import pytest

from overtone.cli import main
from overtone.embedded import present
from overtone.report import trackers
from overtone.report.run_summary import headline_numbers
from overtone.results.load import open_run
from tests.peers import overtone, peer
from tests.report.open_run import make_open_run


@pytest.fixture
def made(tmp_path: Path) -> Path:
    return make_open_run(tmp_path / "run", scripts=20)


def test_a_tracker_gets_headline_numbers_tables_and_the_report(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[trackers.Logged] = []

    def keep(logged: trackers.Logged, project: str, to: str, offline: bool) -> str:
        assert all(file.stat().st_size for file in logged.files)
        sent.append(logged)
        return "here"

    monkeypatch.setitem(trackers.TRACKERS, "mlflow", keep)
    assert main(["log", "mlflow", str(made)]) == 0
    assert main(["log", "mlflow", str(made), "--no-report"]) == 0
    first, again = sent
    assert first.id == again.id
    assert [file.name for file in first.files] == ["results.csv", "report.html"]
    assert [file.name for file in again.files] == ["results.csv"]
    assert first.numbers["answered"] == first.numbers["asked"] > 0
    values = [n.estimate.value for n in headline_numbers(open_run(made, light=True)) if n.estimate.value is not None]
    assert set(values) <= set(first.numbers.values())
    assert all(name == trackers._key(name) for name in first.numbers)


def test_names_of_numbers_are_those_that_trackers_allow() -> None:
    assert trackers._key("Reply SemSim ↑ · enhance/audio") == "reply_semsim.enhance/audio"
    assert trackers._key("WER ↓") == "wer"


@pytest.mark.parametrize("tracker", ["wandb", "mlflow"])
def test_a_missing_package_is_named_with_the_line_that_installs_it(
    made: Path, tracker: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if present(tracker):
        pytest.fail(f"{tracker} must not be part of the development environment")
    assert main(["log", tracker, str(made)]) != 0
    error = capsys.readouterr().err
    assert "is not installed; run: " in error and f"[{tracker}]" in error


READ_MLFLOW = """
import json, sys
from mlflow.tracking import MlflowClient
client = MlflowClient(sys.argv[1])
experiment = client.get_experiment_by_name("speech")
runs = client.search_runs([experiment.experiment_id])
print(json.dumps({"runs": len(runs), "metrics": runs[0].data.metrics, "tags": runs[0].data.tags,
                  "files": sorted(file.path for file in client.list_artifacts(runs[0].info.run_id))}))
"""


@pytest.mark.full
@pytest.mark.peers
def test_mlflow_holds_a_run_once_however_often_it_is_logged(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    for _ in range(2):
        overtone("log", "mlflow", made, "--project", "speech", "--to", tmp_path / "ml")
    found = peer(READ_MLFLOW, (tmp_path / "ml").as_uri())
    assert found["runs"] == 1 and found["files"] == ["report.html", "results.csv"]
    assert found["tags"]["model"] == "openai:some-model" and found["metrics"]["answered"] > 0


# The file is a LevelDB log: blocks of 32 KiB, records of CRC (4 bytes), length (2) and type (1), after 7 bytes of head.
READ_WANDB = """
import json, struct, sys
from wandb.proto import wandb_internal_pb2
data, at, whole, summary, artefacts = open(sys.argv[1], "rb").read(), 7, b"", {}, []
while at + 7 <= len(data):
    left = 32768 - at % 32768
    if left < 7:
        at += left
        continue
    _, length, kind = struct.unpack("<IHB", data[at : at + 7])
    whole += data[at + 7 : at + 7 + length]
    at += 7 + length
    if kind in (1, 4):  # a whole record, or the last part of one
        record = wandb_internal_pb2.Record.FromString(whole)
        whole = b""
        for update in record.summary.update:
            summary[update.key or "/".join(update.nested_key)] = json.loads(update.value_json)
        if record.HasField("artifact"):
            artefacts += [entry.path for entry in record.artifact.manifest.contents]
print(json.dumps({"summary": summary, "artefacts": artefacts}))
"""


@pytest.mark.full
@pytest.mark.peers
def test_wandb_keeps_the_numbers_of_a_run_in_its_offline_files(made: Path, tmp_path: Path) -> None:
    overtone("log", "wandb", made, "--offline", "--to", tmp_path / "files")
    (file,) = (tmp_path / "files").rglob("*.wandb")
    found = peer(READ_WANDB, file)
    assert found["summary"]["answered"] > 0 and sorted(found["artefacts"]) == ["report.html", "results.csv"]
