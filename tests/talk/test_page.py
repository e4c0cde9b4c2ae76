"""The page of `overtone talk` in a browser whose microphone plays a file, against the program and a streaming model."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from overtone.api import open_run
from tests.servers import OpenAIServer, tone
from tests.studio.browser.fake_microphone import microphone_browser

pytestmark = pytest.mark.browser


@contextmanager
def program(model: str, out: Path, *flags: str) -> Iterator[str]:
    """`overtone talk` as a process of its own; yield the link that it prints, and stop it like a user."""
    command = [sys.executable, "-m", "overtone", "talk", model, "--out", str(out), *flags]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert running.stdout is not None
    try:
        lines = []
        while not (link := re.search(r"http://\S+#\S+", lines[-1] if lines else "")):
            lines.append(running.stdout.readline())
            assert lines[-1], "".join(lines)
        yield link[0]
    finally:
        running.terminate()
        assert running.wait(20) == 0, running.stdout.read()


def wait_for(page: Any, selector: str, count: int = 1) -> None:
    page.wait_for_function(
        "([s, n]) => document.querySelectorAll(s).length >= n", arg=[selector, count], timeout=10_000
    )


def test_a_person_speaks_by_key_hears_the_reply_rates_it_and_speaks_again(chromium: Any, tmp_path: Path) -> None:
    (tmp_path / "voice.wav").write_bytes(tone(40, 2.0, 48_000))
    with OpenAIServer(keep_audio=True) as server, microphone_browser(chromium, tmp_path / "voice.wav") as browser:
        server.pace = 0.05
        with program(f"openai:any?base_url={server.base_url}", tmp_path / "run", "--no-transcript") as link:
            context = browser.new_context(permissions=["microphone"], color_scheme="dark")
            page = context.new_page()
            problems: list[str] = []
            page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
            page.on("pageerror", lambda error: problems.append(str(error)))
            page.goto(link)
            page.wait_for_selector("#speak:not([disabled])")
            for number in (1, 2):
                page.keyboard.down("Space")
                page.wait_for_selector("#speak[aria-pressed=true]")
                time.sleep(0.6)
                page.keyboard.up("Space")
                wait_for(page, ".model .facts", number)
            assert "I hear you" in page.inner_text(".model")
            assert "first sound after" in page.inner_text(".model .facts")
            page.click(".model .rate button:nth-of-type(4)")
            page.wait_for_selector(".model .rate button[aria-pressed=true]")
            page.set_viewport_size({"width": 320, "height": 700})
            assert page.evaluate("document.documentElement.scrollWidth") <= 320
            from axe_playwright_python.sync_playwright import Axe

            found = [v for v in Axe().run(page).response["violations"] if v["impact"] in ("serious", "critical")]
            assert not found, found
            assert not problems
        seconds = [len(wav) / 2 / 48_000 for asked in server.asked[:1] for wav in asked.wavs]
    assert 0.4 < seconds[0] < 2.0
    with open_run(tmp_path / "run") as run:
        assert len(list(run.replies())) == 2


def test_a_page_without_permission_says_what_to_do(chromium: Any, tmp_path: Path) -> None:
    (tmp_path / "voice.wav").write_bytes(tone(40, 1.0, 48_000))
    with (
        OpenAIServer() as server,
        microphone_browser(chromium, tmp_path / "voice.wav") as browser,
        program(f"openai:any?base_url={server.base_url}", tmp_path / "run", "--no-transcript") as link,
    ):
        page = browser.new_context().new_page()
        page.goto(link)
        page.wait_for_selector("#speak:not([disabled])")
        page.click("#speak")
        page.wait_for_function("document.getElementById('status').textContent.includes('microphone')")
        page.goto("about:blank")
        page.goto(link.partition("#")[0])
        page.wait_for_function("document.getElementById('status').textContent.includes('link is not valid')")
