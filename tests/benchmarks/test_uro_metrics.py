"""URO-Bench's repeat and emotion scores, by hand: the swapped word error rate, and means as its script has them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import jiwer
import msgspec
import numpy as np
import pytest

from overtone.benchmarks.uro_bench.uro_metrics import Uro, load, rates, units
from overtone.embedded.emotion import Emotion
from overtone.errors import UsageError
from overtone.metrics import Answered
from overtone.metrics.emoalign import Sound
from overtone.schema import Item, Score, Turn
from tests.metrics.speech import spoken

SILENCE = np.zeros(1600, np.float32), 16_000


class Hears:
    """A recogniser that hears what it is told."""

    def __init__(self, *texts: str) -> None:
        self.texts = list(texts)

    def identity(self) -> str:
        return "told"

    def transcribe(self, samples: object, rate: int, language: str = "") -> str:
        return self.texts.pop(0)


class Feels:
    def identity(self) -> str:
        return "sure"

    def predict(self, sound: Sound) -> Emotion:
        return Emotion("happy", {"happy": 0.8, "sad": 0.2})


def item(category: str, wanted: str, gold: str = "", language: str = "en") -> Item:
    return Item(
        f"u/{category}", "uro-bench", 3, "converse", category, "c", "c", "", (Turn(None),), references=(wanted,),
        gold=gold, language=language,
    )  # fmt: skip


def replies(folder: Path, of: Item, texts: Sequence[str], voice: bool = True) -> list[Answered]:
    made = [spoken(folder, text, SILENCE if voice else None) for text in texts]
    return [msgspec.structs.replace(one, item=of) for one in made]


def scored(metric: Uro, answered: list[Answered]) -> list[Score]:
    return [row[0] for row in metric.score(answered)]


def test_errors_are_divided_by_the_reply_as_there_and_by_the_words_wanted_in_ours() -> None:
    assert list(rates("Sure! I love red apples", "I love red apples", "en")) == pytest.approx([1 / 5, 1 / 4])
    assert rates("", "I love apples", "en") == (1.0, 1.0)
    assert rates("I do", "", "en") == (1.0, 1.0)
    assert list(rates("red blue green gold", "red", "en")) == pytest.approx([3 / 4, 3.0])


def test_rates_are_those_of_jiwer_with_reply_and_reference_swapped() -> None:
    rng = random.Random(3)
    words = ["red", "blue", "green", "the", "cat", "sat", "I", "can't", "color", "colour", "twenty", "three", "5"]
    for _ in range(300):
        said, wanted = (" ".join(rng.choices(words, k=rng.randint(1, 12))) for _ in range(2))
        one, other = (" ".join(units(text, "en")) for text in (said, wanted))
        assert list(rates(said, wanted, "en")) == pytest.approx([jiwer.wer(one, other), jiwer.wer(other, one)])
        said, wanted = ("".join(rng.choices("你好世界我们", k=rng.randint(1, 9))) for _ in range(2))
        assert rates(said, f"{wanted}。", "zh")[0] == pytest.approx(jiwer.cer(said, wanted))


def test_chinese_is_compared_by_letters_without_marks() -> None:
    assert units("你好，世界！", "zh") == ["你", "好", "世", "界"]
    assert list(rates("你好吗", "你好，世界。", "zh")) == pytest.approx([2 / 3, 2 / 4])


def test_the_mean_of_repeat_is_the_share_of_good_replies_times_one_less_their_errors(tmp_path: Path) -> None:
    """Four replies with errors 0, 1/4, 1/2 and 1: ok_rate 3/4, WER of those (0 + 1/4 + 1/2) / 3 = 1/4."""
    heard = ("red blue green gold", "red blue green old", "red blue x y", "a b c d")
    answered = replies(tmp_path, item("Repeat", "red blue green gold"), ["said"] * 4)
    found = scored(Uro(Feels(), Hears(*heard)), answered)
    assert [s.value for s in found] == pytest.approx([1, 0.75, 0.5, 0])
    mean = sum(s.value for s in found if s.value is not None) / 4
    assert mean * 100 == pytest.approx(3 / 4 * (1 - 1 / 4) * 100) == pytest.approx(56.25)
    assert {s.signature for s in found} == {found[0].signature} and "|recogniser:told" in found[0].signature


def test_emotion_is_the_probability_of_the_wanted_one_times_one_less_the_errors(tmp_path: Path) -> None:
    answered = replies(tmp_path, item("GenEmotion-en", "I did it", gold="happy"), ["I did it"] * 3)
    found = scored(Uro(Feels(), Hears("I did it", "I hid it", "red blue green gold grey black")), answered)
    assert [s.value for s in found] == pytest.approx([0.8, 0.8 * 2 / 3, 0.0])
    assert found[0].detail["probability"] == 0.8 and "|predictor:sure|recogniser:told" in found[0].signature
    (sad,) = scored(
        Uro(Feels(), Hears("I did it")), replies(tmp_path, item("GenEmotion-en", "I did it", "angry"), ["x"])
    )
    assert sad.value == 0.0, "an emotion the predictor gives no probability"


def test_an_emotion_no_predictor_knows_is_unscored_and_a_noun_is_its_adjective(tmp_path: Path) -> None:
    metric = Uro(Feels(), Hears("I did it", "I did it"))
    (joy,) = scored(metric, replies(tmp_path, item("GenEmotion-en", "I did it", "Joy"), ["x"]))
    assert joy.value == 0.8
    (found,) = metric.score(replies(tmp_path, item("GenEmotion-en", "I did it", "wistful"), ["x"]))
    assert [(s.metric, s.value) for s in found] == [("uro_emotion", None), ("uro_wer", 0.0)]
    assert "'wistful' is not one of angry" in found[0].reason


def test_a_reply_in_writing_is_read_and_has_no_emotion(tmp_path: Path) -> None:
    metric = Uro(Feels(), Hears())
    assert scored(metric, replies(tmp_path, item("Repeat", "red blue"), ["Red blue."], voice=False))[0].value == 1.0
    silent = replies(tmp_path, item("GenEmotion-en", "red blue", "happy"), ["Red blue."], voice=False)
    assert scored(metric, silent)[0].value == 0.0


def test_it_is_for_two_kinds_of_sets_alone_and_chinese_needs_another_recogniser(tmp_path: Path) -> None:
    metric = load()
    assert metric.applies(item("Repeat-zh", "x")) and metric.applies(item("GenEmotion-en", "x"))
    assert not metric.applies(item("AlpacaEval", "x"))
    (score,) = scored(metric, replies(tmp_path, item("Repeat-zh", "你好", language="zh"), ["你好"]))
    assert score.value is None and "recogniser=openai/whisper" in score.reason
    with pytest.raises(UsageError, match="uro: no predictor 'emotion2vek'"):
        load(predictor="emotion2vek")
