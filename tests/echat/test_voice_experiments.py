"""The experiments on the voice: each cause's share of the word errors, and whether the voice follows the delivery."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from experiments.echat import voice_errors, voice_follows
from experiments.echat.moonshine_base import MoonshineBase
from experiments.echat.voice_errors import ORDINARY, PARTS, UNITS, VOICE, Listener, Row, at
from overtone.echat.data.exchange_records import Record
from overtone.echat.exam.answer_file import Prediction
from overtone.errors import UsageError

TEXTS = ("I see the boat.", "Come in.")


def test_replies_and_their_second_sentences_are_asked_for_once_each() -> None:
    records = [
        Record("a", "Oh no. Come in.", reply_emotion="sad", speech_token=(1,)),
        Record("b", "Oh no. Come in.", reply_emotion="sad", speech_token=(1,)),
        Record("c", "Sit down.", speech_token=(1,)),
        Record("d", "Never spoken."),
    ]
    asked = list(voice_errors.texts(records, 9))
    assert sorted((kind, r.txt) for kind, r in asked) == [
        ("reply", "Oh no. Come in."), ("reply", "Sit down."), ("sentence", "Come in."),
    ]  # fmt: skip


@pytest.mark.local
def test_each_cause_is_the_difference_of_two_ways_on_the_same_texts() -> None:
    said: list[int] = []

    def hear(sound: np.ndarray, rate: int) -> str:  # type: ignore[type-arg]
        said.append(len(sound))
        return "I see the coat" if len(sound) > 2.0 * rate else "come in"

    listener = Listener({"stub": hear})
    rows = []
    for way in (at(0), at(1.2), PARTS):
        for text in TEXTS:
            codes = listener.voice.read(text, "sad").tolist()
            rows.append(Row("reply", text, "sad", way, () if way == at(1.2) else tuple(codes)))
    found = voice_errors.listen(rows, listener)
    assert {way for _, way in found} == {VOICE, UNITS, ORDINARY, PARTS, at(0), at(1.2)}
    assert [one.wrong_phonemes for one in found["reply", at(0)]] == [0, 0]
    silent = found["reply", at(1.2)]
    assert [one.errors["stub"] for one in silent] == [4, 2]  # nothing said: every word is missing
    assert all(one.wrong_phonemes == one.phonemes for one in silent)
    assert voice_errors.rate(silent, "stub", found["reply", at(0)]).value == pytest.approx(
        voice_errors.rate(silent, "stub").value - voice_errors.rate(found["reply", at(0)], "stub").value
    )
    lines = list(voice_errors.tables(found, ["stub"]))
    assert sum(line.startswith("| reply | temperature") for line in lines) == 2
    assert next(line for line in lines if "sampling" in line).startswith("| reply | sampling: temperature 1.2")
    assert all(len(line.split("|")) == len(lines[0].split("|")) for line in lines[:8] if line.startswith("|"))


def answer(key: str, group: str, wanted: str, chosen: str) -> Prediction:
    spoken = f"<{chosen.upper()}>Well."
    return Prediction(key, "seen", group, reply="Well.", reply_emotion=wanted, spoken=spoken, codes=(1, 2, 3))


def test_a_voice_that_follows_the_delivery_scores_one_and_a_deaf_one_a_half() -> None:
    heard = [answer(f"{g}{e}", g, e, e) for g in "abc" for e in ("happy", "sad")]
    deaf = [answer(f"{g}{e}", g, e, "sad") for g in "abc" for e in ("happy", "sad")]
    wrong = [answer(f"{g}{e}", g, e, {"sad": "happy", "happy": "sad"}[e]) for g in "abc" for e in ("happy", "sad")]
    tag = voice_follows.Closer().measures["tag"]
    shares = [voice_follows.compared(rows, tag) for rows in (heard, deaf, wrong)]
    assert [one["model"].value for one in shares] == [1.0, 0.5, 0.0]
    assert [one["deaf"].value for one in shares] == [0.5, 0.5, 0.5]
    assert (shares[0]["model"].rows, shares[0]["model"].clusters) == (6, 3)
    assert not list(voice_follows.pairs([replace(row, codes=()) for row in heard]))
    assert not list(voice_follows.pairs([replace(row, reply_emotion="sad") for row in heard]))


@pytest.mark.local
def test_the_same_sentence_in_two_emotions_is_closer_to_its_own() -> None:
    closer = voice_follows.Closer()
    rows = [answer(f"a{e}", "a", e, e) for e in ("happy", "sad")]
    found = voice_follows.compared(rows, closer.measures["prosody, same words"])
    assert (found["model"].value, found["deaf"].value) == (1.0, 0.5)


def test_a_second_recogniser_that_is_not_there_is_named_with_the_command(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"lacks encoder_model\.onnx.*moonshine_base fetch"):
        MoonshineBase(tmp_path)
