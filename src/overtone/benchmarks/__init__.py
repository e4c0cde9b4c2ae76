"""The interface of benchmarks: each turns files into items in a fixed order, and warns about files it leaves out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal, Protocol

from msgspec import Struct

from overtone.schema import PARTS, STYLES, Item


class Selection(Struct, frozen=True):
    """Which items a run asks. A benchmark may use it to read less; `selected` drops all items outside it."""

    levels: frozenset[int] = frozenset({1, 2, 3})
    styles: frozenset[str] = frozenset(STYLES)
    parts: frozenset[str] = frozenset(PARTS)
    asr: Literal["target", "all"] = "target"  # the styles whose clips are transcribed
    limit: int | None = None  # how many items the run asks, spread evenly; a benchmark that streams may stop early

    def includes(self, item: Item) -> bool:
        """Return whether an item is asked. Items without a style, or with one not in STYLES, are in every selection."""
        if item.level not in self.levels or (item.part or "core") not in self.parts:
            return False
        if item.style not in STYLES:
            return True
        skipped_asr = item.task == "transcribe" and item.style != "target" and self.asr == "target"
        return item.style in self.styles and not skipped_asr


class Benchmark(Protocol):
    """The object that `load(data)` of a file in this room returns.

    `prompts` holds only the benchmark's own texts, by key; `tasks.load_prompts(model, benchmark.prompts)` puts them in
    place of ours. Clip paths are relative to `root`; a clip's hash and length are filled in when the clip is read.
    """

    @property
    def name(self) -> str: ...
    @property
    def root(self) -> Path: ...
    @property
    def warnings(self) -> list[str]: ...
    @property
    def prompts(self) -> Mapping[str, str]: ...

    def items(self, selection: Selection) -> Iterator[Item]:
        """Yield the items in a fixed order. Items outside the selection are dropped by the caller."""
        ...


def selected(benchmark: Benchmark, selection: Selection) -> Iterator[Item]:
    """Yield the items of a benchmark that a selection includes."""
    return (item for item in benchmark.items(selection) if selection.includes(item))
