"""The summary against numbers worked out by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from overtone.errors import StoreError
from overtone.results.load import open_run, signature_differences
from overtone.results.summary import ConditionSummary, Summary, summarise
from overtone.runs.store import Store
from overtone.schema import THOUGHT, Reply, Score
from tests.results.small import Maker, item


def _summary(folder: Path) -> Summary:
    with Store.read(folder) as store:
        return summarise(store)


def _only(folder: Path) -> ConditionSummary:
    found = _summary(folder).conditions
    assert len(found) == 1
    return found[0]


def test_accuracy_is_right_over_answered_and_only_missing_replies_move_the_bounds(tmp_path: Path) -> None:
    make = Maker(tmp_path)
    for n, (letter, status) in enumerate(
        [("A", "parsed"), ("A", "parsed"), ("B", "parsed"), (None, "hedged"), (None, "refused")]
    ):
        make.choice(item(f"q{n}", "choose", script=f"s{n}"), letter, status)
    make.failed(item("q5", "choose", script="s5"))
    make.pending(item("q6", "choose", script="s6"))
    found = _only(make.done()).voice
    assert found is not None
    e = found.questions
    assert (e.value, e.scored, e.asked, e.missing) == (2 / 5, 5, 7, 2)
    assert (e.best, e.worst) == (pytest.approx(4 / 7), pytest.approx(2 / 7))
    assert e.low is not None and e.high is not None and 0 < e.low < 0.4 < e.high < 1
    assert found.of_parsed.value == pytest.approx(2 / 3)
    assert found.extraction_failures == pytest.approx(2 / 5)
    assert found.statuses == {"parsed": 3, "hedged": 1, "refused": 1}
    assert found.chance == 0.25
    assert found.corrected.value == pytest.approx((0.4 - 0.25) / 0.75)
    assert (found.right, found.parsed) == (2, 3)


def test_the_mean_over_tasks_counts_each_task_once_and_chance_follows_the_options(tmp_path: Path) -> None:
    make = Maker(tmp_path)
    for n in range(8):
        make.choice(item(f"e{n}", "choose", category="emotion", script=f"s{n}"), "A")
    for n in range(2):
        make.choice(item(f"g{n}", "choose", category="gender", script=f"s{n}", options=2), "B")
    found = _only(make.done())
    assert found.voice is not None
    assert found.voice.questions.value == pytest.approx(0.8)
    assert found.voice.tasks.value == pytest.approx(0.5)
    assert found.voice.chance == pytest.approx((8 * 0.25 + 2 * 0.5) / 10)
    assert [(t.key, t.accuracy.questions.value) for t in found.tasks] == [("gender", 0.0), ("emotion", 1.0)]


def test_a_question_without_a_right_answer_is_not_counted(tmp_path: Path) -> None:
    make = Maker(tmp_path)
    make.choice(item("q", "choose"), "A")
    make.answered(item("open", "choose", gold=""), "B", Score("accuracy", "accuracy|v1", None, "no gold answer"))
    found = _only(make.done()).voice
    assert found is not None
    assert found.questions.asked == 1


def test_levels_are_told_apart_and_a_level_not_asked_is_absent(tmp_path: Path) -> None:
    make = Maker(tmp_path)
    make.choice(item("q", "choose", level=2, category="intent"), "B")
    found = _only(make.done())
    assert found.voice is None
    assert found.reasoning is not None and found.reasoning.questions.value == 0
    assert "voice_accuracy" not in found.measures
    assert "wer_raw" not in found.measures


def test_word_error_rates_by_utterance_and_by_corpus_with_bounds(tmp_path: Path) -> None:
    make = Maker(tmp_path)
    make.transcript(item("a", "transcribe", category="asr", script="s1", references=("w " * 10,)), 5, 10)
    make.transcript(item("b", "transcribe", category="asr", script="s2", references=("w " * 30,)), 0, 30)
    make.failed(item("c", "transcribe", category="asr", script="s3", references=("w " * 10,)))
    found = _only(make.done()).measures
    assert found["wer_raw"].value == pytest.approx(0.25)
    assert (found["wer_raw"].best, found["wer_raw"].worst) == (pytest.approx(0.5 / 3), pytest.approx(1.5 / 3))
    assert found["wer_corpus"].value == pytest.approx(5 / 40)
    assert (found["wer_corpus"].best, found["wer_corpus"].worst) == (pytest.approx(5 / 50), pytest.approx(15 / 50))
    assert found["wer_corpus"].low is not None and found["wer_corpus"].low >= 0


def test_an_unscored_reply_is_missing_with_its_reason_in_the_ledger(tmp_path: Path) -> None:
    make = Maker(tmp_path)
    one = item("c", "converse", level=3, category="conversation")
    make.answered(one, "hello there", Score("semsim", "semsim|v1", None, "needs overtone[metrics]"))
    summary = _summary(make.done())
    e = summary.conditions[0].measures["reply_semsim"]
    assert (e.value, e.scored, e.asked, e.best, e.worst) == (None, 0, 1, 1.0, 0.0)
    assert [(r.reason, r.count) for r in summary.ledger.of("unscored")] == [("semsim: needs overtone[metrics]", 1)]


def test_conversation_counts_words_sound_latency_and_notes(tmp_path: Path) -> None:
    make = Maker(tmp_path)
    kind = {"level": 3, "category": "conversation"}
    make.answered(
        item("c1", "converse", **kind), "one two three", audio=b"RIFFsound", notes=("fell back", THOUGHT + "so")
    )
    make.answered(item("c2", "converse", script="s2", **kind), "one")
    make.failed(item("c3", "converse", script="s3", **kind), "server")
    run = make.done()
    found = _only(run).conversation
    assert found is not None
    assert (found.asked, found.replies, found.words, found.with_audio) == (3, 2, 2.0, 1)
    assert found.latency_median == 1.0
    assert found.notes == {"fell back": 1}
    assert [row.reason for row in _summary(run).ledger.of("note")] == ["fell back"]


def test_the_ledger_counts_reasons_refusals_unreadable_replies_and_pending_asks(tmp_path: Path) -> None:
    make = Maker(tmp_path)
    for n in range(5):
        make.failed(item(f"f{n}", "choose", script=f"f{n}"), "timeout")
    make.failed(item("g", "choose"), "server")
    make.choice(item("h", "choose"), None, "hedged")
    make.answered(item("r", "converse", level=3), "I cannot", refused=True)
    make.pending(item("p", "choose"))
    summary = _summary(make.done())
    assert (summary.asked, summary.answered, summary.failed, summary.pending) == (9, 2, 6, 1)
    assert [(r.reason, r.count) for r in summary.ledger.of("failure")] == [("timeout", 5), ("server", 1)]
    assert len(summary.ledger.of("failure")[0].places) == 3
    assert summary.ledger.of("extraction")[0].reason == "hedged"
    (place,) = summary.ledger.of("extraction")[0].places
    assert (place.item, place.detail) == ("h", "The answer is None"), "also where replies are not kept in memory"
    assert summary.ledger.of("refusal")[0].places[0].detail == "I cannot"
    assert summary.ledger.pending == 1


def test_tables_by_cue_dimension_and_style_hold_what_was_asked(tmp_path: Path) -> None:
    make = Maker(tmp_path)
    make.choice(item("a", "choose", cue="sad"), "A")
    make.choice(item("b", "choose", cue="rain", dimension="environment", style="alternative"), "B")
    make.choice(item("c", "choose", cue="", style="neutral"), "A")
    found = _only(make.done())
    assert [(r.key, r.measures["voice_accuracy"].value) for r in found.cues] == [
        ("sad", 1),
        ("rain", 0),
        ("neutral", 1),
    ]
    assert [r.key for r in found.styles] == ["target", "alternative", "neutral"]
    assert [r.key for r in found.dimensions] == ["paralinguistic", "environment"]
    assert found.cues[0].parent == "emotion"


def test_repeats_of_one_script_do_not_narrow_its_interval(tmp_path: Path) -> None:
    once, often = Maker(tmp_path / "once"), Maker(tmp_path / "often")
    for n in range(12):
        letter = "A" if n % 3 else "B"
        once.choice(item(f"q{n}", "choose", script=f"s{n}"), letter)
        for k in range(4):
            often.choice(item(f"q{n}.{k}", "choose", script=f"s{n}"), letter)
    a, b = (_only(m.done()).measures["voice_accuracy"] for m in (once, often))
    assert a.value == b.value
    assert a.low == pytest.approx(b.low)
    assert (a.scripts, b.scripts) == (12, 12)


def test_the_newest_signature_is_used_and_the_other_named(tmp_path: Path) -> None:
    make = Maker(tmp_path)
    one = item("q", "choose")
    old, new = Score("accuracy", "accuracy|v1|x", 0.0), Score("accuracy", "accuracy|v2|x", 1.0)
    make.answered(one, "A", new, old)
    summary = _summary(make.done())
    assert summary.signatures["accuracy"] == "accuracy|v2|x"
    assert summary.conditions[0].measures["voice_accuracy"].value == 1
    assert any("accuracy|v1|x" in note for note in summary.notes)


def test_runs_measured_differently_are_said_not_to_compare(tmp_path: Path) -> None:
    folders = []
    for version in (1, 2):
        make = Maker(tmp_path / str(version))
        make.choice(item("q", "choose"), "A", version=version)
        folders.append(make.done())
    readings = [open_run(folder) for folder in folders]
    assert [metric for metric, _ in signature_differences(readings)] == ["accuracy", "accuracy_strict"]
    assert signature_differences(readings[:1]) == []


def test_an_empty_run_has_an_empty_summary(tmp_path: Path) -> None:
    summary = _summary(Maker(tmp_path).done())
    assert (summary.asked, summary.conditions, summary.ledger.rows) == (0, [], [])


def test_a_damaged_store_is_a_clear_error(tmp_path: Path) -> None:
    make = Maker(tmp_path)
    make.choice(item("q", "choose"), "A")
    make.store.db.execute("UPDATE items SET body = '{\"id\": 3}'")
    with pytest.raises(StoreError, match=r"run\.db contains data that Overtone did not write"):
        open_run(make.done())


def test_a_turn_answered_before_a_failure_does_not_count_as_answered(tmp_path: Path) -> None:
    make = Maker(tmp_path)
    one = item("c", "converse", level=3, turns=(item("x", "converse").turns[0],) * 2)
    ask = make.ask(one)
    make.store.add_reply(ask, 0, Reply("first"), sent=b"[]", latency=1.0, attempts=1)
    make.store.add_failure(ask, 1, "server", "gone", 1)
    found = _only(make.done()).conversation
    assert found is not None
    assert (found.replies, found.words) == (0, None)
