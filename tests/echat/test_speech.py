"""Speech tokens: what the embedded units keep of speech, and what they refuse."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from overtone import audio
from overtone.echat import speech
from overtone.echat.data import labels
from overtone.echat.speech import units
from overtone.embedded import recogniser
from overtone.errors import AudioError, DataError, UsageError
from overtone.metrics.wer import align
from scripts import train_units

pytestmark = pytest.mark.local
WORDS = "Take your time, and tell me what happened when you came home."


@pytest.fixture(scope="module")
def tokens() -> speech.SpeechTokens:
    return speech.open_tokens("units2")


@pytest.fixture(scope="module")
def said() -> tuple[NDArray[np.float32], int]:
    return units.say(WORDS)


def test_a_unit_is_a_phoneme_and_how_long_it_lasts(tokens, said) -> None:  # type: ignore[no-untyped-def]
    assert (tokens.name, tokens.codes, tokens.rate) == ("units2", 384, 12.5)
    found = tokens.read("Take your time.")
    assert found.dtype == np.int64
    assert [tokens.phonemes[n] for n in tokens.phoneme_of[found]] == [
        "_", "t", "'eI", "k", "_", "j", "U@", "_", "t2", "'aI", "m", "_",
    ]  # fmt: skip
    stops = tokens.seconds(found)[[1, 3, 8]]
    assert (stops < 0.1).all() and tokens.seconds(found)[9] > 0.15
    longer = tokens.read("Take your time.", "sad")
    assert tokens.seconds(longer).sum() > 1.05 * tokens.seconds(found).sum()


def test_reading_a_text_and_hearing_it_give_nearly_the_same_units(tokens) -> None:  # type: ignore[no-untyped-def]
    wrong = total = 0
    for text in (WORDS, "We can look at the letter together after dinner."):
        for emotion in ("neutral", "happy", "sad"):
            read, heard = tokens.read(text, emotion), tokens.encode(*units.say(text, emotion))
            names = [[tokens.phonemes[n] for n in tokens.phoneme_of[codes]] for codes in (read, heard)]
            wrong, total = wrong + align(*names).errors, total + len(read)
            assert abs(tokens.seconds(heard).sum() - tokens.seconds(read).sum()) < 0.25
    assert wrong / total < 0.15


def test_an_l_that_espeak_gives_no_time_has_some(tokens) -> None:  # type: ignore[no-untyped-def]
    codes = tokens.read("All is well.")
    names = [tokens.phonemes[n] for n in tokens.phoneme_of[codes]]
    assert names.count("l") == 2
    assert min(tokens.seconds(codes)[[at for at, name in enumerate(names) if name == "l"]]) >= 0.02


def test_phonemes_that_were_too_rare_to_train_become_similar_ones() -> None:
    nearest = units.nearest_names(["_", "a", "'a", "l", "t"])
    assert [nearest(name) for name in ("'a", ",a", "a#", "t2", "@L", "Q")] == [2, 1, 1, 4, 0, 0]


def test_the_same_sound_gives_the_same_tokens_and_they_the_same_sound(tokens, said) -> None:  # type: ignore[no-untyped-def]
    first, again = tokens.encode(*said), speech.open_tokens("units2").encode(*said)
    assert (first == again).all()
    assert (tokens.decode(first, "sad")[0] == tokens.decode(again, "sad")[0]).all()


@pytest.mark.parametrize("emotion", ["neutral", "happy", "sad", "comforting"])
def test_tokens_last_as_long_as_they_say(tokens, emotion) -> None:  # type: ignore[no-untyped-def]
    for count in (1, 2, 37):
        sound, rate = tokens.decode(np.arange(count), emotion)
        assert sound.dtype == np.float32
        assert len(sound) == round(float(tokens.seconds(np.arange(count)).sum()) * rate)
        assert np.isfinite(sound).all()
        assert np.abs(sound).max() <= 1


def test_tokens_depend_on_the_words_and_hardly_on_level_rate_and_silence_around(tokens, said) -> None:  # type: ignore[no-untyped-def]
    samples, rate = said
    plain = tokens.encode(samples, rate)
    quieter = tokens.encode(0.2 * samples, rate)
    waiting = tokens.encode(np.concatenate([np.zeros(rate, np.float32), samples]), rate)
    other = tokens.encode(audio.resample(samples, rate, 44_100), 44_100)
    different = tokens.encode(*units.say("My brother drives the blue bus on Wednesday."))
    away = [align(*([str(code) for code in codes] for codes in (plain, heard))).errors / len(plain)
            for heard in (quieter, waiting, other, different)]  # fmt: skip
    assert max(away[:3]) < 0.2 and away[3] > 0.6


def test_decoded_speech_is_understood(tokens) -> None:  # type: ignore[no-untyped-def]
    errors = words = 0
    for text in (
        WORDS,
        "We can look at the letter together after dinner.",
        "That is good news, and you have earned it.",
    ):
        sound, rate = tokens.decode(tokens.encode(*units.say(text)))
        quiet = np.zeros(rate // 4, np.float32)
        heard = recogniser.transcribe(np.concatenate([quiet, sound, quiet]), rate)
        alignment = align(_words(text), _words(heard))
        errors, words = errors + alignment.errors, words + alignment.reference_words
    assert errors / words < 0.35


def _words(text: str) -> list[str]:
    return "".join(c for c in text.lower() if c.isalpha() or c == " ").split()


def test_the_same_tokens_sound_happy_or_sad_as_they_are_told(tokens, said) -> None:  # type: ignore[no-untyped-def]
    found = tokens.encode(*said)
    happy, neutral, sad = (audio.measure(*tokens.decode(found, e)) for e in ("happy", "neutral", "sad"))
    assert happy.f0_hz > 1.12 * neutral.f0_hz > 1.05 * sad.f0_hz
    assert happy.rms_dbfs > neutral.rms_dbfs + 1.5
    assert sad.rms_dbfs < neutral.rms_dbfs - 3
    assert happy.centroid_hz > sad.centroid_hz


def test_every_reply_emotion_can_be_said_and_slow_ones_last_longer(tokens) -> None:  # type: ignore[no-untyped-def]
    lengths = {e: tokens.seconds(tokens.read("I will be there at seven.", e)).sum() for e in labels.SPOKEN}
    assert lengths["sad"] > lengths["comforting"] > lengths["neutral"]
    for emotion in labels.SPOKEN:
        assert np.abs(tokens.decode(np.arange(12), emotion)[0]).max() > 0


def test_the_manner_is_taken_out_of_the_tokens(tokens) -> None:  # type: ignore[no-untyped-def]
    """Tokens of a happy and of a flat delivery with one timing, decoded alike, sound more alike than the two did."""
    plain = units.plain_speech(WORDS)
    spoken = [
        units.delivery.deliver(plain, units.without_timing(units.emotion_recipe(e)), np.random.default_rng(0)).astype(
            np.float32
        )
        for e in ("happy", "sad")
    ]
    before = [audio.measure(s, units.delivery.RATE) for s in spoken]
    after = [audio.measure(*tokens.decode(tokens.encode(s, units.delivery.RATE))) for s in spoken]
    for name in ("f0_hz", "centroid_hz"):
        ratios = [abs(np.log(getattr(a, name) / getattr(b, name))) for a, b in (before, after)]
        assert ratios[1] < 0.5 * ratios[0], name
    assert abs(after[0].rms_dbfs - after[1].rms_dbfs) < 1


@pytest.mark.parametrize(
    ("sound", "rate", "says"),
    [
        (np.zeros(0, np.float32), 16_000, "must have at least 80 ms, not 0 ms"),
        (np.ones(100, np.float32), 16_000, "must have at least 80 ms, not 6 ms"),
        (np.zeros(16_000, np.float32), 16_000, "silent"),
        (np.ones((16_000, 2), np.float32), 16_000, "mono"),
        (np.ones(16_000, np.float32), 0, "sample rate"),
        (
            np.r_[np.ones(8_000, np.float32), np.nan, np.ones(8_000, np.float32)],
            16_000,
            "NaN or infinite sample at 0.500 s",
        ),
    ],
)
def test_what_is_no_speech_is_refused_by_name(tokens, sound, rate, says) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(AudioError, match=says):
        tokens.encode(sound, rate)


@pytest.mark.parametrize(
    ("given", "says"),
    [([], "at least one"), ([3, 384], "384 at index 1"), ([-1], "-1 at index 0"), ([0.5], "must be integers")],
)
def test_what_is_no_token_is_refused_by_place(tokens, given, says) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(UsageError, match=says):
        tokens.decode(np.array(given))


def test_an_unknown_emotion_tokenizer_or_file_is_named(tokens, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(UsageError, match=r"unknown reply emotion 'hapy'.*happy"):
        tokens.decode(np.arange(3), "hapy")
    with pytest.raises(UsageError, match="unknown speech tokens 'bits'"):
        speech.open_tokens("bits")
    with pytest.raises(DataError, match="train_units"):
        units.Units(tmp_path / "none.npz")
    (tmp_path / "bad.npz").write_bytes(b"no weights")
    with pytest.raises(DataError, match="not a valid file of unit weights"):
        units.Units(tmp_path / "bad.npz")


def test_the_networks_in_numpy_are_those_that_were_trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few steps of training on two sentences: the script writes weights that this file reads and speaks with."""
    pytest.importorskip("torch")
    monkeypatch.setattr(train_units, "WORK", tmp_path)
    monkeypatch.setattr(train_units, "BATCH", 2)
    monkeypatch.setattr(train_units, "CODES", 64)
    monkeypatch.setattr(train_units, "RARE", 0)
    monkeypatch.setattr(train_units, "texts", lambda _: [WORDS, WORDS + " " + WORDS])
    train_units.make_alphabet()
    train_units.make_speech(0.001, 1)
    for name in ("one.npz", "two.npz"):
        train_units.fit(0, 4, tmp_path / name)
    one, two = (units.read_weights(tmp_path / n) for n in ("one.npz", "two.npz"))
    assert all((one[k] == two[k]).all() for k in one)  # a seed gives the same weights twice
    found = units.Units(tmp_path / "one.npz")
    assert 20 < found.codes <= 64
    assert len(found.decode(found.encode(*units.say(WORDS)))[0])


def test_codes_are_where_rounding_lengths_costs_least() -> None:
    sounds, lengths = np.array([0] * 6 + [1] * 8), np.array([4, 4, 4, 4, 4, 4, 5, 5, 5, 5, 20, 20, 20, 20])
    for most, wanted in ((2, [(0, 4), (1, 10)]), (3, [(0, 4), (1, 5), (1, 20)]), (9, [(0, 4), (1, 5), (1, 20)])):
        assert list(zip(*map(np.ndarray.tolist, train_units.codes(sounds, lengths, 2, most)), strict=True)) == wanted


def test_silence_is_pauses_and_the_quiet_code_is_the_one_between_words(tokens, said) -> None:  # type: ignore[no-untyped-def]
    samples, rate = said
    codes = tokens.encode(np.concatenate([samples, np.zeros(rate, np.float32), samples]), rate)
    pauses = np.array([tokens.phonemes[n] == "_" for n in tokens.phoneme_of[codes]])
    assert tokens.seconds(codes)[pauses].max() * 1.01 >= 0.3
    runs = np.split(tokens.seconds(codes) * pauses, np.flatnonzero(np.diff(pauses)) + 1)
    assert max(run.sum() for run in runs) > 1.0
    assert tokens.phonemes[tokens.phoneme_of[tokens.quiet]] == "_"
    assert 0.02 < float(tokens.seconds(np.array([tokens.quiet]))[0]) < 0.08


def test_tokens_and_weights_of_earlier_versions_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"'units' of 40 ms are no longer part.*build the set and train"):
        speech.open_tokens("units")
    np.savez(tmp_path / "old.npz", codes=np.zeros((4, 4)))
    with pytest.raises(DataError, match=r"format 1, but this version reads format 2"):
        units.Units(tmp_path / "old.npz")
