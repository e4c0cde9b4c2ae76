"""Packs in slices: what comes out is what went in, but for what Vorbis leaves out; and nothing is missing unseen."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest
import soundfile

from experiments.echat import small_pack
from overtone.echat.data.containers import PACK, Pack, PackWriter
from overtone.echat.data.exchange_records import Record
from overtone.errors import DataError, UsageError
from tests.echat.toys import make_pack

LIMIT = 0.045


@pytest.fixture
def packs(tmp_path: Path) -> list[Path]:
    return [make_pack(tmp_path / "packs" / "train", 13), make_pack(tmp_path / "packs" / "dev", 4, seconds=0.33337)]


def test_packs_come_back_with_their_records_and_every_sample_in_its_place(packs: list[Path], tmp_path: Path) -> None:
    made = small_pack.write(packs, tmp_path / "small", megabytes=LIMIT)
    assert len(made.slices) == 2
    assert all(path.stat().st_size <= LIMIT * 1e6 for path in (tmp_path / "small").iterdir())
    small_pack.read([tmp_path / "small"], tmp_path / "back", jobs=2)
    for path in packs:
        old, new = Pack(path), Pack(tmp_path / "back" / path.name)
        for name in (PACK[0], PACK[2]):
            assert (old.folder / name).read_bytes() == (new.folder / name).read_bytes()
        assert [r.key for r in new.records] == [r.key for r in old.records]
        for i in range(len(old)):
            x, error = old.clip(i).astype(float), new.clip(i).astype(float) - old.clip(i)
            assert (x**2).sum() > 30 * (error**2).sum()  # 15 dB: a clip shifted by a sample would have less


def test_a_pack_with_nothing_to_hear_travels_too(packs: list[Path], tmp_path: Path) -> None:
    with PackWriter(tmp_path / "packs" / "aloud") as written:
        written.add(Record("a", "Yes.", speech_token=(1, 2)), [])
    for more in ([], packs):
        small_pack.write([tmp_path / "packs" / "aloud", *more], tmp_path / f"small{len(more)}", megabytes=LIMIT)
        small_pack.read([tmp_path / f"small{len(more)}"], tmp_path / f"back{len(more)}")
        assert Pack(tmp_path / f"back{len(more)}" / "aloud").records[0].speech_token == (1, 2)


def test_the_same_packs_give_the_same_bytes_and_any_player_takes_a_clip(packs: list[Path], tmp_path: Path) -> None:
    for name, jobs in (("a", 1), ("b", 2)):
        small_pack.write(packs, tmp_path / name, megabytes=LIMIT, jobs=jobs)
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()
    with zipfile.ZipFile(tmp_path / "a" / "slice-000.zip") as archive:
        info = soundfile.info(archive.open("train/000003.ogg"))
    assert (info.format, info.subtype, info.frames) == ("OGG", "VORBIS", 8000)


def test_packing_goes_on_where_it_was_stopped_unless_the_clips_changed(packs: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "small"
    whole = small_pack.write(packs, out, megabytes=LIMIT)
    (out / "small.json").unlink()
    (out / "slice-001.zip").unlink()
    first = (out / "slice-000.zip").stat().st_mtime_ns
    assert small_pack.write(packs, out, megabytes=LIMIT) == whole
    assert (out / "slice-000.zip").stat().st_mtime_ns == first
    clips = np.memmap(packs[0] / PACK[1], "<i2", "r+")
    clips[100] += 500
    clips.flush()
    assert small_pack.write(packs, out, megabytes=LIMIT).slices[0].sha256 != whole.slices[0].sha256
    assert len(small_pack.write(packs[1:], out).slices) == 1
    assert not (out / "slice-001.zip").exists()


def test_slices_may_lie_in_several_folders_and_what_is_missing_or_cut_is_named(
    packs: list[Path], tmp_path: Path
) -> None:
    small_pack.write(packs, tmp_path / "small", megabytes=LIMIT)
    (tmp_path / "more").mkdir()
    moved = (tmp_path / "small" / "slice-001.zip").rename(tmp_path / "more" / "slice-001.zip")
    with pytest.raises(DataError, match=r"slice-001\.zip is missing: it is in none of .*small"):
        small_pack.read([tmp_path / "small"], tmp_path / "back")
    small_pack.read([tmp_path / "small", tmp_path / "more"], tmp_path / "back")
    moved.write_bytes(moved.read_bytes()[:-9])
    with pytest.raises(DataError, match=r"slice-001\.zip: cut or changed on its way"):
        small_pack.read([tmp_path / "small", tmp_path / "more"], tmp_path / "back")
    (tmp_path / "small" / "small.json").write_bytes(b"{")
    with pytest.raises(DataError, match=r"small\.json: cannot be read"):
        small_pack.read([tmp_path / "small"], tmp_path / "back")


def test_a_limit_below_a_clip_and_two_packs_of_one_name_are_refused(packs: list[Path], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="larger --slice-mb"):
        small_pack.write(packs, tmp_path / "small", megabytes=0.001)
    with pytest.raises(UsageError, match="same folder name"):
        small_pack.write([packs[0], packs[0]], tmp_path / "small")


def test_a_pack_stays_until_the_one_that_replaces_it_is_whole(
    packs: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small, back = tmp_path / "small", tmp_path / "back"
    small_pack.write(packs, small)
    small_pack.read([small], back)
    before = {path: path.read_bytes() for path in back.rglob("*") if path.is_file()}
    with monkeypatch.context() as changed, pytest.raises(DataError, match="samples at 16000 Hz"):
        changed.setattr(small_pack, "RATE", 8000)
        small_pack.read([small], back)
    assert {path: path.read_bytes() for path in back.rglob("*") if path.is_file()} == before
    (small / "dev.jsonl.gz").unlink()
    with pytest.raises(DataError, match=r"dev\.jsonl\.gz is missing"):
        small_pack.read([small], back)
    assert {path: path.read_bytes() for path in back.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["pack", "p", "a-file"], "is a file; give a folder"),
        (["unpack", "p", "a-file/below"], "is a file; give a folder"),
        (["pack", "p", "out", "--jobs", "0"], "'0' is not a whole number of at least 1"),
        (["pack", "p", "out", "--slice-mb", "nan"], "'nan' is not a number of megabytes above 0"),
        (["measure", "p", "--count", "0"], "'0' is not a whole number of at least 1"),
    ],
)
def test_a_wrong_argument_is_told_in_a_line(
    words: list[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a-file").write_bytes(b"")
    with pytest.raises(SystemExit):
        small_pack.main(words)
    assert told in capsys.readouterr().err


def test_packs_without_spoken_words_cannot_be_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with PackWriter(tmp_path / "p") as written:
        written.add(Record("a", "Yes."), [])
    assert small_pack.main(["measure", str(tmp_path / "p")]) == 2
    assert "no record of these packs has both" in capsys.readouterr().err


def test_the_command_packs_and_unpacks(packs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small, back = str(tmp_path / "small"), str(tmp_path / "back")
    assert small_pack.main(["pack", *map(str, packs), small, "--jobs", "1"]) == 0
    assert "1 slices" in capsys.readouterr().out
    assert small_pack.main(["unpack", small, back, "--jobs", "1"]) == 0
    assert "13 clips, 6 s" in capsys.readouterr().out
    assert small_pack.main(["unpack", back, small]) != 0
    assert "small.json is missing" in capsys.readouterr().err
