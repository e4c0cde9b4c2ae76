"""A study named in place of a label file: judges validated and calibrated, runs ranked, without a file by hand."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import msgspec
import pytest

from overtone.cli import main
from overtone.errors import DataError
from overtone.judge_trust import run_labels
from overtone.results.load import open_run
from overtone.results.people_scores import said
from overtone.runs.store import Store
from overtone.schema import Score
from overtone.studio.labels import Given, sync
from overtone.studio.study import Study
from tests.studio.helpers import new_study
from tests.studio.labels.helpers import simulate

ROOT = ("monday", "friday")


def rated(folder: Path, *flags: str, careless: int = 1, names: tuple[str, ...] = ROOT) -> tuple[Study, list[Given]]:
    made = new_study(folder, *flags, names=names, scripts=12)
    worth = {name: 2.5 + 1.2 * number for number, name in enumerate(names)}
    given = simulate(made, worth, raters=8, careless=careless, seed=5)
    sync(made, given)
    return made, given


def folders(made: Study) -> dict[str, Path]:
    return {source.name: made.folder(source) for source in made.sources}


def test_labels_of_a_study_have_what_a_judge_gets(tmp_path: Path) -> None:
    made, _ = rated(tmp_path)
    labels = run_labels.of_runs(folders(made), made.id, made.path, rubrics=made.rubrics)
    assert len(labels.units) == 48 and labels.rubric == "echomind" and labels.layout == "studio"
    unit = labels.units["friday/toy/s1/target@enhance/audio"]
    assert unit.systems == {"reply": "friday"} and unit.group == "synthesis/s1" and "worth 2" in unit.texts["reply"]
    assert unit.sounds["reply"].is_file() and unit.sounds["clip"].is_file()
    assert len({rating.rater for rating in labels.ratings}) == 7  # one session is unusable
    assert any("saw no text" in note for note in labels.notes)


def test_pairs_of_a_study_are_units_with_both_replies(tmp_path: Path) -> None:
    made, _ = rated(tmp_path, "--design", "ab")
    labels = run_labels.of_runs(folders(made), made.id, made.path, rubrics=made.rubrics)
    unit = labels.units["monday|friday/toy/s1/target@enhance/audio"]
    assert unit.systems == {"a": "monday", "b": "friday"} and set(unit.sounds) == {"a", "b", "clip"}
    assert "worth 1" in unit.texts["reply_a"] and "worth 2" in unit.texts["reply_b"]
    assert {rating.value for rating in labels.ratings} == {"A", "B", "tie"}


def test_a_study_that_is_not_synced_says_what_to_do(tmp_path: Path) -> None:
    made = new_study(tmp_path)
    with pytest.raises(DataError, match="overtone studio sync"):
        run_labels.of_runs(folders(made), made.id, made.path)
    with pytest.raises(DataError, match="overtone studio sync"):
        run_labels.of_run(open_run(tmp_path / "monday"), made.id, made.path)


def verdicts(made: Study, path: Path) -> Path:
    """A recorded judge that says what the first of people said."""
    labels = run_labels.of_runs(folders(made), made.id, made.path)
    rows = {(r.unit, r.dimension): r.value for r in reversed(labels.ratings)}
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "dimension", "value"])
        writer.writerows((unit, dimension, value) for (unit, dimension), value in rows.items())
    return path


def test_a_judge_is_validated_against_a_study(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made, given = rated(tmp_path)
    recorded = verdicts(made, tmp_path / "verdicts.csv")
    out = tmp_path / "judged"
    capsys.readouterr()
    command = ["judge", "validate", f"recorded:{recorded}", "--labels", str(made.path), "--rubric", "echomind"]
    assert main([*command, "--limit", "16", "--out", str(out)]) == 0
    found = json.loads((out / "validation.json").read_text())
    assert found["layout"] == "studio" and found["units"] == 16
    agreed = found["dimensions"][0]
    assert agreed["ceiling"]["raters"] == 7 and 0 < agreed["agreement"]["alpha"]["value"] < 1
    texts = "".join(path.read_text() for path in out.iterdir() if path.suffix in (".json", ".html"))
    assert "raters" in texts and not any(g.rater in texts for g in given)


def test_a_report_is_calibrated_by_a_study(tmp_path: Path) -> None:
    made, given = rated(tmp_path)
    key = made_key = None
    for name in ROOT:
        reading = open_run(tmp_path / name)
        key = min(reading.studies[made.id].questions)
        made_key = made_key or key
        with Store.create(tmp_path / name) as store:
            for answer in reading.answers:
                mean = next(one.mean for one in said(answer, reading.studies) if one.dimension == key)
                score = Score(f"{key}@biased", "biased|v1|judge:biased|", min(5.0, round(mean or 0) + 1))
                store.add_scores([(answer.ask, score)])
            store.commit()
    page = tmp_path / "r.html"
    runs = [str(tmp_path / name) for name in ROOT]
    assert main(["report", *runs, "--calibrated", str(made.path), "-o", str(page)]) == 0
    assert "Calibrated by people" in page.read_text()
    assert not any(g.rater in page.read_text() for g in given)


def standings(folder: Path) -> dict[str, object]:
    return json.loads((folder / "standings.json").read_text())


def test_the_arena_ranks_runs_by_a_study(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made, given = rated(tmp_path, "--design", "ab", names=("monday", "friday", "sunday"))
    out = tmp_path / "arena"
    capsys.readouterr()
    assert main(["arena", "--studio", str(made.path), "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    found = standings(out)
    (people,) = found["electorates"]  # type: ignore[misc]
    places = people["places"]
    assert [place["run"] for place in places] == ["sunday", "friday", "monday"]
    assert people["raters"] == 7 and people["votes"] <= 72 * 7
    shares = [place["acceptable"]["value"] for place in places]
    assert shares == sorted(shares, reverse=True) and "acceptable" in printed
    assert "of unusable sessions are left out; with them" in printed
    files = b"".join(path.read_bytes() for path in out.rglob("*") if path.is_file())
    assert not any(g.rater.encode() in files for g in given)  # a withdrawal has nothing to remove here
    assert main(["arena", *[str(tmp_path / n) for n in ("monday", "sunday")], "--studio", str(made.path),
                 "--out", str(tmp_path / "two")]) == 0  # fmt: skip
    assert [p["run"] for p in standings(tmp_path / "two")["electorates"][0]["places"]] == ["sunday", "monday"]  # type: ignore[index]


def test_cannot_tell_is_missing_and_both_bad_is_a_tie(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = new_study(tmp_path, "--design", "ab", scripts=12)
    given = simulate(made, {"monday": 3.0, "friday": 3.3}, raters=6)
    key = next(iter(given[0].values))
    answers = ["cannot_tell", "both_bad", "both_good", "A", "B", "A"]
    given = [msgspec.structs.replace(g, values={key: answers[int(g.rater[1:4])]}, swap=False) for g in given]
    sync(made, given)
    assert main(["arena", "--studio", str(made.path), "--out", str(tmp_path / "arena")]) == 0
    (people,) = standings(tmp_path / "arena")["electorates"]  # type: ignore[misc]
    by_run = {place["run"]: place for place in people["places"]}
    assert people["votes"] == 5 * 24 and by_run["monday"]["tied"]["value"] == pytest.approx(0.4)
    assert by_run["monday"]["acceptable"]["value"] == pytest.approx(0.6)  # chosen by two of five, both good for one
    assert by_run["friday"]["acceptable"]["value"] == pytest.approx(0.4)


def test_every_answer_of_a_study_is_counted_once_in_the_notes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = new_study(tmp_path, "--design", "ab", names=("monday", "friday", "sunday"), scripts=4)
    given = simulate(made, {"monday": 2.0, "friday": 3.0, "sunday": 4.0}, raters=3, careless=1)
    key = next(iter(given[0].values))
    given[-1] = msgspec.structs.replace(given[-1], values={key: "cannot_tell"}, usable=True)
    sync(made, given)
    asked = ["arena", *[str(tmp_path / n) for n in ("monday", "friday")], "--studio", str(made.path)]
    capsys.readouterr()
    assert main([*asked, "--out", str(tmp_path / "arena")]) in (0, 3)
    printed = " ".join(capsys.readouterr().out.split())
    found = re.search(
        r"the study has (\d+) answers about these runs: (\d+) votes?; not counted: ([^.]*?“cannot tell”)", printed
    )
    assert found, printed
    parts = [int(n) for n in re.findall(r"\d+", found[3])]
    within = [g for g in given if {reply.run for reply in g.unit.replies} & {"monday", "friday"}]
    assert int(found[1]) == int(found[2]) + sum(parts) == len(within)
    assert "--pairs" not in printed and "overtone studio invite" in printed


def test_comparisons_on_a_scale_rank_runs_and_say_nothing_about_acceptable_replies(tmp_path: Path) -> None:
    made = new_study(tmp_path, "--design", "cmos", scripts=12)
    sync(made, simulate(made, {"monday": 3.0, "friday": 4.0}, raters=6))
    assert main(["arena", "--studio", str(made.path), "--out", str(tmp_path / "arena")]) == 0
    (people,) = standings(tmp_path / "arena")["electorates"]  # type: ignore[misc]
    assert [place["run"] for place in people["places"]] == ["friday", "monday"]
    assert all(place["acceptable"] is None for place in people["places"])


def test_a_study_of_ratings_cannot_rank_an_arena(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made, _ = rated(tmp_path)
    assert main(["arena", "--studio", str(made.path), "--out", str(tmp_path / "arena")]) == 2
    assert "rates single replies" in capsys.readouterr().err
