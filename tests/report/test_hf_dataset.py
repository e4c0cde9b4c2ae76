"""Runs as data sets of Hugging Face: sounds inside, a card, and that `datasets` reads and plays them."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pyarrow.parquet
import pytest
import soundfile

from overtone.cli import main
from overtone.runs.store import Store
from tests.peers import peer
from tests.runs.helpers import run
from tests.servers import OpenAIServer


@pytest.fixture
def talked(small: Path, tmp_path: Path) -> Path:
    with OpenAIServer() as server:
        run(small, server.base_url, tmp_path / "run", keys={"speech": "auto"})
    assert main(["score", str(tmp_path / "run"), "--quiet"]) == 0
    return tmp_path / "run"


def test_a_data_set_holds_clips_and_spoken_replies_as_sounds(talked: Path, tmp_path: Path) -> None:
    out = tmp_path / "set"
    assert main(["export", str(talked), "--format", "hf", "-o", str(out)]) == 0
    table = pyarrow.parquet.read_table(out / "data/run-00000.parquet")
    features = json.loads(table.schema.metadata[b"huggingface"])["info"]["features"]
    assert features.keys() == set(table.column_names)
    assert features["clip_audio"] == features["reply_audio"] == {"_type": "Audio"}
    rows = table.to_pylist()
    with Store.read(talked) as store:
        spoken = {reply.audio for reply in store.replies() if reply.audio}
    assert {row["audio"] for row in rows if row["reply_audio"]} == spoken
    assert all(soundfile.info(io.BytesIO(row["clip_audio"]["bytes"])).frames for row in rows)
    assert {row["model"] for row in rows} == {"openai:any?speech=auto"}
    assert all(json.loads(row["messages"])[-1]["role"] == "user" for row in rows)


def test_the_card_names_model_conditions_and_headline_numbers(talked: Path, tmp_path: Path) -> None:
    out = tmp_path / "set"
    assert main(["export", str(talked), "--format", "hf", "-o", str(out)]) == 0
    card = (out / "README.md").read_text()
    assert card.startswith("---\npretty_name:") and "path: data/*.parquet" in card
    assert "| enhance/audio | " in card and "Voice accuracy" in card


def test_exporting_again_replaces_the_data_set_and_refuses_another_folder(
    talked: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "set"
    words = ["export", str(talked), "--format", "hf", "--no-sounds", "-o", str(out)]
    assert main(words) == 0
    first = (out / "data/run-00000.parquet").read_bytes()
    assert main(words) == 0
    assert (out / "data/run-00000.parquet").read_bytes() == first
    (out / "thesis.tex").write_text("mine")
    assert main(words) == 2
    assert "contains thesis.tex" in capsys.readouterr().err and (out / "thesis.tex").read_text() == "mine"


READ = """
import json, sys
from datasets import load_dataset
rows = load_dataset(sys.argv[1], split=sys.argv[2], cache_dir=sys.argv[3])
sounds = [row[name] for row in rows for name in sys.argv[4:] if row[name]]
print(json.dumps({"rows": len(rows), "columns": rows.column_names, "rate": sounds[0]["sampling_rate"],
                  "sounds": sum(len(sound["array"]) > 0 for sound in sounds)}))
"""


@pytest.mark.full
@pytest.mark.peers
def test_the_library_datasets_reads_and_plays_a_run(talked: Path, tmp_path: Path) -> None:
    out = tmp_path / "set"
    assert main(["export", str(talked), "--format", "hf", "-o", str(out)]) == 0
    found = peer(READ, out, "run", tmp_path / "cache", "clip_audio", "reply_audio")
    table = pyarrow.parquet.read_table(out / "data/run-00000.parquet").to_pylist()
    assert found["rows"] == len(table)
    assert found["sounds"] == sum(bool(row["clip_audio"]) + bool(row["reply_audio"]) for row in table)


@pytest.mark.full
@pytest.mark.peers
@pytest.mark.local
def test_the_library_datasets_reads_and_plays_a_built_set(tmp_path: Path) -> None:
    words = ["build", "open", "--only", "sad", "--per-cue", "1", "--no-gates", "--out", str(tmp_path / "set")]
    assert main(words) == 0
    listed = [json.loads(line) for line in (tmp_path / "set/metadata.jsonl").read_text().splitlines()]
    found = peer(READ, tmp_path / "set", "test", tmp_path / "cache", "audio")
    assert found["rows"] == found["sounds"] == len(listed) and found["rate"] == 24_000
    assert {"text", "cue", "style", "case", "voice"} <= set(found["columns"])
