"""espeak-ng through ctypes: the same words give the same samples, whatever was said before."""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path

import numpy as np
import pytest

from overtone.embedded import espeak_voice
from overtone.errors import UsageError

pytestmark = pytest.mark.local
WORDS = "The ferry leaves at noon."


def digest(**kwargs: object) -> str:
    return hashlib.sha256(espeak_voice.speak(WORDS, **kwargs)[0].tobytes()).hexdigest()  # type: ignore[arg-type]


def test_speech_is_sound_of_a_plausible_length_and_level() -> None:
    samples, rate = espeak_voice.speak(WORDS)
    assert rate == 22_050 and samples.dtype == np.float32
    assert 1.0 < len(samples) / rate < 4.0
    assert 0.1 < np.abs(samples).max() <= 1.0


@pytest.mark.parametrize("name", ["en-us", "en-gb+f4", "en-us+whisper", "en-us+klatt"])
def test_an_utterance_does_not_depend_on_what_was_said_before(name: str) -> None:
    first = digest(voice=name)
    espeak_voice.speak("Something else entirely!", voice="en-us+whisperf", rate_wpm=300, pitch=90)
    assert digest(voice=name) == first


def test_threads_get_the_same_samples() -> None:
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(digest(voice="en-us+m8"))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 6 and set(found) == {digest(voice="en-us+m8")}


def test_rate_and_voice_change_the_sound() -> None:
    assert len(espeak_voice.speak(WORDS, rate_wpm=300)[0]) < 0.8 * len(espeak_voice.speak(WORDS, rate_wpm=150)[0])
    assert digest(voice="en-us+f4") != digest(voice="en-us+m4") != digest(voice="en-gb+m4")
    assert digest(pitch=80) != digest(pitch=20)


@pytest.mark.parametrize("wrong", [{"voice": "xx"}, {"voice": "en-us+nobody"}, {"rate_wpm": 10}, {"pitch": 100}])
def test_wrong_settings_are_usage_errors(wrong: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        digest(**wrong)


def test_odd_text_is_spoken_or_silent_but_never_fatal() -> None:
    for text in ("", "\0", "[[h@'loU]]", "日本語 ☃", "\ud800", "a" * 5000):
        samples, _ = espeak_voice.speak(text)
        assert np.isfinite(samples).all()


def test_a_long_installation_path_is_reached_through_a_link(tmp_path: Path) -> None:
    deep = tmp_path / ("x" * 100) / ("y" * 100)
    deep.mkdir(parents=True)
    short = espeak_voice._short(deep)
    assert len(str(short)) < 160 and short.resolve() == deep.resolve()
