"""Dialogues of which the benchmark gives some replies: they stand in the history, and only the others are asked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from overtone import registry
from overtone.benchmarks import Selection
from overtone.cli import main
from overtone.runs.store import Store
from overtone.schema import Clip, Item, Turn
from tests.servers import OpenAIServer, tone

TURNS = (
    Turn(Clip("a.wav"), "Good morning.", given="Morning, sir.", heard="good mourning"),
    Turn(Clip("b.wav"), "A table for two."),
    Turn(Clip("c.wav"), "By the window.", given="Of course."),
    Turn(Clip("a.wav"), "Thank you."),
)


class Toy:
    name = "toy-given"

    def __init__(self, root: Path) -> None:
        self.root = root
        self.warnings: list[str] = []
        self.prompts: dict[str, str] = {}

    def items(self, selection: Selection) -> Iterator[Item]:
        yield Item("toy-given/1", self.name, 3, "converse", "talk", "1", "1", "target", TURNS)


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    module = ModuleType("toy_given")
    module.load = Toy  # type: ignore[attr-defined]
    monkeypatch.setitem(registry._plugins["benchmarks"], "toy-given", module)
    for number, name in enumerate("abc"):
        (tmp_path / f"{name}.wav").write_bytes(tone(number, 0.2, 16_000))
    return tmp_path


def told(server: OpenAIServer, request: int) -> list[tuple[str, str]]:
    """Role and text of each message; a sound is ♪."""
    found = []
    for message in server.asked[request].body["messages"]:
        content = message["content"]
        parts = [content] if isinstance(content, str) else [p.get("text", "♪") for p in content]
        found.append((message["role"], " ".join(parts)))
    return found


def test_given_replies_join_the_history_and_are_not_asked_for(toy: Path, tmp_path: Path) -> None:
    with OpenAIServer(answer=lambda asked: f"Reply {len(asked.body['messages'])}.", speech=False) as server:
        flags = ["--data", str(toy), "--model", f"openai:any?base_url={server.base_url}&speech=no", "--prompt", "zero"]
        assert main(["run", "toy-given", "-q", *flags, "--out", str(tmp_path / "run")]) == 0
        assert server.count == 2
        assert told(server, 0) == [("user", "♪"), ("assistant", "Morning, sir."), ("user", "♪")]
        assert told(server, 1)[3:] == [
            ("assistant", "Reply 3."),
            ("user", "♪"),
            ("assistant", "Of course."),
            ("user", "♪"),
        ]
        assert len(set(server.asked[1].sounds)) == 3
        assert main(["run", "toy-given", "-q", *flags, "--out", str(tmp_path / "run")]) == 0
        assert server.count == 2, "what is answered is not asked again"
    with Store.read(tmp_path / "run") as store:
        assert [(r.key.turn, r.text) for ask in store.answered() for r in ask.replies] == [
            (1, "Reply 3."),
            (3, "Reply 7."),
        ]


def test_an_interrupted_dialogue_goes_on_after_the_replies_it_has(toy: Path, tmp_path: Path) -> None:
    with OpenAIServer(answer=lambda asked: f"Reply {len(asked.body['messages'])}.", speech=False) as server:
        flags = ["--data", str(toy), "--model", f"openai:any?base_url={server.base_url}&speech=no", "--prompt", "zero"]
        main(["run", "toy-given", "-q", *flags, "--out", str(tmp_path / "run"), "--budget-requests", "1"])
        assert server.count == 1
        assert main(["run", "toy-given", "-q", *flags, "--out", str(tmp_path / "run")]) == 0
        assert server.count == 2
        assert [role for role, _ in told(server, 1)] == ["user", "assistant"] * 3 + ["user"]
        assert told(server, 1)[3] == ("assistant", "Reply 3.")


def test_a_plan_counts_only_what_is_asked(toy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "toy-given", "--data", str(toy), "--model", "openai:any", "--prompt", "zero"]) == 0
    assert "2 (converse 2)" in capsys.readouterr().out


def test_a_case_shows_what_was_given_beside_what_was_asked(
    toy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with OpenAIServer(answer=lambda asked: f"Reply {len(asked.body['messages'])}.", speech=False) as server:
        flags = ["--data", str(toy), "--model", f"openai:any?base_url={server.base_url}&speech=no", "--prompt", "zero"]
        assert main(["run", "toy-given", "-q", *flags, "--out", str(tmp_path / "run")]) == 0
    capsys.readouterr()
    assert main(["case", str(tmp_path / "run"), "1"]) == 0
    lines = [line.split(None, 2) for line in capsys.readouterr().out.splitlines()]
    told = [" ".join(words) for words in lines if words and words[0] in ("turn", "given", "recognised")]
    assert told == [
        "turn 1 “Good morning.”",
        "recognised as good mourning",
        "given reply Morning, sir.",
        "turn 2 “A table for two.”",
        "turn 3 “By the window.”",
        "given reply Of course.",
        "turn 4 “Thank you.”",
    ]
    page = tmp_path / "page.html"
    assert main(["report", str(tmp_path / "run"), "-o", str(page)]) == 0
    assert '"gi":[["Morning, sir.","good mourning"],["",""],["Of course.",""],["",""]]' in page.read_text("utf-8")
