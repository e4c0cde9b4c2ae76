"""What people said of replies: label files of several layouts, read into one form and checked line by line.

A layout is recognised by its content: our own table (CSV, JSON Lines, a JSON list), iEval's chats, PandaLM's pairs.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from msgspec import Struct

from overtone.errors import DataError
from overtone.paths import read_plain, shown

UNREAD = "unread"  # the value of a recorded verdict that was not understood
LARGEST = 512 * 1024 * 1024  # bytes of a label file


class Unit(Struct, frozen=True):
    """One thing people rated: a reply, or a pair of replies. `group` is what it shares with others: script, prompt.

    `systems` names who made it: "reply", or "a" and "b" of a pair. `condition` and `repeat` say which reply of a run.
    """

    id: str
    group: str
    texts: dict[str, str] = {}
    sounds: dict[str, Path] = {}
    systems: dict[str, str] = {}
    style: str = ""
    condition: str = ""
    repeat: int = 0
    where: str = ""  # line of the file, for messages

    @property
    def suffix(self) -> str:
        """What its id has behind the item's, so that replies to one item are units of their own."""
        return suffix(self.condition, self.repeat)


def suffix(condition: str, repeat: int) -> str:
    return (f"@{condition}" if condition else "") + (f"#{repeat}" if repeat else "")


class Rating(Struct, frozen=True):
    """What one rater said of one unit in one dimension: a number, or one of a few words ("A", "tie", "yes")."""

    unit: str
    rater: str
    dimension: str
    value: float | str
    where: str = ""


class Row(Struct, frozen=True):
    """One row of a file, by column. `where` is its line, for messages."""

    where: str  # "line 7"
    cells: dict[str, object]


class Labels(Struct, frozen=True):
    """A label file in memory. `rubric` is the one made for its layout, where there is one."""

    path: Path
    layout: str
    units: dict[str, Unit]
    ratings: list[Rating]
    rubric: str = ""
    notes: tuple[str, ...] = ()

    @property
    def dimensions(self) -> list[str]:
        """In the order of their first rating."""
        return list(dict.fromkeys(rating.dimension for rating in self.ratings))

    def of(self, dimension: str) -> dict[str, dict[str, Rating]]:
        """Unit → rater → rating, of one dimension."""
        found: dict[str, dict[str, Rating]] = {}
        for rating in self.ratings:
            if rating.dimension == dimension:
                found.setdefault(rating.unit, {})[rating.rater] = rating
        return found


def read(path: Path, dimensions: Collection[str] = (), *, repeated: bool = False) -> Labels:
    """Read a label file; DataError with the line where something is wrong.

    `dimensions` names columns that hold ratings although their values are words. With `repeated`, the same rater may
    rate a unit again: the ratings of a judge that was asked several times.
    """
    from overtone.judge_trust.labels import _ieval, _pandalm, _table

    rows = table_rows(path)
    if not rows:
        columns = "id, and dimension and value or a column per dimension"
        raise DataError(f"{shown(str(path))}: holds no rows; a label file has {columns}")
    first = rows[0].cells
    if _ieval.recognise(first):
        labels = _ieval.labels(path, rows)
    elif _pandalm.recognise(first):
        labels = _pandalm.labels(path, rows)
    else:
        labels = _table.labels(path, rows, dimensions, repeated)
    if not labels.ratings:
        raise DataError(f"{shown(str(path))}: holds {len(labels.units)} units and not one rating")
    return labels


def table_rows(path: Path) -> list[Row]:
    """The rows of a file that is CSV, JSON Lines or a JSON list, as they are."""
    from overtone.judge_trust.labels import _table

    data = read_plain(path, LARGEST)
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise DataError(f"{shown(str(path))}: is written in UTF-16; save it as UTF-8")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DataError(f"{shown(str(path))}, line {line}: is not UTF-8; save the file as UTF-8") from None
    return _table.rows(path, text)
