"""Overtone's label layout, as CSV or JSON: one row per rating (long), or one column per dimension (wide)."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Collection
from pathlib import Path

import msgspec

from overtone.errors import DataError
from overtone.judge_trust.labels import Labels, Rating, Row, Unit, suffix
from overtone.paths import inside, shown
from overtone.spec import suggest

SOUNDS = {"clip": "clip", "a": "a", "b": "b"}  # and NAME_sound for any of clip, reply, a, b
SYSTEMS = {"system": "reply", "system_a": "a", "system_b": "b"}
PLAIN = ("id", "group", "rater", "dimension", "value", "style", "condition", "repeat", *SYSTEMS)
OF_THE_ANSWER = (  # columns of the studio's export about an answer, not about what was rated
    "study", "run", "unit", "item", "session", "order", "kind", "usable", "payable", "at", "ms", "headphones", "swap",
    "second_first", "sound", "remark", "typed",
)  # fmt: skip
TEXTS = ("cue", "topic", "words", "context", "reply", "reply_a", "reply_b", "reference", "note")
UNUSABLE = ("0", "no", "false")
WORDS = {"a", "b", "tie", "yes", "no"}  # a wide column with only these words has ratings


def rows(path: Path, text: str) -> list[Row]:
    """Return the rows of a CSV, JSON Lines or JSON list file. The first character decides which it is."""
    start = text.lstrip()[:1]
    if start == "[":
        return _json_list(path, text)
    if start == "{":
        return _json_lines(path, text)
    return _csv(path, text)


def _json_list(path: Path, text: str) -> list[Row]:
    try:
        objects = msgspec.json.decode(text, type=list[dict[str, object]])
    except (msgspec.DecodeError, RecursionError) as error:
        raise DataError(f"{shown(str(path))}: is not a JSON list of objects: {error}") from None
    return [Row(f"row {number}", cells) for number, cells in enumerate(objects, 1)]


def _json_lines(path: Path, text: str) -> list[Row]:
    rows = []
    decoder = msgspec.json.Decoder(dict[str, object])
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            rows.append(Row(f"line {number}", decoder.decode(line)))
        except (msgspec.DecodeError, RecursionError) as error:
            raise DataError(f"{shown(str(path))}, line {number}: is not a JSON object: {error}") from None
    return rows


def _csv(path: Path, text: str) -> list[Row]:
    head = text.split("\n", 1)[0]
    delimiter = max(",;\t", key=head.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True, strict=True)
    rows: list[Row] = []
    names: list[str] = []
    started = 1
    try:
        for cells in reader:
            where, started = started, reader.line_num + 1
            if not any(cell.strip() for cell in cells):
                continue
            if not names:
                names = [cell.strip() for cell in cells]
                if len(set(names)) < len(names) or "" in names:
                    raise DataError(f"{shown(str(path))}, line {where}: a column name is missing or repeated")
                continue
            if len(cells) != len(names):
                raise DataError(
                    f"{shown(str(path))}, line {where}: has {len(cells)} fields, the first line {len(names)}; "
                    "put fields with a comma or a line break in quotes"
                )
            rows.append(Row(f"line {where}", dict(zip(names, cells, strict=True))))
    except csv.Error as error:
        raise DataError(f"{shown(str(path))}, line {reader.line_num}: {error}") from None
    return rows


def labels(path: Path, rows: list[Row], dimensions: Collection[str], repeated: bool) -> Labels:
    """Read the units and ratings of Overtone's layout."""
    columns = list(dict.fromkeys(name for row in rows for name in row.cells))
    if "id" not in columns:
        near = suggest("id", columns)
        raise DataError(
            f"{shown(str(path))}: has no column 'id'{near}; it has {', '.join(map(shown, columns[:12]))}. "
            "A label file has id, and dimension and value or one column per dimension"
        )
    if ("dimension" in columns) != ("value" in columns):
        raise DataError(f"{shown(str(path))}: 'dimension' and 'value' need each other; one of them is missing")
    wide = [] if "dimension" in columns else _rating_columns(columns, rows, dimensions)
    if "dimension" not in columns and not wide:
        raise DataError(
            f"{shown(str(path))}: no column has ratings; use dimension and value, or a column of numbers per dimension"
        )
    reader = _Reader(path, wide, repeated)
    for row in rows:
        reader.add(row)
    notes = () if "group" in columns else ("no column 'group': every unit counts as its own cluster",)
    return Labels(path, "long" if "dimension" in columns else "wide", reader.units, reader.ratings, notes=notes)


def _rating_columns(columns: list[str], rows: list[Row], dimensions: Collection[str]) -> list[str]:
    """Return the columns of a wide file that hold ratings: those in `dimensions`, and any of only numbers or WORDS."""
    rated = []
    for name in columns:
        if name in dimensions and name not in ("id", "rater"):
            rated.append(name)
        elif name not in (*PLAIN, *TEXTS, *OF_THE_ANSWER) and name not in SOUNDS and not name.endswith("_sound"):
            given = [text for row in rows if (text := _text(row.cells.get(name)))]
            if given and all(_is_number(text) or text.lower() in WORDS for text in given):
                rated.append(name)
    return rated


class _Reader:
    """Collects units and ratings row by row."""

    def __init__(self, path: Path, wide: list[str], repeated: bool) -> None:
        self.path, self.wide, self.repeated = path, wide, repeated
        self.units: dict[str, Unit] = {}
        self.ratings: list[Rating] = []
        self._seen: dict[tuple[str, str, str], str] = {}

    def fail(self, row: Row, text: str) -> DataError:
        return DataError(f"{shown(str(self.path))}, {row.where}: {shown(text)}")

    def add(self, row: Row) -> None:
        """Add a row. An answer of a session that a study found not usable is left out."""
        if _text(row.cells.get("usable")).lower() in UNUSABLE:
            return
        unit = self._unit(row)
        earlier = self.units.get(unit.id)
        self.units[unit.id] = unit if earlier is None else self._merged(row, earlier, unit)
        if self.wide:
            given = [(name, row.cells.get(name)) for name in self.wide]
        else:
            name = _text(row.cells.get("dimension"))
            if not name:
                raise self.fail(row, "has no dimension")
            given = [(name, row.cells.get("value"))]
        rater = _text(row.cells.get("rater"))
        for dimension, value in given:
            if _text(value):
                self._rate(row, unit.id, rater, dimension, self._value(row, dimension, value))

    def _rate(self, row: Row, unit: str, rater: str, dimension: str, value: float | str) -> None:
        name = rater or "1"
        number = 1
        while (unit, name, dimension) in self._seen:
            if rater and not self.repeated:
                before = self._seen[unit, name, dimension]
                raise self.fail(row, f"{rater!r} rates {unit!r} in {dimension!r} again, after {before}")
            number += 1
            name = f"{rater}#{number}" if rater else str(number)
        self._seen[unit, name, dimension] = row.where
        self.ratings.append(Rating(unit, name, dimension, value, row.where))

    def _value(self, row: Row, dimension: str, value: object) -> float | str:
        text = _text(value)
        if not _is_number(text):
            return text
        number = float(text)
        if not math.isfinite(number):
            raise self.fail(
                row, f"{dimension!r} is {text}, which is not a rating; leave the field empty if there is none"
            )
        return number

    def _unit(self, row: Row) -> Unit:
        name = _text(row.cells.get("id"))
        if not name:
            raise self.fail(row, "has no id")
        texts: dict[str, str] = {}
        sounds: dict[str, Path] = {}
        for column, value in row.cells.items():
            key = column.removesuffix("_sound") if column.endswith("_sound") else SOUNDS.get(column)
            text = _text(value)
            if not text or column in PLAIN or column in OF_THE_ANSWER or column in self.wide:
                continue
            if key is None:
                texts[column] = text
            else:
                sounds[key] = self._sound(row, column, text)
        repeat = _text(row.cells.get("repeat")) or "0"
        if not repeat.isdecimal():
            raise self.fail(row, f"repeat must be a whole number from 0, not {repeat!r}")
        condition = _text(row.cells.get("condition"))
        return Unit(
            name + suffix(condition, int(repeat)),
            _text(row.cells.get("group")) or name,
            texts,
            sounds,
            {key: text for column, key in SYSTEMS.items() if (text := _text(row.cells.get(column)))},
            _text(row.cells.get("style")),
            condition,
            int(repeat),
            row.where,
        )

    def _sound(self, row: Row, column: str, text: str) -> Path:
        try:
            path = inside(self.path.parent, text)
        except DataError as error:
            raise self.fail(row, f"{column}: {error}") from None
        if not path.is_file():
            raise self.fail(row, f"{column}: there is no file {text!r} next to the label file")
        return path

    def _merged(self, row: Row, earlier: Unit, unit: Unit) -> Unit:
        """Merge a unit with its earlier rows. A row may lack texts but must not contradict earlier ones."""
        changed = {}
        for field in ("texts", "sounds", "systems"):
            old, new = getattr(earlier, field), getattr(unit, field)
            for key in old.keys() & new.keys():
                if old[key] != new[key]:
                    raise self.fail(row, f"{key!r} of {unit.id!r} differs from {earlier.where}; use another id")
            if new.keys() - old.keys():
                changed[field] = {**new, **old}
        for field in ("group", "style"):
            given = field != "group" or _text(row.cells.get("group"))
            if given and getattr(unit, field) not in ("", getattr(earlier, field)):
                raise self.fail(row, f"{field} of {unit.id!r} differs from {earlier.where}; use another id")
        return msgspec.structs.replace(earlier, **changed) if changed else earlier


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value.strip() if isinstance(value, str) else str(value)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text
