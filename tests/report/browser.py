"""A headless Chromium that looks at reports from disk."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.needs import missing

CHROMIUM = shutil.which("chromium")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--autoplay-policy=no-user-gesture-required",
    # Chromium follows no more than 200 links in ten seconds unless it is told to.
    "--disable-ipc-flooding-protection",
)
READY = "return document.documentElement.dataset.ready === 'yes'"


class Tab:
    """A tab of the browser: its page, and everything that it complained about."""

    def __init__(self, browser: Any, **options: Any) -> None:
        self.context = browser.new_context(viewport={"width": 1280, "height": 1000}, reduced_motion="reduce", **options)
        self.page = self.context.new_page()
        self.log: list[str] = []
        self.page.on("console", lambda message: self.log.append(message.text))
        self.page.on("pageerror", lambda error: self.log.append(str(error)))

    def open(self, page: Path, hash_: str = "") -> None:
        """Open a report anew, in a window of the usual size."""
        self.page.goto("about:blank")
        self.page.set_viewport_size({"width": 1280, "height": 1000})
        self.log.clear()
        self.page.goto(page.as_uri() + hash_)
        self.wait(READY)

    def run(self, script: str, *arguments: Any) -> Any:
        """Run the body of a function, which finds its arguments in `args`. A promise is waited for."""
        return self.page.evaluate(f"async (args) => {{ {script} }}", list(arguments))

    def wait(self, script: str, seconds: float = 10) -> Any:
        """Wait until the body of a function returns something true."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if found := self.run(script):
                return found
            time.sleep(0.02)
        raise AssertionError(f"still not true: {script}")

    def text(self, selector: str) -> str:
        """Return the text that is to be seen of an element."""
        return str(self.page.inner_text(selector))

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def phone(self, width: int = 390, height: int = 844) -> None:
        """Look through a window as narrow as a phone's."""
        self.page.set_viewport_size({"width": width, "height": height})


@contextmanager
def chromium() -> Iterator[Tab]:
    """A tab of Debian's Chromium; the test skips where there is none."""
    if reason := missing("browser"):
        pytest.skip(reason)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        try:
            yield Tab(browser)
        finally:
            browser.close()
