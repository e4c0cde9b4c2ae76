"""The scripts for a GPU machine where nothing can be installed: what is carried there is joined, and the rest is asked
for in the right words. Training itself is tested elsewhere."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from experiments.echat import small_pack
from overtone.echat.data.containers import Pack
from tests.echat.conftest import BORROWED
from tests.echat.toys import make_pack

ROOT = Path(__file__).parents[2]


@pytest.fixture
def carried(tmp_path: Path) -> Path:
    out = tmp_path / "carry"
    parts = [make_pack(tmp_path / "packs" / name, 3) for name in ("train", "dev", "seen")]
    small_pack.write(parts, out)
    for at, piece in enumerate((b"wei", b"ghts")):
        (out / f"smollm2.gguf.{at:02}").write_bytes(piece)
    for name in ("moonshine.safetensors", "plain.jsonl", "manifest.json"):
        (out / name).write_bytes(b"")
    for name in ("thing-1-py3-none-any.whl", "papers.zip"):
        with zipfile.ZipFile(out / name, "w") as archive:
            archive.writestr(f"{name[:5]}.py", "")
    return out


def gpu(work: Path, carried: Path, *verbs: str, **settings: str) -> subprocess.CompletedProcess[str]:
    paths = {"CARRIED": str(carried), "WORK": str(work), "PYTHON": sys.executable, "PYTHONPATH": str(BORROWED)}
    environment = {k: v for k, v in os.environ.items() if k != "OUT"} | paths | settings
    command = ["bash", "experiments/echat/gpu.sh", *verbs]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=120)


def test_what_was_carried_is_joined_and_joined_again(carried: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    (carried.parent / "manifest.json").write_text("the open benchmark's")
    with tarfile.open(carried.parent / "open.tar.xz", "w:xz") as tar:
        tar.add(carried.parent / "manifest.json", "./manifest.json")
    bench = (carried.parent / "open.tar.xz").read_bytes()
    (carried / "open.00").write_bytes(bench[:50])
    (carried / "open.01").write_bytes(bench[50:])
    for _ in range(2):
        done = gpu(work, carried, "join")
        assert done.returncode == 0, done.stderr
    assert (work / "smollm2.gguf").read_bytes() == b"weights"
    assert (work / "pack" / "open" / "manifest.json").read_text() == "the open benchmark's"
    assert (work / "wheels" / "thing.py").is_file()
    assert (work / "wheels" / "paper.py").is_file()
    assert [len(Pack(work / "pack" / name)) for name in ("train", "dev", "seen")] == [3, 3, 3]


def test_what_came_in_several_calls_is_kept_and_joined(carried: Path, tmp_path: Path) -> None:
    work, files = tmp_path / "work", sorted(path for path in carried.iterdir() if path.is_file())
    for call in range(3):
        box = tmp_path / f"call-{call}" / str(call + 1)
        box.mkdir(parents=True)
        for path in files[call::3]:
            shutil.move(path, box)
        done = gpu(work, box.parent, "keep")
        assert done.returncode == 0, done.stderr
    done = gpu(work, tmp_path / "call-2", "join")
    assert done.returncode == 0, done.stderr
    assert (work / "smollm2.gguf").read_bytes() == b"weights"
    assert [len(Pack(work / "pack" / name)) for name in ("train", "dev", "seen")] == [3, 3, 3]


def test_waiting_for_what_is_spoken_ends_with_the_time_or_with_a_failure(carried: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    with subprocess.Popen(["sleep", "60"]) as sleeping:
        (work / "speak.pid").write_text(str(sleeping.pid))
        done = gpu(work, carried, "spoken", MINUTES="0")
        assert done.returncode == 4 and "still speaking" in done.stdout
        sleeping.kill()
    (work / "speak.log").write_text("no such voice")
    done = gpu(work, carried, "spoken", MINUTES="1")
    assert done.returncode == 1 and "no such voice" in done.stderr
    (work / "spoken").touch()
    assert gpu(work, carried, "spoken", MINUTES="0").returncode == 0


def test_the_ablation_gets_every_pack_and_what_was_done_on_another_day(carried: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    (carried / "full-0.jsonl.gz").write_bytes(b"said")
    done = gpu(work, carried, "join", "ablate", MINUTES="0.01", SEEDS="0")
    assert done.returncode == 0, done.stderr
    told = {line.split()[0]: line.split()[1] for line in done.stdout.splitlines() if "training" in line}
    assert told == {"full-0": "skipped", "no-understanding-0": "late", "no-think-0": "late", "neither-0": "late"}


def test_a_step_that_fails_ends_it(carried: Path, tmp_path: Path) -> None:
    (carried / "slice-000.zip").unlink()
    done = gpu(tmp_path / "work", carried, "join", "ablate", MINUTES="0.01")
    assert done.returncode != 0
    assert "slice-000.zip" in done.stderr
    assert "ablate" not in done.stdout
    # weights that are none: the first stage says so, and nothing follows
    shutil.rmtree(tmp_path / "work", ignore_errors=True)
    work = tmp_path / "work"
    for name in ("train", "dev"):
        make_pack(work / "pack" / name, 3)
    for name in ("moonshine.safetensors", "smollm2.gguf", "plain.jsonl"):
        (work / name).write_bytes(b"")
    done = gpu(work, carried, "train", "ask")
    assert done.returncode != 0
    assert "] ask" not in done.stdout


@pytest.mark.parametrize(("script", "words"), [("gpu.sh", ["wrong"]), ("gpu.sh", []), ("carry.sh", ["wrong"])])
def test_a_wrong_word_shows_how_it_is_used(script: str, words: list[str], tmp_path: Path) -> None:
    command = ["bash", f"experiments/echat/{script}", *words]
    environment = os.environ | {"WORK": str(tmp_path / "work")}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert f"experiments/echat/{script}" in done.stderr
    assert "set -" not in done.stderr
