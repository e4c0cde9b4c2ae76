"""SAKURA's folders become pairs of questions; its numbers, by rule and by a judge, to the digit computed by hand."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from overtone.benchmarks import Selection
from overtone.benchmarks.sakura import FIELDS, SUITE, load
from overtone.cli import main
from overtone.errors import DataError
from overtone.results.column_values import Scored, counted_replies, reduced
from overtone.results.headline import SuiteTable, cases_by_key, number, suite_tables
from overtone.results.load import open_run
from overtone.schema import Item
from tests.judges.server import JudgeServer
from tests.servers import Asked, OpenAIServer, tone

ANIMALS = {"dog1.wav": "dog", "cow2.wav": "cow", "cat3.wav": "cat"}


def row(file: str, label: str, wrong: str, **changes: str) -> dict[str, str]:
    """A recording whose right answers are (b) and (a)."""
    made = {
        "file": file,
        "attribute_label": label,
        "single_instruction": f"What is heard in {file}? (a) {wrong} (b) {label}",
        "single_answer": f"(b) {label}",
        "multi_instruction": f"What goes with {file}? (a) a toy (for it) (b) a stone (c) rain (d) fog",
        "multi_answer": "(a) a toy (for it)",
    }
    return made | changes


def animals(**changes: str) -> list[dict[str, str]]:
    return [row(file, label, "hen", **changes) for file, label in ANIMALS.items()]


def write(root: Path, track: str, rows: list[dict[str, str]], kinds: tuple[str, ...] = ("csv", "json")) -> Path:
    """A track's folder as released."""
    folder = root / track
    (folder / "audio").mkdir(parents=True)
    for n, told in enumerate(rows):
        if "/" not in told["file"]:
            (folder / "audio" / told["file"]).write_bytes(tone(n + len(track), 0.2))
    if "csv" in kinds:
        with (folder / "metadata.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, ["file", *FIELDS])
            writer.writeheader()
            writer.writerows(rows)
    if "json" in kinds:
        tree = {f"data/{track}/audio/{r['file']}": {f: r[f] for f in FIELDS} for r in rows}
        (folder / "metadata.json").write_bytes(msgspec.json.encode(tree))
    return root


def items(root: Path) -> list[Item]:
    return list(load(root).items(Selection()))


def test_a_recording_is_two_questions_of_one_group(tmp_path: Path) -> None:
    found = items(write(tmp_path, "Animal", animals()))
    assert [i.id for i in found] == [
        f"sakura/animal/{file}/{hop}" for hop in ("single", "multi") for file in ("dog1.wav", "cow2.wav", "cat3.wav")
    ]
    single, multi = found[0], found[3]
    assert (single.level, multi.level, single.group) == (1, 2, multi.group)
    assert single.question == "What is heard in dog1.wav?"
    assert (multi.options[0].letter, multi.options[0].text) == ("A", "a toy (for it)")
    assert (single.gold, multi.gold, single.category) == ("B", "A", "animal")
    assert (single.cue, single.cue_text, found[2].cue, found[2].cue_text) == ("dog", "dog", "", "cat")
    assert single.turns[0].clip is not None and single.turns[0].clip.path == "Animal/audio/dog1.wav"


@pytest.mark.parametrize("kinds", [("csv",), ("json",)])
def test_one_of_the_two_tables_is_enough(tmp_path: Path, kinds: tuple[str, ...]) -> None:
    both = items(write(tmp_path / "both", "Animal", animals()))
    assert items(write(tmp_path / "one", "Animal", animals(), kinds)) == both


@pytest.mark.parametrize("above", ["data", "SAKURA/data"])
def test_the_folder_above_the_tracks_will_do(tmp_path: Path, above: str) -> None:
    write(tmp_path / above, "Gender", [row("v.wav", "female", "male")])
    (found, _) = items(tmp_path)
    assert found.cue == "female" and found.turns[0].clip is not None
    assert found.turns[0].clip.path == f"{above}/Gender/audio/v.wav"


def damage(root: Path, change: Any) -> None:
    path = root / "Animal" / "metadata.json"
    tree = msgspec.json.decode(path.read_bytes())
    change(tree)
    path.write_bytes(msgspec.json.encode(tree))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda t: t["data/Animal/audio/cow2.wav"].update(multi_answer="(b) a stone"), r"line 3.*'multi_answer'"),
        (lambda t: t.pop("data/Animal/audio/cat3.wav"), r"line 4.*one of the two tables"),
        (lambda t: t.update({"data/Animal/audio/x.wav": t["data/Animal/audio/cow2.wav"]}), "one of the two tables"),
        (lambda t: t["data/Animal/audio/cow2.wav"].pop("single_answer"), r"cow2.*'single_answer' is missing"),
        (lambda t: t["data/Animal/audio/cow2.wav"].update(single_answer=["b"]), "a list, but text"),
    ],
)
def test_tables_that_do_not_say_the_same_are_an_error_with_its_place(tmp_path: Path, change: Any, problem: str) -> None:
    damage(write(tmp_path, "Animal", animals()), change)
    with pytest.raises(DataError, match=problem):
        load(tmp_path)


def test_what_cannot_be_asked_is_left_out_and_said(tmp_path: Path) -> None:
    rows = [
        *animals(),
        row("gone.wav", "dog", "cow"),
        row("empty.wav", "dog", "cow"),
        row("none.wav", "dog", "cow", multi_instruction="What now?"),
        row("odd.wav", "dog", "cow", single_answer="(a) dog"),
    ]
    write(tmp_path, "Animal", rows)
    (tmp_path / "Animal/audio/gone.wav").unlink()
    (tmp_path / "Animal/audio/empty.wav").write_bytes(b"")
    found = items(tmp_path)
    assert len(found) == 6 + 1 + 2
    assert [i.gold for i in found if "odd" in i.id] == ["", "A"]
    said = " | ".join(load(tmp_path).warnings)
    for words in ("missing are left out (1: gone.wav)", "empty file", "without two options", "not one of"):
        assert words in said


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ([row("../../etc/x.wav", "dog", "cow")], "leaves its folder"),
        ([row("/etc/x.wav", "dog", "cow")], "absolute"),
        ([row("a.wav", "dog", "cow"), row("a.wav", "dog", "hen")], r"line 3: a.wav is duplicated"),
    ],
)
def test_hostile_paths_and_doubled_recordings_are_errors(
    tmp_path: Path, rows: list[dict[str, str]], problem: str
) -> None:
    write(tmp_path, "Animal", rows, ("csv",))
    with pytest.raises(DataError, match=problem):
        load(tmp_path)


def test_a_folder_that_is_none_is_told_what_is_wanted(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="give the folder"):
        load(tmp_path / "none")
    with pytest.raises(DataError, match="metadata"):
        load(tmp_path)


def test_a_damaged_table_is_an_error_with_its_line(tmp_path: Path) -> None:
    path = write(tmp_path, "Animal", animals(), ("csv",)) / "Animal" / "metadata.csv"
    path.write_text(path.read_text() + "one,cell\n")
    with pytest.raises(DataError, match=r"line 5.*cells"):
        load(tmp_path)
    path.write_text("file,label\n")
    with pytest.raises(DataError, match="no column attribute_label"):
        load(tmp_path)


# ── numbers ─────────────────────────────────────────────────────────────────────────────────────────────────────────

HEARD = {"dog1.wav", "cow2.wav", "f.wav"}  # the single-hop question is answered rightly
USED = {"dog1.wav", "cat3.wav"}  # the multi-hop question is


def reply(asked: Asked) -> str:
    file = re.search(r"(?:heard in|goes with) (\S+)\?", asked.text)
    assert file is not None
    if "heard in" in asked.text:
        return "The answer is: [B]" if file[1] in HEARD else "The answer is: [A]"
    return "The answer is: [A]" if file[1] in USED else "The answer is: [D]"


def cells(table: SuiteTable, row: int = 0) -> dict[str, float | None]:
    columns = table.headline.columns
    return {c.key: e.value if e else None for c, e in zip(columns, table.rows[row].cells, strict=True)}


def test_from_files_to_the_tables_with_the_judge_the_benchmark_names(tmp_path: Path) -> None:
    data = write(tmp_path / "data", "Animal", animals())
    write(data, "Gender", [row("f.wav", "female", "male"), row("m.wav", "male", "female")])
    out = tmp_path / "run"
    right = {"verdict": lambda asked: {"sakura_correct": "correct" if _right(asked) else "incorrect"}}
    with OpenAIServer(answer=reply) as model, JudgeServer(**right) as judge:  # type: ignore[arg-type]
        flags = ["--data", str(data), "--out", str(out), "--model", f"openai:any?base_url={model.base_url}", "-q"]
        code = main(["run", "sakura", *flags, "--judge", judge.spec()])
        assert (code, model.count, judge.count) == (0, 10, 10)
    main_table, tracks, judged, judged_tracks, paper = suite_tables(open_run(out, light=True))
    # Animal: heard dog and cow of three, used dog and cat; Gender: heard f of two, used none.
    assert cells(main_table) == {
        "single": pytest.approx(3 / 5), "multi": pytest.approx(2 / 5), "used": pytest.approx(1 / 3),
    }  # fmt: skip
    counts = {
        c.key: (e.scored, e.asked)
        for c, e in zip(main_table.headline.columns, main_table.rows[0].cells, strict=True)
        if e
    }
    assert counts == {"single": (5, 5), "multi": (5, 5), "used": (3, 3)}, (
        "n is of the recordings that were heard rightly"
    )
    under_it = dict(cases_by_key(open_run(out, light=True)))["suite/sakura/task/audio/used"]
    assert sorted(under_it) == ["animal/cow2.wav", "animal/dog1.wav", "gender/f.wav"]
    assert [r.name for r in tracks.rows] == ["animal", "gender"]
    assert cells(tracks) == {
        "single": pytest.approx(2 / 3), "multi": pytest.approx(2 / 3), "used": pytest.approx(1 / 2),
    }  # fmt: skip
    assert cells(tracks, 1) == {"single": 0.5, "multi": 0.0, "used": 0.0}
    assert cells(judged) == cells(main_table), "this judge knows the right letter"
    assert [cells(judged_tracks, n) for n in (0, 1)] == [cells(tracks, n) for n in (0, 1)]
    printed = cells(paper)
    assert printed["average_single"] == pytest.approx((2 / 3 + 1 / 2) / 2)
    assert printed["average_multi"] == pytest.approx((2 / 3 + 0) / 2)
    assert printed["emotion_single"] is None


def test_without_a_judge_only_what_was_read_by_rule_is_shown(tmp_path: Path) -> None:
    data, out = write(tmp_path / "data", "Animal", animals()), tmp_path / "run"
    with OpenAIServer(answer=reply) as model:
        flags = ["--data", str(data), "--out", str(out), "--model", f"openai:any?base_url={model.base_url}", "-q"]
        assert main(["run", "sakura", *flags]) == 0
    assert [table.headline.key for table in suite_tables(open_run(out))] == ["sakura", "sakura-tracks"]


def _right(asked: Asked) -> bool:
    answer = re.search(r"<answer>\n([A-D])\.", asked.text)
    given = re.search(r"The answer is: \[([A-D])\]", asked.text)
    assert answer and given
    return answer[1] == given[1]


def scored(track: str, hop: int, file: int, value: float) -> Scored:
    item = Item(f"{track}/{file}/{hop}", "sakura", hop, "choose", track, "", f"{track}/{file}", "", ())
    return Scored(item, "task/audio", 0, {"sakura_correct": value})


def test_the_printed_averages_are_the_means_of_the_printed_tracks() -> None:
    """Every model's row: 500 questions a track, as many right as the printed per cent say."""
    (table,) = SUITE.published
    (paper,) = [h for h in SUITE.headlines if h.key == "sakura-paper"]
    keys = list(table.columns)
    for model, printed in table.rows:
        told = dict(zip(keys, printed, strict=True))
        replies = []
        for key, value in told.items():
            track, hop = key.split("_")
            if value is None or track == "average":
                continue
            right = round(5 * value)
            assert 5 * value == pytest.approx(right), "of 500"
            level = {"single": 1, "multi": 2}[hop]
            replies += [scored(track, level, n, float(n < right)) for n in range(500)]
        groups: dict[str, list[Scored]] = {}
        for one in replies:
            groups.setdefault(one.item.group, []).append(one)
        for key, value in told.items():
            column = next(c for c in paper.columns if c.key == key)
            if value is None:
                assert number(column, counted_replies(column, replies)) is None
            elif key.startswith("average"):
                level = {"single": 1, "multi": 2}[key.split("_")[1]]
                asked = [[r for r in group if r.item.level == level] for group in groups.values()]
                assert column.reduce is not None
                found = reduced(column.reduce, column.score, asked)
                assert found is not None and abs(100 * found - value) < 0.0501, (model, key)
            else:
                mean = number(column, counted_replies(column, replies))
                assert mean is not None and mean.value is not None
                assert f"{100 * mean.value:.1f}" == f"{value:.1f}", (model, key)


@pytest.mark.shared
def test_the_real_files_load_whole(shared: Path) -> None:
    folder = shared / "data" / "sakura_sample"
    benchmark = load(folder)
    found = list(benchmark.items(Selection()))
    assert benchmark.warnings == []
    assert len(found) == 96 and len({i.id for i in found}) == 96 and len({i.group for i in found}) == 48
    assert all(i.gold and len(i.options) in (2, 4) for i in found)
    assert {i.cue for i in found if i.category == "gender"} == {"male", "female"}
