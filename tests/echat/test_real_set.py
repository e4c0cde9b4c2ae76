"""Corpora a user has, in their own layouts, become records with labels, licences and parts that share nobody."""

from __future__ import annotations

import hashlib
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from overtone import corpora as known
from overtone.audio import encode_wav
from overtone.cli._main import main
from overtone.corpora import is_open
from overtone.echat.data.containers import Pack, open_audio, read
from overtone.echat.data.labels import Labels
from overtone.echat.making import real_set
from overtone.echat.making.real_recordings import labels
from overtone.echat.making.real_recordings import read as recordings_of
from overtone.echat.making.real_recordings import words as words_of
from overtone.errors import UsageError
from tests.corpora.folders import FOLDERS


def tone(path: Path, hertz: float = 300.0, seconds: float = 1.0) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    t = np.arange(int(16_000 * seconds)) / 16_000
    path.write_bytes(encode_wav(0.2 * np.sin(2 * np.pi * hertz * t), 16_000))


@pytest.fixture
def corpora(tmp_path: Path) -> Path:
    """Each corpus as its publisher lays it out, with tones for sounds."""
    home = tmp_path / "corpora"
    for actor in range(1, 25):
        for emotion in (1, 3, 5):
            tone(
                home / "RAVDESS" / f"Actor_{actor:02d}" / f"03-01-0{emotion}-01-01-01-{actor:02d}.wav", 200 + 9 * actor
            )
    (home / "ESC-50" / "meta").mkdir(parents=True)
    rows = ["filename,fold,target,category,esc10,src_file,take"]
    for n in range(12):
        kind, ten = (("rain", True), ("sea_waves", False), ("coughing", False))[n % 3]
        rows.append(f"1-{1000 + n}-A-10.wav,1,10,{kind},{ten},{1000 + n},A")
        tone(home / "ESC-50" / "audio" / f"1-{1000 + n}-A-10.wav", 500 + n)
    (home / "ESC-50" / "meta" / "esc50.csv").write_text("\n".join(rows))
    for speaker in range(10, 30):
        folder = home / "LibriSpeech" / str(speaker) / "1"
        tone(folder / f"{speaker}-1-0000.wav")
        folder.joinpath(f"{speaker}-1-0000.wav").rename(folder / f"{speaker}-1-0000.flac")
        (folder / f"{speaker}-1.trans.txt").write_text(f"{speaker}-1-0000 HE SAID NOTHING\n")
    for kind in ("coughing", "crying", "laughing", "yawning"):
        tone(home / "voices" / kind / f"AB{kind[0]}_1.wav")
    (home / "ocean").mkdir()
    lines = ["file,speaker,age,gender,text"]
    for n, (age, gender) in enumerate(((6, "m"), (25, "f"), (70, "m"), (15, "f"))):
        lines.append(f"{n:09d}.wav,{n:04d},{age},{gender},IT IS LATE")
        tone(home / "ocean" / f"{n:09d}.wav")
    (home / "ocean" / "labels.csv").write_text("\n".join(lines))
    return home


def test_every_corpus_is_found_by_its_files(corpora: Path) -> None:
    found, warnings = recordings_of(corpora, [])
    assert not warnings
    counts = Counter(one.corpus for one in found)
    assert counts == {"ravdess": 72, "esc50": 12, "nonverbal": 4, "librispeech": 20, "speechocean": 4}
    told = {(labels(one).emotion, labels(one).gender) for one in found if one.corpus == "ravdess"}
    assert told == {(e, g) for e in ("neutral", "happy", "anger") for g in ("male", "female")}
    ages = [labels(one) for one in found if one.corpus == "speechocean"]
    assert ages == [
        Labels(age="child"),
        Labels(age="adult", gender="female"),
        Labels(age="old", gender="male"),
        Labels(gender="female"),
    ]
    assert {labels(one).event for one in found if one.corpus == "esc50"} == {"rain", "sea waves", "cough"}
    assert {labels(one).event for one in found if one.corpus == "nonverbal"} == {"cough", "cry", "laugh", "other"}
    assert next(words_of(one) for one in found if one.corpus == "librispeech") == "He said nothing."


def test_records_carry_licence_and_part_and_nobody_is_in_two_parts(corpora: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    real_set.build(out, corpora, pack=str(out / "pack"))
    records = {part: list(read(out / f"{part}.list")) for part in ("train", "dev", "test")}
    people = {part: {r.speaker for r in rows} for part, rows in records.items()}
    assert people["train"].isdisjoint(people["dev"] | people["test"])
    assert people["dev"].isdisjoint(people["test"])
    every = [r for rows in records.values() for r in rows]
    assert all(r.extra["licence"] and r.dataset for r in every)
    assert not any(r.problems() for r in every)
    chat = [r for r in every if "S2TCHAT" in r.tags]
    assert chat
    assert all(r.txt != r.question and r.think_str and r.reply_emotion for r in chat)
    assert len(open_audio(records["train"][0])) == 16_000
    mixed = [r for r in every if "+" in r.dataset]
    assert mixed
    assert all(6 <= r.extra["snr"] <= 14 and r.labels.event in ("rain", "sea waves") for r in mixed)
    assert len(Pack(out / "pack" / "train").records) == len(records["train"])


def test_records_are_the_same_wherever_the_corpora_lie(corpora: Path, tmp_path: Path) -> None:
    real_set.build(tmp_path / "a", corpora, wavs=False, pack=str(tmp_path / "a"))
    corpora.rename(tmp_path / "moved")
    (tmp_path / "moved" / "LibriSpeech").rename(tmp_path / "moved" / "zz")
    real_set.build(tmp_path / "b", tmp_path / "moved", wavs=False, pack=str(tmp_path / "b"))
    for part in ("train", "dev", "test"):
        written = [(tmp_path / at / part / "records.jsonl").read_bytes() for at in ("a", "b")]
        assert written[0] == written[1]
        assert str(tmp_path).encode() not in written[0]


def test_two_recordings_of_one_name_are_not_mixed_up(corpora: Path) -> None:
    for kind in ("coughing", "crying", "laughing"):
        tone(corpora / "voices again" / kind / f"AB{kind[0]}_1.wav")
    found, warnings = recordings_of(corpora, [])
    assert sum(one.corpus == "nonverbal" for one in found) == 4
    assert len(warnings) == 3
    assert all("has the same name as another recording of nonverbal" in warning for warning in warnings)


def test_open_only_leaves_out_what_may_not_be_passed_on(corpora: Path, tmp_path: Path) -> None:
    made = real_set.build(tmp_path / "out", corpora, open_only=True)
    assert set(made.corpora) <= {"librispeech", "speechocean", "esc50", "librispeech+esc50", "speechocean+esc50"}
    rows = [r for path in (tmp_path / "out").glob("*.list") for r in read(path)]
    assert rows
    assert all(is_open(r.extra["licence"]) for r in rows)
    assert not any(r.labels.event == "sea waves" for r in rows)


def prints(out: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}


def manifest(out: Path) -> dict[str, Any]:
    return msgspec.json.decode((out / "manifest.json").read_bytes())


def test_the_manifest_tells_the_licence_that_all_recordings_leave(corpora: Path, tmp_path: Path) -> None:
    real_set.build(tmp_path / "open", corpora, open_only=True, pack=str(tmp_path / "packs"))
    told = manifest(tmp_path / "open")
    assert (told["name"], told["licence"], told["seed"]) == ("echat-real", "CC-BY-4.0", 0)
    assert {row["licence"] for row in told["ingredients"]} == {"CC-BY-3.0", "CC-BY-4.0"}
    assert set(told["parts"]) == {path.stem for path in (tmp_path / "open").glob("*.list")}
    for part, row in told["parts"].items():
        assert row["records"] == len(list(read(tmp_path / "open" / f"{part}.list"))) == sum(row["licences"].values())
        assert all(map(is_open, row["licences"]))
    for name, digest in told["sha256"].items():
        path = tmp_path / "packs" / name.removeprefix("pack/") if "/" in name else tmp_path / "open" / name
        assert hashlib.sha256(path.read_bytes()).hexdigest() == digest
    assert "pack/train/records.jsonl" in told["sha256"] and "train.list" in told["sha256"]
    real_set.build(tmp_path / "all", corpora, wavs=False, pack=str(tmp_path / "all"))
    told = manifest(tmp_path / "all")
    assert told["licence"] == "none" and {"recordings", "texts"} == {row["what"] for row in told["ingredients"]}
    assert "CC-BY-NC-SA-4.0" in told["parts"]["train"]["licences"]
    for kind in ("coughing", "crying", "laughing", "yawning"):  # which allow no changed version
        (corpora / "voices" / kind / f"AB{kind[0]}_1.wav").unlink()
    real_set.build(tmp_path / "fewer", corpora, wavs=False, pack=str(tmp_path / "fewer"))
    assert manifest(tmp_path / "fewer")["licence"] == "CC-BY-NC-SA-4.0"


def test_the_papers_of_another_set_are_not_written_over(corpora: Path, tmp_path: Path) -> None:
    for name in ("manifest.json", "train.list", "set.json", "exchanges.jsonl"):
        out = tmp_path / Path(name).stem
        out.mkdir()
        (out / name).write_text('{"name": "echat"}')
        with pytest.raises(UsageError, match=rf"contains other data \({name}\)"):
            real_set.build(out, corpora, open_only=True)
        assert [path.name for path in out.iterdir()] == [name]


def test_another_set_of_recordings_is_refused_and_what_is_there_stays(
    corpora: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = {"open_only": True, "pack": str(tmp_path / "packs")}
    shutil.rmtree(corpora / "RAVDESS")
    real_set.build(tmp_path / "out", corpora, **ours)
    before = prints(tmp_path / "out") | prints(tmp_path / "packs")
    for asked, wrong in (
        ({"seed": 1}, "its seed is 0, not 1"),
        ({"open_only": False}, "its open_only is True, not False; its recordings is"),
    ):
        with pytest.raises(UsageError, match=wrong):
            real_set.build(tmp_path / "out", corpora, **(ours | asked))
        with pytest.raises(UsageError, match=rf"packs/\w+ holds another pack: {wrong}"):
            real_set.build(tmp_path / "other", corpora, **(ours | asked))
        assert not (tmp_path / "other").exists()
    with monkeypatch.context() as patched:
        patched.setattr(real_set, "_sound", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            real_set.build(tmp_path / "out", corpora, wavs=False, **ours)
    assert prints(tmp_path / "out") | prints(tmp_path / "packs") == before
    real_set.build(tmp_path / "out", corpora, **ours)
    assert prints(tmp_path / "out") | prints(tmp_path / "packs") == before
    (tmp_path / "packs" / "train" / "set.json").unlink()
    with pytest.raises(UsageError, match="it does not record which set it belongs to; give another --pack"):
        real_set.build(tmp_path / "out", corpora, **ours)


def test_a_file_that_is_not_there_is_passed_over_and_told(corpora: Path) -> None:
    (corpora / "ocean" / "000000002.wav").unlink()
    found, warnings = recordings_of(corpora, [])
    assert sum(one.corpus == "speechocean" for one in found) == 3
    assert len(warnings) == 2
    assert "000000002.wav: the file is missing" in warnings[0]


def test_a_bad_row_is_told_with_its_line_and_the_others_stay(corpora: Path, tmp_path: Path) -> None:
    table = corpora / "ocean" / "labels.csv"
    good = table.read_text().splitlines()
    table.write_text("\n".join([*good[:2], "000000009.wav,0009,n/a,m,WELL", "000000008.wav,0008", *good[2:]]))
    found, warnings = recordings_of(corpora, [])
    assert sum(one.corpus == "speechocean" for one in found) == 4
    assert warnings == [
        f"{table} line 3: age 'n/a' is not a number of years",
        f"{table.parent / '000000008.wav'}: the file is missing",
        f"{table.parent}: left out 2 of 6 as speechocean",
    ]
    lone = tmp_path / "lone" / "ocean"
    lone.mkdir(parents=True)
    (lone / "labels.csv").write_text("\n".join([good[0], "9.wav,0009,n/a,m,WELL"]))
    with pytest.raises(UsageError, match=r"no usable recording .*labels\.csv line 2: age 'n/a' is not a number"):
        real_set.build(tmp_path / "out", lone.parent)


def test_a_label_that_training_does_not_know_is_left_out_and_told(tmp_path: Path) -> None:
    folder = tmp_path / "corpora" / "played"
    tone(folder / "1.wav")
    (folder / "labels.csv").write_text("file,actor,gender,emotion,text\n1.wav,1,male,bored,It is late.\n")
    found, warnings = recordings_of(folder.parent, [])
    assert labels(found[0]) == Labels(gender="male") and found[0].emotion == "bored"
    assert warnings == ["table: training has no emotion 'bored'; 1 recordings are used without it"]
    real_set.build(tmp_path / "out", folder.parent)
    assert not any(r.problems() for path in (tmp_path / "out").glob("*.list") for r in read(path))


def test_recordings_that_teach_nothing_are_counted_and_a_set_of_them_alone_is_refused(tmp_path: Path) -> None:
    folder, out = tmp_path / "mine", tmp_path / "out"
    tone(folder / "1.wav")
    tone(folder / "2.wav", 400)
    (folder / "labels.csv").write_text("file,language,words\n1.wav,,\n2.wav,de,Es ist spät.\n", "utf-8")
    says = "table: 2 of 2 recordings have neither English words nor a label that training knows"
    with pytest.raises(UsageError, match=f"no usable recording in the corpora that you named; {says}"):
        real_set.build(out, folder)
    assert not out.exists()
    (folder / "labels.csv").write_text("file,language,words\n1.wav,,It is late.\n2.wav,de,Es ist spät.\n", "utf-8")
    made = real_set.build(out, folder)
    assert made.corpora["table"][0] == 1
    assert any("1 of 2 recordings have neither English words" in line for line in made.warnings)


def test_sounds_that_are_named_by_their_kind_are_of_as_many_people_as_there_are_files(tmp_path: Path) -> None:
    for kind in ("coughing", "crying", "laughing"):
        for n in range(3):
            tone(tmp_path / "voices" / kind / f"{kind if n else 'cough'}_{n}.wav", seconds=0.1)
            tone(tmp_path / "voices" / kind / f"AB_{n}.wav", seconds=0.1)
    found, _ = recordings_of(tmp_path, [])
    people = {one.speaker for one in found if one.name.startswith("coughing/")}
    assert people == {"AB", "cough_0", "coughing_1", "coughing_2"}


def test_a_folder_without_corpora_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="no known corpus"):
        real_set.build(tmp_path / "out", tmp_path / "empty")
    with pytest.raises(UsageError, match="no such folder"):
        recordings_of(tmp_path / "nowhere", [])
    with pytest.raises(UsageError, match="no recordings are named; give --data DIR"):
        recordings_of(None, [])


def test_the_command_builds_both_and_refuses_flags_of_the_other(
    corpora: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["build", "echat-real", "--data", str(corpora), "--out", str(tmp_path / "r"), "--pack-only"]) == 0
    assert "ravdess: 144 records, CC-BY-NC-SA-4.0" in capsys.readouterr().out
    on_real = ["build", "echat-real", "--data", str(corpora), "--out", str(tmp_path / "r"), "--pack-only"]
    for words, told in (
        (["build", "echat-real", "--out", str(tmp_path / "x")], "give --data DIR"),
        (["build", "echat-real", "--out", str(tmp_path / "x"), "--corpus", "tess"], "tess: no such folder"),
        (["build", "echat", "--out", str(tmp_path / "x"), "--data", str(corpora)], "unrecognized arguments: --data"),
        (["build", "echat", "--out", str(tmp_path / "x"), "--voice", "flite"], "unrecognized arguments: --voice"),
        (["build", "echat", "--out", str(tmp_path / "x"), "--count", "0"], "at least 1"),
        (["build", "echat", "--out", str(tmp_path / "x"), "--each-turn"], "goes with --records"),
        (["build", "echat", "--out", str(corpora), "--records", str(tmp_path)], "already exists"),
        (["build", "echat", "--out", str(tmp_path / "x"), "--pack-only", "--shards"], "made from audio files"),
        ([*on_real, "--shards"], "unrecognized arguments: --shards"),
        ([*on_real, "--no-gates"], "unrecognized arguments: --no-gates"),
        ([*on_real, "--seed", "3"], "its seed is 0, not 3"),
    ):
        assert main(words) != 0
        assert told in capsys.readouterr().err


def test_corpora_are_named_one_by_one_too(corpora: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["build", "echat-real", "--out", str(tmp_path / "out"), "--pack-only"]
    assert main([*words, "--corpus", f"ravdess:{corpora / 'RAVDESS'}", "--corpus", str(corpora / "ocean")]) == 0
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines()] == ["ravdess", "speechocean"]
    assert main([*words, "--corpus", f"tess:{corpora / 'RAVDESS'}"]) == 2
    assert "it looks like ravdess; write ravdess:" in capsys.readouterr().err


def test_words_in_other_languages_are_not_transcribed_and_their_labels_stay(tmp_path: Path) -> None:
    FOLDERS["emodb"](tmp_path / "corpora" / "emodb")
    FOLDERS["esd"](tmp_path / "corpora" / "esd")
    real_set.build(tmp_path / "out", tmp_path / "corpora")
    rows = [r for path in (tmp_path / "out").glob("*.list") for r in read(path)]
    german = [r for r in rows if r.extra["language"] == "de"]
    assert german and not any(r.question or "TRANSCRIBE" in r.tags for r in german)
    assert all(r.labels.emotion for r in german if "03a01Fa" in r.extra["group"])
    assert {r.question for r in rows if r.extra["language"] == "en"} >= {"Let it be.", "You’re late."}


@pytest.mark.parametrize("kind", sorted(set(FOLDERS) - {"table"}))
def test_the_licence_of_every_corpus_reaches_records_and_manifest(kind: str, tmp_path: Path) -> None:
    FOLDERS[kind](tmp_path / "corpus")
    real_set.build(tmp_path / "out", None, [f"{kind}:{tmp_path / 'corpus'}"])
    rows = [r for path in (tmp_path / "out").glob("*.list") for r in read(path)]
    licences = {r.extra["licence"] for r in rows}
    assert rows and known.adapter(kind).licence in licences and not any(r.problems() for r in rows)
    told = manifest(tmp_path / "out")
    assert {row["licence"] for row in told["ingredients"] if row["what"] == "recordings"} == licences
    assert (told["licence"] == "CC-BY-4.0") is all(map(is_open, licences))
    if all(map(is_open, licences)):
        return
    without = (tmp_path / "open", None, [f"{kind}:{tmp_path / 'corpus'}"])
    if any(map(is_open, licences)):
        real_set.build(*without, open_only=True)
        assert manifest(tmp_path / "open")["licence"] == "CC-BY-4.0"
    else:
        with pytest.raises(UsageError, match="no recording with an open licence"):
            real_set.build(*without, open_only=True)


def test_a_sound_that_cannot_be_decoded_is_left_out_and_named(corpora: Path, tmp_path: Path) -> None:
    whole = len(real_set.build(tmp_path / "a", corpora / "RAVDESS").warnings)
    broken = corpora / "RAVDESS" / "Actor_01" / "03-01-03-01-01-01-01.wav"
    broken.write_bytes(broken.read_bytes()[:10])
    made = real_set.build(tmp_path / "b", corpora / "RAVDESS")
    assert whole == 0 and len(made.warnings) == 1
    assert str(broken) in made.warnings[0] and made.warnings[0].endswith("the recording is left out")
    clips = {r.extra["clip"] for path in (tmp_path / "b").glob("*.list") for r in read(path)}
    assert len(clips) == 71
