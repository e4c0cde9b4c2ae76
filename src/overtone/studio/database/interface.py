"""The store's view of a database: short transactions that are durable when they return, and clear errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from overtone.errors import StoreError, UsageError

T = TypeVar("T")
Row = tuple[Any, ...]

RATER_MESSAGE = "Your answer could not be saved at the moment. Keep this page open: it tries again by itself."


def statements(schema: str, serial: str) -> list[str]:
    """Return the statements of a schema file, in the dialect whose counting key is `serial`."""
    return [part for part in schema.replace("{serial}", serial).split(";\n") if part.strip()]


class Unavailable(StoreError):
    """The database cannot be reached or written at the moment. Nothing is lost, and the call may be repeated.

    The text is for the owner; `rater` is the text for the rater.
    """

    rater = RATER_MESSAGE


class MissingDatabase(UsageError):
    """The database does not exist. The text says only that, because the command that makes it names the study."""


class Connection(Protocol):
    """One transaction. SQL uses `?` for values, and only what both dialects understand."""

    for_update: str  # added to a SELECT whose rows must not change before the end of the transaction

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """Return the rows of a query."""
        ...

    def run(self, sql: str, values: Sequence[Any] = ()) -> int:
        """Change rows and return their number."""
        ...

    def many(self, sql: str, values: Iterable[Sequence[Any]]) -> None:
        """Run one statement for many rows."""
        ...

    def tables(self) -> set[str]:
        """Return the names of all tables."""
        ...

    def alone(self) -> None:
        """Wait until no other transaction that called this method is in progress, in any process."""
        ...


class Database(Protocol):
    """An open database. All methods can be called from several threads."""

    where: str  # for messages

    def read(self, work: Callable[[Connection], T]) -> T:
        """Return the result of `work`, which sees one consistent state."""
        ...

    def write(self, work: Callable[[Connection], T], *, repeatable: bool = False) -> T:
        """Run `work` as one transaction. It is on disk when this returns; an exception undoes all of it.

        `work` runs again if the connection was lost before the commit. If `repeatable` is true, it may also run again
        if it is unknown whether the commit arrived, because running it twice changes nothing.
        """
        ...

    def create(self, schema: str, fill: Callable[[Connection], None]) -> None:
        """Create the tables of `schema` and run `fill`, in one transaction, unless the database has tables."""
        ...

    def erase(self) -> None:
        """Remove the bytes of deleted values from the database's files, as far as it can."""
        ...

    def backup(self, path: Path) -> None:
        """Write a consistent copy to a new file, while the study runs."""
        ...

    def how_to_restore(self, path: Path) -> str:
        """Return the commands that restore a backup."""
        ...

    def close(self) -> None:
        """Close all connections."""
        ...
