"""A person who takes part by keyboard alone, in a real browser that complains about everything it dislikes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.needs import missing
from tests.report.browser import CHROMIUM, FLAGS

QUIET = tuple(flag for flag in FLAGS if "autoplay" not in flag)  # sounds need a key or click, as in real life
NETWORK = "Failed to load resource: "  # the browser's own note about a server that is away or refuses
SECONDS = 20.0
_BUSY = "() => !document.querySelector('main [aria-busy=true]')"
_STILL = "() => !document.querySelector('main [aria-label^=\"Pause\"]')"
_VIOLATIONS = """
addEventListener('securitypolicyviolation', (e) => console.error('CSP: ' + e.violatedDirective + ' ' + e.blockedURI));
"""
_FOCUSED = """() => {
  const e = document.activeElement;
  if (e === document.body) return '';
  const own = e.getAttribute('aria-label') || e.innerText || e.value || '';
  return own + ' ' + [...(e.labels ?? [])].map((label) => label.innerText).join(' ');
}"""

_QUESTIONS = """() => [
  document.querySelector('.field.current')?.className.split(' ')[1] ?? '',
  [...document.querySelectorAll('.stage:last-child .field')].every((f) => f.querySelector(':checked')
    || f.querySelector('input[type=range]:not(.unset)') || f.querySelector('textarea')?.value
    || (f.querySelector('.optional') && !f.querySelector('textarea'))),
]"""
_FASTER = """
const start = AudioBufferSourceNode.prototype.start;
AudioBufferSourceNode.prototype.start = function (...when) {
  this.playbackRate.value = %g;
  return start.apply(this, when);
};
"""


@contextmanager
def browser() -> Iterator[Any]:
    """Debian's Chromium; the test skips where there is none."""
    if reason := missing("browser"):
        pytest.skip(reason)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=list(QUIET))
        try:
            yield started
        finally:
            started.close()


class Rater:
    """One browser profile with one tab. `log` has everything that the page wrote to the console.

    `speed`: sounds play so many times faster, except on MUSHRA's pages, which count seconds.
    """

    def __init__(self, browser: Any, *, speed: float = 1, loses_network: bool = False, **options: Any) -> None:
        wanted = {"viewport": {"width": 1280, "height": 900}, "reduced_motion": "reduce", **options}
        self.loses_network = loses_network
        self.context = browser.new_context(**wanted)
        self.context.add_init_script(_VIOLATIONS)
        if speed != 1:
            self.context.add_init_script(_FASTER % speed)
        self.log: list[str] = []
        self.page = self.tab()

    def tab(self) -> Any:
        """Open one more tab of the same profile."""
        page = self.context.new_page()
        page.set_default_timeout(SECONDS * 1000)
        page.on("console", lambda message: self.log.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.log.append(f"error: {error}"))
        return page

    def complaints(self, *, network: bool = False) -> list[str]:
        """Return what the console said, without the browser's notes about a server that was away on purpose."""
        return [line for line in self.log if not (network and NETWORK in line)]

    def close(self) -> None:
        self.context.close()

    # ── looking ───────────────────────────────────────────────────────────────────────────────────────────────────────
    @property
    def heading(self) -> str:
        return str(self.page.inner_text("main h1"))

    @property
    def text(self) -> str:
        return str(self.page.inner_text("body"))

    def wait(self, condition: str, argument: Any = None) -> None:
        """Wait for a function of the page to return something true."""
        self.page.wait_for_function(condition, arg=argument)

    def arrive(self, link: str) -> None:
        self.page.goto(link)
        self.page.wait_for_selector("main h1")

    def await_heading(self, other_than: str) -> str:
        self.wait(
            "(old) => { const h = document.querySelector('main h1'); return h && h.innerText !== old }", other_than
        )
        self.wait(_BUSY)
        return self.heading

    def await_saved(self) -> None:
        """Wait until the server has everything."""
        self.wait("() => document.querySelector('#saved').dataset.status === 'saved'")

    # ── acting, by keys only ──────────────────────────────────────────────────────────────────────────────────────────
    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def tab_to(self, name: str) -> None:
        """Press Tab until the control with this name has the focus."""
        for _ in range(60):
            self.press("Tab")
            focused = self.page.evaluate(_FOCUSED)
            if name in focused:
                return
        raise AssertionError(f"Tab never reaches {name!r}")

    def agree(self) -> str:
        before = self.heading
        self.tab_to("I agree")
        self.press("Enter")
        return self.await_heading(before)

    def set_up(self) -> str:
        """Choose headphones, hear the noise, continue."""
        before = self.heading
        self.press("1", " ")
        self.page.wait_for_selector("text=Stop the noise")
        self.press("Enter")
        return self.await_heading(before)

    def check_headphones(self) -> str:
        """Listen to all trials; answer the second interval each time."""
        before = self.heading
        while self.heading == before:
            name = self.page.inner_text(".player .name")
            self.wait(_BUSY)
            self.press(" ")
            self.page.wait_for_selector(".player.heard")
            self.press("2", "Enter")
            self.wait("(old) => document.querySelector('.player .name')?.innerText !== old", name)
        self.wait(_BUSY)
        return self.heading

    def hear(self) -> None:
        """Play every sound of the screen to its end."""
        self.wait(_BUSY)
        if self.page.locator(".mushra-area").count():
            return self._hear_in_step()
        for _ in range(12):
            if self.page.locator(".lock.unlocked").count():
                return None
            self.press(" ")
            self.wait(_STILL)
        raise AssertionError(f"the questions stay locked: {self.page.inner_text('.lock')}")

    def _hear_in_step(self) -> None:
        self.press("r")
        count = self.page.locator(".switch").count()
        for number in range(count):
            if number:
                self.press(str(number))
            self.page.wait_for_selector(f".switch >> nth={number} >> .icon")
        self.page.wait_for_selector(".lock.unlocked")

    def answer(self, keys: dict[str, str] | None = None) -> None:
        """Answer every question of the stage. `keys`: kind of question → key to press."""
        chosen = {"scale": "4", "choice": "1", "tags": "1", **(keys or {})}
        for number in range(self.page.locator(".stimulus-row").count()):
            self.press(str(number + 1), "ArrowRight", *["PageUp"] * (number % 5))
        for _ in range(30):
            kind, done = self.page.evaluate(_QUESTIONS)
            if done or not kind:
                return
            if kind == "slider":
                self.press("Enter", "ArrowRight")
            elif kind == "text":
                self.press("Enter")
                self.page.keyboard.type("good morning")
            else:
                self.press(chosen[kind])
            if kind in ("slider", "text", "tags") and not self.page.evaluate(_QUESTIONS)[1]:
                self.press("Control+Enter")
        raise AssertionError("some question stays unanswered")

    def finish_screen(self, keys: dict[str, str] | None = None) -> str:
        """Hear, answer and go on; return the next page's heading."""
        before = self.heading
        self.hear()
        for _ in range(4):
            self.answer(keys)
            if self.heading != before:
                break
            words = self.page.locator("h2:has-text('Now with the words')").count()
            self.press("Control+Enter")
            self.wait(
                "([old, words]) => document.querySelector('main h1')?.innerText !== old ||"
                " document.querySelectorAll('.stage').length > words + 1", [before, words]
            )  # fmt: skip
            if self.heading != before:
                break
        self.wait(_BUSY)
        return self.heading

    def to_first_screen(self) -> str:
        """Go through consent, set-up and headphone check."""
        steps = {"Set up your sound": self.set_up, "Check of your headphones": self.check_headphones}
        heading = self.agree()
        while heading in steps:
            heading = steps[heading]()
        return heading

    def to_the_end(self, keys: dict[str, str] | None = None) -> int:
        """Answer all screens; return how many there were."""
        screens = 0
        while self.heading != "Thank you":
            if self.heading == "Time for a short break":
                self.press("Enter")
                self.await_heading("Time for a short break")
                continue
            self.finish_screen(keys)
            screens += 1
            assert screens < 60
        return screens
