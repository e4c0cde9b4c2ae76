"""Invitations, public joins, consent and set-up, on both databases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from overtone.errors import UsageError
from overtone.studio.store import Refusal, Store
from overtone.studio.study import Checks, Qualification, Question
from tests.studio.store.helpers import arrive, finish, make_study, open_study


@pytest.fixture
def store(tmp_path: Path, database: str) -> Iterator[Store]:
    with open_study(make_study(tmp_path, database)) as opened:
        yield opened


def stored(store: Store) -> str:
    """Every value in the database, as text."""
    return store._database.read(lambda c: " ".join(str(c.rows(f"SELECT * FROM {table}")) for table in c.tables()))


def test_a_token_opens_one_persons_session_and_is_not_stored(store: Store) -> None:
    first, second = store.people.invite(2)
    assert first.token != second.token and len(first.token) >= 22  # 128 bits
    found = store.people.find(first.token)
    assert found is not None and (found.label, found.role, found.source) == (first.label, "rater", "invite")
    assert store.people.find(first.token[:-1]) is None and store.people.find("") is None
    assert first.token not in stored(store)


def test_a_revoked_link_stops_working_and_answers_stay(store: Store) -> None:
    invited = store.people.invite(1)[0]
    store.people.consent(invited.label, store.study.consent_sha, True, {})
    finish(store, invited.label)
    store.people.revoke(invited.label)
    assert store.people.find(invited.token) is None
    assert len(store.answers.all()) == 6


def test_the_owner_has_one_valid_link(store: Store) -> None:
    before = store.people.own()
    after = store.people.own()
    assert store.people.find(before.token) is None
    owner = store.people.find(after.token)
    assert owner is not None and owner.role == "owner" and before.label == after.label
    assert store.people.own("a-token-from-a-file-0123").token == "a-token-from-a-file-0123"
    with pytest.raises(UsageError, match="20 characters"):
        store.people.own("short")


def test_the_same_id_of_a_platform_is_the_same_person(store: Store) -> None:
    first = store.people.join("prolific", "5f1e", session="s1", submission="x")
    again = store.people.join("prolific", "5f1e", session="s2")
    other = store.people.join("mturk", "5f1e")
    assert first.label == again.label != other.label
    assert store.people.find(first.token) == store.people.find(again.token)  # two devices
    assert store.people.join("public").label != store.people.join("public").label
    (paid,) = [one for one in store.people.payments() if one["source"] == "prolific"]
    assert paid == {"label": first.label, "source": "prolific", "external": "5f1e", "session": "s1", "submission": "x"}


def test_closing_erases_payment_ids_and_ends_joining(store: Store) -> None:
    store.people.join("prolific", "worker-4711")
    assert "worker-4711" in stored(store)
    store.close_study()
    assert store.people.payments() == [] and "worker-4711" not in stored(store)
    for late in (lambda: store.people.join("prolific", "worker-4711"), lambda: store.people.invite(1)):
        with pytest.raises(Refusal) as refused:
            late()
        assert refused.value.code == "closed"


def test_consent_is_stored_with_its_version_and_its_parts(store: Store) -> None:
    label = store.people.invite(1)[0].label
    with pytest.raises(Refusal, match="text has changed"):
        store.people.consent(label, "0" * 16, True, {})
    agreed = store.people.consent(label, store.study.consent_sha, True, {"publication": False, "analysis": True})
    assert agreed.agreed and agreed.consented and agreed.consent_sha == store.study.consent_sha
    assert agreed.parts == {"publication": False, "analysis": True}
    store.people.set_up(label, {}, None)
    finish(store, label)
    assert {one.consent_sha for one in store.answers.all()} == {store.study.consent_sha}


def test_a_person_passes_through_the_steps_in_order(tmp_path: Path, database: str) -> None:
    ask = Qualification(questions=(Question(key="adult", question="18?", options={"y": "yes", "n": "no"}),))
    checks = Checks(headphones=True, training=1, traps=0, gold=0)
    with open_study(make_study(tmp_path, database, checks=checks, qualification=ask)) as store:
        label = store.people.invite(1)[0].label
        seen = [store.sessions.step(label)]
        store.people.consent(label, store.study.consent_sha, True, {})
        seen.append(store.sessions.step(label))
        store.people.set_up(label, {"output": "speakers"}, -12.0)
        seen.append(store.sessions.step(label))
        store.people.add_headphones(label, {"test": "woods", "correct": 2, "passed": False})
        seen.append(store.sessions.step(label))  # the test is a covariate, not a gate
        store.people.qualify(label, {"adult": "y"}, True)
        seen.append(store.sessions.step(label))
        finish(store, label)
        seen.append(store.sessions.step(label))
        assert seen == ["consent", "setup", "headphones", "qualification", "rating", "done"]


def test_headphones_are_a_gate_after_two_failures_only_if_the_study_says_so(tmp_path: Path, database: str) -> None:
    checks = Checks(headphones=True, require_headphones=True, training=0, traps=0, gold=0)
    with open_study(make_study(tmp_path, database, checks=checks)) as store:
        label = arrive(store).label
        failed = {"test": "huggins", "correct": 3, "passed": False}
        store.people.add_headphones(label, failed, client_key="k1")
        store.people.add_headphones(label, failed, client_key="k1")  # the same request again is no second attempt
        assert store.sessions.step(label) == "headphones"
        store.people.add_headphones(label, failed, client_key="k2")
        assert store.sessions.step(label) == "screened_out" and store.people.get(label).reason == "headphones"
        second = arrive(store).label
        store.people.add_headphones(second, failed)
        store.people.add_headphones(second, {**failed, "passed": True})
        assert store.sessions.step(second) == "rating"


def test_who_does_not_agree_or_qualify_is_not_asked(store: Store) -> None:
    no, unfit = store.people.invite(2)
    store.people.consent(no.label, store.study.consent_sha, False, {})
    assert store.sessions.step(no.label) == "refused"
    store.people.consent(unfit.label, store.study.consent_sha, True, {})
    store.people.qualify(unfit.label, {"adult": "n"}, False)
    assert store.sessions.step(unfit.label) == "screened_out"
    counts = store.status().people
    assert (counts["invited"], counts["refused"], counts["screened_out"]) == (2, 1, 1)


def test_a_new_consent_text_is_shown_before_the_next_screen(tmp_path: Path, database: str) -> None:
    study = make_study(tmp_path, database)
    with open_study(study) as store:
        label = arrive(store).label
        assert store.sessions.step(label) == "rating"
    changed = replace(study, people=replace(study.people, retention="until 2030"))
    with open_study(changed) as store:
        assert store.sessions.step(label) == "consent"
