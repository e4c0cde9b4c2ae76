"""The tables of the leaderboard: the paper's three boards with the runs, and footnotes on every difference."""

from __future__ import annotations

from overtone.display.table_data import Cell, Line, PartTable
from overtone.findings.finding import FindingResult, Settings
from overtone.findings.finding_cells import DEFAULT
from overtone.findings.leaderboard.compute import Board, Entrant, Leaderboard, Place
from overtone.findings.leaderboard.compute import Cell as Entry
from overtone.results.published import COLUMNS
from overtone.text import number

BREAKDOWNS = ("overall",)
HINT = (
    "The paper’s rows are as printed, without intervals; ▸ marks runs, with their intervals. Footnotes say how a "
    "measurement differs from the paper’s: with a footnote, a rank is only a guide. The paper’s models use the best of "
    "three prompts, runs the one named."
)


def make_tables(
    result: FindingResult[Leaderboard], by: str = "overall", settings: Settings = DEFAULT
) -> list[PartTable]:
    """Make a table for each board; with `by="all"`, also a table with every column of the paper."""
    names = _names(result.data)
    made = [_board(board, names) for board in result.data.boards]
    return [*made, _entrants(result.data, names)] if by == "all" else made


def _board(board: Board, names: dict[str, str]) -> PartTable:
    columns = [c for c in COLUMNS if c.key in board.columns]
    shown = columns if len(columns) > 1 else []
    runs = any(place.entrant.run is not None for place in board.places)
    lines = []
    for place in board.places:
        entrant = place.entrant
        ranks = (_ranks(board, place),) if runs else ()
        cells = (_score(board, place), *ranks, *(_entry(entrant, c.key) for c in shown))
        lines.append(Line(None, "", (str(place.rank), names[entrant.key]), cells))
    score = "Mean ↑" if shown else columns[0].title
    absent = f" Without these numbers: {', '.join(board.absent)}." if board.absent else ""
    heads = (score, *(("Ranks left open",) if runs else ()), *(c.title for c in shown))
    return PartTable(f"leaderboard/{board.key}", board.title, HINT + absent, ("Rank", "Model"), heads, tuple(lines))


def _score(board: Board, place: Place) -> Cell:
    """Make the cell with the number that a board sorts by, and the footnotes of the columns it is computed from."""
    entrant = place.entrant
    if entrant.run is None:
        return _printed(place.score.value)
    cells = [entrant.cells[column] for column in board.columns]
    return Cell(
        place.score,
        "number",
        title="; ".join(dict.fromkeys(text for c in cells for text in (*c.differs, *c.untold))),
        key=f"{entrant.key}/{board.key}",
        notes=tuple(dict.fromkeys(text for c in cells for text in c.differs)),
    )


def _entry(entrant: Entrant, column: str) -> Cell:
    entry: Entry = entrant.cells[column]
    if entrant.run is None or entry.estimate is None:
        return _printed(entry.value)
    title = "; ".join((*entry.differs, *entry.untold))
    return Cell(entry.estimate, "number", title=title, key=f"{entrant.key}/{column}", notes=entry.differs)


def _printed(value: float | None) -> Cell:
    return Cell(kind="text", text=number(value))


def _ranks(board: Board, place: Place) -> Cell:
    if place.sure is None:
        return Cell(kind="text", text="")
    first, last = place.sure
    words = str(first) if first == last else f"{first} to {last}"
    return Cell(kind="text", text=words, key=f"{place.entrant.key}/{board.key}")


def _names(data: Leaderboard) -> dict[str, str]:
    """Return key → name of each row. A run's row shows its name (its key, if two runs share the name) and prompt."""
    given = [entrant.name for entrant in data.entrants if entrant.run is not None]
    names = {}
    for entrant in data.entrants:
        name = entrant.name
        if entrant.run is not None:
            prompt = entrant.condition.partition("/")[0]
            own = name if given.count(name) == 1 else entrant.key.rpartition("/")[2]
            name = f"▸ {own}" + (f", {prompt}" if prompt else "")
        names[entrant.key] = name
    return names


def _entrants(data: Leaderboard, names: dict[str, str]) -> PartTable:
    """Make a table with every row and every column of the paper."""
    lines = [Line(None, "", (names[e.key],), tuple(_entry(e, column.key) for column in COLUMNS)) for e in data.entrants]
    heads = tuple(column.title for column in COLUMNS)
    title = "All columns of the paper"
    return PartTable("leaderboard/columns", title, HINT, ("Model",), heads, tuple(lines))
