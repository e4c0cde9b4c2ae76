"""What a model states that it heard: clips known by name or samples, marks, and files that survive or are refused."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from overtone import heard
from overtone.errors import DataError, UsageError
from overtone.heard import HeardInTraining, Mark, Origin, heard_clip, sound_hash, union

NOISE = np.random.default_rng(0).standard_normal(400).astype(np.float32) / 10
TAKE = "03-01-05-02-01-02-07"


def of(*origins: Origin, made: str = "", sound: bytes = b"") -> HeardInTraining:
    return heard_clip(origins, "CC-BY-NC-SA-4.0", sound, made=made)


RAVDESS = of(Origin("ravdess", "07", f"actor_07/{TAKE}.ogg"), sound=sound_hash(NOISE))


@pytest.mark.parametrize(
    ("origin", "level"),
    [
        (Origin("RAVDESS-Speech", "7", f"audio/{TAKE}.flac"), "clip"),  # re-encoded, and called otherwise by others
        (Origin("RAVDESS", "07", f"C:\\data\\{TAKE}.WAV"), "clip"),
        (Origin("ravdess", "", f"{TAKE}.wav"), "clip"),  # the speaker is not known
        (Origin("ravdess", "07", "03-01-05-02-01-01-07.wav"), "speaker"),
        (Origin("ravdess", "08", f"{TAKE}.wav"), "corpus"),  # the same name in another speaker's folder
        (Origin("ravdess"), "corpus"),
        (Origin("crema-d", "07", f"{TAKE}.wav"), ""),
    ],
)
def test_a_clip_is_recognised_by_its_name_in_its_corpus(origin: Origin, level: str) -> None:
    assert RAVDESS.mark([origin]).level == level


def test_without_speakers_in_training_a_name_alone_is_enough() -> None:
    assert of(Origin("meld", "", "dia0_utt0.wav")).mark([Origin("MELD", "Joey", "train/dia0_utt0.mp4")]).level == "clip"


def test_the_closest_of_several_origins_is_the_mark() -> None:
    origins = [Origin("ravdess"), Origin("ravdess", "07"), Origin("other")]
    assert RAVDESS.mark(origins) == Mark("speaker", "ravdess:7")
    assert RAVDESS.mark([]) == Mark()


def test_a_clip_without_a_name_is_recognised_by_its_samples() -> None:
    sixteen = np.rint(NOISE * 32768).astype(np.int16).astype(np.float32) / 32768  # as a file stores them
    assert RAVDESS.mark([], [sound_hash(sixteen)]).level == "clip"
    assert RAVDESS.mark([], [sound_hash(NOISE * 0.9)]).level == ""
    assert sound_hash(np.zeros(9, np.float32)) == b"" and not of(made="x").mark([], [b""]).level


def test_a_made_set_marks_its_own_clips_only() -> None:
    made = of(made="overtone-echat", sound=sound_hash(NOISE))
    assert made.mark([Origin("overtone-echat", "voice", "a.wav")]).level == ""
    assert made.mark([], [sound_hash(NOISE)]).level == "clip"


def test_a_union_has_everything_once_and_is_complete_if_all_parts_are() -> None:
    again = union([RAVDESS, RAVDESS, of(Origin("ravdess", "08", "x.wav"), sound=sound_hash(NOISE[1:]))])
    assert again.statement()["corpora"]["ravdess"] == {
        "clips": 2, "speakers": 2, "licences": ["CC-BY-NC-SA-4.0"], "made": False,
    }  # fmt: skip
    assert again.complete and not union([again, HeardInTraining(complete=False)]).complete
    assert union([of(Origin("a")), of(made="a")]).corpora["a"].made is False


def test_a_statement_survives_its_file_with_the_same_bytes(tmp_path: Path) -> None:
    entry = heard.write(tmp_path, RAVDESS)
    assert heard.read(tmp_path, entry) == RAVDESS
    assert heard.encode(union([HeardInTraining(), RAVDESS])) == heard.encode(RAVDESS)
    assert b"03-01" not in gzip.decompress((tmp_path / entry.file).read_bytes())  # hashes, no names of files


def test_thousands_of_clips_stay_small() -> None:
    many = union(of(Origin("c", str(n % 90), f"{n}.wav"), sound=sound_hash(NOISE + n)) for n in range(3000))
    assert len(heard.encode(many)) < 3000 * 3 * 6 * 1.1


def test_a_changed_or_damaged_file_is_refused(tmp_path: Path) -> None:
    entry = heard.write(tmp_path, RAVDESS)
    path = tmp_path / entry.file
    data = path.read_bytes()
    path.write_bytes(data[:-1])
    with pytest.raises(DataError, match=r"heard\.json\.gz: changed since it was written"):
        heard.read(tmp_path, entry)
    path.unlink()
    with pytest.raises(DataError, match="cannot be read"):
        heard.read(tmp_path, entry)
    for bad in (b"", data[:-9], b"no gzip", gzip.compress(b"{}"), gzip.compress(b'{"format":2}')):
        with pytest.raises(DataError, match="here: not a statement of what a model heard"):
            heard.decode(bad, "here")
    corpus = b'{"sounds":"AAAA","names":"","speakers":[],"licences":[],"made":true}'
    short = b'{"format":1,"complete":true,"corpora":{"a":' + corpus + b"}}"
    with pytest.raises(DataError, match="3 bytes"):
        heard.decode(gzip.compress(short), "here")


def test_an_unknown_level_is_refused() -> None:
    with pytest.raises(UsageError, match="--heard all: no such level; known: clip, speaker, corpus"):
        heard.check_level("all")
