"""The microphone's module in a real browser: what it records, and what it says when it cannot."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from overtone import audio
from tests.studio.browser.fake_microphone import ELSEWHERE, microphone_browser, static

AMPLITUDE, HERTZ = 0.25, 440.0
RECORD = """async () => {
  const { openMicrophone } = await import("/microphone.js");
  const levels = [];
  const mic = await openMicrophone({ onLevel: (level) => levels.push(level) });
  const noise = await mic.noise(0.3);
  mic.start();
  await new Promise((resolve) => setTimeout(resolve, 800));
  const { wav, ...take } = await mic.stop();
  mic.close();
  const bytes = new Uint8Array(await wav.arrayBuffer());
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return { ...take, noise, levels, settings: mic.settings, wav: btoa(text) };
}"""
REFUSED = """async () => {
  const { openMicrophone, whyNoMicrophone } = await import("/microphone.js");
  try {
    await openMicrophone();
    return null;
  } catch (error) {
    return { reason: error.reason, message: error.message, before: whyNoMicrophone() };
  }
}"""


@pytest.fixture(scope="module")
def browser(chromium: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    wav = tmp_path_factory.mktemp("microphone") / "tone.wav"
    seconds = np.arange(48_000 * 3) / 48_000
    wav.write_bytes(audio.encode_wav(AMPLITUDE * np.sin(2 * np.pi * HERTZ * seconds), 48_000))
    with microphone_browser(chromium, wav) as opened:
        yield opened


def run(browser: Any, script: str, host: str = "localhost", *permissions: str) -> Any:
    context = browser.new_context(permissions=list(permissions))
    try:
        with static() as port:
            page = context.new_page()
            page.goto(f"http://{host}:{port}/")
            return page.evaluate(script)
    finally:
        context.close()


@pytest.mark.browser
def test_a_recording_has_the_level_and_the_pitch_of_what_was_said(browser: Any) -> None:
    got = run(browser, RECORD, "localhost", "microphone")
    samples, rate = audio.decode(base64.b64decode(got["wav"]))
    spectrum = np.abs(np.fft.rfft(samples * np.hanning(len(samples))))
    assert spectrum.argmax() * rate / len(samples) == pytest.approx(HERTZ, abs=2)
    assert np.sqrt(np.mean(samples**2)) == pytest.approx(AMPLITUDE / np.sqrt(2), rel=0.01)
    assert (got["rms"], got["peak"]) == pytest.approx((AMPLITUDE / np.sqrt(2), AMPLITUDE), rel=0.01)
    assert got["clipped"] == 0 and got["seconds"] == pytest.approx(len(samples) / rate)
    assert 0.7 < got["seconds"] < 2.5
    assert got["noise"] == pytest.approx(20 * np.log10(AMPLITUDE / np.sqrt(2)), abs=0.2)
    assert len(got["levels"]) >= 10 and not any(level["clipped"] for level in got["levels"])
    settings = got["settings"]
    assert settings["sampleRate"] == rate
    assert not (settings["autoGainControl"] or settings["noiseSuppression"] or settings["echoCancellation"])
    assert not {"deviceId", "groupId"} & set(settings)


@pytest.mark.browser
def test_a_microphone_that_cannot_be_used_is_an_error_that_says_what_to_do(browser: Any) -> None:
    denied = run(browser, REFUSED)
    assert denied["reason"] == "denied" and denied["before"] == "" and "allow the microphone" in denied["message"]
    insecure = run(browser, REFUSED, ELSEWHERE, "microphone")
    assert insecure["reason"] == insecure["before"] == "insecure" and "https://" in insecure["message"]
