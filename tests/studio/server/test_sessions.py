"""Whole sessions through the API: steps, answers, breaks in the middle, two tabs, skipping, withdrawal, the end."""

from __future__ import annotations

import asyncio
import secrets
from typing import Any

import pytest

from overtone.studio.study import Study
from tests.studio.server.conftest import MakeStudy
from tests.studio.server.helpers import Rater, Server, questions, sensible, served

FAST = ("headphones = true", "headphones = false")


def key() -> str:
    return secrets.token_hex(8)


def body(screen: dict[str, Any], **more: Any) -> dict[str, Any]:
    plays = dict.fromkeys(screen["must_play"], 1)
    return {"slot": screen["slot"], "client_key": key(), "plays": plays, "ms": 100, "values": {}, **more}


@pytest.mark.parametrize("design", ["acr", "ab"])
def test_a_rater_goes_through_a_whole_session(make_study: MakeStudy, design: str, database: str) -> None:
    study = make_study(design, url=database)

    async def main() -> None:
        async with served(study) as server:
            rater = server.rater()
            state = await rater.get("api/state")
            assert state["step"] == "consent" and state["screen"] is None
            assert state["study"]["texts"]["consent"] == study.people.consent
            end = await rater.finish()
            assert end["step"] == "done" and end["progress"] == {"done": 7, "total": 7}
            store = server.studio.store
            answered = store.answers.all(("real", "gold", "trap", "training"))
            assert sorted(one.kind for one in answered) == ["gold", *["real"] * 3, *["training"] * 2, "trap"]
            assert {one.person for one in answered} == {state["person"]["label"]}
            assert all(one.consent_sha == study.consent_sha for one in answered)
            real = next(one for one in answered if one.kind == "real")
            assert all(real.plays[name] == 1 for name in study_sounds(design))

    asyncio.run(main())


def study_sounds(design: str) -> tuple[str, ...]:
    return ("clip", "reply") if design == "acr" else ("clip", "A", "B")


def test_the_headphone_test_is_scored_by_the_server(make_study: MakeStudy) -> None:
    async def main() -> None:
        async with served(make_study()) as server:
            for right in (True, False):
                rater = server.rater()
                rater.state = await rater.get("api/state")
                for step in ("consent", "setup"):
                    rater.state = await rater.pass_step(step)
                assert rater.state["step"] == "headphones"
                assert rater.state["headphones"]["needed"] == 5 and len(rater.state["headphones"]["trials"]) == 6
                rater.state = await rater.listen(right=right)
                assert rater.state["step"] == "rating"
                person = server.studio.store.people.find(rater.token)
                assert person is not None and len(person.headphones) == 1
                assert person.headphones[0]["passed"] is right and person.headphones[0]["trials"] == 6

    asyncio.run(main())


def test_a_screen_is_not_finished_while_a_question_is_open_or_a_sound_unheard(quick: Study) -> None:
    async def main() -> None:
        async with served(quick) as server:
            rater = server.rater()
            screen = (await rater.enter())["screen"]
            values = sensible(screen)
            missing = dict(list(values.items())[1:])
            told = await rater.post("api/answer", body(screen, values=missing, done=True), status=422)
            assert questions(screen)[0]["label"] in told["error"]["message"]
            unheard = body(screen, values=values, done=True, plays={})
            told = await rater.post("api/answer", unheard, status=422)
            assert "listen to the end" in told["error"]["message"]
            assert server.studio.store.answers.all(("training",), finished=False) == []
            state = await rater.post("api/answer", body(screen, values=values, done=True))
            assert state["progress"]["done"] == 1 and state["screen"]["slot"] != screen["slot"]

    asyncio.run(main())


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"cctxfit": 6}, "cctxfit: the answer must be a whole number from 1 to 5"),
        ({"cctxfit": "5"}, "cctxfit"),
        ({"tones": "2"}, "does not ask for 'tones'"),
        ({"remark": "hello"}, "does not ask for 'remark'"),
    ],
)
def test_an_answer_that_the_questions_do_not_allow_is_refused(quick: Study, values: Any, message: str) -> None:
    async def main() -> None:
        async with served(quick) as server:
            rater = server.rater()
            screen = (await rater.enter())["screen"]
            told = await rater.post("api/answer", body(screen, values=values), status=422)
            assert message in told["error"]["message"]

    asyncio.run(main())


def test_a_repeated_answer_changes_nothing_and_a_repeated_end_answers_the_state(quick: Study) -> None:
    async def main() -> None:
        async with served(quick) as server:
            rater = server.rater()
            screen = (await rater.enter())["screen"]
            end = body(screen, values=sensible(screen), done=True)
            first = await rater.post("api/answer", end)
            again = await rater.post("api/answer", end)
            assert first == again and first["progress"]["done"] == 1
            assert len(server.studio.store.answers.history()) == len(sensible(screen))

    asyncio.run(main())


def test_an_unfinished_screen_comes_back_with_its_answers_on_another_device(quick: Study) -> None:
    async def main() -> None:
        async with served(quick) as server:
            rater = server.rater()
            screen = (await rater.enter())["screen"]
            some = dict(list(sensible(screen).items())[:2])
            await rater.post("api/answer", body(screen, values=some))
            elsewhere = await Rater(server, rater.token).get("api/state")
            assert elsewhere["screen"]["slot"] == screen["slot"] and elsewhere["screen"]["answers"] == some

    asyncio.run(main())


def test_a_second_tab_cannot_change_a_finished_screen(quick: Study) -> None:
    async def main() -> None:
        async with served(quick) as server:
            rater, tab = server.rater(), None
            screen = (await rater.enter())["screen"]
            tab = Rater(server, rater.token)
            await rater.post("api/answer", body(screen, values=sensible(screen), done=True))
            before = server.studio.store.answers.of_slot(screen["slot"])
            changed = dict.fromkeys(sensible(screen), 1)
            told = await tab.post("api/answer", body(screen, values=changed), status=409)
            assert told["error"]["code"] == "finished"
            assert server.studio.store.answers.of_slot(screen["slot"]) == before

    asyncio.run(main())


def test_the_voice_is_judged_before_the_words_are_shown(make_study: MakeStudy) -> None:
    study = make_study(
        "acr", FAST, ('rubrics = ["echomind"]', 'rubrics = ["echomind", "ves"]'), ("shows = []", 'shows = ["reply"]')
    )

    async def main() -> None:
        async with served(study) as server:
            rater = server.rater()
            await rater.enter()
            while len((screen := rater.state["screen"])["stages"]) < 2:  # a neutral clip, or tones
                await rater.answer()
            assert [stage["name"] for stage in screen["stages"]] == ["voice", "words"]
            assert not screen["stages"][0]["reveal"] and "A reply to" in screen["stages"][1]["reveal"][0]["text"]
            voice = screen["stages"][0]["fields"][0]
            await rater.post("api/answer", body(screen, values={voice["key"]: voice["high"]}))
            await rater.post("api/answer", body(screen, stage=1))
            await rater.post("api/answer", body(screen, values={voice["key"]: voice["low"]}, stage=1))
            saved = (await rater.get("api/state"))["screen"]
            assert saved["stage"] == 1 and saved["answers"][voice["key"]] == voice["high"]

    asyncio.run(main())


def test_reserved_places_go_to_others_and_an_answer_keeps_them(make_study: MakeStudy) -> None:
    study = make_study("acr", FAST, ("votes = 3", "votes = 1"), ("overlap = 2", "overlap = 0"))

    async def main() -> None:
        async with served(study) as server:
            store, now = server.studio.store, 1_000_000.0
            store._context.clock = lambda: now
            gone, busy = server.rater(), server.rater()
            await gone.enter()
            screen = (await busy.enter())["screen"]
            now += 20 * 60
            await busy.post("api/answer", body(screen, values=sensible(screen)))
            now += 20 * 60  # `gone` was last seen 40 minutes ago, `busy` 20
            assert store.sessions.release_expired() == 3
            open_places = [one for one in store.sessions.coverage() if one.reserved]
            assert len(open_places) == 3
            state = await gone.get("api/state")  # who comes back gets other places for what is missing
            assert state["step"] == "rating" and state["progress"]["total"] == 7

    asyncio.run(main())


def test_a_screen_can_be_skipped_and_another_follows(quick: Study) -> None:
    async def main() -> None:
        async with served(quick) as server:
            rater = server.rater()
            screen = (await rater.enter())["screen"]
            skip = {"slot": screen["slot"], "client_key": key(), "reason": "distress"}
            state = await rater.post("api/skip", skip)
            assert state["screen"]["slot"] != screen["slot"]
            assert await rater.post("api/skip", skip) == state
            assert (await rater.post("api/answer", body(screen), status=409))["error"]["code"] == "skipped"

    asyncio.run(main())


def test_while_the_database_is_away_the_rater_waits_and_the_owner_is_told(
    quick: Study, capfd: pytest.CaptureFixture[str]
) -> None:
    database = quick.path.with_name("study.db")

    async def main() -> None:
        async with served(quick) as server:
            rater = server.rater()
            screen = (await rater.enter())["screen"]
            given = body(screen, values=sensible(screen), done=True)
            database.rename(database.with_name("away.db"))
            told = await rater.post("api/answer", given, status=503)
            assert told["error"]["code"] == "unavailable" and "Keep this page open" in told["error"]["message"]
            assert "study.db" not in told["error"]["message"]
            database.with_name("away.db").rename(database)
            assert (await rater.post("api/answer", given))["progress"]["done"] == 1
            assert len(server.studio.store.answers.history()) == len(sensible(screen))

    asyncio.run(main())
    assert "study.db was deleted, moved or replaced" in capfd.readouterr().err


def test_withdrawal_deletes_everything_and_the_link_says_so(quick: Study) -> None:
    async def main() -> None:
        async with served(quick) as server:
            rater = server.rater()
            await rater.enter()
            await rater.answer()
            state = await rater.post("api/withdraw", {})
            assert state["step"] == "withdrawn" and "deleted" in state["end"]["message"]
            assert server.studio.store.answers.history() == []
            assert (await rater.get("api/state"))["step"] == "withdrawn"

    asyncio.run(main())


def test_who_refuses_consent_is_thanked_with_the_platforms_code(make_study: MakeStudy) -> None:
    codes = ('completion_code = ""', 'completion_code = "DONE1"'), ('no_consent_code = ""', 'no_consent_code = "NO2"')
    study = make_study("acr", FAST, *codes, ('platform = ""', 'platform = "prolific"'))

    async def main() -> None:
        async with served(study) as server:
            server.studio.store.log.add("public", sources=["prolific"])
            params = {"PROLIFIC_PID": "p1", "STUDY_ID": "s", "SESSION_ID": "x"}
            tokens = [(await joined(server, params))["token"] for _ in range(2)]
            first, again = (Rater(server, token) for token in tokens)
            state = await first.get("api/state")
            assert (await again.get("api/state"))["person"] == state["person"]  # the same ids, the same person
            consent = {"consent_sha": state["study"]["texts"]["consent_sha"], "agree": False}
            end = (await first.post("api/consent", consent))["end"]
            assert end["redirect_url"] == "https://app.prolific.com/submissions/complete?cc=NO2"
            other = Rater(server, (await joined(server, {**params, "PROLIFIC_PID": "p2"}))["token"])
            assert (await other.finish())["end"]["redirect_url"].endswith("?cc=DONE1")

    asyncio.run(main())


async def joined(server: Server, params: dict[str, str], status: int = 200) -> Any:
    return await Rater(server, "").post("api/join", {"params": params}, status=status)


def test_mturk_gets_its_form_and_a_preview_makes_nobody(make_study: MakeStudy) -> None:
    study = make_study("acr", FAST, ('completion_code = ""', 'completion_code = "DONE1"'))

    async def main() -> None:
        async with served(study) as server:
            server.studio.store.log.add("public", sources=["mturk"])
            preview = {"assignmentId": "ASSIGNMENT_ID_NOT_AVAILABLE", "hitId": "h"}
            assert (await joined(server, preview, 403))["error"]["code"] == "preview"
            assert (await joined(server, {}, 403))["error"]["code"] == "invited"  # sent by nobody
            worker = {"workerId": "w", "assignmentId": "a1", "hitId": "h"}
            rater = Rater(server, (await joined(server, worker))["token"])
            assert (await rater.finish())["end"]["submit"] == {"code": "DONE1"}
            assert server.studio.store.people.payments()[0]["submission"] == "a1"

    asyncio.run(main())


def test_the_qualification_decides_who_takes_part(make_study: MakeStudy) -> None:
    question = (
        'text = ""  # shown above the questions',
        'text = "About you"\n[[qualification.question]]\nkey = "hearing"\nquestion = "Do you hear well?"\n'
        'options = { yes = "Yes", no = "No" }\naccept = ["yes"]',
    )
    study = make_study("acr", FAST, question)

    async def main() -> None:
        async with served(study) as server:
            for answer, step in (("yes", "rating"), ("no", "screened_out")):
                rater = server.rater()
                state = await rater.enter()
                assert state["step"] == "qualification" and state["qualification"]["fields"][0]["key"] == "hearing"
                wrong = {"client_key": key(), "values": {"hearing": "perhaps"}}
                assert (
                    "one of yes, no" in (await rater.post("api/qualification", wrong, status=422))["error"]["message"]
                )
                given = {"client_key": key(), "values": {"hearing": answer}}
                assert (await rater.post("api/qualification", given))["step"] == step

    asyncio.run(main())


def test_after_closing_nobody_answers_but_everybody_may_withdraw(quick: Study) -> None:
    async def main() -> None:
        async with served(quick) as server:
            rater = server.rater()
            screen = (await rater.enter())["screen"]
            status, _, data = await server.raw("POST", "api/owner/close", server.owner, json={})
            assert status == 200, data
            told = await rater.post("api/answer", body(screen, values=sensible(screen)), status=410)
            assert told["error"]["code"] == "closed"
            assert (await rater.get("api/state"))["step"] == "closed"
            assert (await rater.post("api/withdraw", {}))["step"] == "withdrawn"

    asyncio.run(main())


def test_after_the_last_day_of_withdrawal_the_contact_is_named(make_study: MakeStudy) -> None:
    until = ('withdraw_until = ""', 'withdraw_until = "2020-01-31"'), ('contact = ""', 'contact = "a@example.org"')

    async def main() -> None:
        async with served(make_study("acr", FAST, *until)) as server:
            rater = server.rater()
            await rater.enter()
            await rater.answer()
            told = (await rater.post("api/withdraw", {}, status=409))["error"]
            assert told["code"] == "late" and "2020-01-31" in told["message"] and "a@example.org" in told["message"]
            assert server.studio.store.answers.history()

    asyncio.run(main())


def test_a_person_may_rate_as_many_sessions_as_the_study_allows(make_study: MakeStudy) -> None:
    study = make_study("acr", FAST, ("sessions = 1", "sessions = 2"), ("session = 3", "session = 2"))

    async def main() -> None:
        async with served(study) as server:
            rater = server.rater()
            assert (await rater.finish())["end"]["again"] is True
            rater.state = await rater.post("api/again", {})
            assert rater.state["step"] == "rating"
            assert (await rater.post("api/again", {}))["screen"] == rater.state["screen"]  # a repeated request
            assert (await rater.finish())["end"]["again"] is False
            assert (await rater.post("api/again", {}))["step"] == "done"

    asyncio.run(main())
