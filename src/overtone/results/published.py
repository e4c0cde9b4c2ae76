"""The results that EchoMind's authors published, twelve models in fourteen rows, with our names of their measures.

The benchmark's file holds the printed table and maps its columns to our measures.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from overtone import registry
from overtone.results.measure_names import is_percent
from overtone.suite import Published

VARIANTS = ("Audio-Flamingo3+Think", "Audio-Flamingo3-chat")  # of a model that has a row of its own


def published() -> Published:
    """Return the table as printed."""
    table: Published = registry.find("benchmarks", "echomind").SUITE.published[0]
    return table


def papers() -> dict[str, dict[str, float | None]]:
    """Return each model's values by the keys of COLUMNS; None if the paper prints a dash."""
    table = published()
    return {model: dict(zip(table.columns, values, strict=True)) for model, values in table.rows}


class PublishedColumn(Struct, frozen=True):
    """A column of the paper's tables. `measure` is our name for it."""

    key: str
    measure: str

    @property
    def kind(self) -> Literal["percent", "number"]:
        """Whether it is printed times 100."""
        return "percent" if is_percent(self.measure) else "number"

    @property
    def title(self) -> str:
        """The head of the column, with an arrow in the better direction."""
        return published().columns[self.key]

    @property
    def label(self) -> str:
        return self.title.rpartition(" ")[0]

    @property
    def better(self) -> Literal["higher", "lower"]:
        return "lower" if self.title.endswith("↓") else "higher"


COLUMNS = tuple(PublishedColumn(key, measure) for key, measure in published().measures.items())
