"""A folder that clearly belongs to another benchmark is recognised: a warning, or an error that names the right one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from overtone import registry
from overtone.benchmarks import layouts
from overtone.benchmarks.voxdialogue import ATTRIBUTES
from overtone.cli import main
from overtone.runs.store import Store
from tests.servers import OpenAIServer

FILES = {  # one file that is enough for each to be recognised
    "aeq": "aeq.json",
    "air-bench": "Chat/Chat_meta.json",
    "dream": "annotation/annotator1_test.txt",
    "echat-eval": "echat_eval.json",
    "echomind": "dataset/data_human/script_info_human.json",
    "emobank": "individual_reader_ratings.csv",
    "empathyeval": "phase1-test_meld/phase1-test_meld_release.json",
    "mmau": "mmau-test-mini.json",
    "sakura": "data/Animal/metadata.csv",
    "sd-eval": "data/test-emo.json",
    "talk": "conversations.jsonl",
    "uro-bench": "URO-Bench-data/pro/SRT-en/test.jsonl",
    "voxdialogue": "Benchmark/speaker_identity/age/processed_dialog.json",
}


def put(folder: Path, name: str, text: str = "[]") -> Path:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    return folder


def manifest(folder: Path) -> None:
    put(folder, "manifest.json", json.dumps({"name": "my-set", "version": "1", "recipes": "3", "status": {}}))


def test_every_builtin_says_what_its_folder_looks_like() -> None:
    assert set(FILES) | {"open"} == set(registry.builtins("benchmarks"))
    assert all(registry.find("benchmarks", name).SUITE.layout for name in registry.builtins("benchmarks"))


@pytest.mark.parametrize("owner", FILES)
def test_each_folder_is_recognised_by_every_other_benchmark(tmp_path: Path, owner: str) -> None:
    folder = put(tmp_path, FILES[owner])
    for name in registry.builtins("benchmarks"):
        assert layouts.looks_like(name, folder) == ("" if name == owner else owner), name
    assert layouts.looks_like("a-plug-in", folder) == ""
    assert layouts.looks_like("sd_eval", folder) == layouts.looks_like("sd-eval", folder)
    assert layouts.looks_like("mmau", tmp_path / "nowhere") == ""


def test_a_folder_of_two_benchmarks_or_of_none_is_left_to_the_user(tmp_path: Path) -> None:
    assert layouts.looks_like("mmau", tmp_path) == ""
    put(put(tmp_path, FILES["sakura"]), FILES["sd-eval"])
    assert layouts.looks_like("mmau", tmp_path) == "" and layouts.looks_like("sakura", tmp_path) == ""


def test_a_manifest_tells_a_built_set_from_echomind(small: Path) -> None:
    assert (layouts.looks_like("open", small), layouts.looks_like("echomind", small)) == ("echomind", "")
    put(small, "manifest.json", json.dumps({"name": "of something else"}))
    assert layouts.looks_like("open", small) == "echomind"
    manifest(small)
    assert (layouts.looks_like("open", small), layouts.looks_like("echomind", small)) == ("", "open")
    assert layouts.looks_like("echomind", small / "data_synthesis") == "open"
    assert layouts.looks_like("sakura", small) == "open"


def test_open_over_echominds_files_is_a_warning_in_plan_and_run(
    small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with OpenAIServer() as server:
        words = ["open", "--data", str(small), "--model", f"openai:any?base_url={server.base_url}", "--limit", "1"]
        words += ["--out", str(tmp_path / "run")]
        assert main(["plan", *words]) == 0
        assert "looks like EchoMind, not like Overtone-Open" in capsys.readouterr().out
        assert main(["run", *words]) == 0
    assert "if it is, run it with 'overtone run echomind'" in capsys.readouterr().err
    with Store.read(tmp_path / "run") as store:
        assert any("looks like EchoMind" in detail for _, kind, detail in store.events() if kind == "warning")


def test_echomind_over_a_built_set_is_refused_before_anything_is_asked(
    small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest(small)
    with OpenAIServer() as server:
        words = ["--data", str(small), "--model", f"openai:any?base_url={server.base_url}", "--limit", "1"]
        assert main(["run", "echomind", *words, "--out", str(tmp_path / "run")]) != 0
        told = capsys.readouterr().err
        assert "Overtone built this set ('my-set')" in told and "overtone run open" in told
        assert server.count == 0 and not (tmp_path / "run").exists()
        assert main(["run", "open", *words, "--out", str(tmp_path / "run"), "-q"]) == 0


def test_a_folder_that_cannot_be_read_is_named_by_its_benchmark(
    small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", "sd-eval", "--data", str(small), "--model", "cascade"]) != 0
    told = capsys.readouterr().err
    assert "holds none of test-emo.json" in told and "looks like EchoMind: 'overtone run echomind' reads it" in told
    folder = put(tmp_path / "vox", f"data/{next(iter(ATTRIBUTES))}/processed_dialog.json", "{}")
    assert main(["plan", "uro-bench", "--data", str(folder), "--model", "cascade"]) != 0
    assert "'overtone run voxdialogue' reads it" in capsys.readouterr().err
