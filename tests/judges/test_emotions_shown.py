"""What a rubric is told of a reply's voice: one word for its emotion, by a predictor that the signature names."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from overtone.judges import reply_audio
from overtone.judges.judge_run import judge_run
from overtone.judges.policy import parse_judge
from overtone.results.load import open_run
from overtone.runs.store import Store
from overtone.schema import Clip, Item, Reply, Score, Turn
from tests.judges.helpers import QUICK
from tests.judges.server import JudgeServer
from tests.servers import tone

OURS = "overtone-emotion-9-12345678"


def stored(folder: Path, replies: dict[str, Reply]) -> Path:
    with Store.create(folder) as store:
        store.set_meta({"benchmark": "toy"})
        made = [
            Item(n, "toy", 3, "converse", "emotion", n, n, "", (Turn(Clip("a.wav"), f"Words of {n}."),), gold="sad")
            for n in replies
        ]
        store.plan([(one, ["zero/audio"]) for one in made], 1)
        for ask in list(store.open_asks(0, 100)):
            store.add_reply(ask, 0, replies[ask.item.id], sent=b"[]", latency=0.1, attempts=1)
        store.commit()
    return folder


def judge(folder: Path) -> tuple[dict[str, str], dict[str, Score]]:
    """What was shown, by item, and the scores."""
    with JudgeServer(verdict=lambda asked: {"echat_voice": 4}) as server:
        with Store.create(folder) as store:
            asyncio.run(judge_run(store, [parse_judge(server.spec("rubrics=echat-eval-voice"))], retries=QUICK))
        shown = {name: one.text for one in server.asked for name in "abc" if f"Words of {name}." in one.text}
    return shown, {a.item.id: next(iter(a.scores.values())) for a in open_run(folder).answers if a.scores}


@pytest.fixture
def ears(monkeypatch: pytest.MonkeyPatch) -> None:
    heard = {tone(0): "happy", tone(1): "unknown"}
    monkeypatch.setattr(reply_audio, "emotion", lambda path: (reply_audio.in_words(heard[path.read_bytes()]), OURS))
    monkeypatch.setattr("overtone.embedded.emotion.identity", lambda: OURS)


@pytest.mark.usefixtures("ears")
def test_the_judge_reads_the_emotion_and_the_signature_says_who_heard_it(tmp_path: Path) -> None:
    run = stored(tmp_path / "run", {"a": Reply("Yes.", tone(0)), "b": Reply("No.", tone(1)), "c": Reply("So.")})
    shown, scores = judge(run)
    assert "<emotion>\nhappy\n</emotion>" in shown["a"] and "<wanted>\nsad\n</wanted>" in shown["a"]
    assert f"<emotion>\n{reply_audio.UNKNOWN}\n</emotion>" in shown["b"]
    assert scores["a"].value == 4 and scores["a"].signature.endswith(f"|emotion:{OURS}")
    assert "c" not in shown, "nothing is asked about a voice that is not there"
    assert (scores["c"].value, scores["c"].reason) == (None, "the reply has no audio")
    assert open_run(run).notes == [], "with and without a voice it is one kind of score"


@pytest.mark.usefixtures("ears")
def test_what_another_predictor_wrote_down_before_is_shown_instead(tmp_path: Path) -> None:
    run = stored(tmp_path / "run", {"a": Reply("Yes.", tone(0)), "b": Reply("No.", tone(1))})
    with Store.create(run) as store:
        told = {OURS: "neutral", "iic/emotion2vec_plus_large:funasr1": "sad"}
        metric = "emoalign_profile"
        for ask, _ in list(store.asks()):
            for name, heard in told.items():
                signature = f"{metric}|v1|predictor:{name}|profiles:x"
                store.add_scores([(ask.id, Score(metric, signature, 0.0, "", {"reply": heard}))])
        store.commit()
    shown, _ = judge(run)
    assert all("<emotion>\nsad\n</emotion>" in text for text in shown.values()) and len(shown) == 2
    signatures = [one for name, one in open_run(run).signatures.items() if name.startswith("echat_voice@")]
    assert [one.partition("|emotion:")[2] for one in signatures] == ["iic/emotion2vec_plus_large:funasr1"]


def test_our_predictor_hears_a_sound_by_itself(tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    path.write_bytes(tone(0, 0.5, 16_000))
    word, name = reply_audio.emotion(path)
    assert word and name.startswith("overtone-emotion-")
