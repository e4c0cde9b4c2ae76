"""Whole sessions in a real browser, from the link to the end, by keyboard alone."""

from __future__ import annotations

import pytest

from tests.studio.browser import site
from tests.studio.browser.conftest import MakeRater, MakeStudy

DESIGNS = ("acr", "ab", "cmos", "mushra", "label", "transcribe")
CHECKS = {"headphones": "true", "training": "1", "traps": "1", "gold": "1", "break_every": "2", "session": "3"}
pytestmark = pytest.mark.browser


@pytest.mark.parametrize("design", [design for design in DESIGNS if design != "cmos"])  # which is like ab
def test_a_session_is_finished_by_keyboard_alone(design: str, make_study: MakeStudy, enter: MakeRater) -> None:
    screens = 1 if design == "mushra" else 2
    with site.served(make_study(design, session=str(screens))) as served:
        person = enter(speed=1 if design == "mushra" else 4)
        person.arrive(served.invite())
        person.to_first_screen()
        assert person.to_the_end() == screens
        person.await_saved()
        assert len({slot for slot, _ in served.answers()}) == screens


@pytest.mark.full
@pytest.mark.parametrize("design", DESIGNS)
def test_a_session_with_all_checks_is_finished_on_both_databases(
    design: str, database: str, make_study: MakeStudy, enter: MakeRater
) -> None:
    checks = CHECKS if design in ("acr", "ab") else {**CHECKS, "gold": "0"}
    with site.served(make_study(design, **checks), "" if database.startswith("sqlite") else database) as served:
        person = enter(speed=1 if design == "mushra" else 6)
        person.arrive(served.invite())
        heading = person.agree()
        assert heading == "Set up your sound"
        assert person.set_up() == "Check of your headphones"
        person.check_headphones()
        screens = person.to_the_end()
        assert screens == 3 + sum(int(checks[name]) for name in ("training", "traps", "gold"))
        assert len({slot for slot, _ in served.answers()}) == screens


def test_the_words_come_after_the_voice_and_close_its_questions(make_study: MakeStudy, enter: MakeRater) -> None:
    with site.served(make_study(session="1", shows='["reply"]')) as served:
        person = enter()
        person.arrive(served.invite())
        person.to_first_screen()
        person.hear()
        assert "A reply to toy" not in person.page.content()
        assert "these answers are final" in person.text
        person.answer()
        person.press("Enter")
        person.page.wait_for_selector("h2:has-text('Now with the words')")
        assert "A reply to toy" in person.text
        assert person.page.locator(".stage").first.locator("input:enabled").count() == 0
        person.page.reload()
        person.page.wait_for_selector("h2:has-text('Now with the words')")
        assert person.page.locator(".stage").first.locator("input:enabled").count() == 0, "final after a reload too"
        person.answer()
        person.press("Enter")
        assert person.await_heading("Recording 1") == "Thank you"


def test_answers_are_locked_until_every_sound_has_ended(make_study: MakeStudy, enter: MakeRater) -> None:
    with site.served(make_study("ab", session="1")) as served:
        person = enter()
        person.arrive(served.invite())
        person.to_first_screen()
        for heard in range(4):  # the user's clip, A and B
            person.page.focus("main h1")  # Enter moved the focus to the player that is still to be heard
            if heard:
                person.press(" ")
                person.page.wait_for_selector(f".player.heard >> nth={heard - 1}")
            assert (person.page.locator(".field input:enabled").count() > 0) == (heard == 3)
            person.press("a", "Enter")
            if heard < 3:
                assert "to the end first." in person.text
                assert "Still to be heard to the end" in person.text
        assert person.await_heading("1. Compare two recordings") == "Thank you"


def test_a_sound_that_is_paused_half_way_is_not_heard(make_study: MakeStudy, enter: MakeRater) -> None:
    with site.served(make_study("acr", session="1")) as served:
        person = enter(speed=0.2)
        person.arrive(served.invite())
        person.to_first_screen()
        person.wait("() => !document.querySelector('main [aria-busy=true]')")
        person.press(" ")
        person.page.wait_for_selector("[aria-label^='Pause']")
        person.page.wait_for_timeout(60)
        person.press(" ")
        person.page.wait_for_selector("[aria-label^='Play']")
        assert person.page.locator(".lock.unlocked").count() == 0
        assert person.page.locator(".field input:enabled").count() == 0


def test_who_does_not_agree_leaves_and_may_come_back(make_study: MakeStudy, enter: MakeRater) -> None:
    with site.served(make_study()) as served:
        person = enter()
        person.arrive(served.invite())
        person.tab_to("I do not agree")
        person.press("Enter")
        assert person.await_heading("Voices that answer") == "You do not take part"
        person.tab_to("I changed my mind")
        person.press("Enter")
        person.await_heading("You do not take part")
        assert person.agree() == "Set up your sound"


def test_who_withdraws_is_deleted(make_study: MakeStudy, enter: MakeRater) -> None:
    with site.served(make_study()) as served:
        person = enter()
        person.arrive(served.invite())
        person.to_first_screen()
        person.finish_screen()
        assert served.answers()
        person.tab_to("Stop and withdraw")
        person.press("Enter")
        person.tab_to("Withdraw and delete")
        person.press("Enter")
        assert person.await_heading("Recording 2") == "You have withdrawn"
        assert served.answers() == {}


def test_who_refuses_a_changed_text_can_withdraw_earlier_answers(make_study: MakeStudy, enter: MakeRater) -> None:
    with site.served(make_study()) as served:
        person = enter()
        person.arrive(served.invite())
        assert not person.page.is_visible("#withdraw")  # nothing is stored yet
        person.to_first_screen()
        person.finish_screen()
        (label,) = {one.label for one in served.store.people.all("rater")}
        served.store.people.consent(label, served.store.study.consent_sha, False, {})
        person.page.reload()
        assert person.await_heading("Recording 2") == "You do not take part"
        person.tab_to("Stop and withdraw")
        person.press("Enter")
        person.tab_to("Withdraw and delete")
        person.press("Enter")
        assert person.await_heading("You do not take part") == "You have withdrawn"
        assert served.answers() == {}
        person.page.wait_for_function("!Object.keys(localStorage).some((key) => key.includes('setup:'))")


def test_a_recording_that_upsets_is_skipped(make_study: MakeStudy, enter: MakeRater) -> None:
    with site.served(make_study(session="2")) as served:
        person = enter()
        person.arrive(served.invite())
        person.to_first_screen()
        person.tab_to("Skip recording")
        person.press("Enter")
        person.tab_to("It upsets me")
        person.press("Enter")
        person.await_heading("Recording 1")
        assert person.to_the_end() == 1
