"""What lies where a set is built: whose it is, whether it is whole, and that nothing of another's is lost."""

from __future__ import annotations

import resource
import shutil
from pathlib import Path

import msgspec
import pytest

from overtone.cli._main import main
from overtone.echat.data.containers import Pack
from overtone.echat.making import make, spoken_queries, texts
from overtone.echat.making.compose import compose, sizes_for
from overtone.echat.making.reply_speech import Reply, tokens_identity
from overtone.echat.making.sound import Heard
from overtone.echat.making.write import Outputs
from overtone.errors import UsageError
from tests.echat.test_make import FEW, prints, small

SEEN = ("seen",)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A set in `a`, and its pack beside it in `p`."""
    home = tmp_path_factory.mktemp("again")
    small(home / "a", only=SEEN, outputs=Outputs(pack=str(home / "p")))
    return home


@pytest.fixture
def home(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "home")
    return tmp_path / "home"


def again(home: Path, name: str = "a", **options: object) -> make.Built:
    return small(home / name, only=SEEN, outputs=Outputs(pack=str(home / "p")), **options)


@pytest.mark.local
def test_a_pack_of_another_set_is_refused_before_anything_is_changed(home: Path) -> None:
    before = prints(home)
    for asked, wrong in (({"seed": 7}, "its seed is 0, not 7"), ({"count": 8}, "its count is 12, not 8")):
        with pytest.raises(UsageError, match=rf"p/seen holds another pack: {wrong}; give another --pack"):
            again(home, "b", **asked)
    assert prints(home) == before
    assert again(home).clips == 0
    (home / "p" / "seen" / "set.json").unlink()
    with pytest.raises(UsageError, match="it does not record which set it belongs to"):
        again(home, "b")
    assert again(home).clips == 4  # our own manifest names it
    assert prints(home) == before


@pytest.mark.local
def test_a_pack_counts_as_done_only_with_the_sounds_of_this_folder(home: Path) -> None:
    before = prints(home)
    again(home)
    bundle = spoken_queries.bundled(compose(texts.read(FEW), 0, sizes_for(12, SEEN)))[0]
    verdict = spoken_queries.Verdict(spoken_queries.bundle_id(bundle, 0), tuple(x.key for x in bundle), 1, True)
    (home / "b").mkdir()
    (home / "b" / "verdicts.jsonl").write_bytes(msgspec.json.encode(verdict) + b"\n")
    again(home, "b")  # the same set, one query in another take
    assert prints(home)["p/seen/clips.i16"] != before["p/seen/clips.i16"]
    assert again(home).clips == 4
    assert {name: now for name, now in prints(home).items() if not name.startswith("b/")} == before


@pytest.mark.local
def test_what_was_removed_or_cut_is_made_again(home: Path) -> None:
    before = prints(home)
    pack = home / "p" / "seen"
    for path in (next((home / "a" / "wav" / "seen").iterdir()), pack / "clips.i16", pack / "clips.npy"):
        path.unlink()
        assert again(home).clips == 4
        assert prints(home) == before
    (pack / "clips.i16").write_bytes((pack / "clips.i16").read_bytes()[:-2])
    assert again(home).clips == 4
    assert prints(home) == before
    shutil.rmtree(home / "p")
    assert small(home / "a", only=SEEN).clips == 0  # no pack was asked for
    small(home / "a", only=("seen", "dev"), outputs=Outputs(wavs=False, pack=str(home / "p")))
    shutil.rmtree(home / "p" / "dev")
    assert small(home / "a", only=SEEN, outputs=Outputs(wavs=False, pack=str(home / "p"))).clips == 4  # dev's alone
    assert len(Pack(home / "p" / "seen")) == 4


@pytest.mark.local
def test_lists_and_papers_of_somebody_else_stay(home: Path, tmp_path: Path) -> None:
    for name in ("train.list", "dev.list", "LICENSE", "DATASHEET.md", "gates.json", "plain.jsonl", "done.json"):
        out = tmp_path / name
        out.mkdir()
        (out / name).write_text("mine")
        with pytest.raises(UsageError, match=rf"contains other data \({name}\) that would be overwritten"):
            small(out, only=SEEN)
        assert [path.read_text() for path in out.iterdir()] == ["mine"]
    (home / "a" / "engine.list").write_text("mine")
    small(home / "a", only=SEEN)
    assert (home / "a" / "engine.list").read_text() == "mine"


@pytest.mark.local
def test_text_that_a_killed_build_had_not_written_is_written(home: Path) -> None:
    before = prints(home)
    (home / "a" / "plain.jsonl").unlink()
    assert again(home).clips == 0
    assert prints(home) == before


@pytest.mark.local
def test_a_full_disk_leaves_no_file_that_is_cut(home: Path, tmp_path: Path) -> None:
    (home / "a" / "plain.jsonl").write_bytes(b"x" * 500_000)
    size = (home / "a" / "exchanges.jsonl").stat().st_size
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100_000, hard))
    try:
        with pytest.raises(OSError, match="File too large") as told:
            small(tmp_path / "new", only=SEEN, start=home / "a")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert told.value.filename != str(home / "a" / "plain.jsonl")
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["exchanges.jsonl"]


@pytest.mark.local
def test_hear_again_uses_nothing_that_was_heard_or_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[str] = []
    monkeypatch.setattr(spoken_queries, "hear", lambda clip, *_: heard.append(clip.drawn) or Heard(0, 9))
    monkeypatch.setattr(make, "require", lambda *_: None)
    monkeypatch.setattr(spoken_queries, "present", lambda _: True)
    asked = {"count": 2, "only": ("train",), "gates": True, "speech": "units2", "outputs": Outputs(wavs=False)}
    monkeypatch.setattr("overtone.echat.making.set_identity.present", lambda _: False)  # the embedder is slow
    first = small(tmp_path, **asked, again=True)
    assert len(heard) == 2 and first.replies > 2
    assert small(tmp_path, **asked).replies == 0 and len(heard) == 2
    spoken = list(spoken_queries.lines(tmp_path / "replies.jsonl", Reply))
    wrong = [Reply(r.text, r.emotion, (1,), tokens_identity("units2")) for r in spoken]
    (tmp_path / "replies.jsonl").write_bytes(b"".join(msgspec.json.encode(r) + b"\n" for r in wrong))
    assert small(tmp_path, **asked, again=True).replies == first.replies
    assert len(heard) == 4
    assert list(spoken_queries.lines(tmp_path / "replies.jsonl", Reply)) == spoken
    assert len((tmp_path / "verdicts.jsonl").read_bytes().splitlines()) == 2


def test_shards_without_sound_files_are_refused_first(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="remove --pack-only or --shards"):
        small(tmp_path / "out", outputs=Outputs(wavs=False, shards=True))
    assert not (tmp_path / "out").exists()


@pytest.mark.local
def test_only_parts_to_learn_from_are_told_to_be_trained_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["build", "echat", "--out", str(tmp_path), "--count", "4", "--no-gates", "--jobs", "1", "--pack-only"]
    for part, told in (("seen", "the same command with --only train"), ("train", f"--data {tmp_path}/pack/train")):
        assert main([*words, "--only", part]) == 0
        out = capsys.readouterr().out
        assert told in out
        assert ("overtone train echat" in out) == (part == "train")
