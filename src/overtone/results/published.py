"""The results EchoMind's authors published, twelve models in fourteen rows, beside our own measures.

The benchmark's file holds what is printed, and which of its columns is which measure of ours.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from overtone import registry
from overtone.results.measure_names import is_percent
from overtone.suite import Published

VARIANTS = ("Audio-Flamingo3+Think", "Audio-Flamingo3-chat")  # of a model that has a row of its own


def published() -> Published:
    """The table as printed."""
    found: Published = registry.find("benchmarks", "echomind").SUITE.published[0]
    return found


def papers() -> dict[str, dict[str, float | None]]:
    """Model → its values by the keys of COLUMNS; None where the paper prints a dash."""
    table = published()
    return {model: dict(zip(table.columns, values, strict=True)) for model, values in table.rows}


class PublishedColumn(Struct, frozen=True):
    """A column of the paper's tables. `measure` is our name of it."""

    key: str
    measure: str

    @property
    def kind(self) -> Literal["percent", "number"]:
        """Whether it is printed times 100."""
        return "percent" if is_percent(self.measure) else "number"

    @property
    def title(self) -> str:
        """As it heads the table, with an arrow to where it is better."""
        return published().columns[self.key]

    @property
    def label(self) -> str:
        return self.title.rpartition(" ")[0]

    @property
    def better(self) -> Literal["higher", "lower"]:
        return "lower" if self.title.endswith("↓") else "higher"


COLUMNS = tuple(PublishedColumn(key, measure) for key, measure in published().measures.items())
