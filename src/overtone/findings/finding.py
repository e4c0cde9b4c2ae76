"""The declaration of a finding, a question about runs. Each finding's module defines `FINDING = Finding(...)`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar

from msgspec import Struct

from overtone.display.drawing import Drawing
from overtone.display.table_data import PartTable
from overtone.results.case_names import KeyedCases
from overtone.results.load import Reading
from overtone.results.wording import Sentence
from overtone.stats.minimums import Minimum

if TYPE_CHECKING:
    from overtone.findings.figure_source import FigureSource


class Settings(Struct, frozen=True):
    """The user's choices. `options` maps the name of a finding to that finding's own parameters."""

    options: Mapping[str, Any] = {}
    prompt: str = ""  # "": the first of enhance, basic and zero that the runs have in common
    input: str = "audio"
    deaf: tuple[int, ...] = ()  # positions of runs whose models are known to get only the words
    source: str = ""  # a source's name, "all", or "" for the clips of the headline


class Data(Protocol):
    """The data that a finding computes: its rows, notes for the reader, and a signature that names its parameters.

    Its type must be one that msgspec can encode. If a row has a `key`, its cases can be looked up."""

    @property
    def notes(self) -> list[str]: ...

    @property
    def signature(self) -> str: ...


@dataclass(frozen=True)
class Inputs:
    """The inputs of one result: the runs, restricted to the clips that the finding uses, and the settings."""

    runs: Sequence[Reading]  # one run, the runs of one model, or all runs
    settings: Settings
    options: Any = None  # the finding's own parameters
    others: Sequence[Reading] = ()  # other runs of the same benchmark, if the finding reads them
    deaf: Sequence[Reading] = ()  # other runs whose models are known to get only the words

    @property
    def run(self) -> Reading:
        """The only run, for a finding with one result per run."""
        return self.runs[0]


D = TypeVar("D", bound=Data)


class FindingResult(Struct, Generic[D], frozen=True):
    """The answer to a finding's question, for the runs at the positions `runs`."""

    name: str
    finding: Finding[D]
    runs: tuple[int, ...]
    data: D
    sentences: tuple[Sentence, ...]
    failed: int = 0  # the number of failed requests, if no request was answered

    @property
    def prefix(self) -> str:
        """The first part of every full key: the run number, unless the finding is about all runs together."""
        return "" if self.finding.takes == "all" else f"{self.runs[0] + 1}:"

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the data, then the commands that supply missing data, without duplicates."""
        return tuple(dict.fromkeys((*self.data.notes, *self.advice)))

    @property
    def advice(self) -> tuple[str, ...]:
        """The commands that supply missing data."""
        if self.failed:
            return (
                f"no reply came: all {self.failed:,} requests failed; 'overtone report RUN' lists why, and the run's "
                "`overtone run` command retries what failed",
            )
        return tuple(self.finding.advice(self.data))


@dataclass(frozen=True, kw_only=True)
class Finding(Generic[D]):
    """A question about runs, with the functions that answer it and show the answer.

    A finding is named after its module. The keys of its rows begin with this name and "/", or with one of `keys`.
    """

    title: str
    question: str
    order: int  # findings are shown in this order; built-ins have 10, 20, …
    takes: Literal["run", "model", "all"]  # a result for each run, for the runs of each model, or for all runs together
    compute: Callable[[Inputs], D]
    sentences: Callable[[D], list[Sentence]]
    cases: Callable[[Inputs], Iterator[KeyedCases]]  # every number's key, with the cases that were counted
    tables: Callable[[FindingResult[D], str, Settings], list[PartTable]]  # takes the name of a breakdown, or "all"
    advice: Callable[[D], list[str]]  # the commands that supply missing data
    minimums: tuple[Minimum, ...] = ()  # the least data that its sentences need
    breakdowns: tuple[str, ...] = ("overall",)
    draw: Callable[[FigureSource, float], Drawing] | None = None  # its figure, at a width in points
    figures: tuple[str, ...] = ()  # further figures, by name, that the report shows with it
    clips: Literal["own", "shared", "all"] = "own"  # each run's headline source, a source that all share, or all
    reads_other_runs: bool = False  # including runs that the user names only as deaf
    one_benchmark: bool = False  # its measures must not be averaged over several benchmarks
    needs_runs: bool = True
    options: Struct | None = None  # its parameters, with their defaults
    keys: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # other first part of a key → its options
