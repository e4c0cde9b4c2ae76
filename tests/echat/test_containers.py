"""Containers: raw lists, shards, combines and packs say the same, and say where they are broken."""

from __future__ import annotations

import codecs
import io
import tarfile
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from overtone import audio
from overtone.cli import main
from overtone.echat.data import containers, shards
from overtone.echat.data.containers import Pack
from overtone.echat.data.exchange_records import Record, Turn
from overtone.echat.data.labels import Labels
from overtone.errors import DataError
from tests.echat.test_exchange_records import records as any_record

RATE = 16_000


def sound(seed: int, seconds: float = 0.3) -> np.ndarray:
    rng = np.random.default_rng(seed)
    whole = rng.integers(-3000, 3000, int(seconds * RATE))
    return (whole / 32768).astype(np.float32)


@pytest.fixture
def listed(tmp_path: Path) -> Path:
    """A raw list of five records, one with an earlier turn, with its sounds."""
    home = tmp_path / "raw"
    (home / "wav").mkdir(parents=True)
    records = []
    for number in range(5):
        for name in (f"{number}", f"{number}-before"):
            (home / f"wav/{name}.wav").write_bytes(audio.encode_wav(sound(len(name) + number, 0.2 + number / 50), RATE))
        before = Turn(f"wav/{number}-before.wav", "then?", "then.", (7, 8))
        records.append(
            Record(
                f"key.{number}",
                f"Réponse {number}\n",
                f"wav/{number}.wav",
                "what?",
                Labels(emotion="fear", gender="male", event="rain", style="audiobook"),
                "comforting",
                "because",
                tuple(range(number)),
                dataset="ours",
                task="<S2TCHAT> <TEXT2TOKEN>",
                history=(before,) if number == 3 else (),
                extra={"part": "train", "speaker": "m1", "more": {"a": [1]}},
                rest={"lang": "en", "source": 5},
            )
        )
    containers.write_raw(home / "data.list", records)
    return home / "data.list"


def bare(record: Record) -> Record:
    """A record without what names its sounds."""
    turns = tuple(msgspec.structs.replace(turn, wav="") for turn in record.history)
    return msgspec.structs.replace(record, home="", wav="", history=turns)


def sounds(record: Record) -> list[np.ndarray]:
    return [containers.open_audio(record, wav) for wav in (record.wav, *(turn.wav for turn in record.history))]


@pytest.mark.parametrize("kind", ["raw", "shards", "combine", "pack"])
def test_every_container_gives_the_same_records_and_sounds(kind: str, listed: Path, tmp_path: Path) -> None:
    first = list(containers.read(listed))
    out = tmp_path / "out"
    if kind == "raw":
        containers.write_raw(listed.parent / "again.list", first)
        out = listed.parent / "again.list"
    elif kind == "shards":
        assert len(containers.write_shards(out, first, per_shard=2)) == 3
    elif kind == "combine":
        assert len(containers.write_combine(out, first, per_shard=2)) == 3
    else:
        assert containers.pack(first, out) == 5
    again = list(containers.read(out))
    assert [bare(record) for record in again] == [bare(record) for record in first]
    for one, other in zip(first, again, strict=True):
        for a, b in zip(sounds(one), sounds(other), strict=True):
            np.testing.assert_array_equal(a, b)


@settings(max_examples=25, deadline=None)
@given(st.lists(any_record, min_size=1, max_size=4, unique_by=lambda record: record.key), st.integers(1, 3))
def test_any_record_survives_every_container(
    tmp_path_factory: pytest.TempPathFactory, some: list[Record], n: int
) -> None:
    out = tmp_path_factory.mktemp("any")
    some = [
        msgspec.structs.replace(
            record,
            wav="a.wav",
            history=tuple(msgspec.structs.replace(turn, wav="a.wav") for turn in record.history),
            task="<S2TCHAT>",
            home=str(out),
        )
        for record in some
    ]
    (out / "a.wav").write_bytes(audio.encode_wav(sound(1, 0.01), RATE))
    containers.write_raw(out / "data.list", some)
    containers.write_shards(out / "shards", some, per_shard=n)
    containers.write_combine(out / "combine", some, per_shard=n)
    containers.pack(some, out / "pack")
    for name in ("data.list", "shards", "combine", "pack"):
        assert [bare(record) for record in containers.read(out / name)] == [bare(record) for record in some]


def test_a_shard_has_the_published_members_and_the_same_bytes_each_time(listed: Path, tmp_path: Path) -> None:
    a = containers.write_shards(tmp_path / "a", containers.read(listed))[0]
    b = containers.write_shards(tmp_path / "b", containers.read(listed))[0]
    assert a.read_bytes() == b.read_bytes()
    with tarfile.open(a) as tar:
        mine = [name for name in tar.getnames() if name.startswith("key.1.")]
    kinds = {name.rpartition(".")[2] for name in mine}
    assert kinds == {"txt", "wav", "task", "extra", "lang", "speaker", "emotion", "gender", "duration"}


def test_a_pack_maps_its_clips(listed: Path, tmp_path: Path) -> None:
    containers.pack(containers.read(listed), tmp_path / "p")
    pack = Pack(tmp_path / "p")
    assert len(pack) == 6
    assert [record.wav for record in pack.records][2:4] == ["clips.i16#2", "clips.i16#4"]
    assert pack.records[3].history[0].wav == "clips.i16#3"
    assert pack.clip(0).dtype == np.int16
    assert pack.seconds(0) == pytest.approx(0.2)
    with pytest.raises(DataError, match="no clip 6"):
        pack.clip(6)


def test_a_pack_that_was_interrupted_or_cut_is_no_pack(listed: Path, tmp_path: Path) -> None:
    records = list(containers.read(listed))
    with pytest.raises(RuntimeError), containers.PackWriter(tmp_path / "half") as writer:
        writer.add(records[0], [sound(1)])
        raise RuntimeError
    with pytest.raises(DataError, match=r"records\.jsonl is missing"):
        Pack(tmp_path / "half")
    containers.pack(records, tmp_path / "cut")
    clips = tmp_path / "cut" / "clips.i16"
    clips.write_bytes(clips.read_bytes()[:-2])
    with pytest.raises(DataError, match="copy the pack again"):
        Pack(tmp_path / "cut")


def test_a_pack_wants_a_sound_for_each_name(listed: Path, tmp_path: Path) -> None:
    record = next(iter(containers.read(listed)))
    for those, told in (([], "fewer clips"), ([sound(1), sound(2)], "more clips")):
        with containers.PackWriter(tmp_path / "p") as writer, pytest.raises(DataError, match=told):
            writer.add(record, those)


def test_a_record_without_sound_packs_too(tmp_path: Path) -> None:
    containers.pack([Record("k", "hello")], tmp_path / "p")
    assert Pack(tmp_path / "p").records[0].txt == "hello"


def test_a_cut_line_is_named(listed: Path) -> None:
    data = listed.read_bytes()
    listed.write_bytes(data[: len(data) - 20])
    with pytest.raises(DataError, match=r"data\.list line 5: not JSON.*may be incomplete"):
        list(containers.read(listed))


def test_a_list_with_a_byte_order_mark_is_read_as_what_it_is(listed: Path, tmp_path: Path) -> None:
    wanted, data = [bare(record) for record in containers.read(listed)], listed.read_bytes()
    [shard] = containers.write_shards(tmp_path / "s", containers.read(listed))
    names = shard.with_name("shards.list")
    for path, held in ((listed, data), (listed.with_suffix(".jsonl"), data), (names, names.read_bytes())):
        path.write_bytes(codecs.BOM_UTF8 + held)
        assert [bare(record) for record in containers.read(path)] == wanted


def test_a_record_in_a_list_of_shards_is_told_in_short(listed: Path, tmp_path: Path) -> None:
    [shard] = containers.write_shards(tmp_path / "s", containers.read(listed))
    names = shard.with_name("shards.list")
    names.write_bytes(names.read_bytes() + listed.read_bytes())
    with pytest.raises(DataError, match=r'shards\.list: \{"lang":.{40,60}… is not a file name'):
        list(containers.read(names))


@pytest.mark.parametrize("at", ["inside", "between"])
def test_a_cut_shard_is_named(at: str, listed: Path, tmp_path: Path) -> None:
    path = containers.write_shards(tmp_path / "s", containers.read(listed))[0]
    with tarfile.open(path) as tar:
        third = next(info for info in tar if info.name.startswith("key.2."))
    path.write_bytes(path.read_bytes()[: third.offset + (700 if at == "inside" else 0)])
    with pytest.raises(DataError, match="incomplete or damaged after byte"):
        list(containers.read(path))


@pytest.mark.parametrize("name", ["../k.txt", "/k.txt", "a\\k.txt"])
def test_a_member_that_leaves_its_folder_is_refused(name: str, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "x.tar", "w") as tar:
        info = tarfile.TarInfo(name)
        info.size = 1
        tar.addfile(info, io.BytesIO(b"a"))
    with pytest.raises(DataError, match="leaves its folder"):
        list(containers.read(tmp_path / "x.tar"))


def test_links_in_a_shard_are_refused(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "x.tar", "w") as tar:
        info = tarfile.TarInfo("k.txt")
        info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(info)
    with pytest.raises(DataError, match="not a regular file"):
        list(containers.read(tmp_path / "x.tar"))


@pytest.mark.parametrize("key", ["a/b", "../a", "", ".hidden", "k" * 200])
def test_a_key_that_cannot_name_a_member_is_refused(key: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="not a valid key"):
        containers.write_shards(tmp_path, [Record(key, "x")])
    assert not list(tmp_path.glob("*.tar"))


def test_a_sound_outside_the_lists_folder_is_refused(listed: Path) -> None:
    record = next(iter(containers.read(listed)))
    with pytest.raises(DataError, match="leaves its folder"):
        containers.open_audio(record, "../../secret.wav")


def test_a_file_that_is_no_shard_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.tar").write_bytes(b"not a tar" * 200)
    with pytest.raises(DataError, match=r"x\.tar"):
        list(containers.read(tmp_path / "x.tar"))
    (tmp_path / "shards.list").write_text("missing.tar\n")
    with pytest.raises(DataError, match="no such shard"):
        list(containers.read(tmp_path))
    with pytest.raises(DataError, match="not a tar, or incomplete"):
        shards.member(tmp_path / "x.tar", "a.wav")
    with pytest.raises(DataError, match=r"no records\.jsonl, combines_list\.txt"):
        list(containers.read(tmp_path.parent))


def test_rows_of_text_are_read(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"text": "a", "targets": [1, 2]}\n\n{"text": 1}\n')
    rows = containers.read_text(path)
    assert next(rows).targets == (1.0, 2.0)
    with pytest.raises(DataError, match="line 3"):
        next(rows)


def test_a_member_that_is_too_large_is_not_read(listed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [path] = containers.write_shards(tmp_path / "s", containers.read(listed))
    monkeypatch.setattr(shards, "_MEMBER_LIMIT", 100)
    with pytest.raises(DataError, match="above the limit 100"):
        shards.member(path, "key.0.wav")


@pytest.mark.parametrize("kind", ["raw", "shards", "combine"])
def test_the_command_packs_what_lies_in_any_container(
    kind: str, listed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = listed
    if kind != "raw":
        source = tmp_path / kind
        {"shards": containers.write_shards, "combine": containers.write_combine}[kind](source, containers.read(listed))
    assert main(["build", "echat", "--records", str(source), "--out", str(tmp_path / "pack")]) == 0
    assert capsys.readouterr().out.startswith("5 records\n")
    wanted = [sounds(record) for record in containers.read(listed)]
    for found, theirs in zip(Pack(tmp_path / "pack").records, wanted, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(sounds(found), theirs, strict=True))
    turns = ["build", "echat", "--records", str(source), "--each-turn", "--out", str(tmp_path / "turns")]
    assert main(turns) == 0
    assert len(Pack(tmp_path / "turns").records) > 5


def test_what_could_not_be_packed_leaves_nothing_in_the_way(listed: Path, tmp_path: Path) -> None:
    out = tmp_path / "pack"
    command = ["build", "echat", "--out", str(out), "--records"]
    missing = listed.parent / "wav" / "3.wav"
    kept = missing.read_bytes()
    missing.unlink()
    for source in (str(listed), str(listed.parent / "mistyped.list")):
        assert main([*command, source]) != 0
        assert not out.exists()
    missing.write_bytes(kept)
    out.mkdir()
    assert main([*command, str(listed.parent / "mistyped.list")]) != 0
    assert out.is_dir()  # it was there before
    assert main([*command, str(listed)]) == 0
    assert len(Pack(out).records) == 5


@pytest.mark.parametrize(
    ("data", "told"),
    [(b'{"key": "k", "deep": ' + b"[" * 100_000, "data.list line 1: not JSON"), (b"\n", "contains no records")],
)
def test_the_command_tells_in_a_line_what_it_cannot_pack(
    data: bytes, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "data.list"
    path.write_bytes(data)
    assert main(["build", "echat", "--records", str(path), "--out", str(tmp_path / "pack")]) != 0
    [error] = capsys.readouterr().err.splitlines()
    assert told in error
    assert not (tmp_path / "pack").exists()


@pytest.mark.parametrize(
    "flags",
    [["--pack", "p"], ["--pack-only"], ["--shards"], ["--count", "3"], ["--only", "train"], ["--reply-audio"],
     ["--texts-from", "t"], ["--hear-again"], ["--speech", "units2"], ["--no-gates"], ["--jobs", "2"], ["--seed", "1"]],
)  # fmt: skip
def test_the_command_refuses_flags_of_building_beside_records(
    flags: list[str], listed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["build", "echat", "--records", str(listed), "--out", str(tmp_path / "pack"), *flags]) == 2
    assert f"{flags[0]} is for building; leave it out with --records" in capsys.readouterr().err
    assert not (tmp_path / "pack").exists()


def test_a_line_without_an_end_is_not_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(containers, "LONGEST_LINE", 1000)
    (tmp_path / "data.list").write_bytes(b'{"key": "' + b"x" * 5000)
    with pytest.raises(DataError, match=r"data\.list line 1: longer than 1,000 bytes"):
        list(containers.read(tmp_path / "data.list"))
