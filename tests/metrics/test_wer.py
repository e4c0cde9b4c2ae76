"""Word error rate: parity with jiwer to the last digit, and what happens at the edges."""

from __future__ import annotations

import random

import jiwer
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from overtone.metrics.normalise import english
from overtone.metrics.wer import WRAPPER, align, load, raw_words
from tests.metrics.answers import answered, item

TEXT = "we could meet at the theatre at ten thirty on friday, okay? I won't be late Mr. Grey um 20 dollars"
WORDS = TEXT.split()


def pairs(n: int, seed: int) -> list[tuple[str, str]]:
    rng = random.Random(seed)
    out = []
    for _ in range(n):
        reference = rng.choices(WORDS, k=rng.randint(1, 18))
        heard = [rng.choice(WORDS) if rng.random() < 0.2 else w for w in reference if rng.random() > 0.1]
        heard += rng.choices(WORDS, k=rng.randint(0, 3))
        out.append((rng.choice([" ", "  ", " \n"]).join(reference), rng.choice([" ", "\t", " \t ", "\n"]).join(heard)))
    return out


def scores(reference: str, transcript: str) -> dict[str, float | None]:
    row = load().score([answered(item("transcribe", references=(reference,)), transcript)])[0]
    return {s.metric: s.value for s in row}


def test_raw_rates_equal_jiwers_for_each_of_1000_utterances() -> None:
    for reference, transcript in pairs(1000, 1):
        assert scores(reference, transcript)["wer_raw"] == pytest.approx(jiwer.wer(reference, transcript), abs=1e-12)


def test_normalised_rates_and_their_corpus_rate_equal_jiwers() -> None:
    kept = [(r, t) for r, t in pairs(1000, 2) if english(r).split()]
    assert len(kept) > 950
    rows = []
    for reference, transcript in kept:
        words = english(reference), english(transcript)
        score = load().score([answered(item("transcribe", references=(reference,)), transcript)])[0][0]
        output = jiwer.process_words(words[0], words[1])
        assert score.value == pytest.approx(output.wer, abs=1e-12)
        found = [score.detail[k] for k in ("hits", "substitutions", "deletions", "insertions")]
        assert found == [output.hits, output.substitutions, output.deletions, output.insertions]
        rows.append(score.detail)
    whole = jiwer.process_words([english(r).strip() for r, _ in kept], [english(t).strip() for _, t in kept])
    wrong = sum(int(row[k] or 0) for row in rows for k in ("substitutions", "deletions", "insertions"))
    assert wrong / sum(int(row["reference_words"] or 0) for row in rows) == pytest.approx(whole.wer, abs=1e-12)


@settings(derandomize=True, database=None)
@given(st.lists(st.sampled_from("abcd"), max_size=9), st.lists(st.sampled_from("abcd"), max_size=9))
def test_counts_always_account_for_every_word(reference: list[str], transcript: list[str]) -> None:
    found = align(reference, transcript)
    assert found.reference_words == len(reference)
    assert found.hits + found.substitutions + found.insertions == len(transcript)
    assert (found.errors == 0) == (reference == transcript)


def test_an_empty_transcript_is_all_deletions() -> None:
    first, second = load().score([answered(item("transcribe", references=("three small words",)), "  ")])[0]
    assert (first.value, second.value) == (1.0, 1.0)
    assert first.detail["deletions"] == 3


def test_an_empty_reference_is_unscored_with_that_reason() -> None:
    for references in ((), ("",), ("  ",)):
        for score in load().score([answered(item("transcribe", references=references), "words")])[0]:
            assert score.value is None
            assert score.reason == "empty reference"


def test_a_reference_of_fillers_alone_is_empty_only_after_normalisation() -> None:
    normalised, raw = load().score([answered(item("transcribe", references=("Hmm.",)), "Hmm.")])[0]
    assert (normalised.value, normalised.reason) == (None, "empty reference")
    assert raw.value == 0.0


def test_case_and_punctuation_count_raw_and_do_not_count_normalised() -> None:
    assert scores("Well, I'm fine!", "well i am fine") == {"wer": 0.0, "wer_raw": 1.0 + 1 / 3}


def test_raw_words_part_only_where_jiwer_parts_them() -> None:
    assert raw_words(" a\tb  c\n\nd ") == ["a\tb", "c", "d"]


@pytest.mark.parametrize(
    "text",
    [
        "The audio text is <we could meet at ten>",
        "Sure, here is the transcription: 'we could meet at ten'",
        'The speaker says: "We could meet at ten."',
        '"We could meet at ten."',
        "Transcription: we could meet at ten",
        "Here's the transcribed text:\n\nWe could meet at ten.",
    ],
)
def test_a_wrapper_is_flagged_and_never_stripped(text: str) -> None:
    score = load().score([answered(item("transcribe", references=("We could meet at ten.",)), text)])[0][1]
    assert score.detail["wrapped"] == 1
    assert score.value is not None and score.value > 0


@pytest.mark.parametrize("text", ["We could meet at ten.", "Sure, I can do that.", "The text is too small, isn't it?"])
def test_a_plain_transcript_is_not_flagged(text: str) -> None:
    assert not WRAPPER.search(text)


def test_signatures_name_the_normaliser() -> None:
    first, second = load().score([answered(item("transcribe", references=("a",)), "a")])[0]
    assert first.signature.startswith("wer|v2|norm:english-2,other=basic-1|split:space,unspaced=char")
    assert second.signature.startswith("wer_raw|v2|norm:none|split:jiwer,unspaced=char")


def test_only_transcription_is_scored() -> None:
    assert load().applies(item("transcribe"))
    assert not load().applies(item("choose")) and not load().applies(item("converse"))
