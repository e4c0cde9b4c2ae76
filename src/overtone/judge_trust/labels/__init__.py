"""People's labels of replies: files of several layouts, read into one form and checked line by line.

The content decides the layout: Overtone's table (CSV, JSON Lines, a JSON list), iEval's chats or PandaLM's pairs.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from msgspec import Struct

from overtone.errors import DataError
from overtone.paths import read_plain, shown

UNREAD = "unread"  # value of a recorded verdict that could not be read
LARGEST = 512 * 1024 * 1024  # maximum bytes of a label file


class Unit(Struct, frozen=True):
    """A rated reply or pair of replies. Units with the same `group` (script, prompt) are not independent.

    `systems` names the models: "reply", or "a" and "b" of a pair. `condition` and `repeat` identify the reply of a run.
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
        """The part of the id after the item's id, which distinguishes replies to one item."""
        return suffix(self.condition, self.repeat)


def suffix(condition: str, repeat: int) -> str:
    """Return @CONDITION#REPEAT, without the parts that are empty or 0."""
    return (f"@{condition}" if condition else "") + (f"#{repeat}" if repeat else "")


class Rating(Struct, frozen=True):
    """One rater's rating of one unit in one dimension: a number, or one of a few words ("A", "tie", "yes")."""

    unit: str
    rater: str
    dimension: str
    value: float | str
    where: str = ""


class Row(Struct, frozen=True):
    """One row of a file: column → cell. `where` is the row's line number, for error messages."""

    where: str  # "line 7"
    cells: dict[str, object]


class Labels(Struct, frozen=True):
    """The contents of a label file. `rubric` is the rubric made for the file's layout, if there is one."""

    path: Path
    layout: str
    units: dict[str, Unit]
    ratings: list[Rating]
    rubric: str = ""
    notes: tuple[str, ...] = ()

    @property
    def dimensions(self) -> list[str]:
        """All dimensions in the order of their first rating."""
        return list(dict.fromkeys(rating.dimension for rating in self.ratings))

    def of(self, dimension: str) -> dict[str, dict[str, Rating]]:
        """Return unit → rater → rating for one dimension."""
        table: dict[str, dict[str, Rating]] = {}
        for rating in self.ratings:
            if rating.dimension == dimension:
                table.setdefault(rating.unit, {})[rating.rater] = rating
        return table


def read(path: Path, dimensions: Collection[str] = (), *, repeated: bool = False) -> Labels:
    """Read a label file. Raises DataError with the line of a mistake.

    `dimensions` names the columns whose ratings are words. With `repeated`, a rater may rate a unit several times, like
    a judge that is asked repeatedly.
    """
    from overtone.judge_trust.labels import _ieval, _pandalm, _table

    rows = table_rows(path)
    if not rows:
        columns = "id, and dimension and value or a column per dimension"
        raise DataError(f"{shown(str(path))}: has no rows; a label file has {columns}")
    first = rows[0].cells
    if _ieval.recognise(first):
        labels = _ieval.labels(path, rows)
    elif _pandalm.recognise(first):
        labels = _pandalm.labels(path, rows)
    else:
        labels = _table.labels(path, rows, dimensions, repeated)
    if not labels.ratings:
        raise DataError(f"{shown(str(path))}: has {len(labels.units)} units but no ratings")
    return labels


def table_rows(path: Path) -> list[Row]:
    """Return the unchanged rows of a CSV, JSON Lines or JSON list file."""
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
