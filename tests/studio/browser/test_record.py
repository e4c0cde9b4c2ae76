"""The recording desk in a real browser with a microphone that plays a file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from overtone import audio
from overtone.build.script import Script
from overtone.studio.server import app
from overtone.studio.study import Study
from overtone.studio.take_checker import TakeChecker
from tests.studio.browser import site
from tests.studio.browser.fake_microphone import ELSEWHERE, microphone_browser
from tests.studio.browser.rater import Rater
from tests.studio.desk_helpers import desk, some_scripts
from tests.studio.speech import RATE, spoken

LEVEL, HERTZ = 0.2, 440.0
SPOKEN = "The garage has sent me a price for the work."
LEAD = 6.0  # seconds of silence before the speech: enough for the set-up and the countdown
LOUD = "() => new DOMMatrix(getComputedStyle(document.querySelector('.level')).transform).a"


def plain_script(**changed: Any) -> Script:
    """A script that needs one plain take: both its cues are scenes."""
    import msgspec

    found = [one for one in some_scripts("rain", "wind", each=12) if one.alternative in ("rain", "wind", "thunder")]
    return msgspec.structs.replace((found or some_scripts("rain"))[0], **changed)


@contextmanager
def speaker(chromium: Any, wav: Path, study: Study) -> Iterator[tuple[Rater, site.Site]]:
    """A speaker on the first screen of a served study."""
    with microphone_browser(chromium, wav) as browser, site.served(study) as at:
        person = Rater(browser, permissions=["microphone"])
        person.arrive(at.invite())
        person.page.check("input[name=analysis]")
        person.agree()
        yield person, at
        person.close()
        assert person.complaints(network=True) == []


def set_up(person: Rater) -> None:
    assert person.heading == "Set up your microphone"
    person.press(" ", "1", "1")
    person.page.wait_for_selector(".setup-message[data-kind=good], .setup-message[data-kind=warn]")
    person.press("Enter")
    person.await_heading("Set up your microphone")


def record_until(person: Rater, condition: str) -> None:
    person.press(" ")
    person.page.wait_for_selector(".take.on")
    person.wait(condition)
    person.press(" ")
    person.page.wait_for_selector(".result .player, .result .reason")


@pytest.mark.browser
def test_a_take_is_stored_as_it_was_played_and_the_first_one_is_kept(
    chromium: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "TakeChecker", lambda: TakeChecker(listen=False))
    at = np.arange(RATE * 2) / RATE
    wav = tmp_path / "tone.wav"
    wav.write_bytes(audio.encode_wav(LEVEL * np.sin(2 * np.pi * HERTZ * at), RATE))
    with speaker(chromium, wav, desk(tmp_path, "record", some_scripts("sad"))) as (person, served):
        set_up(person)
        assert person.heading == "Sentence 1"
        record_until(person, "() => parseFloat(document.querySelector('.count').textContent) > 1")
        (take,) = served.store.takes.all(kept=None)
        samples, rate = audio.read(served.store.takes.path(take))
        spectrum = np.abs(np.fft.rfft(samples * np.hanning(len(samples))))
        assert spectrum.argmax() * rate / len(samples) == pytest.approx(HERTZ, abs=2)
        assert np.sqrt(np.mean(samples**2)) == pytest.approx(LEVEL / np.sqrt(2), rel=0.02)
        assert take.settings["sampleRate"] == rate and take.settings["autoGainControl"] is False
        assert take.settings["noise_dbfs"] == pytest.approx(20 * np.log10(LEVEL / np.sqrt(2)), abs=0.5)
        assert take.verdict == "retake" and "too much noise" in person.text  # a tone without pauses
        assert person.page.is_hidden(".next")
        person.press("Enter")
        assert served.store.takes.all() == []

        person.context.route("**/api/take?*", lambda route: route.abort())
        person.press(" ")
        person.page.wait_for_selector(".take.on")
        person.page.wait_for_timeout(500)
        person.press(" ")
        person.page.wait_for_selector("text=The recording is kept in this browser")
        person.context.unroute("**/api/take?*")
        person.page.reload()  # what was not sent is still there after a reload
        person.page.wait_for_selector("main h1")
        set_up(person)
        person.page.wait_for_selector(".result .player")
        first, second = served.store.takes.all(kept=None)
        assert first.id == take.id and second.sha256 != first.sha256


@pytest.mark.browser
@pytest.mark.local
@pytest.mark.parametrize(
    ("words", "verdict"),
    [(SPOKEN, "good"), pytest.param("My sister moves to another city next week.", "retake", marks=pytest.mark.full)],
)
def test_speech_passes_the_words_check_and_other_words_ask_for_a_retake(
    chromium: Any, tmp_path: Path, words: str, verdict: str, desk_url: str
) -> None:
    samples, _ = audio.decode(spoken(SPOKEN))
    quiet = np.random.default_rng(1).normal(0, 1e-4, int(LEAD * RATE)).astype(np.float32)
    wav = tmp_path / "speech.wav"
    wav.write_bytes(audio.encode_wav(np.concatenate([quiet, samples, quiet]), RATE))
    study = desk(tmp_path, "record", [plain_script(words=words)], url=desk_url)
    with speaker(chromium, Path(f"{wav}%noloop"), study) as (person, served):
        set_up(person)
        person.press(" ")
        person.page.wait_for_selector(".take.on")
        person.wait(f"() => ({LOUD})() > 0.6")
        person.wait(f"() => ({LOUD})() < 0.2")
        person.press(" ")
        person.page.wait_for_selector(".result .player")
        (take,) = served.store.takes.all(kept=None)
        assert (take.verdict, take.reasons == ()) == (verdict, verdict == "good"), take
        if verdict == "retake":
            assert "garage" in person.text and "you may keep the recording" in person.text
        person.press("Enter")
        person.await_heading("Sentence 1")
        assert person.heading == "Thank you"
        assert [one.id for one in served.store.takes.all()] == [take.id]


@pytest.mark.browser
def test_over_http_the_page_says_what_to_do_before_it_asks_for_consent(chromium: Any, tmp_path: Path) -> None:
    study = desk(tmp_path, "record", some_scripts("sad"))
    with microphone_browser(chromium, tmp_path / "none.wav") as browser, site.served(study, names=[ELSEWHERE]) as at:
        person = Rater(browser)
        person.arrive(at.invite().replace("127.0.0.1", ELSEWHERE))
        assert person.heading == "The microphone needs a secure page" and "https://" in person.text
        assert "agree" not in person.text.lower()
        person.close()
