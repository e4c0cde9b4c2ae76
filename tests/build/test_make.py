"""The builder: layout, determinism, resumption, refusals."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from overtone import audio
from overtone.benchmarks.starter import load
from overtone.build.make import Built, Manifest, build
from overtone.cli import main
from overtone.errors import UsageError
from overtone.schema import STYLES

pytestmark = pytest.mark.local
Starter = tuple[Path, Built]


def _manifest(out: Path) -> Manifest:
    return msgspec.json.decode((out / "manifest.json").read_bytes(), type=Manifest)


def _files(out: Path) -> dict[str, bytes]:
    return {p.relative_to(out).as_posix(): p.read_bytes() for p in sorted(out.rglob("*")) if p.is_file()}


def test_the_set_holds_every_clip_reply_and_question(starter: Starter) -> None:
    out, built = starter
    assert (built.scripts, built.made, built.kept) == (39, 230, 0)
    assert len(list((out / "data_synthesis/audio").rglob("*.wav"))) == 115
    assert len(list((out / "audio_response").rglob("*.wav"))) == 115
    assert len(built.questions) == 219
    assert not list(out.rglob(".*.part"))


def test_the_manifest_tells_the_truth_about_every_file(starter: Starter) -> None:
    out, _ = starter
    clips = _manifest(out).clips
    assert {c.path for c in clips} == {p.relative_to(out).as_posix() for p in out.rglob("*.wav")}
    for clip in clips:
        data = (out / clip.path).read_bytes()
        assert hashlib.sha256(data).hexdigest() == clip.sha256
        assert clip.licence == "CC-BY-4.0" and clip.voice
        samples, rate = audio.decode(data)
        assert rate == 24_000 and abs(len(samples) / rate - clip.seconds) < 1e-3


def test_the_loader_reads_it_without_a_warning(starter: Starter) -> None:
    out, built = starter
    benchmark = load(out)
    items = list(benchmark.items(frozenset({1, 2, 3}), frozenset(STYLES), "all"))
    assert benchmark.warnings == [] and benchmark.name == "starter"
    assert len(items) == 115 + len(built.questions) + 115
    assert all((out / i.turns[0].clip.path).is_file() for i in items if i.turns[0].clip)
    assert all(i.gold and any(o.provenance == i.style for o in i.options) for i in items if i.task == "choose")
    assert all(i.references and (out / i.reference_audio).is_file() for i in items if i.task == "converse")


def test_the_same_bytes_come_from_one_job_and_from_a_part_of_the_set(starter: Starter, tmp_path: Path) -> None:
    out, _ = starter
    build("starter", tmp_path, only=("sobbing", "chatter"), jobs=1)
    whole = {c.path: c for c in _manifest(out).clips}
    part = _manifest(tmp_path).clips
    assert len(part) == 12
    assert all(whole[c.path] == c for c in part)
    asked = {i.id: i for i in load(out).items(frozenset({1, 2}), frozenset(STYLES), "target")}
    again = list(load(tmp_path).items(frozenset({1, 2}), frozenset(STYLES), "target"))
    assert again and all(asked[i.id] == i for i in again)


def test_a_second_build_makes_nothing_and_changes_no_byte(tmp_path: Path) -> None:
    build("starter", tmp_path, only=("male",), jobs=1)
    before = _files(tmp_path)
    again = build("starter", tmp_path, only=("male",), jobs=1)
    assert (again.made, again.kept) == (0, 4)
    assert _files(tmp_path) == before


def test_lost_broken_and_unfinished_files_are_made_again(tmp_path: Path) -> None:
    build("starter", tmp_path, only=("male", "dog"), jobs=2)
    before = _files(tmp_path)
    wavs = sorted(tmp_path.rglob("*.wav"))
    wavs[0].unlink()
    wavs[1].write_bytes(wavs[1].read_bytes()[:1000])
    (wavs[2].parent / f".{wavs[2].name}.7.part").write_bytes(b"half")
    again = build("starter", tmp_path, only=("male", "dog"), jobs=1)
    assert again.made == 2
    assert _files(tmp_path) == before


def test_building_another_cue_keeps_the_earlier_one(tmp_path: Path) -> None:
    build("starter", tmp_path, only=("male",), jobs=1)
    build("starter", tmp_path, only=("female",), jobs=1)
    info = msgspec.json.decode((tmp_path / "data_synthesis/script_info_synthesis.json").read_bytes())
    assert [s["spoken_info"] for s in info] == ["male", "female"]
    assert len(_manifest(tmp_path).clips) == 8


def test_another_seed_changes_what_is_random_and_nothing_else(starter: Starter, tmp_path: Path) -> None:
    out, _ = starter
    build("starter", tmp_path, only=("rain",), jobs=1, seed=5)
    whole = {c.path: c.sha256 for c in _manifest(out).clips}
    for clip in _manifest(tmp_path).clips:
        same = whole[clip.path] == clip.sha256
        assert same == (not clip.scene), clip.path


def test_a_folder_with_something_else_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data_synthesis").mkdir()
    with pytest.raises(UsageError, match="not built here"):
        build("starter", tmp_path)


def test_the_command_prints_counts_and_refuses_a_misspelt_cue(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["build", "starter", "--out", str(tmp_path), "--only", "female", "--jobs", "1"]) == 0
    printed = capsys.readouterr().out
    assert "4 sounds made" in printed and "× real time" in printed and "recommendation" in printed
    assert main(["build", "starter", "--out", str(tmp_path), "--only", "wisper"]) == 2
    assert "did you mean 'whisper'" in capsys.readouterr().err


def test_building_takes_one_core_less_than_a_twelfth_of_the_sounds_length(tmp_path: Path) -> None:
    began = time.process_time()  # not the wall: others may be busy on the same machine
    built = build("starter", tmp_path, only=("sad", "sigh", "wind"), jobs=1)
    assert built.sound_seconds / (time.process_time() - began) > 12.5


def test_a_killed_build_leaves_only_whole_files_and_goes_on(tmp_path: Path) -> None:
    out, cues = tmp_path / "set", "fast,slow,sad,rain"
    command = [sys.executable, "-c", "import sys; from overtone.cli import main; sys.exit(main(sys.argv[1:]))"]
    command += ["build", "starter", "--out", str(out), "--only", cues, "--jobs", "2"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not list(out.rglob("*.wav")) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    process.kill()
    process.wait()
    left = [audio.read(p)[0].size for p in out.rglob("*.wav") if not p.name.startswith(".")]
    assert left and all(left)
    built = build("starter", out, only=tuple(cues.split(",")), jobs=2)
    assert built.made + built.kept == 24
    assert len(_manifest(out).clips) == 24
    assert not list(out.rglob(".*.part"))
