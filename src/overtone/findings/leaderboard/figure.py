"""The figure of the leaderboard."""

from __future__ import annotations

from collections.abc import Sequence

from overtone.display.axes import SMALL, Entry, Spot, axis, close, domain, fitted, label, legend, page, placed, spot
from overtone.display.drawing import Dot, Drawing, Scale, Words, series, shortened, width_of, wrapped
from overtone.findings.figure_source import FigureSource, NothingToDraw
from overtone.findings.leaderboard.compute import SIGNATURE, Board, Leaderboard, Place
from overtone.text import number

ROW = 9.5


def draw(source: FigureSource, width: float) -> Drawing:
    """Draw the three leaderboards of EchoMind's paper: the paper's models in grey, the runs in colour.

    A hollow mark is a run that was not measured as in the paper. Every board has its own order.
    """
    result = source.results_of("leaderboard", Leaderboard)[0]
    board_data = result.data
    boards = [board for board in board_data.boards if any(p.entrant.run is not None for p in board.places)]
    if not boards:
        raise NothingToDraw(
            "no run has the columns of a board: voice and reasoning accuracy (overtone run … --levels 1,2), or VES, or "
            "C1 and C4 of judged replies (overtone score RUN --judge SPEC)"
        )
    drawing, y = page(
        width,
        "Among the models of the paper",
        "Grey: as published, best of three prompts, without intervals. Coloured: these runs, with their 95 % "
        "intervals, clustered by script; before a name, the ranks that the interval leaves open.",
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
    drawing.text = " ".join(s.text for s in result.sentences)
    return close(drawing, y - 6, _notes(board_data, boards), SIGNATURE)


def _alike(place: Place, board: Board) -> bool:
    return all(place.entrant.cells[c].alike for c in board.columns)


def _board(drawing: Drawing, y: float, board: Board, source: FigureSource) -> float:
    for line in wrapped(board.title, drawing.width, SMALL, bold=True):
        y += 8.5
        drawing.words(0, y, line, size=SMALL, bold=True)
    y += 4
    places = board.places
    digits = 1 if "accuracy" in board.columns[0] else 2
    ranks = [_ranks(p) for p in places]
    names = [p.entrant.name if p.entrant.run is None else source.labels[p.entrant.run] for p in places]
    widest = max(width_of(number(p.score.value or 0.0, digits), SMALL, bold=True) for p in places)
    rank = max(width_of(text, SMALL) for text in ranks) + 5
    room = min(max(width_of(n, SMALL, bold=True) for n in names), 0.36 * drawing.width)
    own = fitted(source.labels, room, 1.13 * SMALL)  # bold text is wider
    cut = [
        shortened(n, room, SMALL, middle=True) if p.entrant.run is None else own[p.entrant.run]
        for p, n in zip(places, names, strict=True)
    ]
    scale = placed(domain([p.score for p in places]), rank + room + 10, drawing.width - widest - 8)
    unit = "percent" if digits == 1 else "rating, 1 to 5"
    below = axis(drawing, scale, y, y + ROW * len(places), "number", unit)
    for place, rank_text, name, short in zip(places, ranks, names, cut, strict=True):
        middle = y + ROW / 2
        ours = place.entrant.run is not None
        drawing.words(rank - 5, middle + 2.5, rank_text, size=SMALL, ink="quiet", anchor="end")
        label(drawing, rank, middle + 2.5, name, short, size=SMALL, bold=ours, ink="ink" if ours else "quiet")
        _place(drawing, middle, place, board, scale, f"{name}, rank {place.rank} of {len(places)}", digits)
        y += ROW
    return below


def _place(drawing: Drawing, y: float, place: Place, board: Board, scale: Scale, name: str, digits: int) -> None:
    value = number(place.score.value or 0.0, digits)
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


def _notes(data: Leaderboard, boards: Sequence[Board]) -> list[str]:
    """Return notes: the source of the numbers, then the differences in measurement, those on all boards first."""
    notes = [f"Published: {data.source}."]
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
    notes += [f"No run has the columns of “{b.title}”." for b in data.boards if b not in boards]
    return notes
