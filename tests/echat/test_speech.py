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
    return speech.open_tokens("units")


@pytest.fixture(scope="module")
def said() -> tuple[NDArray[np.float32], int]:
    return units.say(WORDS)


def test_a_second_of_speech_is_twenty_five_of_a_thousand_codes(tokens, said) -> None:  # type: ignore[no-untyped-def]
    found = tokens.encode(*said)
    assert found.dtype == np.int64
    assert (tokens.name, tokens.codes, tokens.rate) == ("units", 1024, 25.0)
    words = len(units.trim_silence(audio.resample(*said, units.HEARD))) / units.HEARD
    assert abs(len(found) - 25 * words) <= 1
    assert 0 <= found.min() <= found.max() < tokens.codes
    assert len(np.unique(found)) > 0.5 * len(found)


def test_the_same_sound_gives_the_same_tokens_and_they_the_same_sound(tokens, said) -> None:  # type: ignore[no-untyped-def]
    first, again = tokens.encode(*said), speech.open_tokens("units").encode(*said)
    assert (first == again).all()
    assert (tokens.decode(first, "sad")[0] == tokens.decode(again, "sad")[0]).all()


@pytest.mark.parametrize("emotion", ["neutral", "happy", "sad", "comforting"])
def test_a_token_is_forty_milliseconds_of_sound(tokens, emotion) -> None:  # type: ignore[no-untyped-def]
    for count in (1, 2, 37):
        sound, rate = tokens.decode(np.arange(count), emotion)
        assert sound.dtype == np.float32
        assert len(sound) == round(count * 0.04 * rate)
        assert np.isfinite(sound).all()
        assert np.abs(sound).max() <= 1


def test_tokens_depend_on_the_words_and_hardly_on_level_rate_and_silence_around(tokens, said) -> None:  # type: ignore[no-untyped-def]
    samples, rate = said
    plain = tokens.encode(samples, rate)
    quieter = tokens.encode(0.2 * samples, rate)
    waiting = tokens.encode(np.concatenate([np.zeros(rate, np.float32), samples]), rate)
    other = tokens.encode(audio.resample(samples, rate, 44_100), 44_100)
    assert np.mean(quieter == plain) > 0.9
    assert len(waiting) == len(plain)
    assert abs(len(other) - len(plain)) <= 1
    different = tokens.encode(*units.say("My brother drives the blue bus on Wednesday."))
    count = min(len(different), len(plain))
    assert np.mean(different[:count] == plain[:count]) < 0.3


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


def test_every_reply_emotion_can_be_said_and_slow_ones_take_more_tokens(tokens) -> None:  # type: ignore[no-untyped-def]
    lengths = {e: len(tokens.encode(*units.say("I will be there at seven.", e))) for e in labels.SPOKEN}
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
    [([], "at least one"), ([3, 1024], "1024 at index 1"), ([-1], "-1 at index 0"), ([0.5], "must be integers")],
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
    """Two steps of training on two sentences: the script writes weights that this file reads and speaks with."""
    pytest.importorskip("torch")
    monkeypatch.setattr(train_units, "WORK", tmp_path)
    monkeypatch.setattr(train_units, "BATCH", 2)
    monkeypatch.setattr(train_units, "CODES", 64)
    monkeypatch.setattr(train_units, "texts", lambda _: [WORDS, WORDS + " " + WORDS])
    train_units.make_speech(0.001, 1)
    for name in ("one.npz", "two.npz"):
        train_units.fit(0, 4, tmp_path / name)
    one, two = (units.read_weights(tmp_path / n) for n in ("one.npz", "two.npz"))
    assert all((one[k] == two[k]).all() for k in one)  # a seed gives the same weights twice
    found = units.Units(tmp_path / "one.npz")
    assert found.codes == 64
    assert len(found.decode(found.encode(*units.say(WORDS)))[0])


def test_the_code_of_silence_is_what_a_pause_is_made_of(tokens, said) -> None:  # type: ignore[no-untyped-def]
    samples, rate = said
    codes = tokens.encode(np.concatenate([samples, np.zeros(rate, np.float32), samples]), rate)
    assert np.sum(codes == tokens.quiet) >= 20  # of the second's 25
