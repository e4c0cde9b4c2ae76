"""The three leaderboards of EchoMind's paper: its models in grey, these runs in colour, marked where not alike."""

from __future__ import annotations

from collections.abc import Sequence

from overtone.analysis.leaderboard import SIGNATURE, Board, Leaderboard, Place
from overtone.report.drawing import Dot, Drawing, Scale, Words, series, shortened, width_of, wrapped
from overtone.report.figures import NothingToDraw, Source
from overtone.report.figures._axes import (
    SMALL,
    Entry,
    Spot,
    axis,
    close,
    domain,
    fitted,
    label,
    legend,
    page,
    placed,
    spot,
)

ROW = 9.5


def draw(source: Source, width: float) -> Drawing:
    """Every board in its own order."""
    found = source.findings("leaderboard")[0].found
    assert isinstance(found, Leaderboard)
    boards = [board for board in found.boards if any(p.entrant.run is not None for p in board.places)]
    if not boards:
        raise NothingToDraw(
            "no run has what a board sorts by: voice and reasoning accuracy (overtone run … --levels 1,2), or VES, or "
            "C1 and C4 of judged replies (overtone score RUN --judge SPEC)"
        )
    drawing, y = page(
        width,
        "Among the models of the paper",
        "Grey: as published, best of three prompts, without intervals. Coloured: these runs, with their 95 % interval "
        "by script; before a name the ranks that the interval leaves open.",
    )
    alike = [_alike(p, board) for board in boards for p in board.places if p.entrant.run is not None]
    entries = [Entry("published", "quiet")]
    if any(alike):
        entries.append(Entry("run", "s0", "square"))
    if not all(alike):
        entries.append(Entry("run, not measured as in the paper", "s0", "square", hollow=True))
    y = legend(drawing, 0, y, width, entries)
    for board in boards:
        y = _board(drawing, y, board, source) + 6
    drawing.text = " ".join(s.text for s in source.findings("leaderboard")[0].sentences)
    return close(drawing, y - 6, _notes(found, boards), SIGNATURE)


def _alike(place: Place, board: Board) -> bool:
    return all(place.entrant.cells[c].alike for c in board.columns)


def _board(drawing: Drawing, y: float, board: Board, source: Source) -> float:
    for line in wrapped(board.title, drawing.width, SMALL, bold=True):
        y += 8.5
        drawing.words(0, y, line, size=SMALL, bold=True)
    y += 4
    places = board.places
    digits = 1 if "accuracy" in board.columns[0] else 2
    ranks = [_ranks(p) for p in places]
    names = [p.entrant.name if p.entrant.run is None else source.labels[p.entrant.run] for p in places]
    number = max(width_of(f"{p.score.value or 0:.{digits}f}", SMALL, bold=True) for p in places)
    rank = max(width_of(text, SMALL) for text in ranks) + 5
    room = min(max(width_of(n, SMALL, bold=True) for n in names), 0.36 * drawing.width)
    own = fitted(source.labels, room, 1.13 * SMALL)  # bold ones are wider
    cut = [
        shortened(n, room, SMALL, middle=True) if p.entrant.run is None else own[p.entrant.run]
        for p, n in zip(places, names, strict=True)
    ]
    scale = placed(domain([p.score for p in places]), rank + room + 10, drawing.width - number - 8)
    unit = "percent" if digits == 1 else "rating, 1 to 5"
    below = axis(drawing, scale, y, y + ROW * len(places), "number", unit)
    for place, told, name, short in zip(places, ranks, names, cut, strict=True):
        middle = y + ROW / 2
        ours = place.entrant.run is not None
        drawing.words(rank - 5, middle + 2.5, told, size=SMALL, ink="quiet", anchor="end")
        label(drawing, rank, middle + 2.5, name, short, size=SMALL, bold=ours, ink="ink" if ours else "quiet")
        _place(drawing, middle, place, board, scale, f"{name}, rank {place.rank} of {len(places)}", digits)
        y += ROW
    return below


def _place(drawing: Drawing, y: float, place: Place, board: Board, scale: Scale, name: str, digits: int) -> None:
    value = f"{place.score.value or 0:.{digits}f}"
    if place.entrant.run is None:
        title = f"{name}: {value}, as published"
        drawing.add(Dot(scale(place.score.value or 0.0), y, "quiet", size=1.9, title=title))
        drawing.add(Words(drawing.width, y + 2.5, value, "quiet", SMALL, "end", title=title))
        return
    ink, shape = series(place.entrant.run)
    hollow = not _alike(place, board)
    one = Spot(place.score, name, f"{place.entrant.key}/{board.key}", ink, shape, hollow, "number", digits)
    drawing.add(*spot(scale, y, one, size=2.4))
    drawing.add(Words(drawing.width, y + 2.5, value, "ink", SMALL, "end", True, key=one.key, title=one.title))


def _ranks(place: Place) -> str:
    if place.sure is None or place.sure[0] == place.sure[1]:
        return str(place.rank)
    return f"{place.sure[0]}–{place.sure[1]}"


def _notes(found: Leaderboard, boards: Sequence[Board]) -> list[str]:
    """Where the numbers are from, and what was measured otherwise: what holds on all boards first."""
    notes = [f"Published: {found.source}."]
    differs = [
        list(dict.fromkeys(d for p in b.places if p.entrant.run is not None for c in b.columns
                           for d in p.entrant.cells[c].differs))
        for b in boards
    ]  # fmt: skip
    common = [d for d in differs[0] if all(d in other for other in differs)]
    if common:
        notes.append(f"Not as in the paper: {'; '.join(common)}.")
    for board, own in zip(boards, differs, strict=True):
        if more := [d for d in own if d not in common]:
            notes.append(f"{board.title.partition(':')[0]}, not as in the paper: {'; '.join(more)}.")
    notes += [f"No run has what “{b.title}” sorts by." for b in found.boards if b not in boards]
    return notes
