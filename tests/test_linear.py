"""Functions that read a model's reply take time in proportion to its length, whatever the reply is made of.

Each is given hostile texts of two sizes. What is asserted is the growth of its processor time, never the time itself:
four times the text may take at most `GROWTH` times as long (4 is linear, 16 quadratic). Alignments, which are quadratic
by nature, leave texts beyond a stated length unscored.
"""

from __future__ import annotations

import gc
import itertools
import random
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec
import pytest

from overtone.benchmarks.mmau import word_match as mmau
from overtone.benchmarks.uro_bench import uro_metrics as uro
from overtone.echat.data import think
from overtone.embedded import wordpiece
from overtone.judges.contract import Contract, Unread
from overtone.judges.rubric import Dimension
from overtone.languages import language_of
from overtone.metrics import Answered, bleu, lengths, meteor, rouge, templates, wer
from overtone.metrics import _limits as limits
from overtone.metrics._porter import stem
from overtone.metrics.normalise import units
from overtone.models import _chat
from overtone.models.endpoint_errors import problem_of
from overtone.report.latex_tables import escaped
from overtone.report.table_formats import plain
from overtone.safety import without_keys, without_secrets
from overtone.schema import Option, Score
from overtone.tasks.answers.extract import lenient, strict
from tests.metrics.answers import answered, item
from tests.test_house import MAY

SMALL, LARGE = 2_000, 8_000  # characters
GROWTH = 8.0  # of the time, where the text grows by 4
MEASURABLE = 0.004  # seconds of processor time; below it a growth is noise

OPTIONS = tuple(map(Option, "ABCD", ("happy", "sad", "a thunderstorm", "The child")))
CONTRACT = Contract([Dimension("fit", "Fit", "Does it fit?", (1, 5)), Dimension("warm", "Warm", "Is it?", (1, 5))])


def verdict(text: str) -> None:
    for body in (text, f"<think>{text}", f'{{"fit_reason": "{text}', f"```json\n{text}\n```"):
        try:
            CONTRACT.read(body)
        except Unread:
            continue


def doubled_verdict(text: str) -> None:
    """A valid object that says the same key as often as the text is long."""
    keys = ", ".join(['"fit": 1'] * (len(text) // 8 + 2))
    with pytest.raises(Unread):
        CONTRACT.read(f'{{"fit_reason": "", "warm_reason": "", "warm": 1, {keys}}}')


def reply(text: str, language: str = "en") -> Answered:
    of = item("converse", references=("I am so sorry to hear that.",), language=language)
    return answered(msgspec.structs.replace(of, benchmark="aeq"), text)


def templated(text: str, language: str) -> None:
    metric = templates.load()
    metric.survey([reply(text, language)])
    metric.score([reply(text, language)])


FUNCTIONS: dict[str, Callable[[str], object]] = {
    "normalise english": lambda text: units(text, "en"),
    "normalise german": lambda text: units(text, "de"),
    "normalise chinese": lambda text: units(text, "zh"),
    "language by script": lambda text: language_of("", text),
    "wer wrapper": wer.WRAPPER.search,
    "wer raw words": wer.raw_words,
    "bleu": lambda text: bleu.load().score([reply(text)]),
    "bleu spanish": lambda text: bleu.load().score([reply(text, "es")]),
    "bleu chinese": lambda text: bleu.load().score([reply(text, "zh")]),
    "rouge words and stems": lambda text: rouge.stems(rouge.words(text)),
    "meteor stems": lambda text: [stem(word) for word in text.lower().split()],
    "lengths": lambda text: lengths.load().score([reply(text)]),
    "lengths japanese": lambda text: lengths.load().score([reply(text, "ja")]),
    "templates": lambda text: templated(text, "en"),
    "templates chinese": lambda text: templated(text, "zh"),
    "uro letters": lambda text: uro.units(text, "zh"),
    "mmau": lambda text: mmau.judged("happy", text, ["happy", "sad"]),
    "embedder words": lambda text: list(wordpiece.words(text)),
    "error body": lambda text: problem_of(text.encode()),
    "error about speech": _chat._ABOUT_SPEECH.search,
    "keys in an error": lambda text: without_keys(text, "abc"),
    "secrets in an error": without_secrets,
    "verdict": verdict,
    "doubled verdict": doubled_verdict,
    "thought and tags": think.parse,
    "report, Markdown": plain,
    "report, LaTeX": escaped,
}
READERS: dict[str, Callable[[str], object]] = {
    "choice, lenient": lambda text: lenient(text, OPTIONS),
    "choice, strict": lambda text: strict(text, OPTIONS),
}

SEEDS = (
    *"<([{)]}>'\"`.-*_#!?:;,&|\\/~$%^=+@\n\t\r 1aA中。，é\u0301\u200b\u2028“”’«…—–😀\0",
    *("(a", "<a", "[a", "< ", "' ", " '", '" ', "``", ". ", ". . ", "a.", "a. ", "--", " - ", "1,", "1 ", "1.", "$1 "),
    *("one ", "zero ", "point ", "zero point ", "and a half ", "one and a half ", "one thousand ", "double one "),
    *("<think>", "</think>", "[think]", "**a", "~~a", "__a", "> ", "- ", "1. ", "the speaker ", "the speaker's "),
    *("the audio is ", "the tone is ", "is spoken in a a ", "it sounds like ", "the answer is ", "answer: ", "not "),
    *("a) ", "(a) ", "a, ", "b\n", "A. happy ", "happy ", "happy and ", "happy or ", "a thunderstorm ", "option a "),
    *("rather than ", "if ", "but ", "? ", "what?\n", " \n", "\n\n", "a\n", "\r\n", "&quot;", "\\text{", '{"', '"a":'),
    *('\\"', "<|", "|>", "<|a|>", "</s>", "bearer ", "bearer \t", "sk-", "sk-a ", "hf_", "中文", "你好。", "e\u0301 "),
    *("transcript", "sure ", "here is the text ", "a'", "a-", "a_", "don't ", "n't ", "'s ", "1st ", "q1. ", "```\n"),
    *("output ", "audio ", "User's words: ", ", Emotion: ", ",", "<sad>", "</answer>", "i.e. ", "u.s. ", "Dr. "),
)  # fmt: skip
READ_SLOWLY = ("\n", " \n", "<think>", "</think>", "```\n", "happy ", "happy or ", "a thunderstorm ", "(a", "[a")
AROUND = (("", ""), ("<think>'the audio is ", " x"), ("sure, here (a) ", " >"))


def repeated(size: int, seed: str, before: str, after: str) -> str:
    return before + (seed * (size // len(seed) + 1))[:size] + after


def hostile() -> Iterator[tuple[str, Callable[[int], str]]]:
    """Named texts of any size: every seed over and over, alone and between others, and mixtures of a few seeds."""
    for seed, (before, after) in itertools.product(SEEDS, AROUND):
        yield f"{before!r} + {seed!r}… + {after!r}", lambda n, s=seed, b=before, a=after: repeated(n, s, b, a)
    rng = random.Random(23)
    for _ in range(60):
        few = rng.sample(SEEDS, rng.randint(2, 4))
        cycle = "".join(rng.choices(few, k=rng.choice((2, 3, 500))))
        yield f"{few} mixed, beginning {cycle[:20]!r}", lambda n, s=cycle: repeated(n, s, "", "")


def seconds(function: Callable[[str], object], texts: Iterable[str]) -> float:
    """The least processor time of a call. The texts differ a little, so that no cache answers."""
    times = []
    for text in texts:
        start = time.thread_time()
        function(text)
        times.append(time.thread_time() - start)
    return min(times)


def superlinear(function: Callable[[str], object], text: Callable[[int], str]) -> str:
    """How the time grows where it grows too much, or "". A suspicion is confirmed by the best of several repeats."""
    for shorter in (range(1), range(1, 4)):
        small, large = (seconds(function, [text(n - k) for k in shorter]) for n in (SMALL, LARGE))
        if large < max(MEASURABLE, GROWTH * small):
            return ""
    return f"{small:.4f} s for {SMALL} characters, {large:.4f} s for {LARGE}"


def check(function: Callable[[str], object], texts: Sequence[tuple[str, Callable[[int], str]]]) -> None:
    function("Hello there.")  # what is read or compiled once is not counted
    gc.disable()
    try:
        for name, text in texts:
            problem = superlinear(function, text)
            assert not problem, f"{name}: {problem}"
    finally:
        gc.enable()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_time_grows_no_faster_than_the_text(name: str) -> None:
    check(FUNCTIONS[name], list(hostile()))


@pytest.mark.parametrize("name", READERS)
def test_the_time_to_read_a_choice_grows_no_faster_than_the_reply(name: str) -> None:
    check(READERS[name], list(hostile()))


def test_a_hostile_reply_of_any_length_holds_up_the_event_loop_only_briefly() -> None:
    """Choices are read inside the event loop while a run is under way. The limit is ten times what is measured."""
    lenient("Hello there.", OPTIONS)
    for seed in READ_SLOWLY:
        text = f"sure, here (a) {seed * (200_000 // len(seed))} x"
        start = time.thread_time()
        lenient(text, OPTIONS)
        assert time.thread_time() - start < 2.0, seed


def test_a_quadratic_function_is_noticed() -> None:
    """The way error bodies were once read: every unclosed bracket looks for its end."""
    assert superlinear(lambda text: re.sub(r"<[^>]*>", " ", text), lambda n: "<" * n)


def test_a_text_beyond_the_cap_is_unscored_by_every_alignment_with_the_reason() -> None:
    long = "word " * (limits.LONGEST + 1)
    spoken = answered(item("transcribe", references=("a word",)), long)
    scores: list[Score] = [*wer.load().score([spoken])[0], *rouge.load().score([reply(long)])[0]]
    scores += meteor.load().score([reply(long)])[0]
    of = msgspec.structs.replace(reply(long).item, benchmark="uro-bench", category="Repeat")
    scores += uro.load().score([answered(of, long)])[0]
    metrics = {"wer", "wer_raw", "rouge_l", "rouge_l_stemmed", "meteor", "uro_repeat", "uro_wer"}
    assert {s.metric for s in scores} == metrics
    for score in scores:
        assert score.value is None
        assert "wordnet" in score.reason.lower() or "10,001 tokens; at most 10,000 are aligned" in score.reason
    at_the_cap = answered(item("transcribe", references=("a word",)), "word " * limits.LONGEST)
    assert all(s.value is not None for s in wer.load().score([at_the_cap])[0])


def test_no_room_with_an_event_loop_can_align_texts() -> None:
    """Metrics run outside the event loop: what asks models and judges may not import them at all."""
    assert not any("metrics" in MAY[room] for room in ("models", "runs", "judges", "arena", "tasks"))
