"""Runs among the models of the paper, as tables: its three boards, with footnotes where like is not held to like."""

from __future__ import annotations

from overtone.analysis.findings import Finding, Settings
from overtone.analysis.leaderboard import Board, Entrant, Leaderboard, Place
from overtone.analysis.leaderboard import Cell as Entry
from overtone.analysis.published import COLUMNS
from overtone.report.findings._cells import DEFAULT
from overtone.report.format import NONE
from overtone.report.table import Cell, Line, PartTable

BYS = ("overall",)
HINT = (
    "The paper’s rows are as printed, without intervals; ▸ marks runs, with theirs. Footnotes say what was measured "
    "otherwise than in the paper: there a rank is a guide. Replies of the paper’s models are under the best of three "
    "prompts, those of runs under the one named."
)


def tables(finding: Finding, *, by: str = "overall", settings: Settings = DEFAULT) -> list[PartTable]:
    found = finding.found
    assert isinstance(found, Leaderboard)
    called = _names(found)
    made = [_board(board, called) for board in found.boards]
    return [*made, _entrants(found, called)] if by == "all" else made


def _board(board: Board, called: dict[str, str]) -> PartTable:
    columns = [c for c in COLUMNS if c.key in board.columns]
    parts = columns if len(columns) > 1 else []
    runs = any(place.entrant.run is not None for place in board.places)
    lines = []
    for place in board.places:
        entrant = place.entrant
        ranks = (_ranks(board, place),) if runs else ()
        cells = (_score(board, place), *ranks, *(_entry(entrant, c.key) for c in parts))
        lines.append(Line(None, "", (str(place.rank), called[entrant.key]), cells))
    score = "Mean ↑" if parts else columns[0].title
    absent = f" Without these numbers: {', '.join(board.absent)}." if board.absent else ""
    heads = (score, *(("Ranks left open",) if runs else ()), *(c.title for c in parts))
    return PartTable(f"leaderboard/{board.key}", board.title, HINT + absent, ("Rank", "Model"), heads, tuple(lines))


def _score(board: Board, place: Place) -> Cell:
    """What a board sorts by. Of a single column it is that column's number, and marked like it."""
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
    found: Entry = entrant.cells[column]
    if entrant.run is None or found.estimate is None:
        return _printed(found.value)
    title = "; ".join((*found.differs, *found.untold))
    return Cell(found.estimate, "number", title=title, key=f"{entrant.key}/{column}", notes=found.differs)


def _printed(value: float | None) -> Cell:
    return Cell(kind="text", text=NONE if value is None else f"{value:.2f}")


def _ranks(board: Board, place: Place) -> Cell:
    if place.sure is None:
        return Cell(kind="text", text="")
    first, last = place.sure
    words = str(first) if first == last else f"{first} to {last}"
    return Cell(kind="text", text=words, key=f"{place.entrant.key}/{board.key}")


def _names(found: Leaderboard) -> dict[str, str]:
    """What each row is called: a run by its name, or by what tells it apart, with the prompt its replies are under."""
    given = [entrant.name for entrant in found.entrants if entrant.run is not None]
    names = {}
    for entrant in found.entrants:
        name = entrant.name
        if entrant.run is not None:
            prompt = entrant.condition.partition("/")[0]
            own = name if given.count(name) == 1 else entrant.key.rpartition("/")[2]
            name = f"▸ {own}" + (f", {prompt}" if prompt else "")
        names[entrant.key] = name
    return names


def _entrants(found: Leaderboard, called: dict[str, str]) -> PartTable:
    """Every column of the paper, for every row."""
    lines = [
        Line(None, "", (called[e.key],), tuple(_entry(e, column.key) for column in COLUMNS)) for e in found.entrants
    ]
    heads = tuple(column.title for column in COLUMNS)
    title = "All columns of the paper"
    return PartTable("leaderboard/columns", title, HINT, ("Model",), heads, tuple(lines))
