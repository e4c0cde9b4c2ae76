"""The contract of benchmarks: files become items in a fixed order, with warnings about what was left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal, Protocol

from msgspec import Struct

from overtone.schema import PARTS, STYLES, Item


class Selection(Struct, frozen=True):
    """Which items a run asks. A benchmark reads what helps it and may ignore the rest: see `selected`."""

    levels: frozenset[int] = frozenset({1, 2, 3})
    styles: frozenset[str] = frozenset(STYLES)
    parts: frozenset[str] = frozenset(PARTS)
    asr: Literal["target", "all"] = "target"  # which clips are transcribed, where an utterance has several styles
    limit: int | None = None  # how many items the run asks, spread over all; a benchmark that streams may stop early

    def includes(self, item: Item) -> bool:
        """Return whether an item is asked. Items without a style, or with a benchmark's own style, are in every one."""
        if item.level not in self.levels or (item.part or "core") not in self.parts:
            return False
        if item.style not in STYLES:
            return True
        spoken_again = item.task == "transcribe" and item.style != "target" and self.asr == "target"
        return item.style in self.styles and not spoken_again


class Benchmark(Protocol):
    """The object that `load(data)` of a file in this room returns.

    `prompts` holds only the texts the benchmark brings itself, by key; `tasks.load_prompts(model, benchmark.prompts)`
    lays them over ours. Clip paths are relative to `root`; a clip's hash and length are filled in by who reads it.
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
