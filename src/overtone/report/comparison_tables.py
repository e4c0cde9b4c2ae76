"""A comparison of two runs as tables, for the terminal, as Markdown, and for a page."""

from __future__ import annotations

from typing import IO

from overtone.display.table_data import BASES, Cell, Line, PartTable, text_cell
from overtone.report.table_formats import make_console, markdown_rows, plain, safe, to_terminal
from overtone.report.table_formats import markdown as written
from overtone.results.comparison import Change, Comparison, Flip, Flips
from overtone.results.comparison_text import change, sentences
from overtone.results.significance import p_number
from overtone.text import NONE, by_kind

SHOWN = 10  # flipped cases in a table; --format json has all
HINT = (
    "The mean of second minus first over items with a score in both runs; in brackets the 95 % interval of this row "
    "alone. p: two-sided paired test clustered by script. p, Holm: corrected for all headline measures and "
    "conditions, or for all cues of a measure; unvalidated cues are a separate family. No p: too few scripts to test. "
    "Run-to-run ±x: the difference is smaller than the spread between repeats of the same run."
)


def tables(comparison: Comparison) -> list[PartTable]:
    """Return the tables of a comparison that have a value: all items first, then each measure by cue."""
    made = []
    for table in comparison.tables:
        if not any(row.by.scored for row in table.rows):
            continue
        by_cue = any(row.cue for row in table.rows)
        names = ("cue",) if by_cue else ("measure", "level", "over")
        heads = (comparison.first, comparison.second, "difference", "p", "p, Holm", "pairs", "worse", "better", "")
        lines = tuple(Line(0, row.condition, _names(row, by_cue), _cells(row)) for row in table.rows)
        made.append(PartTable(table.key, table.title, HINT, names, heads, lines))
    return made


def _names(row: Change, by_cue: bool) -> tuple[str, ...]:
    if by_cue:
        return (row.cue + (" (not validated)" if row.basis == "unvalidated" else ""),)
    return (row.label, str(row.level), BASES.get(row.basis, row.basis))


def _cells(row: Change) -> tuple[Cell, ...]:
    both = f"{row.by.scored:,} of {row.by.asked:,}"
    once = row.only_first + row.only_second
    return (
        text_cell(by_kind(row.first, row.shown, row.digits)),
        text_cell(by_kind(row.second, row.shown, row.digits)),
        Cell(
            row.by,
            "points" if row.shown == "percent" else "number",
            difference(row),
            f"run-to-run ±{change(row.noise, row).lstrip('+')}" if row.within_noise else "",
            row.digits,
        ),
        text_cell(_p(row, row.p)),
        text_cell(_p(row, row.adjusted)),
        text_cell(both, small=f"{once:,} scored once" if once else ""),
        text_cell(f"{row.worse:,}"),
        text_cell(f"{row.improved:,}"),
        text_cell(row.verdict),
    )


def _p(row: Change, p: float | None) -> str:
    """Format a p-value; a dash if the difference cannot be tested."""
    return NONE if row.short_of else p_number(p)


def difference(row: Change) -> str:
    """Format a difference as `+4.2 [1.0 to 7.4]`, in points or on the measure's own scale."""
    if row.by.value is None:
        return NONE
    between = f" [{change(row.by.low, row)} to {change(row.by.high, row)}]" if row.by.low is not None else ""
    return change(row.by.value, row) + (between or f" ({row.by.note})")


def facts(comparison: Comparison) -> list[str]:
    """Return sentences on the compared items, the items that could not be paired, and the differences between the
    runs, then the notes."""
    lines = [
        f"first: {comparison.first} ({comparison.first_model or 'model not named'})",
        f"second: {comparison.second} ({comparison.second_model or 'model not named'})",
        f"{comparison.shared:,} asks in both, {comparison.only_first:,} in the first only, "
        f"{comparison.only_second:,} in the second only",
    ]
    if comparison.conditions_apart:
        lines.append(f"conditions in one run only: {', '.join(comparison.conditions_apart)}")
    lines += [f"THESE RUNS ARE NOT COMPARABLE: {one}" for one in comparison.unlike]
    return [*lines, *(f"note: {note}" for note in comparison.notes)]


def listed(flips: Flips) -> list[tuple[str, tuple[Flip, ...], int]]:
    """Return (heading, changed cases, total) for each direction of change that has cases."""
    heads = ("right → wrong", "wrong → right") if flips.right_or_wrong else ("largest losses", "largest gains")
    both = ((heads[0], flips.worse, flips.worse_total), (heads[1], flips.improved, flips.improved_total))
    return [(head, flips_of, total) for head, flips_of, total in both if total]


def _of(flips: Flips) -> str:
    over = f", {BASES[flips.basis]}" if flips.basis in BASES and flips.basis else ""
    return f"{flips.label}, {flips.condition}{over}"


def _moved(flip: Flip) -> str:
    if flip.was or flip.now:
        return f"{flip.was or 'unread'} → {flip.now or 'unread'}"
    return f"{flip.first:.3g} → {flip.second:.3g}"


# ── the terminal ────────────────────────────────────────────────────────────────────────────────────────────────────


def print_comparison(comparison: Comparison, file: IO[str] | None = None, *, width: int | None = None) -> None:
    """Print a comparison to the terminal, or to `file`."""
    console = make_console(file, width)
    for text in (*facts(comparison), *(sentence.text for sentence in sentences(comparison))):
        console.print(safe(text), soft_wrap=True)
    to_terminal(console, tables(comparison))
    if comparison.tables:
        console.print("percent and percentage points, or the measure's own scale; 95 % intervals by script")
    for flips in comparison.flips:
        for head, cases, total in listed(flips):
            console.print(f"[bold]{safe(_of(flips))}: {head}[/bold] ({total:,})")
            for flip in cases[:SHOWN]:
                console.print(
                    f"  {safe(flip.item)}  {safe(flip.cue or 'neutral')}  {safe(_moved(flip))}", soft_wrap=True
                )
            if total > len(cases[:SHOWN]):
                console.print(f"  … and {total - len(cases[:SHOWN]):,} more")


# ── Markdown ────────────────────────────────────────────────────────────────────────────────────────────────────────


def markdown(comparison: Comparison) -> str:
    """Return a comparison as Markdown."""
    lines = [f"# {plain(comparison.second)} against {plain(comparison.first)}", ""]
    lines += [f"- {plain(line)}" for line in facts(comparison)]
    lines += ["", *(f"- {plain(sentence.text)}" for sentence in sentences(comparison))]
    lines += ["", *written(tables(comparison), hints=False).splitlines()]
    for flips in comparison.flips:
        for head, cases, total in listed(flips):
            lines += ["", f"## {plain(_of(flips))}: {head} ({total:,})", ""]
            lines += markdown_rows(
                ["item", "cue", ""], [[f.item, f.cue or "neutral", _moved(f)] for f in cases[:SHOWN]]
            )
    return "\n".join(lines) + "\n"
