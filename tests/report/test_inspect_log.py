"""Logs for inspect_ai: what is in them, and that inspect_ai's own reader takes them."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from overtone.cli import main
from overtone.report.inspect_log import write_inspect_log
from overtone.runs.store import Store
from tests.peers import peer
from tests.runs.helpers import run
from tests.servers import OpenAIServer


@pytest.fixture
def talked(small: Path, tmp_path: Path) -> Path:
    """A real run: three scripts, six questions, spoken replies, and one request that the server refuses."""
    with OpenAIServer() as server:
        server.behave("400:too strange")
        run(small, server.base_url, tmp_path / "run", keys={"speech": "auto"})
    assert main(["score", str(tmp_path / "run"), "--quiet"]) == 0
    return tmp_path / "run"


def members(path: Path) -> dict[str, Any]:
    with zipfile.ZipFile(path) as archive:
        return {name: json.loads(archive.read(name)) for name in archive.namelist()}


def test_a_log_has_every_reply_with_its_request_scores_and_sounds(talked: Path, tmp_path: Path) -> None:
    assert main(["export", str(talked), "--condition", "enhance/audio", "-o", str(tmp_path / "run.eval")]) == 0
    log = members(tmp_path / "run.eval")
    samples = [sample for name, sample in log.items() if name.startswith("samples/")]
    with Store.read(talked) as store:
        asks = [ask for ask in store.answered() if ask.condition == "enhance/audio"]
    answered = {sample["id"]: sample for sample in samples if "error" not in sample}
    assert answered.keys() == {ask.item.id for ask in asks}
    sample = answered[asks[0].item.id]
    kinds = [part["type"] for message in sample["messages"] for part in message["content"]]
    assert kinds.count("audio") == 2, "the clip and the spoken reply"
    assert sample["output"]["completion"] == asks[0].reply.text
    assert all(data.startswith("data:audio/wav;base64,UklGR") for data in sample["attachments"].values())
    assert sample["scores"]["reply_words"]["value"] == len(asks[0].reply.text.split())
    assert len(log["summaries.json"]) == len(samples) == log["header.json"]["results"]["total_samples"]


def test_the_header_has_the_headline_numbers_with_their_intervals(talked: Path, tmp_path: Path) -> None:
    with Store.read(talked) as store:
        write_inspect_log(store, tmp_path / "run.eval", "task/audio")
    (scores,) = members(tmp_path / "run.eval")["header.json"]["results"]["scores"]
    assert scores["metrics"]
    assert all({"low", "high", "scored", "asked"} == number["params"].keys() for number in scores["metrics"].values())


def test_a_failed_request_is_a_sample_with_an_error(talked: Path, tmp_path: Path) -> None:
    errors = []
    for condition in ("task/audio", "enhance/audio"):
        assert main(["export", str(talked), "--condition", condition, "-o", str(tmp_path / "run.eval")]) == 0
        samples = [value for name, value in members(tmp_path / "run.eval").items() if name.startswith("samples/")]
        errors += [sample["error"]["message"] for sample in samples if "error" in sample]
    assert len(errors) == 1 and "too strange" in errors[0]


def test_without_sounds_a_log_names_them(talked: Path, tmp_path: Path) -> None:
    words = ["export", str(talked), "--condition", "enhance/audio", "--no-sounds", "-o", str(tmp_path / "run.eval")]
    assert main(words) == 0
    text = json.dumps(members(tmp_path / "run.eval"))
    assert "attachments" not in text and "[sound: data_synthesis/" in text and "[sound: reply " in text


def test_a_missing_clip_is_named_instead_of_played(talked: Path, small: Path, tmp_path: Path) -> None:
    for clip in small.rglob("*.wav"):
        clip.unlink()
    assert main(["export", str(talked), "--condition", "task/audio", "-o", str(tmp_path / "run.eval")]) == 0
    assert "[sound: data_synthesis/" in json.dumps(members(tmp_path / "run.eval"))


def test_a_run_of_several_conditions_needs_one_named(talked: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(talked), "--format", "inspect"]) == 2
    assert "--condition enhance/audio or --condition task/audio" in capsys.readouterr().err
    assert not list(talked.glob("*.eval*"))


def test_the_same_run_gives_the_same_bytes(talked: Path, tmp_path: Path) -> None:
    for name in ("one.eval", "two.eval"):
        assert main(["export", str(talked), "--condition", "task/audio", "-o", str(tmp_path / name)]) == 0
    assert (tmp_path / "one.eval").read_bytes() == (tmp_path / "two.eval").read_bytes()


def test_no_sounds_is_refused_for_a_format_without_sounds(talked: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(talked), "--format", "csv", "--no-sounds"]) == 2
    assert "only for --format inspect or hf" in capsys.readouterr().err


READ = """
import json, sys
from inspect_ai.log import list_eval_logs, read_eval_log, read_eval_log_sample, read_eval_log_sample_summaries
log = read_eval_log(sys.argv[1], resolve_attachments=True)
lines = read_eval_log_sample_summaries(sys.argv[1])
one = read_eval_log_sample(sys.argv[1], id=lines[-1].id, epoch=1)
print(json.dumps({
    "status": log.status, "model": log.eval.model, "listed": len(list_eval_logs(sys.argv[2])),
    "samples": len(log.samples), "lines": len(lines), "one": one.output.completion,
    "numbers": {name: number.value for name, number in log.results.scores[0].metrics.items()},
    "sounds": sum(part.audio.startswith("data:audio/wav") for sample in log.samples for message in sample.messages
                  if not isinstance(message.content, str) for part in message.content if part.type == "audio"),
    "errors": [sample.error.message for sample in log.samples if sample.error],
}))
"""


@pytest.mark.full
@pytest.mark.peers
def test_the_reader_of_inspect_ai_reads_a_log(talked: Path, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    assert main(["export", str(talked), "--condition", "enhance/audio", "-o", str(logs / "run.eval")]) == 0
    found = peer(READ, logs / "run.eval", logs)
    own = members(logs / "run.eval")
    assert (found["status"], found["listed"]) == ("success", 1)
    assert found["samples"] == found["lines"] == len(own["summaries.json"])
    assert found["sounds"] == 2 * (found["samples"] - len(found["errors"]))
    metrics = own["header.json"]["results"]["scores"][0]["metrics"]
    assert found["numbers"] == {name: number["value"] for name, number in metrics.items()}
    with Store.read(talked) as store:
        assert found["one"] in {reply.text for reply in store.replies()} | {""}
