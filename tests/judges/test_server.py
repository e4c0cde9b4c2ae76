"""The scripted judge itself: what it is told to play is what goes over the wire."""

from __future__ import annotations

import http.client
import json
import urllib.request

import pytest

from tests.judges.server import JudgeServer, menus, spoiled

TEXT = 'Answer with "cctxfit" and "cspeechrel".'


def post(server: JudgeServer, text: str = TEXT) -> str:
    body = json.dumps({"model": "x", "messages": [{"role": "user", "content": text}]}).encode()
    with urllib.request.urlopen(f"{server.base_url}/chat/completions", body, timeout=5) as answer:
        content: str = json.loads(answer.read())["choices"][0]["message"]["content"]
    return content


def test_it_answers_what_is_asked_within_the_menu_and_the_same_each_time() -> None:
    with JudgeServer() as server:
        first, second = post(server), post(server)
    assert first == second
    verdict = json.loads(first)
    assert list(verdict) == ["cctxfit_reason", "cctxfit", "cspeechrel_reason", "cspeechrel"]
    assert all(verdict[key] in menus()[key] for key in ("cctxfit", "cspeechrel"))


def test_it_plays_its_script_and_then_is_good_again() -> None:
    with JudgeServer() as server:
        server.behave("off_menu", "blank")
        assert json.loads(post(server))["cctxfit"] == 6
        assert post(server) == ""
        assert json.loads(post(server))["cctxfit"] in menus()["cctxfit"]
        assert server.count == server.paid == 3


def test_a_cut_body_breaks_the_connection_and_is_not_paid() -> None:
    with JudgeServer() as server:
        server.behave("cut")
        with pytest.raises((http.client.IncompleteRead, OSError)):
            post(server)
        post(server)
        assert (server.count, server.paid) == (2, 1)


def test_it_dies_when_told_and_nobody_listens_afterwards() -> None:
    with JudgeServer() as server:
        server.dies_after = 2
        post(server)
        post(server)
        for _ in range(2):
            with pytest.raises(OSError):
                post(server)
        assert server.paid == 2


def test_every_spoiled_verdict_differs_from_the_good_one() -> None:
    names = "fenced prose broken words off_menu text half null missing extra wrong_type twice blank injected long array"
    good = spoiled("good", {"cctxfit": 4})
    texts = [spoiled(name, {"cctxfit": 4}) for name in names.split()]
    assert None not in texts
    assert len({good, *texts}) == len(texts) + 1
