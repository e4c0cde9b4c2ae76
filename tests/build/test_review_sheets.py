"""Review rounds as files: sheets that can be filled, errors that say where, and who is in after three rounds."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path

import pytest

from overtone.build.review_sheets import (
    COLUMNS,
    VERDICTS,
    Review,
    decide,
    missing,
    read_reviews,
    sheet,
    summary,
)
from overtone.build.script import HERE, Dialogue, DialogueTurn, Script, read_set
from overtone.errors import DataError, UsageError


@pytest.fixture(scope="module")
def few() -> tuple[Script, ...]:
    return tuple(read_set("open"))[:4]


def write(folder: Path, name: str, *rows: str) -> Path:
    (folder / name).write_text("\n".join((",".join(COLUMNS), *rows)) + "\n", encoding="utf-8")
    return folder


def said(scripts: tuple[Script, ...], number: int, **verdicts: str) -> list[Review]:
    """One review per script and reviewer; verdicts as letters, a e j for accept, revise and reject."""
    of = dict(zip("aej", VERDICTS, strict=True))
    return [
        Review(number, who, script.id, of[letter], "because")
        for who, letters in verdicts.items()
        for script, letter in zip(scripts, letters, strict=True)
    ]


def test_a_sheet_shows_all_there_is_to_read_and_is_read_back_once_filled(
    few: tuple[Script, ...], tmp_path: Path
) -> None:
    files = sheet(few, 2, ["Anna", "Ben K."])
    assert sorted(files) == ["ROUND2-Anna.csv", "ROUND2-Ben_K.csv"]
    for name, data in files.items():
        rows = list(csv.DictReader(io.StringIO(data.decode("utf-8-sig"), newline="")))
        assert [r["script"] for r in rows] == [s.id for s in few]
        for row, script in zip(rows, few, strict=True):
            shown = "\n".join(row.values())
            for text in (script.words, *script.reply.values(), *(q.question for q in script.reasoning)):
                assert text in shown
            row["verdict"], row["note"] = "accept", "reads well, twice"
        out = io.StringIO()
        writer = csv.DictWriter(out, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)
        (tmp_path / name).write_text(out.getvalue(), encoding="utf-8")
    found = read_reviews(tmp_path)
    assert {(r.round, r.reviewer, r.verdict, r.note) for r in found} == {
        (2, who, "accept", "reads well, twice") for who in ("Anna", "Ben K.")
    }
    assert len(found) == 8
    assert missing(few, tmp_path) == []


def test_an_empty_sheet_is_no_review_and_every_line_without_a_verdict_is_named(
    few: tuple[Script, ...], tmp_path: Path
) -> None:
    for name, data in sheet(few[:3], 1, ["anna"]).items():
        (tmp_path / name).write_bytes(data)
    assert read_reviews(tmp_path) == []
    lacking = missing(few, tmp_path)
    assert lacking[0] == f"ROUND1-anna.csv: line 2: {few[0].id} has no verdict yet"
    assert lacking[-1] == f"round 1: no sheet has {few[3].id}"
    assert len(lacking) == 4
    line = int(lacking[1].split("line ")[1].split(":")[0])  # cells of several lines stand before it
    assert few[1].id in (tmp_path / "ROUND1-anna.csv").read_text("utf-8-sig").splitlines()[line - 1]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("1,anna,id_0101,acept,", "line 2: no verdict 'acept'; did you mean 'accept'"),
        ("4,anna,id_0101,accept,", "line 2: round must be 1 to 3, not '4'"),
        ("1,,id_0101,accept,", "line 2: a row needs a reviewer"),
        ("1,anna,id_0101,,a note", "line 2: a note on id_0101 but no verdict"),
        ("1,anna,id_0101,reject,", "line 2: id_0101 is rejected without a note"),
        (
            "1,anna,id_0101,accept,\n1,anna,id_0101,revise,x",
            "line 3: anna has judged id_0101 already",
        ),
        ('1,anna,id_0101,accept,"open', "cannot be read as a review sheet"),
    ],
)
def test_a_wrong_row_is_refused_with_its_line(tmp_path: Path, row: str, expected: str) -> None:
    with pytest.raises(DataError) as caught:
        read_reviews(write(tmp_path, "a.csv", row))
    assert expected in str(caught.value)


def test_a_sheet_without_its_columns_and_a_missing_folder_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("round,script\n1,id_0101\n")
    with pytest.raises(DataError, match="no column reviewer, verdict, note"):
        read_reviews(tmp_path)
    with pytest.raises(DataError, match="no such folder"):
        read_reviews(tmp_path / "nowhere")


def test_a_review_of_an_unknown_script_names_file_line_and_the_nearest_id(
    few: tuple[Script, ...], tmp_path: Path
) -> None:
    reviews = read_reviews(write(tmp_path, "a.csv", f"1,anna,{few[0].id}x,accept,"))
    with pytest.raises(DataError, match=rf"a\.csv: line 2: no script '{few[0].id}x'; did you mean '{few[0].id}'"):
        decide(few, reviews)


def test_who_is_in_after_three_rounds(few: tuple[Script, ...]) -> None:
    rounds = said(few, 1, anna="aeja") + said(few, 2, anna="aaaa", ben="eaaa")
    first = decide(few, rounds)
    assert first.accepted == ()
    assert set(first.pending.values()) == {"round 3"}
    final = decide(few, rounds + said(few, 3, anna="aaaa", ben="aeaj", carl="aeee"))
    assert final.accepted == (few[0].id, few[2].id)
    assert list(final.pending) == [few[1].id]
    assert "ben: because" in final.pending[few[1].id]
    assert final.rejected == {few[3].id: "ben in round 3: because"}


def test_one_rejection_in_the_last_round_outweighs_a_majority(few: tuple[Script, ...]) -> None:
    votes = dict.fromkeys(("anna", "ben", "carl"), "aaaa") | {"dora": "jaaa"}
    decision = decide(few, said(few, 3, **votes))
    assert list(decision.rejected) == [few[0].id]
    assert len(decision.accepted) == 3


def test_half_is_no_majority(few: tuple[Script, ...]) -> None:
    assert decide(few[:1], said(few[:1], 3, anna="a", ben="e")).accepted == ()


def test_agreement_is_measured_by_round_and_says_who_disagrees_where(few: tuple[Script, ...]) -> None:
    decision = decide(few, said(few, 1, anna="aeja", ben="aeja") + said(few, 2, anna="aaej", ben="jjaa"))
    assert decision.rounds[0].agreement.alpha == 1
    assert decision.rounds[1].agreement.alpha < 0
    assert decision.rounds[0].disputed == {}
    assert decision.rounds[1].disputed[few[0].id] == {"anna": "accept", "ben": "reject"}
    text = "\n".join(summary(decision))
    assert "round 1: 2 reviewers (anna, ben)" in text
    assert "α 1.00" in text
    assert f"{few[0].id}: anna accept, ben reject" in text


def test_the_open_sets_own_reviews_are_read_and_revised_means_accepted_after_revision() -> None:
    reviews = read_reviews(HERE / "open" / "reviews")
    first = [r for r in reviews if r.round == 1]
    assert {r.verdict for r in first} == {"accept"}
    assert any(r.revised for r in first)
    known = {s.id for s in read_set("open")}
    assert {r.script for r in first} >= known
    decision = decide(read_set("open"), [r for r in reviews if r.script in known])
    alpha = decision.rounds[0].agreement.alpha
    assert math.isnan(alpha) or -1 <= alpha <= 1


def test_dialogues_are_reviewed_like_scripts(tmp_path: Path) -> None:
    turns = (DialogueTurn("The bus is here.", "sad", "Oh dear.", "soft"), DialogueTurn("Off I go.", "", "Bye.", "even"))
    dialogue = Dialogue("dlg_1", "travel", "arlo", turns, "Take care.", "soft")
    data = sheet([dialogue], 1, ["anna"])["ROUND1-anna.csv"].decode("utf-8-sig")
    for text in ("The bus is here.", "Off I go.", "Oh dear.", "Bye.", "Take care."):
        assert text in data
    assert decide([dialogue], [Review(3, "anna", "dlg_1", "accept")]).accepted == ("dlg_1",)


def test_reviewers_must_be_named_once_and_rounds_are_three(few: tuple[Script, ...]) -> None:
    for names in ([], ["anna", "anna"], ["", "ben"]):
        with pytest.raises(UsageError, match="--reviewers"):
            sheet(few, 1, names)
    with pytest.raises(UsageError, match="--round must be 1 to 3"):
        sheet(few, 4, ["anna"])


def test_a_name_that_begins_a_formula_cannot_become_one(few: tuple[Script, ...]) -> None:
    (data,) = sheet(few[:1], 1, ['=HYPERLINK("x")']).values()
    assert ",\"'=HYPERLINK" in data.decode("utf-8-sig")
