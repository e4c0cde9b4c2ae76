"""What every benchmark is: files that become items, in a fixed order, with the warnings met on the way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal, Protocol

from overtone.schema import Item


class Benchmark(Protocol):
    """What `load(data)` of a file in this room returns.

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

    def items(
        self, levels: frozenset[int], styles: frozenset[str], asr: Literal["target", "all"]
    ) -> Iterator[Item]: ...
