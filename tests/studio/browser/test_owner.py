"""The owner's page: progress, people, results, invitations, exports, deletion, the end of the study."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.studio.browser import site
from tests.studio.browser.conftest import MakeRater, MakeStudy
from tests.studio.browser.test_page import check

pytestmark = pytest.mark.browser


def test_the_owner_follows_a_study_from_invitations_to_its_end(
    make_study: MakeStudy, enter: MakeRater, tmp_path: Path
) -> None:
    with site.served(make_study("ab", session="2")) as served:
        owner = enter()
        owner.arrive(f"{served.url}owner#{served.store.people.own().token}")
        owner.page.wait_for_selector("text=Nobody is invited yet.")
        owner.tab_to("20")
        owner.page.keyboard.type("2")
        owner.tab_to("Make links")
        owner.press("Enter")
        owner.page.wait_for_selector("textarea.links")
        links = re.findall(r"http\S+", owner.page.input_value("textarea.links"))
        assert len(links) == 2

        person = enter()
        person.arrive(links[0])
        person.to_first_screen()
        person.to_the_end()
        owner.page.reload()
        owner.page.wait_for_selector("text=Compute again")
        assert "2 of " in owner.page.inner_text(".headline")
        assert "finished" in owner.text and "Preferred" in owner.text
        check(owner)

        with owner.page.expect_download() as download:
            owner.page.get_by_role("button", name="CSV", exact=True).click()
        download.value.save_as(tmp_path / "answers.csv")
        assert len((tmp_path / "answers.csv").read_text().splitlines()) > 1

        label = owner.page.inner_text("tr:has-text('finished') th")
        owner.page.get_by_role("button", name=f"Delete {label}").click()
        owner.page.wait_for_selector("dialog:has-text('cannot be undone')")
        owner.press("Enter")  # the focus is on "Keep"
        owner.page.wait_for_selector("dialog", state="detached")
        assert served.answers()
        owner.page.get_by_role("button", name=f"Delete {label}").click()
        owner.page.get_by_role("button", name="Delete", exact=True).click()
        owner.page.wait_for_selector("dialog:has-text('are deleted')")
        assert served.answers() == {}
        owner.press("Enter")

        owner.page.get_by_role("button", name="Close the study").click()
        owner.page.locator("dialog").get_by_role("button", name="Close the study").click()
        owner.page.wait_for_selector("text=The study is closed.")
        owner.page.locator("dialog").get_by_role("button", name="OK").click()
        late = enter()
        late.arrive(links[1])
        assert late.heading == "This study is closed"


def test_a_rater_does_not_get_the_owners_page(make_study: MakeStudy, enter: MakeRater) -> None:
    with site.served(make_study()) as served:
        person = enter(loses_network=True)
        person.arrive(served.invite().replace("#", "owner#"))
        person.page.wait_for_selector("h1:has-text('This link is not valid')")


def test_a_link_of_an_earlier_start_says_which_link_to_open(make_study: MakeStudy, enter: MakeRater) -> None:
    with site.served(make_study("ab", session="2")) as served:
        earlier = served.store.people.own().token
        served.store.people.own()
        owner = enter(loses_network=True)  # the browser notes the status 401
        owner.arrive(f"{served.url}owner#{earlier}")
        owner.page.wait_for_selector(
            "text=This link is from an earlier start; use the one that the terminal printed last."
        )
        assert "organiser" not in owner.text and "This link is not valid" in owner.text
