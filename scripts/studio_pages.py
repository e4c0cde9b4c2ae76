"""Take the pictures of the studio's pages for the docs: a person walks through studies in a real browser.

This takes about three minutes on two cores. It needs Chromium.

    python -m scripts.studio_pages [NAME …]      NAME: a part of a picture's name, e.g. label
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from overtone.paths import write_whole
from overtone.studio import study as studies
from overtone.studio.study import Study
from tests.studio.browser import rater, site
from tests.studio.browser.rater import Rater

IMAGES = Path(__file__).parent.parent / "docs" / "images"
LARGEST = 120_000  # bytes of a picture
DESKTOP: dict[str, Any] = {"viewport": {"width": 1000, "height": 760}}
PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 780}, "has_touch": True, "is_mobile": True}
DARK: dict[str, Any] = {**DESKTOP, "color_scheme": "dark"}
SAID = (
    "Oh, that is wonderful news! You must be so relieved after all those weeks of waiting.",
    "I am sorry, that sounds exhausting. Do you want to tell me what made today so hard?",
    "Sure. The next train leaves at ten past six, so there is still time for a coffee.",
)
SETTINGS = {
    "shows": '["reply"]', "remark": "true", "session": "3", "break_every": "1", "training": "1",
    "traps": "0", "gold": "0", "overlap": "0", "controller": '"Speech group, Example University"',
    "contact": '"studies@example.org"', "approval": '"EX-2026-114"', "retention": '"until 31 December 2027"',
    "debriefing": '"We study how well voice assistants respond to the way in which people speak."',
    "completion_code": '"C7Q4N2XA"',
}  # fmt: skip
QUESTION = """
[[qualification.question]]
key = "hearing"
question = "Do you hear normally with both ears?"
options = { yes = "Yes", no = "No" }
accept = ["yes"]

[[people.part]]
key = "publish"
text = "My answers may be published without my name."
"""


def made(folder: Path, design: str) -> Study:
    """Write a study of a design with settings that show every page."""
    (folder / design).mkdir(parents=True)
    path = site.template(folder / design, design, said=SAID, longer=12)
    changes = dict(SETTINGS)
    if design == "transcribe":
        changes["shows"] = "[]"
    if design == "label":
        changes |= {"cues": '["emotions"]', "intensity": "true", "sliders": "true"}
    site.changed(path, {key: value for key, value in changes.items() if f"\n{key} = " in path.read_text()})
    write_whole(path, (path.read_text() + QUESTION).encode())
    return studies.read(path)


# A picture has no scroll bar, so it needs no room for one; in a picture of a whole page nothing sticks to the bottom.
STILL = "() => { document.documentElement.style.scrollbarGutter = 'auto'; }"
FLAT = """() => {
  scrollTo(0, 0);
  document.documentElement.style.scrollbarGutter = 'auto';
  for (const bar of document.querySelectorAll('.bar-bottom')) bar.style.position = 'static';
}"""


class Camera:
    """Takes pictures of a rater's page."""

    def __init__(self, wanted: list[str]) -> None:
        self.wanted = wanted
        self.taken: list[Path] = []

    def __call__(self, person: Rater, name: str, *, whole: bool = False) -> None:
        if self.wanted and not any(part in name for part in self.wanted):
            return
        path = IMAGES / f"studio-{name}.png"
        person.page.evaluate(FLAT if whole else STILL)
        if name not in ("phone-offline", "owner"):
            person.wait("() => ['', 'saved'].includes(document.querySelector('#saved').dataset.status)")
        person.page.wait_for_timeout(150)
        person.page.screenshot(path=path, full_page=whole)
        size = path.stat().st_size
        assert size <= LARGEST, (path, size)
        self.taken.append(path)


def to_rating(person: Rater, link: str) -> None:
    """Go to the first screen, with the qualification's question on the way."""
    person.arrive(link)
    person.agree()
    person.set_up()
    person.check_headphones()
    qualify(person)


def qualify(person: Rater) -> None:
    person.tab_to("Yes")
    person.press(" ")
    before = person.heading
    person.press("Enter")
    person.await_heading(before)


def first_pages(camera: Camera, enter: Callable[..., Rater], folder: Path) -> None:
    """Consent to done, with the design acr."""
    with site.served(made(folder, "acr")) as served:
        person = enter(**DESKTOP)
        person.arrive(served.invite())
        camera(person, "consent", whole=True)
        person.agree()
        person.press("1", " ")
        person.page.wait_for_selector("text=Stop the noise")
        camera(person, "setup")
        person.press("Enter")
        person.await_heading("Set up your sound")
        person.wait("() => !document.querySelector('main [aria-busy=true]')")
        person.press(" ")
        person.page.wait_for_selector(".player.heard")
        camera(person, "headphones")
        person.page.reload()
        person.page.wait_for_selector("main h1")
        person.check_headphones()
        camera(person, "qualification")
        qualify(person)
        camera(person, "locked")
        person.hear()
        person.answer()
        camera(person, "voice")
        person.press("Control+Enter")
        person.page.wait_for_selector("h2:has-text('Now with the words')")
        person.press("4")
        person.page.evaluate("document.querySelector('.stage:last-child h2').scrollIntoView()")
        camera(person, "words")
        person.answer()
        person.page.click("#help")
        camera(person, "keyboard")
        person.press("Escape", "Control+Enter")
        person.page.wait_for_selector("h1:has-text('break')")
        camera(person, "break")
        person.press("Enter")
        person.await_heading("Time for a short break")
        person.page.click("#withdraw")
        camera(person, "withdraw")
        person.press("Escape")
        person.page.focus("main h1")
        person.to_the_end()
        camera(person, "done")


def phone_pages(camera: Camera, enter: Callable[..., Rater], folder: Path) -> None:
    """A phone: a rating, no network, another tab."""
    with site.served(made(folder, "ab")) as served:
        person, link = enter(**PHONE), served.invite()
        to_rating(person, link)
        person.hear()
        person.page.evaluate("document.querySelector('.stage').scrollIntoView()")
        camera(person, "phone-pair")
        person.context.set_offline(True)
        person.press("b", "Control+Enter")
        person.page.wait_for_selector("#waiting:visible")
        camera(person, "phone-offline")
        person.context.set_offline(False)
        person.page.wait_for_selector("h1:has-text('break')")
        camera(person, "phone-break")
        first = person.page
        person.page = person.tab()
        person.arrive(link)
        person.page = first
        camera(person, "phone-another-tab")
        stranger = enter(**PHONE)
        stranger.arrive(f"{served.url}#{'0' * 32}")
        camera(stranger, "phone-bad-link")


def owner_page(camera: Camera, enter: Callable[..., Rater], folder: Path) -> None:
    """The owner's page, after three sessions of votes."""
    if camera.wanted and not any(part in "owner" for part in camera.wanted):
        return
    (folder / "owner").mkdir()
    path = site.template(folder / "owner", "ab", said=SAID)
    study = site.changed(path, {**SETTINGS, "headphones": "false", "training": "0", "session": "4", "break_every": "0"})
    with site.served(study) as served:
        for number in range(3):
            person = enter(speed=1)
            person.arrive(served.invite())
            person.to_first_screen()
            person.to_the_end({"choice": "113"[number]})
            person.close()
        served.store.people.invite(2)
        owner = enter(**{**DESKTOP, "viewport": {"width": 1150, "height": 1060}})
        owner.arrive(f"{served.url}owner#{served.store.people.own().token}")
        owner.page.wait_for_selector("text=Compute again")
        camera(owner, "owner")


def design_pages(camera: Camera, enter: Callable[..., Rater], folder: Path) -> None:
    """One screen of each other design."""
    looks = {"ab": DESKTOP, "cmos": DARK, "mushra": DESKTOP, "label": DESKTOP, "transcribe": PHONE}
    for design, look in looks.items():
        name = {"ab": "pair", "transcribe": "phone-transcribe", "cmos": "cmos-dark"}.get(design, design)
        if camera.wanted and not any(part in name for part in camera.wanted):
            continue
        with site.served(made(folder / "designs", design)) as served:
            person = enter(speed=1 if design == "mushra" else 8, **look)
            to_rating(person, served.invite())
            person.hear()
            person.answer({"choice": "2", "scale": "5"})
            camera(person, name, whole=design in ("label", "mushra", "ab"))


def main(wanted: list[str]) -> None:
    camera = Camera(wanted)
    with tempfile.TemporaryDirectory() as home, rater.browser() as browser:

        def enter(**options: Any) -> Rater:
            return Rater(browser, **{"speed": 8, **options})

        for pages in (first_pages, phone_pages, design_pages, owner_page):
            (Path(home) / pages.__name__).mkdir()
            pages(camera, enter, Path(home) / pages.__name__)
    for path in camera.taken:
        print(path.relative_to(IMAGES.parent.parent), path.stat().st_size // 1000, "kB")


if __name__ == "__main__":
    main(sys.argv[1:])
