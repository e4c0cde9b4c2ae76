"""The published results of EchoMind's authors: twelve models in fourteen rows, with Overtone's names of the measures.

The benchmark's file holds the printed table and maps its columns to our measures.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from overtone import registry
from overtone.results.measure_names import is_percent
from overtone.suite import Published

VARIANTS = ("Audio-Flamingo3+Think", "Audio-Flamingo3-chat")  # rows that are variants of another row's model


def published() -> Published:
    """Return the table as printed."""
    table: Published = registry.find("benchmarks", "echomind").SUITE.published[0]
    return table


def papers() -> dict[str, dict[str, float | None]]:
    """Return model → key of COLUMNS → value; the value is None if the paper prints a dash."""
    table = published()
    return {model: dict(zip(table.columns, values, strict=True)) for model, values in table.rows}


class PublishedColumn(Struct, frozen=True):
    """A column of the paper's tables. `measure` is the name of Overtone's measure for this column."""

    key: str
    measure: str

    @property
    def kind(self) -> Literal["percent", "number"]:
        """The number format: "percent" if the paper prints the values times 100, otherwise "number"."""
        return "percent" if is_percent(self.measure) else "number"

    @property
    def title(self) -> str:
        """The column heading, with an arrow in the better direction."""
        return published().columns[self.key]

    @property
    def label(self) -> str:
        return self.title.rpartition(" ")[0]

    @property
    def better(self) -> Literal["higher", "lower"]:
        return "lower" if self.title.endswith("↓") else "higher"


COLUMNS = tuple(PublishedColumn(key, measure) for key, measure in published().measures.items())
