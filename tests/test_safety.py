"""Keys: which can be sent, and where they go."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from overtone.benchmarks._hosts import Hub
from overtone.build.voices import openai as voice
from overtone.cli import main
from overtone.errors import UsageError
from overtone.models import gemini, openai
from overtone.safety import check_key_route, insecure, read_key
from overtone.spec import parse_spec

KEY = "topsecret-0123456789"


def test_a_key_that_cannot_be_a_header_is_refused_unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BAD_KEY", "topsecret\nX-Evil: 1")
    with pytest.raises(UsageError) as error:
        read_key("BAD_KEY")
    assert "BAD_KEY" in str(error.value) and "topsecret" not in str(error.value)
    monkeypatch.setenv("BAD_KEY", "  fine\n")
    assert read_key("BAD_KEY") == "fine"


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    monkeypatch.delenv("OVERTONE_INSECURE", raising=False)


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("https://model.example/v1", True),
        ("http://localhost:8000/v1", True),
        ("http://127.0.0.1:8000/v1", True),
        ("http://[::1]:8000/v1", True),
        ("http://model.localhost/v1", True),
        ("http://model.example/v1", False),
        ("http://10.0.0.7:8000/v1", False),
        ("http://192.168.1.2:8000/v1", False),
        ("http://127.0.0.1.model.example/v1", False),
        ("http://localhost.model.example/v1", False),
    ],
)
def test_a_key_goes_over_plain_http_to_this_machine_only(url: str, allowed: bool) -> None:
    if allowed:
        check_key_route(url, "x")
        return
    with pytest.raises(UsageError, match="--insecure") as error:
        check_key_route(url, "x")
    assert KEY not in str(error.value)
    with insecure(True):
        check_key_route(url, "x")
    with pytest.raises(UsageError):
        check_key_route(url, "x")


@pytest.mark.parametrize("kind", ["openai", "gemini"])
async def test_a_model_with_a_key_is_not_opened_over_plain_http(kind: str) -> None:
    load = {"openai": openai.load, "gemini": gemini.load}[kind]
    with pytest.raises(UsageError, match="over plain http"):
        await load(parse_spec(f"{kind}:any?base_url=http://model.example/v1&api_key_env=MY_KEY")).open()
    without = load(parse_spec(f"{kind}:any?base_url=http://model.example/v1"))
    await without.open()
    await without.close()


def test_a_voice_with_a_key_is_not_asked_over_plain_http() -> None:
    one = voice.load(parse_spec("openai:tts?base_url=http://model.example/v1&api_key_env=MY_KEY"))
    with pytest.raises(UsageError, match="over plain http"):
        one._key()
    with insecure(True):
        assert one._key() == KEY


def test_a_token_does_not_go_to_a_mirror_over_plain_http(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", KEY)
    monkeypatch.setenv("HF_ENDPOINT", "http://mirror.example")
    with pytest.raises(UsageError, match=r"HF_TOKEN: the key would go to mirror\.example"):
        Hub("owner/name", "", 0.0)


def test_the_flag_allows_it_for_one_command(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")  # nothing leaves this machine
    spec = "openai:any?base_url=http://model.example/v1&api_key_env=MY_KEY"
    words = ["run", "echomind", "--data", str(small), "--limit", "1", "--out", str(tmp_path / "run"), "--model", spec]
    assert main(words) == 2
    assert "--insecure" in capsys.readouterr().err
    assert main([*words, "--insecure", "-q"]) != 0
    assert "the proxy cannot be reached" in capsys.readouterr().err, "it was asked"
    assert "OVERTONE_INSECURE" not in os.environ
