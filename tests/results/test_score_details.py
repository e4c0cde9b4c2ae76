"""Stored scores of another program: whatever their details hold, they are counted as unscored and nothing breaks."""

from __future__ import annotations

from pathlib import Path

import pytest

from overtone.findings.analysis import compute_findings
from overtone.metrics.bleu import Bleu
from overtone.metrics.lengths import Lengths
from overtone.report.page import write_report
from overtone.results.load import open_run
from overtone.results.score_details import NEEDED, lacking, needed_by
from overtone.results.summary import summarise_reading
from overtone.schema import Score
from overtone.scores import built_in
from tests.metrics.answers import answered
from tests.metrics.answers import item as conversation
from tests.results.small import RUBRICS, Maker, item

Detail = dict[str, float | int | str | None]
NAMES = sorted({name for needed in NEEDED.values() for name in needed})
OTHER = ("status", "answer", "rule", "values", "unread", "why", "reader", "transcript", "sim_target", "f0_hz")
STRANGE: dict[str, Detail] = {
    "nothing": {},
    "null": dict.fromkeys((*NAMES, *OTHER)),
    "texts": dict.fromkeys((*NAMES, *OTHER), "%%%"),
    "numbers": dict.fromkeys((*NAMES, *OTHER), -7.5),
    "huge": dict.fromkeys(NAMES, 1e308) | dict.fromkeys(OTHER, 1e30),
}


@pytest.mark.parametrize("kind", STRANGE)
def test_strange_details_break_no_table_no_finding_and_no_report(tmp_path: Path, kind: str) -> None:
    run = Maker(tmp_path / "run")
    run.store.set_meta({"benchmark": "toy", "model": "m", "rubrics": RUBRICS})
    detail = STRANGE[kind]
    for n in range(12):
        scores = [Score(name, f"{name}|v1", 0.5, detail=detail) for name in built_in()]
        scores.append(Score("cspeechrel@j", "cspeechrel@j|v1", 3.0, detail=detail))
        for style in ("target", "alternative"):
            talk = item(f"c{n}{style}", "converse", level=3, script=f"s{n}", style=style, case=f"s{n}/{style}")
            run.answered(talk, "well", *scores, condition="enhance/audio", audio=b"RIFF")
        run.answered(item(f"q{n}", "choose", script=f"s{n}"), "A", Score("accuracy", "a|v1", 1.0, detail=detail))
        heard = item(f"t{n}", "transcribe", category="asr", script=f"s{n}")
        run.answered(heard, "one", *(Score(m, f"{m}|v1", 0.5, detail=detail) for m in ("wer", "wer_raw")))
    folder = run.done()
    reading = open_run(folder, light=True)
    summary = summarise_reading(reading)
    (talked,) = (c.conversation for c in summary.conditions if c.conversation is not None)
    for name in ("bleu_corpus", "reply_distinct_1", "consistency_wer"):
        assert (talked.measures[name].value, talked.measures[name].missing) == (None, 24)
    reasons = [row.reason for row in summary.ledger.rows if row.kind == "unscored"]
    assert any(reason.startswith("bleu_corpus: its detail lacks reply_tokens") for reason in reasons)
    compute_findings([reading])
    assert write_report([folder], tmp_path / "report.html").is_file()


def test_scores_of_our_own_metrics_lack_nothing() -> None:
    one = answered(conversation("converse", references=("I am sorry to hear that.",)), "I am so sorry.")
    scores = [score for metric in (Bleu(), Lengths()) for score in metric.score([one])[0]]
    assert {score.metric for score in scores} >= {"bleu_corpus", "reply_distinct_1", "reply_distinct_2"}
    assert not [
        (score.metric, fields) for score in scores if (fields := lacking(score, needed_by(built_in()[score.metric])))
    ]
