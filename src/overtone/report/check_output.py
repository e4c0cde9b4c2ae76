"""The outcome of a check for people and CI: lines for the terminal, short Markdown, JUnit XML."""

from __future__ import annotations

from xml.etree import ElementTree

from overtone.paths import shown
from overtone.report.table_formats import markdown_rows, plain
from overtone.results.checking import Check, sentences
from overtone.results.requirements import Checked

MARK = {"holds": "✓", "fails": "✗", "undecided": "?"}


def lines(found: Check) -> list[str]:
    """Return the lines for the terminal: one for each requirement, the notes, and the summary."""
    made = [f"{MARK[row.state]} {sentence}" for row, sentence in zip(found.rows, sentences(found), strict=True)]
    return [*map(shown, made), *(f"note: {shown(note)}" for note in found.notes), summary(found)]


def summary(found: Check) -> str:
    """Return one line with the number of requirements that hold, fail and are undecided."""
    counts = {state: sum(row.state == state for row in found.rows) for state in MARK}
    beside = f" beside {shown(found.baseline)}" if found.baseline else ""
    return (
        f"{shown(found.run)}{beside}: {counts['holds']} of {len(found.rows)} hold, "
        f"{counts['fails']} fail, {counts['undecided']} undecided"
    )


def markdown(found: Check) -> str:
    """Return a summary short enough for a pull request: the tests are named once, below the table."""
    cells = [[MARK[row.state], row.required, row.condition, row.brief or row.text] for row in found.rows]
    text = [f"**{plain(summary(found))}**", "", *markdown_rows(["", "required", "condition", "found"], cells)]
    tests = dict.fromkeys(row.test for row in found.rows if row.test)
    return "\n".join([*text, *(f"\n- {plain(note)}" for note in (*tests, *found.notes))]) + "\n"


def junit(found: Check) -> bytes:
    """Return one test case for each requirement: passed, failed, or an error if it is undecided."""
    suite = ElementTree.Element(
        "testsuite",
        name=f"overtone check {shown(found.run)}",
        tests=str(len(found.rows)),
        failures=str(sum(row.state == "fails" for row in found.rows)),
        errors=str(sum(row.state == "undecided" for row in found.rows)),
    )
    for row in found.rows:
        _case(suite, found, row)
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    written: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def _case(suite: ElementTree.Element, found: Check, row: Checked) -> None:
    name = shown(f"{row.required} ({row.condition})" if row.condition else row.required)
    case = ElementTree.SubElement(suite, "testcase", classname=shown(found.run), name=name)
    text = shown(row.text)
    if row.state == "holds":
        ElementTree.SubElement(case, "system-out").text = text
    else:
        kind = "failure" if row.state == "fails" else "error"
        ElementTree.SubElement(case, kind, message=text, type=row.state).text = text
