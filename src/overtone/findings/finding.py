"""The declaration of a finding: a question put to runs. A module of this room holds `FINDING = Finding(...)`."""

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
    """The user's choices. `options` holds parameters of single findings by the finding's name."""

    options: Mapping[str, Any] = {}
    prompt: str = ""  # "": the first of enhance, basic and zero that the runs have in common
    input: str = "audio"
    deaf: tuple[int, ...] = ()  # positions of runs known to get no more than the words
    source: str = ""  # a source's name, "all", or "" for the clips of the headline


class Data(Protocol):
    """The data that a finding computes: its rows, notes for the reader, and a signature that names its parameters.

    It must be a type that msgspec can encode. A row with a `key` can be asked for its cases."""

    @property
    def notes(self) -> list[str]: ...

    @property
    def signature(self) -> str: ...


@dataclass(frozen=True)
class Inputs:
    """The runs that one result is computed from, narrowed to the clips that the finding is over."""

    runs: Sequence[Reading]  # one run, those of one model, or all
    settings: Settings
    options: Any = None  # the finding's own parameters
    others: Sequence[Reading] = ()  # other runs of the same benchmark, if the finding reads them
    deaf: Sequence[Reading] = ()  # and those known to get no more than the words

    @property
    def run(self) -> Reading:
        """The only run, for a finding of each run."""
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
        """The beginning of full keys: the number of the run, unless the finding is about all runs together."""
        return "" if self.finding.takes == "all" else f"{self.runs[0] + 1}:"

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the data, then the commands that supply missing data; each once."""
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
    """A question put to runs, and everything that it takes to answer it and to show the answer.

    The name of a finding is its module's. Keys of its rows begin with that name and "/", or with one of `keys`.
    """

    title: str
    question: str
    order: int  # findings are shown in this order; built-ins have 10, 20, …
    takes: Literal["run", "model", "all"]  # a result for each run, for the runs of each model, or for all runs together
    compute: Callable[[Inputs], D]
    sentences: Callable[[D], list[Sentence]]
    cases: Callable[[Inputs], Iterator[KeyedCases]]  # every number's key, with the cases that were counted
    tables: Callable[[FindingResult[D], str, Settings], list[PartTable]]  # by a breakdown, or by "all"
    advice: Callable[[D], list[str]]  # what to run for what is missing
    minimums: tuple[Minimum, ...] = ()  # the least data that its sentences need
    breakdowns: tuple[str, ...] = ("overall",)
    draw: Callable[[FigureSource, float], Drawing] | None = None  # its figure, at a width in points
    figures: tuple[str, ...] = ()  # further figures, by name, that the report shows with it
    clips: Literal["own", "shared", "all"] = "own"  # of each run's headline source, of one that runs share, or of all
    reads_other_runs: bool = False  # also those that the user names as deaf and does not ask about
    one_benchmark: bool = False  # measures of several benchmarks do not average
    needs_runs: bool = True
    options: Struct | None = None  # its parameters, with their defaults
    keys: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # other beginnings of keys → options they imply
