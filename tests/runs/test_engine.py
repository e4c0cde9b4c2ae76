"""A run against a live server: everything once, failures as values, budgets, conditions, resumption."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from overtone.errors import OvertoneError, StoreError
from overtone.runs.asker import Policy
from overtone.runs.store import Store
from tests.runs.helpers import run
from tests.servers import OpenAIServer

ALL = 3 + 6 + 9  # transcripts of target clips, questions, conversations of the small benchmark


def test_every_item_is_asked_once_and_the_same_command_again_asks_nothing(small: Path, tmp_path: Path) -> None:
    with OpenAIServer() as server:
        first = run(small, server.base_url, tmp_path / "run")
        assert (first.answered, first.failed, first.requests, server.count) == (ALL, 0, ALL, ALL)
        second = run(small, server.base_url, tmp_path / "run")
        assert (second.requests, server.count) == (0, ALL)
    with Store.read(tmp_path / "run") as store:
        assert store.counts() == {"pending": 0, "answered": ALL, "failed": 0}
        keys = [reply.key for reply in store.replies()]
        assert len(keys) == len(set(keys)) == ALL


def test_the_clip_that_is_sent_is_the_clip_on_disk(small: Path, tmp_path: Path) -> None:
    with OpenAIServer() as server:
        run(small, server.base_url, tmp_path / "run", levels="1", limit=1)
        assert len(server.asked) == 1
        (sent,) = server.asked[0].sounds
    with Store.read(tmp_path / "run") as store:
        ((path, (sha, *_)),) = store.clips().items()
        assert sha == sent
        assert path.endswith("_target.wav")
        assert hashlib.sha256((small / path).read_bytes()).hexdigest() == sent
        assert store.sent(1, 0)[-1]["parts"][-1] == {"audio": sent}


def test_conversation_is_stored_with_its_audio_and_other_levels_ask_for_none(small: Path, tmp_path: Path) -> None:
    with OpenAIServer() as server:
        run(small, server.base_url, tmp_path / "run")
    with Store.read(tmp_path / "run") as store:
        spoken = {reply.key.item.split("/")[2]: bool(reply.audio) for reply in store.replies()}
        assert spoken == {"asr": False, "understanding": False, "conversation": True}
        names = {reply.audio for reply in store.replies() if reply.audio}
        on_disk = {p.stem for p in (tmp_path / "run" / "audio").glob("*/*.wav")}
        assert names == on_disk


def test_each_prompt_condition_and_repeat_is_its_own_request(small: Path, tmp_path: Path) -> None:
    with OpenAIServer() as server:
        outcome = run(small, server.base_url, tmp_path / "run", levels="3", prompt="all", repeats=2, seed=7)
        assert outcome.answered == server.count == 9 * 5 * 2
        assert {asked.body["seed"] for asked in server.asked} == {7, 8}
    with OpenAIServer() as server:
        run(small, server.base_url, tmp_path / "spec", levels="1", repeats=2, keys={"seed": 3})
        assert {asked.body["seed"] for asked in server.asked} == {3, 4}, "a SPEC's seed is drawn from in the same way"


def test_more_conditions_extend_a_run(small: Path, tmp_path: Path) -> None:
    with OpenAIServer() as server:
        run(small, server.base_url, tmp_path / "run", levels="3", prompt="zero")
        outcome = run(small, server.base_url, tmp_path / "run", levels="1,3", prompt="zero,basic")
        assert outcome.requests == 9 + 9
    with Store.read(tmp_path / "run") as store:
        assert store.counts()["answered"] == 9 + 9 + 9


def test_limit_counts_items_in_a_fixed_order(small: Path, tmp_path: Path) -> None:
    with OpenAIServer() as server:
        run(small, server.base_url, tmp_path / "a", limit=4)
        run(small, server.base_url, tmp_path / "b", limit=4)
        assert server.count == 8
    with Store.read(tmp_path / "a") as a, Store.read(tmp_path / "b") as b:
        assert [i.id for i in a.items()] == [i.id for i in b.items()]
        assert len(list(a.items())) == 4


@pytest.mark.parametrize("given", ["transcript", "both", "silence"])
def test_the_clip_can_be_replaced(small: Path, tmp_path: Path, given: str) -> None:
    with OpenAIServer(keep_audio=True) as server:
        run(small, server.base_url, tmp_path / "run", levels="3", input=given, limit=1)
        asked = server.asked[0]
        assert len(asked.sounds) == (0 if given == "transcript" else 1)
        assert ("This is line number" in asked.text) == (given in ("transcript", "both"))
        if given == "silence":
            assert not any(asked.wavs[0][44:])
            assert abs(len(asked.wavs[0]) - 44 - 0.2 * 32000) < 4


def test_passing_troubles_are_retried_and_leave_no_failure(small: Path, tmp_path: Path) -> None:
    with OpenAIServer() as server:
        run(small, server.base_url, tmp_path / "run", levels="1", limit=2)
        server.behave("429:0.05", "500", "malformed", "503")
        outcome = run(small, server.base_url, tmp_path / "run", levels="1", policy=Policy(5, 0.01, 0.05))
        assert outcome.failed == 0
        assert outcome.requests == 7 + 4
    with Store.read(tmp_path / "run") as store:
        assert not list(store.failures())
        assert sum(reply.attempts for reply in store.replies()) == 9 + 4
        assert any(kind == "limit" and "overloaded" in detail for _, kind, detail in store.events())


def test_lasting_troubles_are_recorded_and_only_those_are_tried_again(small: Path, tmp_path: Path) -> None:
    with OpenAIServer() as server:
        run(small, server.base_url, tmp_path / "run", levels="1", limit=1)
        server.always = "500"
        run(small, server.base_url, tmp_path / "run", levels="1")
        with Store.read(tmp_path / "run") as store:
            assert store.counts() == {"pending": 0, "answered": 1, "failed": 8}
            assert {f.reason for f in store.failures()} == {"server"}
            assert {f.attempts for f in store.failures()} == {3}
        server.always = None
        before = server.count
        again = run(small, server.base_url, tmp_path / "run", levels="1")
        assert (again.answered, server.count - before) == (8, 8)
        with Store.read(tmp_path / "run") as store:
            assert not list(store.failures())


def test_reply_audio_that_is_cut_short_is_retried_then_recorded(small: Path, tmp_path: Path) -> None:
    with OpenAIServer() as server:
        server.always = "cut_wav"
        outcome = run(small, server.base_url, tmp_path / "run", levels="3", limit=1)
        assert (outcome.failed, outcome.requests) == (1, 3)
    with Store.read(tmp_path / "run") as store:
        (failure,) = store.failures()
        assert failure.reason == "truncated_audio"
    assert not list((tmp_path / "run" / "audio").glob("*/*"))


def test_a_wrong_key_stops_at_the_first_item(small: Path, tmp_path: Path) -> None:
    with OpenAIServer() as server:
        server.always = "401"
        with pytest.raises(OvertoneError, match=r"the first request failed.*auth"):
            run(small, server.base_url, tmp_path / "run")
        assert server.count == 1


def test_nobody_listening_is_said_at_once(small: Path, tmp_path: Path) -> None:
    with pytest.raises(OvertoneError, match="connection"):
        run(small, "http://127.0.0.1:9/v1", tmp_path / "run")


def test_a_server_that_dies_stops_the_run_and_the_rest_stays_open(small: Path, tmp_path: Path) -> None:
    with OpenAIServer() as server:
        run(small, server.base_url, tmp_path / "run", levels="1", limit=2)
        url = server.base_url
    with pytest.raises(OvertoneError):
        run(small, url, tmp_path / "run", levels="1")
    with Store.read(tmp_path / "run") as store:
        counts = store.counts()
        assert counts["answered"] == 2
        assert counts["failed"] == 1
        assert counts["pending"] == 6


def test_the_request_budget_stops_cleanly_and_the_run_goes_on_later(small: Path, tmp_path: Path) -> None:
    with OpenAIServer() as server:
        outcome = run(small, server.base_url, tmp_path / "run", budget_requests=5, max_connections=4)
        assert (outcome.stopped, outcome.requests, server.count) == ("budget", 5, 5)
        rest = run(small, server.base_url, tmp_path / "run")
        assert (rest.answered, server.count) == (ALL - 5, ALL)


def test_a_money_budget_with_an_unknown_price_is_refused_before_anything_is_asked(small: Path, tmp_path: Path) -> None:
    with OpenAIServer() as server:
        with pytest.raises(OvertoneError, match="price"):
            run(small, server.base_url, tmp_path / "run", budget_usd=1.0)
        assert server.count == 0


def test_a_money_budget_stops(small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prices = tmp_path / "prices.toml"
    prices.write_text('date = "today"\n[openai.any]\ntext_in = 1e4\naudio_in = 1e4\n')
    monkeypatch.setenv("OVERTONE_PRICES", str(prices))
    with OpenAIServer() as server:
        outcome = run(small, server.base_url, tmp_path / "run", budget_usd=2.0, max_connections=1)
        assert outcome.stopped == "budget"
        assert 2.0 <= outcome.cost < 3.0
        assert server.count == outcome.requests < ALL


def test_another_model_or_other_parameters_are_refused_with_the_difference(small: Path, tmp_path: Path) -> None:
    with OpenAIServer() as server:
        run(small, server.base_url, tmp_path / "run", limit=1)
        with pytest.raises(StoreError, match="temperature"):
            run(small, server.base_url, tmp_path / "run", limit=1, keys={"temperature": "0.5"})
        with pytest.raises(StoreError, match="seed: None → 3"):
            run(small, server.base_url, tmp_path / "run", limit=1, seed=3)
        assert server.count == 1


def test_a_clip_that_changed_is_refused(small: Path, tmp_path: Path) -> None:
    with OpenAIServer() as server:
        run(small, server.base_url, tmp_path / "run", limit=1)
        with Store.read(tmp_path / "run") as store:
            (path,) = store.clips()
        clip = small / path
        clip.write_bytes(next(p for p in clip.parent.iterdir() if p != clip).read_bytes())
        with pytest.raises(StoreError, match="has changed since it was asked"):
            run(small, server.base_url, tmp_path / "run", limit=2)
        assert server.count == 1


def test_a_clip_touched_but_not_changed_is_fine(small: Path, tmp_path: Path) -> None:
    with OpenAIServer() as server:
        run(small, server.base_url, tmp_path / "run", limit=1)
        with Store.read(tmp_path / "run") as store:
            (small / next(iter(store.clips()))).touch()
        assert run(small, server.base_url, tmp_path / "run", limit=1).requests == 0


def test_a_broken_clip_fails_alone(small: Path, tmp_path: Path) -> None:
    next(small.rglob("id_1_sad_work_target.wav")).write_bytes(b"RIFF\0\0\0\0WAVE")
    with OpenAIServer() as server:
        outcome = run(small, server.base_url, tmp_path / "run", levels="1", asr="all")
        assert outcome.answered == server.count == 9 + 6 - outcome.failed
    with Store.read(tmp_path / "run") as store:
        reasons = {f.reason for f in store.failures()}
        assert reasons == {"bad_clip"}
        assert all("id_1" in f.detail for f in store.failures())


def test_no_key_in_the_environment_means_none_is_sent(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-of-somebody-else")
    with OpenAIServer() as server:
        run(small, server.base_url, tmp_path / "run", limit=1)
        assert "authorization" not in {name.lower() for name in server.asked[0].headers}


def test_a_key_reaches_the_endpoint_and_nothing_else(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "sk-very-secret-12345")
    with OpenAIServer() as server:
        run(small, server.base_url, tmp_path / "run", limit=1, keys={"api_key_env": "MY_KEY"})
        server.behave("echo_key")
        run(small, server.base_url, tmp_path / "run", keys={"api_key_env": "MY_KEY"}, max_connections=1)
        sent = {k.lower(): v for k, v in server.asked[0].headers.items()}
        assert sent["authorization"] == "Bearer sk-very-secret-12345"
    for path in (tmp_path / "run").rglob("*"):
        if path.is_file():
            assert b"very-secret" not in path.read_bytes(), path
