"""Take the pictures of the recording desk and the review desk for the docs, with a microphone that plays a file.

This takes about a minute on two cores. It needs Chromium and `overtone setup local`.

    python -m scripts.desk_pages
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from overtone import audio
from scripts.studio_pages import DARK, DESKTOP, IMAGES, PHONE, Camera
from tests.studio.browser import rater, site
from tests.studio.browser.fake_microphone import microphone_browser
from tests.studio.browser.rater import Rater
from tests.studio.desk_helpers import desk, some_scripts
from tests.studio.speech import RATE, spoken

LEAD = 5.0  # seconds of silence before the speech
LOUD = "() => new DOMMatrix(getComputedStyle(document.querySelector('.level')).transform).a"
SCRIPTS = some_scripts("sad")


def microphone(folder: Path) -> Path:
    """Write the sound of a speaker who reads the first script."""
    samples, _ = audio.decode(spoken(SCRIPTS[0].words))
    quiet = np.random.default_rng(1).normal(0, 3e-4, int(LEAD * RATE)).astype(np.float32)
    path = folder / "speech.wav"
    path.write_bytes(audio.encode_wav(np.concatenate([quiet, samples, quiet]), RATE))
    return path


def record_pages(camera: Camera, browser: Any, folder: Path) -> None:
    """Consent, set-up, a take; on a phone while a take runs."""
    study = desk(folder, "record", SCRIPTS, "--votes", "5", "--title", "A recording session")
    with site.served(study) as served, microphone_browser(browser, Path(f"{microphone(folder)}%noloop")) as recording:
        for look, name in ((DESKTOP, "record"), (PHONE, "record-phone"), (DARK, "record-dark")):
            person = Rater(recording, permissions=["microphone"], **look)
            person.arrive(served.invite())
            person.page.check("input[name=analysis]")
            if name == "record":
                camera(person, "record-consent", whole=True)
            person.agree()
            person.press(" ", "1", "1")
            person.page.wait_for_selector(".setup-message[data-kind=good]")
            if name == "record":
                camera(person, "record-setup", whole=True)
            person.press("Enter")
            person.page.wait_for_selector(".take")
            person.press(" ")
            person.page.wait_for_selector(".take.on")
            person.wait(f"() => ({LOUD})() > 0.7")
            if name == "record-phone":
                camera(person, name, whole=True)
            else:
                person.wait(f"() => ({LOUD})() < 0.3")
                person.press(" ")
                person.page.wait_for_selector(".result .player", timeout=90_000)
                camera(person, name, whole=True)
            person.close()


def review_pages(camera: Camera, browser: Any, folder: Path) -> None:
    """A revision in round 1, and what round 2 shows of it."""
    first = desk(folder, "review", SCRIPTS, "--votes", "5", name="round1")
    with site.served(first) as served:
        person = Rater(browser, **DESKTOP)
        person.arrive(served.invite())
        person.agree()
        person.press("r")
        person.page.keyboard.type("One hears at once that he has died.")
        person.press("Escape", "e", "Control+End", "ArrowLeft", *["Shift+ArrowLeft"] * len("where it used to stand"))
        person.page.keyboard.type("in its old place")
        camera(person, "review")
        person.press("Control+Enter")
        person.await_heading("Review 1")
        person.close()
    second = desk(folder, "review", SCRIPTS, "--votes", "5", "--round", "2", "--after", str(first.path), name="round2")
    with site.served(second) as served:
        person = Rater(browser, **PHONE)
        person.arrive(served.invite())
        person.agree()
        person.press("a")
        person.page.locator(".earlier").scroll_into_view_if_needed()
        camera(person, "review-phone")
        person.close()


def main() -> None:
    camera = Camera([])
    with tempfile.TemporaryDirectory() as home, rater.browser() as browser:
        for pages in (record_pages, review_pages):
            (folder := Path(home) / pages.__name__).mkdir()
            pages(camera, browser, folder)
    for path in camera.taken:
        print(path.relative_to(IMAGES.parent.parent), path.stat().st_size // 1000, "kB")


if __name__ == "__main__":
    main()
