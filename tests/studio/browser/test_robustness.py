"""Nothing is lost: reload, back, lost network, killed server, two tabs, sounds that fail."""

from __future__ import annotations

import pytest

from tests.studio.browser import site
from tests.studio.browser.conftest import MakeRater, MakeStudy

pytestmark = pytest.mark.browser
FOUR = "() => document.querySelector('.stage:last-child input:checked')?.closest('.option')?.innerText.startsWith('4')"


def test_a_reload_keeps_what_was_heard_and_answered(make_study: MakeStudy, enter: MakeRater) -> None:
    with site.served(make_study("acr", session="1", rubrics='["uro-performance"]')) as served:
        person = enter()
        person.arrive(served.invite())
        person.to_first_screen()
        person.hear()
        person.press("4")
        person.page.reload()
        person.page.wait_for_selector(".lock.unlocked")
        person.wait(FOUR)
        person.press("Enter")
        assert person.await_heading("Recording 1") == "Thank you"
        assert list(served.answers().values()) == [4]


def test_another_device_continues_at_the_same_place(make_study: MakeStudy, enter: MakeRater) -> None:
    with site.served(make_study("acr", session="2", rubrics='["uro-performance"]')) as served:
        person, link = enter(loses_network=True), served.invite()  # the browser notes the status 409
        person.arrive(link)
        person.to_first_screen()
        person.finish_screen()
        phone = enter(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
        phone.arrive(link)
        assert phone.heading == "Recording 2"
        assert phone.to_the_end() == 1
        person.hear()
        person.press("3", "Enter")
        assert person.await_heading("Recording 2") == "Thank you", "the first device follows"
        assert list(served.answers().values()) == [4, 4]


def test_the_back_button_stays_on_the_page_and_says_why(make_study: MakeStudy, enter: MakeRater) -> None:
    with site.served(make_study()) as served:
        person = enter()
        person.arrive(served.invite())
        person.to_first_screen()
        person.finish_screen()
        person.page.evaluate("history.back()")
        person.page.wait_for_selector("#toast:has-text('cannot go back')")
        assert person.heading == "Recording 2"
        person.finish_screen()
        assert person.heading == "Recording 3"


def test_answers_wait_for_the_network_and_survive_a_closed_page(make_study: MakeStudy, enter: MakeRater) -> None:
    with site.served(make_study("acr", session="2", rubrics='["uro-performance"]')) as served:
        person, link = enter(loses_network=True), served.invite()
        person.arrive(link)
        person.to_first_screen()
        person.hear()
        person.context.set_offline(True)
        person.press("4", "Enter")
        person.page.wait_for_selector("#waiting:has-text('kept in this browser')")
        assert "Waiting for the network" in person.text
        assert served.answers() == {}
        person.page.close()
        person.context.set_offline(False)
        person.page = person.tab()
        person.arrive(link)
        assert person.heading == "Recording 2", "the answer was sent before the step was asked for"
        assert list(served.answers().values()) == [4]
        person.hear()
        person.context.set_offline(True)
        person.press("2", "Enter")
        person.page.wait_for_selector("#saved[data-status=waiting]")
        person.context.set_offline(False)
        person.page.wait_for_selector("h1:has-text('Thank you')")
        person.await_saved()
        assert list(served.answers().values()) == [4, 2]


def test_a_server_that_is_killed_and_restarted_loses_and_doubles_nothing(
    make_study: MakeStudy, enter: MakeRater
) -> None:
    with site.killable(make_study("acr", session="2", rubrics='["uro-performance"]')) as process:
        person = enter(loses_network=True)
        person.arrive(process.site.invite())
        person.to_first_screen()
        person.hear()
        person.press("4")
        process.kill()
        person.press("Enter")
        person.page.wait_for_selector("#saved[data-status=waiting]")
        process.start()
        assert person.await_heading("Recording 1") == "Recording 2"
        assert person.finish_screen() == "Thank you"
        assert list(process.site.answers().values()) == [4, 4]


def test_a_page_that_finds_no_server_tries_again(make_study: MakeStudy, enter: MakeRater) -> None:
    with site.served(make_study()) as served:
        person = enter(loses_network=True)
        person.page.route("**/api/state", lambda route: route.abort())
        person.arrive(served.invite())
        assert person.heading == "No connection"
        person.page.unroute("**/api/state")
        person.press("Enter")
        assert person.await_heading("No connection") == "Voices that answer"


def test_a_second_tab_takes_over_and_the_first_can_take_back(make_study: MakeStudy, enter: MakeRater) -> None:
    with site.served(make_study("acr", session="2", rubrics='["uro-performance"]')) as served:
        person, link = enter(), served.invite()
        person.arrive(link)
        person.to_first_screen()
        person.hear()
        person.press("4")
        first = person.page
        person.page = person.tab()
        person.arrive(link)
        first.wait_for_selector("h1:has-text('Continued in another tab')")
        person.page.wait_for_selector("#toast:has-text('another tab')")
        person.wait(FOUR)
        assert person.finish_screen() == "Recording 2"
        second, person.page = person.page, first
        first.bring_to_front()
        person.press("Enter")
        person.page.wait_for_selector("h1:has-text('Recording 2')")
        second.wait_for_selector("h1:has-text('Continued in another tab')")
        assert person.finish_screen() == "Thank you"
        assert len(served.answers()) == 2


def test_a_sound_that_fails_is_loaded_again_or_skipped(make_study: MakeStudy, enter: MakeRater) -> None:
    with site.served(make_study(session="1")) as served:
        person = enter(loses_network=True)
        person.arrive(served.invite())
        person.page.route("**/api/sound/*", lambda route: route.abort())
        person.to_first_screen()
        person.page.wait_for_selector(".player.failed:has-text('did not load')")
        person.press("Enter")
        assert "A recording did not load. Load it again, or skip it." in person.text
        person.page.unroute("**/api/sound/*")
        person.page.route("**/api/sound/*", lambda route: route.fulfill(body="no sound", content_type="audio/flac"))
        person.press(" ")
        person.page.wait_for_selector(".player.failed:has-text('cannot play this sound')")
        person.page.unroute("**/api/sound/*")
        person.press(" ")
        person.page.wait_for_selector(".player:not(.failed)")
        assert person.to_the_end() == 1


def test_a_link_that_the_study_does_not_know_says_so(make_study: MakeStudy, enter: MakeRater) -> None:
    with site.served(make_study()) as served:
        person = enter(loses_network=True)
        person.arrive(f"{served.url}#{'0' * 32}")
        assert person.heading == "This link is not valid"
        person.page.goto("about:blank")
        person.arrive(served.url)
        assert person.heading == "This link is not valid"
