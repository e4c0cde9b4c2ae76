"""Corpus scores in the summary come from summed details, not from means, with intervals by script."""

from __future__ import annotations

from pathlib import Path

import pytest

from overtone.metrics.bleu import Bleu
from overtone.metrics.lengths import Lengths
from overtone.results import corpus_scores
from overtone.results.load import Answer
from overtone.results.summary import Conversation, summarise
from overtone.runs.store import ANSWERED, Store
from overtone.schema import Score, Turn
from overtone.scores import built_in
from overtone.stats import cluster
from tests.metrics.answers import answered
from tests.metrics.answers import item as conversation
from tests.results.small import Maker, item

PAIRS = [
    ("I am so sorry to hear that you are ill.", "I am sorry to hear that you are so ill."),
    ("What a lovely day it is!", "It is a lovely day, what a day it is."),
    ("You sound tired; shall we talk tomorrow?", "Shall we talk tomorrow? You sound very tired."),
    ("No.", "No, I do not think that this is a good idea at all."),
]


def scored(reply: str, reference: str) -> list[Score]:
    one = answered(conversation("converse", references=(reference,)), reply)
    return [score for metric in (Bleu(), Lengths()) for score in metric.score([one])[0]]


def errors(substitutions: int, words: int) -> Score:
    counts = {"hits": words - substitutions, "substitutions": substitutions, "deletions": 0, "insertions": 0}
    return Score("consistency_wer", "c|v1", substitutions / words, "", {**counts, "reference_words": words})


def measured(folder: Path) -> Conversation:
    with Store.read(folder) as store:
        found = summarise(store).conditions[0].conversation
    assert found is not None
    return found


@pytest.fixture
def run(tmp_path: Path) -> Conversation:
    make = Maker(tmp_path)
    for n, ((reply, reference), wer) in enumerate(zip(PAIRS, [(0, 2), (1, 10), (0, 8), (3, 4)], strict=True)):
        one = item(f"c{n}", "converse", level=3, category="conversation", script=f"s{n}")
        make.answered(one, reply, *scored(reply, reference), errors(*wer))
    make.failed(item("c9", "converse", level=3, category="conversation", script="s9"))
    return measured(make.done())


def test_corpus_bleu_is_that_of_all_replies_as_one_text(run: Conversation) -> None:
    found = run.measures["bleu_corpus"]
    single = [s.value for pair in PAIRS for s in scored(*pair) if s.metric == "bleu_corpus"]
    assert found.value == pytest.approx(0.23757465, abs=1e-6), "sacreBLEU 2.6 says so"
    assert abs(found.value - sum(v or 0 for v in single) / 4) > 0.01
    assert found.low is not None and found.high is not None and 0 <= found.low < found.value < found.high <= 1
    assert (found.scored, found.asked, found.scripts, found.best) == (4, 5, 4, None)


def test_distinctness_counts_a_shared_word_once_and_has_a_note_but_no_interval(run: Conversation) -> None:
    words = " ".join(reply for reply, _ in PAIRS).lower()
    found = run.measures["reply_distinct_1"]
    counted = ["".join(c for c in w if c.isalpha()) for w in words.split()]
    assert found.value == pytest.approx(len(set(counted)) / len(counted))
    assert found.low is None and "equal numbers" in found.note and found.scored == 4
    assert run.measures["reply_distinct_2"].scored == 3, "one word has no pair"


def test_the_voices_word_errors_are_summed(run: Conversation) -> None:
    found = run.measures["consistency_wer"]
    assert found.value == pytest.approx(4 / 24)
    assert found.low is not None and 0 <= found.low < 4 / 24


def test_other_metrics_stay_means(run: Conversation) -> None:
    single = [s.value or 0.0 for pair in PAIRS for s in scored(*pair) if s.metric == "bleu"]
    assert run.measures["bleu"].value == pytest.approx(sum(single) / 4)
    assert run.measures["reply_words"].value == pytest.approx(sum(len(r.split()) for r, _ in PAIRS) / 4)


def test_yes_and_no_have_the_interval_of_shares_and_no_interval_leaves_its_scale(tmp_path: Path) -> None:
    make = Maker(tmp_path)
    for n in range(8):
        told = {"template_opening": 0.0, "analytic": float(n == 0), "utmos": 5.0 - 2 * (n == 0), "stranger": 9.0 * n}
        scores = [Score(name, f"{name}|v1", value) for name, value in told.items()]
        make.answered(item(f"c{n}", "converse", level=3, category="conversation", script=f"s{n}"), "hello", *scores)
    found = measured(make.done()).measures
    none, one = found["template_opening"], found["analytic"]
    share = cluster.proportion([0.0] * 8, [str(n) for n in range(8)])
    assert (none.value, none.low, none.high) == (0.0, 0.0, pytest.approx(share.high)) and share.high > 0.3
    assert one.value == 1 / 8 and one.low is not None and one.high is not None and 0 < one.low < 1 / 8 < one.high < 1
    assert (found["utmos"].value, found["utmos"].high) == (4.75, 5.0)
    assert found["stranger"].low is not None and found["stranger"].low > 0 and (found["stranger"].high or 0) > 45


def test_where_nothing_is_scored_there_is_no_value(tmp_path: Path) -> None:
    make = Maker(tmp_path)
    nothing = [Score(name, f"{name}|v1", None, "no reference") for name, info in built_in().items() if info.corpus]
    make.answered(item("c", "converse", level=3, category="conversation"), "hello", *nothing)
    for estimate in measured(make.done()).measures.values():
        assert (estimate.value, estimate.low, estimate.scored, estimate.asked) == (None, None, 0, 1)


def test_a_reply_to_a_turn_is_added_up_with_others_to_it() -> None:
    turns = (Turn(None), Turn(None))
    rows = []
    for n, (first, last) in enumerate([((1, 4), (0, 4)), ((2, 2), (1, 4))]):
        one = item(f"d{n}", "converse", script=f"s{n}", turns=turns)
        scores, earlier = {"consistency_wer": errors(*last)}, {0: {"consistency_wer": errors(*first)}}
        rows.append(Answer(n, one, "task/audio", 0, ANSWERED, scores=scores, earlier=earlier))
    info = built_in()["consistency_wer"]
    found = [corpus_scores.over("consistency_wer", rows, info, turn).value for turn in (0, 1, None)]
    assert found == [3 / 6, 1 / 8, 1 / 8]


def test_every_metric_said_to_be_a_corpus_score_is_one() -> None:
    assert {info.reduce for info in built_in().values() if info.corpus} == set(corpus_scores.REDUCERS)
