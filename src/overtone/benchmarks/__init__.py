"""The interface of benchmarks: each turns files into items in a fixed order, and warns about files it leaves out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal, Protocol

from msgspec import Struct

from overtone.schema import PARTS, STYLES, Item


class Selection(Struct, frozen=True):
    """The items that a run asks. A benchmark may use it to read fewer files; `selected` applies it."""

    levels: frozenset[int] = frozenset({1, 2, 3})
    styles: frozenset[str] = frozenset(STYLES)
    parts: frozenset[str] = frozenset(PARTS)
    asr: Literal["target", "all"] = "target"  # the styles whose clips are transcribed
    limit: int | None = None  # how many items the run asks, spread evenly; a benchmark that streams may stop early

    def includes(self, item: Item) -> bool:
        """Return whether an item is selected. An item whose style is not in STYLES is selected by its level and part
        alone."""
        if item.level not in self.levels or (item.part or "core") not in self.parts:
            return False
        if item.style not in STYLES:
            return True
        skipped_asr = item.task == "transcribe" and item.style != "target" and self.asr == "target"
        return item.style in self.styles and not skipped_asr


class Benchmark(Protocol):
    """The interface of a benchmark: every module of this package that defines one has a `load(data)` that returns it.

    `prompts` maps keys to the benchmark's own texts; `tasks.load_prompts(model, benchmark.prompts)` uses them in place
    of ours. Clip paths are relative to `root`; a clip's hash and length are filled in when the clip is read.
    It may have `origins(item)`, which yields a `heard.Origin` for each recording of an item that comes from a corpus. A
    run then marks the items that the model heard in training.
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
