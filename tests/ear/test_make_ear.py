"""A fit from a folder of recordings to a file: what it states, how it resumes, and who uses it."""

from __future__ import annotations

import asyncio
import csv
import json
from pathlib import Path

import numpy as np
import pytest

from overtone import audio
from overtone.cli import main
from overtone.corpora import Recording
from overtone.ear import feature_store
from overtone.ear.feature_store import Features, features_of
from overtone.embedded import ear_features, fitted_ear
from overtone.errors import DataError, UsageError
from overtone.metrics.emoalign import load as load_emoalign
from overtone.models.cascade import Cascade
from overtone.schema import Key, Message, Request, Sound
from overtone.spec import parse_spec
from tests.needs import SHARED

pytestmark = pytest.mark.local
RATE = 16_000
PITCH = {"angry": 300.0, "sad": 120.0}


def hum(speaker: int, emotion: str, n: int) -> audio.Samples:
    """A voice of sorts: buzzing syllables, high and rough for anger, low and smooth for sadness."""
    rng = np.random.default_rng([speaker, len(emotion), n])
    t = np.arange(int(0.8 * RATE)) / RATE
    hz = PITCH[emotion] * (1 + 0.03 * speaker) * (1 + 0.02 * np.sin(2 * np.pi * 3 * t))
    phase = 2 * np.pi * np.cumsum(hz) / RATE
    harmonics = sum(np.sin(k * phase) / k ** (0.8 if emotion == "angry" else 2.0) for k in range(1, 12))
    syllables = 0.6 + 0.4 * np.sin(2 * np.pi * 4 * t + rng.uniform(0, 6))
    return np.asarray(0.1 * harmonics * syllables + 0.002 * rng.standard_normal(t.size), np.float32)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    with (folder / "labels.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(("file", "speaker", "sex", "age", "emotion", "words", "licence"))
        for speaker in range(8):
            for emotion in PITCH:
                for n in range(2):
                    name = f"{speaker}-{emotion}-{n}.wav"
                    (folder / name).write_bytes(audio.encode_wav(hum(speaker, emotion, n), RATE))
                    sex = ("male", "female")[speaker % 2]
                    table.writerow((name, f"s{speaker}", sex, 30, emotion, "Hm.", "CC-BY-4.0"))
    return folder


@pytest.fixture(scope="module")
def ear(corpus: Path) -> Path:
    out = corpus.parent / "ear.npz"
    assert (
        main(["fit", "hearing", "--corpus", f"table:{corpus}", "--out", str(out), "--jobs", "1", "--folds", "3"]) == 0
    )
    return out


def test_the_file_states_what_it_heard_and_its_recall(ear: Path) -> None:
    facts = fitted_ear.read(ear).facts
    (heard,) = facts.corpora
    assert (heard.name, heard.clips, heard.speakers) == ("table", 32, tuple(f"s{n}" for n in range(8)))
    assert heard.licences == ("CC-BY-4.0",) and facts.open
    emotion = next(head for head in facts.heads if head.name == "emotion")
    assert emotion.classes == ("angry", "sad") and emotion.report.whole.recall == 1.0
    assert emotion.report.whole.speakers == 8 and sum(map(sum, emotion.report.heard_as)) == 32
    assert facts.cannot_hear["fear"] == "not in the recordings" and "angry" not in facts.cannot_hear
    report = json.loads(ear.with_suffix(".json").read_text())
    assert report["version"] == fitted_ear.read(ear).version and report["heads"][0]["report"]["chance"] == 0.5
    assert "adult" in report["left_out"]["age"]


def test_what_it_heard_marks_clips_and_speakers(ear: Path, corpus: Path) -> None:
    from overtone.heard import Origin, sound_hash

    heard = fitted_ear.read(ear).heard()
    assert heard.mark([Origin("table", "s1", "1-sad-0.flac")]).level == "clip"
    assert heard.mark([Origin("table", "s1", "other")]).level == "speaker"
    samples = audio.read(corpus / "2-angry-1.wav", rate=RATE)[0]
    assert heard.mark([], [sound_hash(samples)]).level == "clip"
    assert heard.mark([], [sound_hash(samples[:-1])]).level == ""


def test_a_second_fit_computes_no_features_and_gives_the_same_bytes(
    ear: Path, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object) -> None:
        raise AssertionError("computed again")

    before = ear.read_bytes()
    monkeypatch.setattr(feature_store.ear_features, "features", never)
    command = ["fit", "hearing", "--corpus", f"table:{corpus}", "--out", str(ear), "--jobs", "1", "--folds", "3"]
    assert main(command) == 0
    assert ear.read_bytes() == before


def test_a_changed_clip_is_listened_to_again(tmp_path: Path) -> None:
    clip = tmp_path / "clip.wav"
    recording = Recording(corpus="table", name="clip.wav", path=str(clip), speaker="x")

    def listened() -> list[Features | None]:
        return features_of([recording], tmp_path / "kept.sqlite", 1, lambda done, total: None)

    clip.write_bytes(audio.encode_wav(hum(0, "sad", 0), RATE))
    (first,) = listened()
    clip.write_bytes(audio.encode_wav(hum(0, "angry", 0), RATE) + b"\0")
    (second,) = listened()
    assert first is not None and second is not None and first.file != second.file and first.sound != second.sound
    clip.write_bytes(audio.encode_wav(np.zeros(RATE, np.float32), RATE))
    assert listened() == [None]


def test_an_interrupted_fit_keeps_what_it_computed(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recordings = [
        Recording(corpus="table", name=path.name, path=str(path), speaker="x") for path in sorted(corpus.glob("*.wav"))
    ]
    counts: list[int] = []

    def interrupted(done: int, total: int) -> None:
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        features_of(recordings, tmp_path / "kept.sqlite", 1, interrupted)
    features_of(recordings[:6], tmp_path / "kept.sqlite", 1, lambda done, total: counts.append(done))
    assert counts == [5, 6]


def test_a_file_that_is_no_store_is_named(tmp_path: Path) -> None:
    store = tmp_path / "kept.sqlite"
    store.write_bytes(b"something else" * 100)
    with pytest.raises(DataError, match=r"kept\.sqlite: cannot be used.*delete it"):
        features_of([], store, 1, lambda done, total: None)


def test_an_unreadable_clip_is_named_and_the_others_are_kept(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import shutil
    import sqlite3

    own = tmp_path / "corpus"
    shutil.copytree(corpus, own)
    (own / "1-sad-1.wav").write_bytes(b"RIFF nothing")
    out = tmp_path / "ear.npz"
    assert main(["fit", "hearing", "--corpus", f"table:{own}", "--out", str(out), "--jobs", "1"]) == 2
    assert "unreadable clips" in (error := capsys.readouterr().err) and "1-sad-1.wav" in error
    assert not out.exists()
    kept = sqlite3.connect(tmp_path / "ear.features.sqlite")
    assert kept.execute("SELECT count(*) FROM features").fetchone() == (31,)
    kept.close()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--corpus", "table:nowhere"], "no such folder"),
        (["--corpus", "ravdes:nowhere"], "ravdess"),
        ([], "--corpus is missing"),
        (["--corpus", "table:nowhere", "--folds", "1"], "give 2 or more"),
    ],
)
def test_a_wrong_call_is_refused(
    flags: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fit", "hearing", "--out", str(tmp_path / "ear.npz"), *flags]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "ear.npz").exists()


def test_a_truncated_or_foreign_or_pickled_file_is_refused(ear: Path, tmp_path: Path) -> None:
    whole = ear.read_bytes()
    bad = tmp_path / "bad.npz"
    for data in (whole[: len(whole) // 2], b"", b"PK\x03\x04 no archive", whole[:200] + b"\0" * 64 + whole[264:]):
        bad.write_bytes(data)
        with pytest.raises(DataError, match=r"bad\.npz: .*(fit one with|fit it again)"):
            fitted_ear.read(bad)
    np.savez(bad, facts=np.array([{"a": 1}], object))
    with pytest.raises(DataError, match="allow_pickle"):
        fitted_ear.read(bad)
    np.savez(bad, other=np.zeros(3))
    with pytest.raises(DataError, match="not a whole ear"):
        fitted_ear.read(bad)


def test_an_ear_of_other_features_is_refused(ear: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ear_features, "VERSION", 99)
    with pytest.raises(DataError, match="fitted to the features"):
        fitted_ear.read(ear)


def test_the_cascade_answers_by_the_ear_and_describes_it(ear: Path) -> None:
    model = Cascade(parse_spec(f"cascade?hear={ear}&speech=no"))
    described = model.describe()
    assert described["ear"] == fitted_ear.identity(ear) and "fear" in described["ear_cannot_hear"]
    assert described["ear_heard"]["table"]["clips"] == 32
    assert model.heard() is not None
    options = ("The voice carries sadness.", "The voice carries anger.")
    for emotion, letter in (("sad", "A"), ("angry", "B")):
        wav = audio.encode_wav(hum(7, emotion, 0), RATE)
        sound = Sound(wav, emotion * 8, 0.8)
        request = Request(Key("item", "task/audio"), (Message("user", (sound,)),), False, "choose", options)
        assert asyncio.run(model.ask(request)).text == f"The answer is: [{letter}]"


def test_the_language_model_reads_the_ears_guesses(ear: Path) -> None:
    loaded = fitted_ear.read(ear)
    guesses = loaded.guesses(np.array(loaded.evidence(hum(7, "angry", 0), RATE)))
    assert guesses[0][0] in ("male", "female") and "angry" in dict(guesses) and "sad" not in dict(guesses)
    assert all(0 < p <= 1 for _, p in guesses)


@pytest.mark.full
@pytest.mark.shared
def test_emotions_of_actors_left_out_are_heard(tmp_path: Path) -> None:
    actors = SHARED / "data" / "people" / "ravdess"
    out = tmp_path / "ear.npz"
    assert main(["fit", "hearing", "--corpus", f"ravdess:{actors}", "--out", str(out)]) == 0
    (emotion,) = (head for head in fitted_ear.read(out).facts.heads if head.name == "emotion")
    assert emotion.report.whole.speakers == 18
    assert emotion.report.whole.recall > 0.6 and (emotion.report.whole.low or 0) > 0.5


def test_emoalign_uses_the_ear(ear: Path, tmp_path: Path) -> None:
    predictor = load_emoalign(predictor=str(ear)).predictor
    assert predictor.identity() == fitted_ear.identity(ear)
    assert predictor.predict((hum(8, "angry", 1), RATE)).label in ("angry", "unknown")
    felt = predictor.predict((hum(8, "sad", 1), RATE))
    assert felt.probabilities["sad"] > 0.5 and felt.probabilities["fearful"] == 0.0
    assert predictor.predict((np.zeros(RATE, np.float32), RATE)).label == "unknown"
    (tmp_path / "other.npz").write_bytes(b"PK")
    with pytest.raises(UsageError, match="not a whole ear"):
        load_emoalign(predictor=str(tmp_path / "other.npz"))
    with pytest.raises(UsageError, match="or the file of an ear"):
        load_emoalign(predictor="embeded")
