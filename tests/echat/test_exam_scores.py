"""Scores of answers written by hand, against numbers worked out by hand."""

from __future__ import annotations

import gzip
import math
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace
from numpy.typing import NDArray

from experiments.echat import repeat_tables, result_tables
from overtone.cli import main
from overtone.echat.data.labels import AGES, EMOTIONS, EVENTS
from overtone.echat.exam import answer_file, counts, exam_scores, tallies
from overtone.echat.exam.answer_file import Head, Prediction
from overtone.echat.exam.exam_scores import Scores
from overtone.echat.exam.tallies import Measure
from overtone.errors import DataError

SORRY, NICE, FINE = "I am sorry.", "How nice!", "All right."


def embed(texts: Sequence[str]) -> NDArray[np.float32]:
    """SORRY and NICE are far apart, every other text lies halfway."""
    places = {SORRY: (1.0, 0.0), NICE: (0.0, 1.0)}
    return np.array([places.get(text, (0.7, 0.7)) for text in texts], np.float32)


def vectors(rows: Sequence[Prediction]) -> dict[str, NDArray[np.float32]]:
    known = sorted(tallies.texts(rows))
    return dict(zip(known, embed(known), strict=True))


def thought(emotion: str, reply: str, spoken: str = "NEUTRAL", words: str = "it rains", event: str = "OTHER") -> str:
    return (
        f"<think>User's words: {words}, Age: <ADULT>, Gender: <MALE>, Emotion: <{emotion}>, Sound Event: <{event}>, "
        f"Predicted reply emotion: <{spoken}><think end><{spoken}>{reply}"
    )


def likely(best: str, inventory: Sequence[str] = EMOTIONS, second: str = "") -> list[float]:
    return [-1.0 if name == best else -2.0 if name == second else -9.0 for name in inventory]


def row(key: str, emotion: str, **more: object) -> Prediction:
    """A query of the group its key begins with."""
    reply = {"anger": SORRY, "happy": NICE}.get(emotion, FINE)
    given = {"group": key[0], "kind": "emotion", "question": "it rains", "reply": reply, "heard": {"emotion": emotion}}
    return Prediction(key, "seen", **{**given, **more})  # type: ignore[arg-type]


def values(found: tallies.Tallies, name: str, source: str, kind: tallies.Kind = "mean", part: str = "seen") -> float:
    tally = found[Measure(part, name, source)]
    return float(tallies.value(kind, np.sum(list(tally.by.values()), 0)))


def test_labels_are_counted_as_said_as_likeliest_and_as_thought() -> None:
    rows = [
        row("a1", "anger", named={"emotion": "<ANGER>"}, scored={"emotion": likely("anger")}),
        row("a2", "anger", named={"emotion": "angry"}, scored={"emotion": likely("sad", second="anger")}),
        row("b1", "anger", named={"emotion": "<FURIOUS>"}, scored={"emotion": likely("happy")}),
        row("b2", "happy", named={"emotion": "<HAPPY>"}, scored={"emotion": likely("happy")}),
    ]
    rows[3] = replace(rows[3], said={"label": thought("SAD", NICE)})
    found = tallies.count(rows, vectors(rows))
    assert values(found, "emotion", "named", "accuracy") == pytest.approx(3 / 4)
    assert values(found, "emotion", "named", "uar") == pytest.approx((2 / 3 + 1) / 2)
    # Nobody is sad here, so the second row's choice is anger.
    assert values(found, "emotion", "chosen", "accuracy") == pytest.approx(3 / 4)
    assert values(found, "emotion", "thought", "accuracy") == 0
    assert found[Measure("seen", "emotion", "named")].chance == {"uar": 0.5, "accuracy": 0.75}


def test_a_label_that_was_not_known_is_not_asked() -> None:
    found = tallies.count([row("a1", "anger", named={"emotion": "<ANGER>"})], {})
    assert {key.name for key in found} == {"emotion"}


def test_word_errors_are_summed_over_words() -> None:
    rows = [row("a1", "anger", words="it snows"), row("b1", "anger", question="the long day", words="the long day")]
    rows += [row("c1", "anger", words="")]
    found = tallies.count(rows, {})
    assert values(found, "wer", "words") == pytest.approx((1 + 0 + 2) / 7)


def test_a_reply_points_to_its_delivery_or_to_another() -> None:
    rows = [
        row("a1", "anger", said={"plain": SORRY, "deaf": NICE}),
        row("a2", "happy", said={"plain": NICE, "deaf": NICE}),
        row("b1", "anger", said={"plain": "Hm.", "deaf": NICE}),  # halfway between both
        row("b2", "happy", said={"plain": "", "deaf": NICE}),  # nothing said is wrong
        row("c1", "anger", said={"plain": SORRY, "deaf": SORRY}),  # said in one way only
    ]
    found = tallies.count(rows, vectors(rows))
    assert values(found, "direction", "plain") == pytest.approx((1 + 1 + 0.5 + 0) / 4)
    assert values(found, "direction", "deaf") == 0.5
    assert values(found, "changed", "plain") == 1 and values(found, "changed", "deaf") == 0
    assert values(found, "direction.emotion", "deaf") == 0.5
    assert values(found, "reply_words", "plain") == pytest.approx((3 + 2 + 1 + 0 + 3) / 5)


@pytest.mark.parametrize(
    ("kind", "name"), [("emotion", "emotion"), ("scene", "event"), ("age+scene", "multi"), ("", "other")]
)
def test_categories_are_those_of_echat_eval(kind: str, name: str) -> None:
    assert tallies.category(kind) == name


def test_thoughts_are_read_and_what_cannot_be_read_is_counted() -> None:
    rows = [
        row("a1", "anger", reply_emotion="apologetic", said={"label": thought("ANGER", SORRY, "APOLOGETIC")}),
        row("a2", "happy", reply_emotion="happy", said={"label": thought("HAPPY", NICE, "SAD", words="it snows")}),
        row("b1", "neutral", reply_emotion="neutral", said={"label": thought("NEUTRAL", FINE, event="COUGH")}),
        row("b2", "neutral", reply_emotion="neutral", said={"label": thought("ANGER", FINE, "SAD")}),
        row("c1", "neutral", reply_emotion="neutral", said={"label": thought("NEUTRAL", FINE)}),
        row("c2", "neutral", reply_emotion="neutral", said={"label": "<think>User's words: it"}, cut=("label",)),
    ]
    found = tallies.count(rows, vectors(rows))
    assert values(found, "malformed", "label") == pytest.approx(1 / 6)
    assert values(found, "cut", "label") == pytest.approx(1 / 6)
    assert values(found, "reply_emotion", "label", "accuracy") == pytest.approx(3 / 6)
    assert values(found, "reply_emotion", "label", "uar") == pytest.approx((1 + 0 + 2 / 4) / 3)
    assert values(found, "false_reply", "label") == pytest.approx(1 / 4)
    assert values(found, "false_cue", "thought") == pytest.approx(2 / 4)  # a cough and an anger that are not there
    assert values(found, "wer", "thought") == pytest.approx((1 + 1) / 12)


def test_a_feeling_in_an_even_voice_is_a_false_cue() -> None:
    names = ("<NEUTRAL>", "<SAD>", "<OTHER>", "hm")
    rows = [row(f"a{i}", "neutral", named={"emotion": name}) for i, name in enumerate(names)]
    assert values(tallies.count(rows, {}), "false_cue", "named") == pytest.approx(1 / 4)


def test_a_spoken_reply_is_held_against_its_text() -> None:
    rows = [row("a1", "anger", spoken=thought("ANGER", "so it goes"), codes=(1, 2))]
    found = tallies.count(rows, {}, lambda r: "so it went")
    assert values(found, "speech_wer", "speech") == pytest.approx(1 / 3)
    silent = tallies.count([row("a1", "anger", codes=(1, 2))], {}, lambda r: "so it went")
    assert not silent  # speech without a text cannot be held against it


def test_unweighted_recall_takes_the_mean_of_the_labels_that_are_there() -> None:
    sums = np.array([[3.0, 0.0, 1.0, 4.0, 0.0, 1.0], [0, 0, 0, 0, 0, 0]])
    assert tallies.value("uar", sums)[0] == pytest.approx((3 / 4 + 1) / 2)
    assert tallies.value("accuracy", sums)[0] == pytest.approx(4 / 5)
    assert math.isnan(tallies.value("uar", sums)[1]) and math.isnan(tallies.value("mean", sums)[1])


# ── arms ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def run(arm: str, seed: int, right: float, groups: int = 60) -> tuple[Head, list[Prediction]]:
    """A run that names so many of the queries rightly, and answers them so."""
    rng = np.random.default_rng([seed, len(arm)])
    rows = []
    for g in range(groups):
        for emotion, other in (("anger", "happy"), ("happy", "anger")):
            told = emotion if rng.random() < right else other
            reply = SORRY if told == "anger" else NICE
            made = {"group": f"g{g}", "named": {"emotion": f"<{told.upper()}>"}, "said": {"deaf": SORRY}}
            mode = "plain" if arm == "no-think" else "label"
            made["said"][mode] = reply if mode == "plain" else thought(told.upper(), reply)  # type: ignore[index]
            rows.append(row(f"{g}-{emotion}", emotion, **made))
    modes = ("labels", "plain", "deaf") if arm == "no-think" else ("labels", "label", "deaf")
    return Head(1, arm, seed, modes), rows


def together(runs: Sequence[tuple[Head, list[Prediction]]], draws: int = 1000) -> Scores:
    return exam_scores.score(counts.count(runs, embed=embed), draws=draws)


@pytest.fixture(scope="module")
def scored() -> Scores:
    runs = [run("no-think", seed, 0.7) for seed in (1, 0)] + [run("full", seed, 0.9) for seed in (0, 1, 2)]
    return together(runs, draws=400)


def one(found: Scores, arm: str, measure: str, source: str) -> exam_scores.Row:
    (hit,) = [r for r in found.rows if (r.arm, r.measure, r.source) == (arm, measure, source)]
    return hit


def test_an_arms_score_is_that_of_its_seeds_together_with_an_interval_around_it(scored: Scores) -> None:
    assert scored.arms == {"full": [0, 1, 2], "no-think": [0, 1]}
    assert scored.parts == {"seen": 120}
    hit = one(scored, "full", "emotion.accuracy", "named")
    assert hit.value == pytest.approx(np.mean(hit.seeds), abs=1e-3)
    assert hit.low is not None and hit.high is not None and hit.low < hit.value < hit.high
    assert 0.02 < hit.high - hit.low < 0.2
    assert (hit.n, hit.clusters, hit.chance) == (120, 60, 0.5)


def test_the_reply_an_arm_was_trained_to_give_has_a_name_of_its_own(scored: Scores) -> None:
    assert one(scored, "full", "direction", "own").value == one(scored, "full", "direction", "label").value
    assert one(scored, "no-think", "direction", "own").value == one(scored, "no-think", "direction", "plain").value
    assert one(scored, "full", "direction", "deaf").value == 0.5


def test_differences_are_drawn_on_the_same_scripts(scored: Scores) -> None:
    found = {(d.measure, d.a, d.b): d for d in scored.differences}
    arms = found["direction", "full/own", "no-think/own"]
    assert arms.sure and arms.value == pytest.approx(0.2, abs=0.08)
    deaf = found["direction", "full/own", "full/deaf"]
    assert deaf.sure and deaf.value is not None and deaf.value > 0.3
    same = found["direction", "full/deaf", "no-think/deaf"]
    assert (same.value, same.low, same.high, same.sure) == (0, 0, 0, False)


def test_the_same_answers_give_the_same_scores(scored: Scores) -> None:
    again = [run("full", seed, 0.9) for seed in (2, 1, 0)] + [run("no-think", seed, 0.7) for seed in (0, 1)]
    assert together(again, draws=400) == scored


def test_an_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    """Of 60 tests of one model that is right in 8 of 10, with 60 scripts of two rows each."""
    covered = 0
    for n in range(60):
        hit = one(together([run("full", n, 0.8)], draws=300), "full", "emotion.accuracy", "named")
        covered += bool(hit.low is not None and hit.high is not None and hit.low <= 0.8 <= hit.high)
    assert covered >= 52  # 57 are expected


def test_runs_that_cannot_be_compared_are_refused() -> None:
    with pytest.raises(DataError, match="its records differ"):
        together([run("full", 0, 0.9), run("full", 1, 0.9, groups=3)])
    with pytest.raises(DataError, match="duplicate; remove one"):
        together([run("full", 0, 0.9), run("full", 0, 0.9)])
    (head, rows), other = run("full", 0, 0.9), run("no-think", 0, 0.9)
    another = (replace(head, notes={"recipe": "other"}, seed=1), rows)
    for pair in ([(head, rows), another], [another, other]):
        with pytest.raises(DataError, match="its recipe differs"):
            together(pair)
    with pytest.raises(DataError, match="no predictions"):
        together([])


def test_counts_are_kept_without_words_and_score_the_same(scored: Scores, tmp_path: Path) -> None:
    runs = [run("no-think", seed, 0.7) for seed in (1, 0)] + [run("full", seed, 0.9) for seed in (0, 1, 2)]
    kept = []
    for number, one_run in enumerate(runs):  # one by one, as on different days
        path = tmp_path / f"{number}.json.gz"
        [found] = counts.count([one_run], embed=embed)
        counts.write(path, found)
        assert not any(said.encode() in gzip.decompress(path.read_bytes()) for said in (SORRY, NICE, "it rains"))
        kept.append(counts.read(path))
    assert exam_scores.score(kept, draws=400) == scored
    (tmp_path / "cut.json.gz").write_bytes((tmp_path / "0.json.gz").read_bytes()[:-20])
    (tmp_path / "other.json").write_text('{"format": 7}')
    for name in ("cut.json.gz", "other.json"):
        with pytest.raises(DataError, match=f"{name}: not a complete file of counts"):
            counts.read(tmp_path / name)
    with pytest.raises(DataError, match="count all again"):
        exam_scores.score([kept[0], replace(kept[1], embedder="another")])


def test_files_are_counted_and_scored_from_the_command_line(tmp_path: Path, monkeypatch, capsys) -> None:
    from overtone.embedded import embedder

    monkeypatch.setattr(embedder, "embed", embed)
    monkeypatch.setattr(embedder, "identity", lambda: "ours")
    files = []
    for seed in (0, 1):
        files.append(tmp_path / f"full-{seed}.jsonl.gz")
        answer_file.write(files[-1], *run("full", seed, 0.9))
    words = ["evaluate", "counts", *map(str, files), "--out", str(tmp_path / "counts")]
    assert main(words) == 0
    mixed = [str(tmp_path / "counts" / "full-0.json.gz"), str(files[1])]
    for given, out in ((map(str, files), "a.json"), (mixed, "b.json")):
        assert main(["evaluate", "scores", *given, "--draws", "50", "--out", str(tmp_path / out)]) == 0
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    assert main([*words[:3], str(files[0]), *words[2:]]) == 2
    assert "the same name" in capsys.readouterr().err


def test_labels_of_other_dimensions_are_read_by_their_own_inventory() -> None:
    made = row("a1", "anger", heard={"age": "old", "event": "car horn"}, named={"age": "<OLD>", "event": "<CAR HORN>"},
               scored={"age": likely("old", AGES), "event": likely("laugh", EVENTS)})  # fmt: skip
    found = tallies.count([made], {})
    assert values(found, "age", "named", "accuracy") == 1
    assert values(found, "event", "named", "uar") == 1
    assert values(found, "event", "chosen", "uar") == 1  # the only label there is


# ── the page ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_tables_are_replaced_and_the_words_around_them_are_kept(scored: Scores, tmp_path: Path) -> None:
    (tmp_path / "scores.json").write_bytes(msgspec.json.encode(scored))
    pages = [tmp_path / path.name for path in result_tables.PAGES]
    for copy, path in zip(pages, result_tables.PAGES, strict=True):
        copy.write_text(path.read_text(encoding="utf-8").replace("\n## ", "\nOur own words.\n\n## ", 1))
    words = [str(tmp_path / "scores.json"), *(word for page in pages for word in ("--page", str(page)))]
    result_tables.main(words)
    once = [page.read_text() for page in pages]
    result_tables.main(words)
    assert [page.read_text() for page in pages] == once and all("Our own words." in text for text in once)
    own = one(scored, "full", "emotion.uar", "named")
    assert f"| emotion | seen recipe | 0.50 | {own.value:.2f} ({own.low:.2f} to {own.high:.2f}) |" in once[1]
    assert "| − think | emotion | 3.5 | +" in once[2] and "| confirmed |" in once[2]
    line = next(line for line in once[1].splitlines() if line.startswith("| seen recipe | replies |"))
    assert [cell.strip()[:3] for cell in line.split("|")[3:-1]] == ["**+", "**+", "–"]  # no think, deaf, oracle


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [(0.1, 0.3, "confirmed"), (-0.1, 0.3, "not significant"), (-0.3, -0.1, "opposite direction")],
)
def test_a_claim_holds_only_where_its_interval_says_so(low: float, high: float, said: str) -> None:
    assert said == result_tables.verdict(
        exam_scores.Difference("seen", "direction", "a", "b", (low + high) / 2, low, high)
    )


def test_a_page_without_a_place_for_a_table_is_refused(scored: Scores) -> None:
    with pytest.raises(ValueError, match="no place for a table"):
        result_tables.fill("# Nothing", scored)


def test_the_tables_of_our_pages_are_those_of_the_stored_runs() -> None:
    root = result_tables.ROOT
    kept = msgspec.json.decode((root / "experiments" / "echat" / "scores.json").read_bytes(), type=Scores)
    for path in result_tables.PAGES:
        page = path.read_text(encoding="utf-8")
        assert result_tables.fill(page, kept) == page
    again = exam_scores.score(
        [counts.read(path) for path in sorted((root / "experiments" / "echat" / "runs").glob("*.gz"))], draws=2
    )

    def values(found: Scores) -> dict[tuple[str, ...], float | None]:
        return {(r.arm, r.part, r.measure, r.source): r.value for r in found.rows}

    assert (again.arms, again.parts, values(again)) == (kept.arms, kept.parts, values(kept))


def test_the_table_of_repeated_runs_is_that_of_the_stored_runs() -> None:
    page = result_tables.NOTES.read_text(encoding="utf-8")
    assert result_tables.replace_block(page, "each", repeat_tables.each()) == page
    kept = {path.name.split(".")[0] for path in (repeat_tables.HERE / "later_runs").glob("*.gz")}
    assert kept | {f"full-{seed}" for seed in range(5)} == set(repeat_tables.KERNELS)
