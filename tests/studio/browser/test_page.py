"""What the page is: accessible, blind, safe against hostile text, small, and quick to play."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from overtone.paths import write_whole
from overtone.studio.toml_text import toml
from tests.studio.browser import site
from tests.studio.browser.conftest import MakeRater, MakeStudy
from tests.studio.browser.rater import Rater

PAGES = Path(site.study.__file__).parent / "pages"
LOOKS: list[dict[str, Any]] = [
    {"color_scheme": "dark"},
    {"viewport": {"width": 320, "height": 640}, "has_touch": True, "is_mobile": True},
]
SMALL = """() => [...document.querySelectorAll('button, .option, a, summary, input[type=range], textarea')]
  .filter((e) => e.checkVisibility({visibilityProperty: true}) && e.getBoundingClientRect().height < 44)
  .map((e) => e.outerHTML.slice(0, 90))"""
READY = "() => document.querySelector('.player[aria-busy=false]:not(.failed)')"
pytestmark = pytest.mark.browser


def check(person: Rater) -> None:
    """Check one page: no serious finding of axe, nothing wider than the window, no target below 44 pixels."""
    from axe_playwright_python.sync_playwright import Axe

    response = Axe().run(person.page).response
    assert len(response["passes"]) > 5
    serious = [
        (found["id"], found["nodes"][0]["html"][:200])
        for found in response["violations"]
        if found["impact"] in ("serious", "critical")
    ]
    assert serious == [], person.heading
    wide = person.page.evaluate("() => document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide <= 0, person.heading
    assert person.page.evaluate(SMALL) == [], person.heading


@pytest.mark.parametrize(
    "look",
    [
        pytest.param(LOOKS[0] | LOOKS[1], id="dark phone"),
        pytest.param({}, id="light", marks=pytest.mark.full),
        *(
            pytest.param(look, id=name, marks=pytest.mark.full)
            for name, look in zip(("dark", "phone"), LOOKS, strict=True)
        ),
    ],
)
def test_every_page_is_accessible(look: dict[str, Any], make_study: MakeStudy, enter: MakeRater) -> None:
    with site.served(make_study(session="2", headphones="true", shows='["reply"]', break_every="1")) as served:
        person = enter(speed=8, **look)
        person.arrive(served.invite())
        check(person)
        person.agree()
        check(person)
        person.set_up()
        check(person)
        person.check_headphones()
        check(person)
        person.hear()
        check(person)
        person.answer()
        person.press("Control+Enter")
        person.page.wait_for_selector("h2:has-text('Now with the words')")
        check(person)
        person.answer()
        person.page.evaluate("document.querySelector('#withdraw').click()")
        check(person)
        person.press("Escape", "Control+Enter")
        assert person.await_heading("Recording 1") == "Time for a short break"
        check(person)
        person.to_the_end()
        check(person)


@pytest.mark.full
@pytest.mark.parametrize("design", ["ab", "cmos", "mushra", "label", "transcribe"])
@pytest.mark.parametrize("look", [{}, *LOOKS], ids=["light", "dark", "phone"])
def test_every_design_is_accessible(design: str, look: dict[str, Any], make_study: MakeStudy, enter: MakeRater) -> None:
    with site.served(make_study(design, session="1")) as served:
        person = enter(**look)
        person.arrive(served.invite())
        person.to_first_screen()
        check(person)
        person.hear()
        person.answer()
        check(person)


def test_the_page_names_neither_runs_nor_cues(make_study: MakeStudy, enter: MakeRater) -> None:
    with site.served(make_study("ab", session="1", gold="1", traps="1")) as served:
        person = enter(speed=4)
        seen: list[str] = []
        person.page.on("response", lambda answer: seen.append(f"{answer.url} {answer.headers}"))
        person.arrive(served.invite())
        person.to_first_screen()
        while person.heading != "Thank you":
            person.hear()
            seen.append(person.page.content())
            person.finish_screen()
        secrets = (*site.NAMES, "toy/", "synthesis", "sad", "happy", "tired", "trap", "gold")
        found = [(word, text[:200]) for text in seen for word in secrets if word in text.lower()]
        assert len(seen) > 20 and found == []


def test_hostile_text_is_shown_as_text(make_study: MakeStudy, enter: MakeRater) -> None:
    texts = ("consent", "controller", "contact", "approval", "retention", "debriefing", "warning", "title")
    study = make_study(session="1", shows='["reply"]', **{name: toml(f"{name} {site.HOSTILE}") for name in texts})
    part = f'\n[[people.part]]\nkey = "reuse"\ntext = {toml("part " + site.HOSTILE)}\n'
    write_whole(study.path, (study.path.read_text() + part).encode())
    with site.served(site.study.read(study.path)) as served:
        person = enter(speed=4)
        person.page.on("dialog", lambda dialog: pytest.fail("a script of the study ran"))
        person.arrive(served.invite())
        for name in (*(name for name in texts if name != "debriefing"), "part"):
            assert f"{name} {site.HOSTILE}" in person.text, name
        person.to_first_screen()
        person.hear()
        person.answer()
        person.press("Enter")
        person.page.wait_for_selector("dd:has-text('A reply to toy')")
        assert site.HOSTILE in person.page.inner_text("dd")
        person.to_the_end()
        assert f"debriefing {site.HOSTILE}" in person.text
        assert person.page.locator("img").count() == 0


def test_all_scripts_of_the_page_are_small() -> None:
    owners = {"owner.js", "results.js"}
    scripts = {path.name: path.stat().st_size for path in PAGES.glob("*.js") if path.name not in owners}
    assert scripts and sum(scripts.values()) < 150_000, scripts


def test_the_first_sound_can_be_played_soon_after_the_page(make_study: MakeStudy, enter: MakeRater) -> None:
    with site.served(make_study()) as served:
        person = enter()
        person.arrive(served.invite())
        person.to_first_screen()
        times = []
        for _ in range(5):  # the quickest: other work on this machine must not decide
            person.page.reload(wait_until="commit")
            person.wait(READY)
            times.append(person.page.evaluate("() => performance.now()"))
        assert min(times) < 300, times
