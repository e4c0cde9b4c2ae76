"""Tables in the terminal, as Markdown, LaTeX and CSV: they fit, say everything, and other people's names stay text."""

from __future__ import annotations

import csv
import io
import re

import pytest
from rich.cells import cell_len

from overtone.display.table_data import Cell, Line, PartTable
from overtone.report.latex_tables import escaped, latex
from overtone.report.table_formats import csv_text, make_console, markdown, to_terminal
from overtone.results.measures import Estimate
from tests.report.fake_run import CONTROL, HOSTILE

EVIL = "=cmd|'/C calc'!A0 \\input{x} $1^2_3 # 50% & ~ {a} [red]b[/red] <i> \"q\" `c`"


def number(value: float | None = 0.612, low: float = 0.55, high: float = 0.671, n: int = 40, asked: int = 40) -> Cell:
    return Cell(Estimate(value, low, high, n, asked, 0.7, 0.5), key="1:funnel/x")


def table(*cells: Cell, name: str = "a cue", run: int | None = 0, condition: str = "enhance/audio") -> PartTable:
    heads = tuple(f"Column {n} ↑ · %" for n in range(len(cells)))
    return PartTable("things", "Things", "How to read it.", ("Cue",), heads, (Line(run, condition, (name,), cells),))


def printed(*tables: PartTable, width: int, labels: tuple[str, ...] = (), hints: bool = False) -> str:
    out = io.StringIO()
    to_terminal(make_console(out, width), tables, labels, hints=hints)
    return out.getvalue()


def test_a_cell_says_value_interval_and_n_of_asked_with_bounds_where_some_are_missing() -> None:
    text = printed(table(number(), number(n=30)), width=120)
    assert "61.2 [55.0 to 67.1]" in text
    assert "40 of 40" in text and "30 of 40" in text
    assert text.count("bounds 50.0 to 70.0") == 1


def test_a_count_that_all_cells_of_a_row_share_stands_once() -> None:
    text = printed(table(number(), number(), number()), width=120)
    assert text.count("40 of 40") == 1
    assert re.search(r"Cue +n +Column 0 ↑", text)


@pytest.mark.parametrize("width", [60, 80, 100, 160])
def test_no_line_is_wider_than_the_terminal_and_no_number_is_cut(width: int) -> None:
    wide = table(*(number(n=30 + k) for k in range(9)), name="a rather long name of a cue that has to fold somewhere")
    text = printed(wide, width=width)
    assert max(map(cell_len, text.splitlines())) <= width
    assert text.count("61.2") == 9
    assert text.count("[55.0 to 67.1]") == 9
    for column in range(9):
        assert f"{30 + column} of 40" in text


def test_a_run_and_a_condition_that_all_rows_share_stand_in_the_title() -> None:
    text = printed(table(number(), run=1), width=100, labels=("first", "second"))
    assert "Things · second · enhance/audio" in text
    assert "condition" not in text
    assert "first" not in printed(table(number()), width=100, labels=("first",))


def test_names_that_repeat_are_said_once() -> None:
    lines = tuple(Line(run, "enhance/audio", (f"cue {n}",), (number(),)) for run in (0, 1) for n in range(3))
    text = printed(PartTable("k", "T", "", ("Cue",), ("A",), lines), width=100, labels=("left", "right"))
    assert text.count("left") == 1 and text.count("right") == 1
    assert all(text.count(f"cue {n}") == 2 for n in range(3))


def test_footnotes_are_numbered_once_for_each_text() -> None:
    noted = Cell(Estimate(0.5, None, None, 2, 2, note="too few"), notes=("another judge",))
    made = table(noted, noted, number())
    text = printed(made, width=120)
    assert "¹˒²" in text
    assert "¹ another judge" in text and "² too few" in text
    assert text.count("too few") == 1
    assert "1. another judge" in markdown([made])
    assert r"\textsuperscript{1,2}" in latex([made])


def test_a_hint_is_printed_on_demand() -> None:
    assert "How to read it." in printed(table(number()), width=80, hints=True)
    assert "How to read it." not in printed(table(number()), width=80)


def test_what_strangers_wrote_is_neither_markup_nor_control() -> None:
    text = printed(table(number(), name=CONTROL), width=160, labels=(HOSTILE, "b"))
    assert "\x1b" not in text and "\u202e" not in text
    assert "[red]markup[/red]" in text
    assert "[bold]" in text


def test_markdown_keeps_columns_whatever_names_hold() -> None:
    made = markdown([table(number(), name=f"a|b\n{HOSTILE}")], ("x|y", "z"))
    rows = [line for line in made.splitlines() if line.startswith("|")]
    assert len(rows) == 3
    assert all(len(re.findall(r"(?<!\\)\|", row)) == 5 for row in rows)
    assert not re.search(r"(?<!\\)[<{]", made)
    assert r"61.2 \[55.0 to 67.1\]" in made


def unescaped(text: str) -> str:
    """What of LaTeX's special characters still does something, commands of ours aside."""
    text = re.sub(r"\\(text[a-z]+|textsuperscript|scriptsize|dots|frac|[a-zA-Z]+)\b", "", text)
    return re.sub(r"\\[\\{}$&#%_]", "", text)


@pytest.mark.parametrize("name", [EVIL, HOSTILE, CONTROL, "ü–é 日本", "\\", "}{", "a%b", "&&", "^^^", "*", "[x]"])
def test_latex_is_balanced_and_every_special_character_is_escaped(name: str) -> None:
    made = latex([table(number(), number(n=20), name=name)], (name, "other"))
    for environment in ("table", "table*", "tabular"):
        assert made.count(rf"\begin{{{environment}}}") == made.count(rf"\end{{{environment}}}")
    for rule in ("toprule", "midrule", "bottomrule"):
        assert made.count(rf"\{rule}") == 1
    rows = [line for line in made.splitlines() if line.endswith((r"\\", r"\tabularnewline"))]
    assert len(rows) == 2
    assert all(len(re.findall(r"(?<!\\)&", row)) == 4 for row in rows)  # run, condition, cue, two numbers
    left = unescaped(escaped(name)).replace("{}", "").replace("{[}", "").replace("{]}", "").replace("{*}", "")
    left = re.sub(r"\$[^$]*\$|\{\W\}\{U\+[0-9A-F]+\}|\{.\}\{U\+[0-9A-F]+\}", "", left)
    assert not set(left) & set("\\{}$&#%_^~<>|"), left
    bare = unescaped(made)
    assert bare.count("{") == bare.count("}")
    assert bare.count("$") % 2 == 0


def test_csv_has_one_row_for_each_number_with_its_key() -> None:
    text = Cell(kind="text", text="< 0.001")
    made = csv_text([table(number(), text, Cell(), name=EVIL), table(number(), run=None, condition="")], ("r", "s"))
    rows = list(csv.DictReader(io.StringIO(made)))
    heads = "table,run,condition,Cue,column,value,low,high,scored,asked,note,key"
    assert made.splitlines()[0] == heads
    assert len(rows) == 3  # an empty cell is no number
    first = rows[0]
    assert float(first["value"]) == pytest.approx(61.2) and float(first["low"]) == pytest.approx(55.0)
    assert (first["scored"], first["asked"], first["key"]) == ("40", "40", "1:funnel/x")
    assert (first["run"], first["condition"], first["table"]) == ("r", "enhance/audio", "things")
    assert first["Cue"].startswith("'=cmd")
    assert rows[1]["value"] == "< 0.001"
    assert rows[2]["run"] == ""


def test_tables_of_different_names_share_one_csv() -> None:
    other = PartTable("b", "B", "", ("Level", "Cue"), ("A",), (Line(0, "", ("cue", "sad"), (number(),)),))
    rows = list(csv.DictReader(io.StringIO(csv_text([table(number()), other], ("r",)))))
    assert [(row["Cue"], row["Level"]) for row in rows] == [("a cue", ""), ("sad", "cue")]
