"""The outcome of a check for people and CI: lines for the terminal, short Markdown, JUnit XML."""

from __future__ import annotations

from xml.etree import ElementTree

from overtone.paths import shown
from overtone.report.table_formats import markdown_rows, plain
from overtone.results.checking import Check, sentences
from overtone.results.requirements import Checked

MARK = {"holds": "✓", "fails": "✗", "undecided": "?"}


def lines(outcome: Check) -> list[str]:
    """Return the lines for the terminal: one for each requirement, the notes, and the summary."""
    made = [f"{MARK[row.state]} {sentence}" for row, sentence in zip(outcome.rows, sentences(outcome), strict=True)]
    return [*map(shown, made), *(f"note: {shown(note)}" for note in outcome.notes), summary(outcome)]


def summary(outcome: Check) -> str:
    """Return one line with the number of requirements that hold, fail and are undecided."""
    counts = {state: sum(row.state == state for row in outcome.rows) for state in MARK}
    beside = f" beside {shown(outcome.baseline)}" if outcome.baseline else ""
    return (
        f"{shown(outcome.run)}{beside}: {counts['holds']} of {len(outcome.rows)} hold, "
        f"{counts['fails']} fail, {counts['undecided']} undecided"
    )


def markdown(outcome: Check) -> str:
    """Return a summary short enough for a pull request: the tests are named once, below the table."""
    cells = [[MARK[row.state], row.required, row.condition, row.brief or row.text] for row in outcome.rows]
    text = [f"**{plain(summary(outcome))}**", "", *markdown_rows(["", "required", "condition", "found"], cells)]
    tests = dict.fromkeys(row.test for row in outcome.rows if row.test)
    return "\n".join([*text, *(f"\n- {plain(note)}" for note in (*tests, *outcome.notes))]) + "\n"


def junit(outcome: Check) -> bytes:
    """Return one test case for each requirement: passed, failed, or an error if it is undecided."""
    suite = ElementTree.Element(
        "testsuite",
        name=f"overtone check {shown(outcome.run)}",
        tests=str(len(outcome.rows)),
        failures=str(sum(row.state == "fails" for row in outcome.rows)),
        errors=str(sum(row.state == "undecided" for row in outcome.rows)),
    )
    for row in outcome.rows:
        _case(suite, outcome, row)
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    written: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def _case(suite: ElementTree.Element, outcome: Check, row: Checked) -> None:
    name = shown(f"{row.required} ({row.condition})" if row.condition else row.required)
    case = ElementTree.SubElement(suite, "testcase", classname=shown(outcome.run), name=name)
    text = shown(row.text)
    if row.state == "holds":
        ElementTree.SubElement(case, "system-out").text = text
    else:
        kind = "failure" if row.state == "fails" else "error"
        ElementTree.SubElement(case, kind, message=text, type=row.state).text = text
