"""Before and after preferences: what chose the pairs is told apart from what did not, on scripts not learnt from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace
from numpy.typing import NDArray

from experiments.echat import preference_report
from experiments.echat.preference_report import Change, Pairs, of_predictions, of_runs, sentences
from overtone.arena.preferences import Preference, Side, Voter
from overtone.echat.data.labels import EMOTIONS
from overtone.echat.exam import answer_file
from overtone.echat.exam.answer_file import Head, Prediction
from overtone.runs.store import Store
from overtone.schema import Item, Reply, Score, Turn

HEAD = Head(answer_file.FORMAT, "full", 0, ("labels", "words", "plain"))


def embed(texts: Sequence[str]) -> NDArray[np.float32]:
    return np.ones((len(texts), 2), np.float32)


def rows(right: float, words: int, count: int = 60) -> list[Prediction]:
    """Replies of so many words; so large a share of the emotions is heard."""
    found = []
    for i in range(count):
        truth = EMOTIONS[i % 2]
        said = truth if i < right * count else EMOTIONS[2]
        likely = [0.0 if name == said else -9.0 for name in EMOTIONS]
        if said == EMOTIONS[2]:  # of the labels that are there, the wrong one
            likely[1 - i % 2] = -1.0
        reply = " ".join(["so"] * (words + i % 3))
        found.append(
            Prediction(
                f"k{i}", "seen", f"g{i}", question=f"words of {i}", reply="Fine.", heard={"emotion": truth},
                scored={"emotion": likely}, words=f"words of {i}", said={"plain": reply},
            )
        )  # fmt: skip
    return found


def test_label_accuracy_words_and_length_are_compared_by_script() -> None:
    found, left = of_predictions((HEAD, rows(0.9, 5)), (HEAD, rows(0.4, 9)), Pairs(), embed=embed, draws=300)
    by = {change.name: change for change in found}
    heard, length, wer = by["emotion, unweighted recall"], by["words of a reply"], by["word error rate"]
    assert (heard.before, heard.after, heard.verdict) == (pytest.approx(0.9), pytest.approx(0.4), "worse")
    assert (length.difference, length.verdict) == (pytest.approx(4.0), "moved")
    assert (wer.before, wer.after, wer.verdict) == (0.0, 0.0, "open")
    assert left == 0 and heard.scripts == 60


def test_a_model_that_did_not_change_did_not_change() -> None:
    """Also where it was asked in other ways too, which are compared with its own reply within each of the two."""
    head = Head(answer_file.FORMAT, "full", 0, ("words", "plain", "label", "deaf"))
    same = [replace(row, said={**row.said, "label": "so", "deaf": "so it is and so it stays"}) for row in rows(1, 5)]
    found, _ = of_predictions((head, same), (head, same), Pairs(), embed=embed, draws=50)
    assert "words of a reply" in {change.name for change in found}
    assert {change.difference for change in found} == {0.0}


def test_records_whose_script_or_words_were_learnt_from_are_left_out() -> None:
    learnt = Pairs(frozenset({"g1", "g2"}), frozenset({"words of 3"}))
    found, left = of_predictions((HEAD, rows(1, 5)), (HEAD, rows(1, 5)), learnt, embed=embed, draws=50)
    assert left == 3 and {change.scripts for change in found} == {57}


def run(folder: Path, values: Mapping[str, Sequence[float]]) -> Path:
    with Store.create(folder) as store:
        about = {"fit": {"low": 1, "high": 5, "better": "higher"}, "false": {"low": 0, "high": 1, "better": "lower"}}
        store.set_meta({"benchmark": "toy", "model": folder.name, "rubrics": msgspec.json.encode(about).decode()})
        for n in range(len(next(iter(values.values())))):
            turn = Turn(None, f"words of {n}")
            item = Item(f"i{n}", "toy", 3, "converse", "conversation", f"c{n}", f"g{n}", "target", (turn,))
            store.plan([(item, ["enhance/audio"])], 1)
        store.commit()
        for n, ask in enumerate(store.open_asks(0, 1000)):
            store.add_reply(ask, 0, Reply("x"), sent=b"[]", latency=1.0, attempts=1)
            store.add_scores([(ask.id, Score(name, f"{name}|v1", given[n])) for name, given in values.items()])
        store.commit()
    return folder


def test_another_judge_is_told_apart_from_the_one_that_chose(tmp_path: Path) -> None:
    before = run(tmp_path / "b", {"fit@mine": [3.0] * 12, "ves@mine": [3.0] * 12, "fit@other": [3.0, 4.0] * 6})
    after = run(tmp_path / "a", {"fit@mine": [4.0, 5.0] * 6, "ves@mine": [3.0] * 12, "fit@other": [3.0, 4.0] * 6})
    pairs = Pairs(frozenset({"g0"}), frozenset(), frozenset({("score", "fit@mine")}))
    found, left = of_runs(before, after, pairs)
    by = {change.name: change for change in found}
    assert left == 1 and {change.n for change in found} == {11}
    assert by["fit@mine"].chose and by["ves@mine"].chose and not by["fit@other"].chose  # the same judge is no other
    assert by["fit@mine"].difference == pytest.approx(np.mean([2, 1] * 5 + [2]), abs=1e-3)
    assert by["fit@mine"].verdict == "better" and by["fit@other"].verdict == "open"
    said = sentences(found, ["score fit@mine"])
    assert said[0].startswith("Only what chose the pairs has risen: fit@mine +1.5")
    assert "the score was learnt, not that the replies are better" in said[0]


def change(name: str, difference: float, better: str = "higher", chose: bool = False, spread: float = 0.1) -> Change:
    return Change(
        name, better, 0.5, 0.5 + difference, difference, difference - spread, difference + spread, 9, 9, chose
    )


def test_what_is_said_follows_from_the_intervals() -> None:
    both = sentences([change("fit", 1, chose=True), change("recall", 0.3)], [])
    assert both[0].startswith("What chose the pairs has risen: fit +1") and "recall +0.3 [+0.2, +0.4]" in both[0]
    alone = sentences([change("recall", 0.3), change("errors", 0.2, "lower")], ["person ann"])
    assert alone[0].startswith("Better, by measures without a part") and "errors" not in alone[0]
    assert "What chose the pairs (person ann) was not measured here." in alone
    assert "Worse: errors +0.2 [+0.1, +0.3]." in alone
    none = sentences([change("fit", 0.05, chose=True), change("words", 3, "neither")], [])
    assert none[0] == "Nothing is better for certain." and "not risen for certain: fit" in none[1]
    assert none[2].startswith("Moved, for better or worse: words +3")


def test_the_script_reads_files_and_says_what_is_wrong(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setattr("overtone.embedded.embedder.embed", embed)
    monkeypatch.setattr("overtone.embedded.embedder.identity", lambda: "test")
    for name, right in (("before", 0.5), ("after", 0.95)):
        answer_file.write(tmp_path / f"{name}.jsonl.gz", HEAD, rows(right, 5))
    side = Side("r", "m", "x")
    pair = Preference("p", "train", "b", "i", "c", "g0", "", "k", "", "", "other words", side, side,
                      (Voter("ann", "person", "chosen"),), {}, 1.0, 1.0)  # fmt: skip
    (tmp_path / "pairs.jsonl").write_bytes(msgspec.json.encode(pair) + b"\n")
    words = [str(tmp_path / "before.jsonl.gz"), str(tmp_path / "after.jsonl.gz"), "--draws", "100"]
    out = ["--pairs", str(tmp_path / "pairs.jsonl"), "--json", str(tmp_path / "out.json")]
    assert preference_report.main([*words, *out]) == 0
    printed = capsys.readouterr().out
    assert "| emotion, unweighted recall ↑ | 0.49" in printed and "1 records left out" in printed
    assert "Better, by measures without a part in choosing the pairs: emotion" in printed
    assert "(person ann) was not measured here" in printed
    assert msgspec.json.decode((tmp_path / "out.json").read_bytes())["chose"] == ["person ann"]
    assert preference_report.main([*words, "--parts", "nowhere"]) == 2
    assert "no record is left" in capsys.readouterr().err
    (tmp_path / "pairs.jsonl").write_text("{}\n")
    assert preference_report.main([*words, *out]) == 2 and "not a file of preference pairs" in capsys.readouterr().err


def test_measures_of_the_same_kind_are_no_others_word() -> None:
    by_likeness = Pairs(voters=frozenset({("score", "semsim")}))
    assert by_likeness.chose("rouge_l") and by_likeness.chose("direction") and not by_likeness.chose("wer")
    assert not by_likeness.chose("fit@judge")
    by_vote = Pairs(voters=frozenset({("judge", "gpt"), ("person", "ann")}))
    assert by_vote.chose("fit@gpt") and not by_vote.chose("fit@gemini") and not by_vote.chose("semsim")
