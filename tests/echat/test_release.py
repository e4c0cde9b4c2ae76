"""Archives to be given away: with papers, the same bytes again, and read like any checkpoint."""

from __future__ import annotations

import hashlib
import shutil
import tarfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch
from msgspec.structs import replace

from overtone.cli import main
from overtone.echat.exam import ask_checkpoint
from overtone.echat.exam.exam_scores import Row, Scores
from overtone.echat.net import checkpoint, config
from overtone.echat.net.backbone import build
from overtone.echat.net.config import Config
from overtone.models.echat import checkpoint_folder
from scripts import release_echat
from tests.arena.test_preferences import scored
from tests.corpora.folders import FOLDERS
from tests.echat.test_real_set import tone
from tests.echat.toys import make_pack

LIST = "cd" * 32  # the SHA-256 of what it learnt from


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_pack(tmp_path_factory.mktemp("data") / "pack")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Config]:
    """A checkpoint whose language model came from a folder and was changed: by a little of everything, and more by two
    directions of each matrix."""
    home = tmp_path_factory.mktemp("made")
    preset = config.read("tiny")
    torch.manual_seed(0)
    build(preset.model.lm).save_pretrained(home / "base")
    preset = replace(preset, model=replace(preset.model, lm=replace(preset.model.lm, source=str(home / "base"))))
    model = checkpoint.make(preset)
    with torch.no_grad():
        for weight in model.lm.parameters():
            weight += 0.002 * torch.randn(weight.shape)
            if weight.dim() == 2:
                weight += 0.02 * torch.randn(weight.shape[0], 2) @ torch.randn(2, weight.shape[1])
    here = replace(preset.model, encoder=replace(preset.model.encoder, weights="/somewhere/encoder"))
    notes = {"stage": "3", "steps": 60, "seed": 0, "ablate": [], "data": [LIST]}
    checkpoint.save(model, home / "one", replace(preset, model=here), notes=notes)
    return home / "one", preset


def manifest(path: Path, licence: str = "CC-BY-4.0") -> Path:
    told = {"name": "echat", "version": "1", "licence": licence, "seed": 0, "parts": {"train": {"records": 24}},
            "sha256": {"pack/train/records.jsonl": LIST}}  # fmt: skip
    path.write_bytes(msgspec.json.encode(told))
    return path


def release(folder: Path, out: Path, *more: Any) -> int:
    trained = manifest(out.parent / "manifest.json")
    return release_echat.main([str(folder), str(out), "--trained-on", str(trained), *map(str, more)])


def test_a_release_is_the_checkpoint_with_its_papers(
    made: tuple[Path, Config], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, _ = made
    rows = [Row("full", "seen", "emotion.uar", "named", 0.7, 0.6, 0.8, (0.7,), 10, 5, 0.14)]
    (tmp_path / "scores.json").write_bytes(msgspec.json.encode(Scores({"full": [0]}, {"seen": 10}, 9, "x", rows, [])))
    out = tmp_path / "small"
    assert release(folder, out, "--scores", tmp_path / "scores.json") == 0
    told = msgspec.json.decode((out / "manifest.json").read_bytes())
    for name, digest in told["sha256"].items():
        assert hashlib.sha256((out / name).read_bytes()).hexdigest() == digest
    assert set(told["sha256"]) | {"manifest.json"} == {path.name for path in out.iterdir()}
    (whole, _), (again, _) = checkpoint.load(folder), checkpoint.load(out)
    for name, weight in whole.state_dict().items():
        assert torch.equal(again.state_dict()[name], weight), name
    text = (out / "README.md").read_text()
    assert "{{" not in text and "| emotion.uar (named) | seen | 0.70 (0.60 to 0.80) | 0.14 | 10 |" in text
    assert "train 24" in text and "Apache-2.0" in text
    assert "/somewhere" not in (out / "checkpoint.json").read_text()
    assert "SHA-256" in capsys.readouterr().out


def test_the_archive_is_the_same_again_and_asked_like_any_checkpoint(
    made: tuple[Path, Config], pack: Path, tmp_path: Path
) -> None:
    folder, _ = made
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        assert release(folder, tmp_path / name / "small") == 0
    archive = tmp_path / "a" / "small.tar"
    assert archive.read_bytes() == (tmp_path / "b" / "small.tar").read_bytes()
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path / "there", filter="data")
    there = checkpoint_folder(tmp_path / "there" / "small")
    head, said = ask_checkpoint.evaluate(there, [pack], ask_checkpoint.Wanted(limit=2, longest=4, spoken=1))
    assert said and head.modes


def held(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_release_that_is_too_large_leaves_the_one_before_it(
    made: tuple[Path, Config], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert release(made[0], tmp_path / "small") == 0
    before = held(tmp_path)
    assert release(made[0], tmp_path / "small", "--megabytes", 0.1) != 0
    assert "more than 0.1; give more --megabytes" in capsys.readouterr().err
    size = sum(path.stat().st_size for path in (tmp_path / "small").iterdir()) / 1e6
    monkeypatch.setattr(release_echat, "notice", lambda index: "x" * 300_000)  # documents count
    assert release(made[0], tmp_path / "small", "--megabytes", size) != 0
    assert "give more --megabytes" in capsys.readouterr().err
    for wrong in ("nan", "inf", "0", "-3"):
        assert release(made[0], tmp_path / "small", "--megabytes", wrong) == 2
        assert "--megabytes must be a number above 0" in capsys.readouterr().err
    assert held(tmp_path) == before


def test_a_release_takes_the_place_of_nothing_but_a_release(
    made: tuple[Path, Config], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    for stage in ("stage-2", "stage-3"):
        shutil.copytree(made[0], run / stage / "model")
    (run / "mine").mkdir()
    (run / "mine" / "thesis.txt").write_text("years of work")
    (tmp_path / "link").symlink_to(run / "stage-3")
    before = held(run)
    for out, why in (
        (run / "stage-3" / "model", "there lies the checkpoint that is to be released"),
        (tmp_path / "link" / "model", "there lies the checkpoint that is to be released"),
        (run / "stage-3" / "model" / "small", "there lies the checkpoint that is to be released"),
        (run, "there lies the checkpoint that is to be released"),
        (run / "stage-2" / "model", "holds a checkpoint that is no release"),
        (run / "mine", "holds other files"),
    ):
        trained = manifest(tmp_path / "manifest.json")
        assert release_echat.main([str(run), str(out), "--trained-on", str(trained)]) == 2
        assert why in capsys.readouterr().err
    assert held(run) == before


def test_weights_that_learnt_from_closed_data_are_not_released(
    made: tuple[Path, Config], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    closed = manifest(tmp_path / "closed.json", "CC-BY-NC-SA-4.0")
    assert release(made[0], tmp_path / "small", "--trained-on", closed) != 0
    assert "not to be given away" in capsys.readouterr().err
    assert not (tmp_path / "small").exists()
    assert release(noted(made[0], tmp_path / "more", [LIST, "ab" * 32]), tmp_path / "small") != 0
    assert "in none of the sets" in capsys.readouterr().err
    (tmp_path / "bad.json").write_text("[]")
    assert release(made[0], tmp_path / "small", "--trained-on", tmp_path / "bad.json") != 0
    assert "not a set's manifest.json" in capsys.readouterr().err


def noted(folder: Path, out: Path, data: list[str] | None) -> Path:
    """The checkpoint with another list of what it learnt from, or without one."""
    shutil.copytree(folder, out)
    index = msgspec.json.decode((out / "checkpoint.json").read_bytes())
    del index["notes"]["data"]
    index["notes"] |= {} if data is None else {"data": data}
    (out / "checkpoint.json").write_bytes(msgspec.json.encode(index))
    return out


@pytest.mark.parametrize("data", [None, []])
def test_weights_that_do_not_say_what_they_learnt_from_are_not_released(
    made: tuple[Path, Config], tmp_path: Path, capsys: pytest.CaptureFixture[str], data: list[str] | None
) -> None:
    assert release(noted(made[0], tmp_path / "silent", data), tmp_path / "small") != 0
    assert "does not say what it learnt from" in capsys.readouterr().err
    assert not (tmp_path / "small").exists()


def test_weights_that_learnt_from_open_recordings_and_pairs_are_released_with_their_papers(
    made: tuple[Path, Config], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Papers as the commands write them: of `build echat-real`, and of `export --format preferences`."""
    for number in range(4):
        tone(tmp_path / "corpora" / "ocean" / f"{number:09d}.wav")
    rows = "".join(f"{n:09d}.wav,{n},30,f,IT IS LATE\n" for n in range(4))
    (tmp_path / "corpora" / "ocean" / "labels.csv").write_text(f"file,speaker,age,gender,text\n{rows}")
    words = ["build", "echat-real", "--data", tmp_path / "corpora", "--out", tmp_path / "real", "--pack-only"]
    assert main([*map(str, words), "--open-only"]) == 0
    drawn = scored(tmp_path / "run", {("toy/s0/target", n): {"semsim": 0.2 + 0.5 * n} for n in (0, 1)})
    words = ["export", drawn, "--format", "preferences", "--by", "semsim", "--margin", "0.3", "--voters", "1", "-o"]
    for name, more in (("closed", []), ("pairs", ["--licence", "CC-BY-4.0"])):
        assert main([*map(str, words), str(tmp_path / f"{name}.jsonl"), *more]) == 0
    lists = [*(tmp_path / "real" / "pack").glob("*/records.jsonl"), tmp_path / "pairs.jsonl"]
    folder = noted(made[0], tmp_path / "one", [LIST, *(hashlib.sha256(x.read_bytes()).hexdigest() for x in lists)])
    real = ("--trained-on", tmp_path / "real" / "manifest.json")
    assert release(folder, tmp_path / "small", *real) != 0
    assert "of every export of preferences" in capsys.readouterr().err
    assert release(folder, tmp_path / "small", *real, "--trained-on", tmp_path / "closed.manifest.json") != 0
    assert "closed.manifest.json: unknown; weights that learnt from it" in capsys.readouterr().err
    assert release(folder, tmp_path / "small", *real, "--trained-on", tmp_path / "pairs.manifest.json") == 0
    told = msgspec.json.decode((tmp_path / "small" / "manifest.json").read_bytes())
    assert [one["name"] for one in told["trained_on"]] == ["echat", "echat-real", "preferences"]


def test_one_recording_that_is_not_open_keeps_weights_from_being_released(
    made: tuple[Path, Config], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """From the user's corpora to the refusal: the set is built, learnt from, and named with its manifest."""
    FOLDERS["speechocean"](tmp_path / "corpora" / "ocean")
    FOLDERS["vocalsound"](tmp_path / "corpora" / "sounds")
    for path in sorted((tmp_path / "corpora" / "sounds" / "audio_16k").iterdir())[1:]:
        path.unlink()
    words = ["build", "echat-real", "--data", str(tmp_path / "corpora"), "--pack-only", "--out"]
    for name, more in (("all", []), ("open", ["--open-only"])):
        assert main([*words, str(tmp_path / name), *more]) == 0
    for name, code in (("all", 2), ("open", 0)):
        lists = (tmp_path / name / "pack").glob("*/records.jsonl")
        learnt = [LIST, *(hashlib.sha256(path.read_bytes()).hexdigest() for path in lists)]
        folder = noted(made[0], tmp_path / f"learnt-{name}", learnt)
        capsys.readouterr()
        assert release(folder, tmp_path / f"{name}-small", "--trained-on", tmp_path / name / "manifest.json") == code
        told = capsys.readouterr().err
        assert ("CC-BY-SA-4.0 (because of vocalsound, CC-BY-SA-4.0)" in told) is bool(code)
        assert (tmp_path / f"{name}-small").exists() is not bool(code)
    edited = msgspec.json.decode((tmp_path / "all" / "manifest.json").read_bytes()) | {"licence": "CC-BY-4.0"}
    (tmp_path / "all" / "manifest.json").write_bytes(msgspec.json.encode(edited))
    wrong = ("--trained-on", tmp_path / "all" / "manifest.json")
    assert release(tmp_path / "learnt-all", tmp_path / "all-small", *wrong) == 2
    assert "because of vocalsound, CC-BY-SA-4.0" in capsys.readouterr().err


@pytest.mark.local
def test_the_licences_of_what_it_began_with_go_along() -> None:
    told = release_echat.notice(checkpoint.Index(1, msgspec.to_builtins(config.read("mini")), {}))
    assert "SmolLM2" in told and "Moonshine" in told and "Permission is hereby granted" in told
    assert "Permission" not in release_echat.notice(checkpoint.Index(1, msgspec.to_builtins(config.read("tiny")), {}))
