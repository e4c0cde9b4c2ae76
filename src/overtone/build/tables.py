"""Read the CSV tables that users write: in UTF-8, with a header. Errors name the file and the line."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from overtone.errors import DataError
from overtone.paths import read_plain, shown

_MAX_BYTES = 50_000_000
_NO_NAMES: Mapping[str, Sequence[str]] = MappingProxyType({})


def read_table(
    path: Path, needed: Sequence[str], other_names: Mapping[str, Sequence[str]] = _NO_NAMES
) -> list[tuple[str, dict[str, str]]]:
    """Return the rows of a table, each with its place ("FILE, line N") for error messages.

    A needed column may also have one of its `other_names`. Missing cells are "". Raises DataError if a needed column is
    missing.
    """
    try:
        reader = csv.DictReader(io.StringIO(read_plain(path, _MAX_BYTES).decode("utf-8-sig"), newline=""))
        header = [name.strip() for name in reader.fieldnames or ()]
        rows = [{key.strip(): value or "" for key, value in row.items() if isinstance(key, str)} for row in reader]
    except UnicodeDecodeError:
        raise DataError(f"{shown(str(path))}: not UTF-8; save it as CSV in UTF-8") from None
    except csv.Error as error:
        raise DataError(f"{shown(str(path))}: not a table: {error}") from None
    names: dict[str, str] = {}
    for column in needed:
        spellings = (column, *other_names.get(column, ()))
        name = next((spelling for spelling in spellings if spelling in header), "")
        if not name:
            columns = f"it has: {shown(', '.join(header))}"
            raise DataError(f"{shown(str(path))}: no column {' or '.join(spellings)}; {columns}")
        names[column] = name
    return [
        (f"{shown(str(path))}, line {number}", row | {column: row.get(name, "") for column, name in names.items()})
        for number, row in enumerate(rows, 2)
    ]
