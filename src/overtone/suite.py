"""A benchmark's description as data: its headline tables, the results its authors published, and facts about it.

If a file in `benchmarks/` defines `SUITE = Suite(...)`, reports and the coverage table show these for its runs. No
other code has to change. A suite holds no code: a run stores it as JSON, so the run reads the same where the benchmark
is not installed. `results.column_values` computes what it describes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from overtone import registry
from overtone.errors import UsageError
from overtone.schema import Item

Digits = Annotated[int, Meta(ge=0, le=9)]
Filter = Mapping[str, tuple[str | int, ...]]  # field of an item → the values that count


# ── what one reply counts, where that is not a score itself ─────────────────────────────────────────────────────────


class Difference(Struct, frozen=True, tag="difference"):
    """The value of a reply is its `score` minus its score `less`."""

    score: str
    less: str


class VerdictShare(Struct, frozen=True, tag="verdict share"):
    """The value of a reply is the share of its verdicts, by all judges and repeats, that are one of `words`.

    `more` adds words for items of a category. Verdicts that are not among `known` do not count.
    """

    score: str  # what the judges were asked
    words: tuple[str, ...]
    known: tuple[str, ...]
    more: Mapping[str, tuple[str, ...]] = {}


class NoteIn(Struct, frozen=True, tag="note in"):
    """The value of a reply is 1 if a metric's note, named `metric.key`, is one of `words`, otherwise 0."""

    note: str
    words: tuple[str, ...]


class Wins(Struct, frozen=True, tag="wins"):
    """The value of a reply is the share of its verdicts with a higher rating for `score` than for `against`, averaged
    over judges. If the verdicts behind the ratings are not stored, the ratings themselves are compared."""

    score: str
    against: str


ReplyValue = Difference | VerdictShare | NoteIn | Wins


# ── how replies become a number, where that is not the mean ─────────────────────────────────────────────────────────


class Means(Struct, frozen=True, tag="means"):
    """The number of a column is a mean over replies. The value of a reply is (mean of `scores` + `offset`) × `times`.

    A reply that lacks one of the scores does not count. With `by`, a field of an item, the means are computed per value
    of this field, then averaged. With `parts`, which are lists of such values, they are averaged within each part
    first. With `over`, the result is divided by the mean of the score `over`, computed in the same way.
    """

    by: str = ""
    parts: tuple[tuple[str, ...], ...] = ()
    scores: tuple[str, ...] = ()  # the column's, where none is named
    offset: float = 0.0
    times: float = 1.0
    over: str = ""

    def __post_init__(self) -> None:
        _check_fields([self.by] if self.by else [])


class Right(Struct, frozen=True, tag="right"):
    """The number of a column is how many replies have a score of 1 (`replies`), plus how many groups have a score of 1
    in all their replies (`groups`). With `share`, it is divided by the number of replies or groups.

    A missing reply counts as wrong. There is no number if no reply has a score.
    """

    replies: bool = True
    groups: bool = False
    share: bool = False


class Kappa(Struct, frozen=True, tag="kappa"):
    """The number of a column is Cohen's κ, with quadratic weights, between two notes. Each note is named
    `metric.key`."""

    note: str
    other: str
    steps: Mapping[str, float]  # what is noted → its place on the scale


class Pearson(Struct, frozen=True, tag="pearson"):
    """The number of a column is Pearson's r between the column's score and `against`.

    `against` names a number in a score's details, as `metric.key`. `less` is (field, first, second). With it, r is
    computed from differences: for each case, the reply whose item has the value `first` in this field minus the reply
    with the value `second`. The interval is a jackknife over groups.
    """

    against: str
    less: tuple[str, str, str] | None = None

    def __post_init__(self) -> None:
        _check_fields([self.less[0]] if self.less else [])


Reduce = Means | Right | Kappa | Pearson


class Column(Struct, frozen=True):
    """One number of a headline: which items and score it covers, and how replies are combined."""

    key: str
    label: str
    score: str = ""  # the mean of this score, unless `reduce` says otherwise
    only: Filter = {}
    reduce: Reduce | None = None  # of all replies that count, scored or not, by group
    kind: Literal["percent", "number", "points"] = "percent"  # points: a difference of percentages
    digits: Digits = 2  # of a number
    scale: float = 1.0  # what is shown is so many times what was scored
    better: Literal["higher", "lower", "neither"] = "higher"
    help: str = ""  # what it is, and where its protocol misleads
    # Instead of `score` and `reduce`, where each sub-task counts once whatever its size: the mean of the categories'
    # means. Category → its score, and what that is multiplied by.
    balance: Mapping[str, tuple[str, float]] = {}
    # Of a score that belongs to a group and that all its replies hold: it counts once.
    each: Literal["reply", "group"] = "reply"
    offset: float = 0.0  # what is added to a score before it is scaled
    # Beside `only`: at least one of these has to fit. Values are patterns: `judge-*`, or `?*` for anything at all.
    where: tuple[Mapping[str, tuple[str, ...]], ...] = ()
    read: ReplyValue | None = None  # what one reply counts, where that is not the score itself
    # (1, 2): only items of level 2 whose group, in the same repeat, has a score of 1 at level 1.
    if_right: tuple[int, int] | None = None
    ends: tuple[float, float] | None = None  # of what is shown, where neither its rubric nor its metric tells them

    def __post_init__(self) -> None:
        _check_fields([*self.only, *(field for fits in self.where for field in fits)])


class Headline(Struct, frozen=True):
    """A table with one line per condition and, if `rows` names a field of an item, per value of that field."""

    key: str
    title: str
    columns: tuple[Column, ...]
    rows: str = ""
    hint: str = ""
    differences: str = ""  # title of a second table: how its means differ between conditions, reply by reply

    def __post_init__(self) -> None:
        _check_fields([self.rows] if self.rows else [])


class ModelTable(Struct, frozen=True):
    """A table with one line per model, as the benchmark's paper prints it, over levels that share their scripts.

    Its columns are EchoMind's published columns or, with `level`, the categories of that level's questions. With
    `finding`, each model has several lines: one per prompt ("prompts"), per source of the clips ("source"), or with and
    without a stated cue ("upper").
    """

    key: str
    title: str
    columns: Mapping[str, str]  # published column or category → head; an arrow is added
    hint: str = ""
    level: int = 0
    finding: Literal["", "prompts", "source", "upper"] = ""
    short: Mapping[str, str] = {}  # head → abbreviation in print, which the caption explains


class Published(Struct, frozen=True):
    """Published results: each model's values in the order of `columns` (key → label), None for a dash.

    `comparable` is empty if our runs may be compared with them, or says why not.
    """

    title: str
    source: str
    columns: Mapping[str, str]
    rows: tuple[tuple[str, tuple[float | None, ...]], ...]
    digits: Mapping[str, Digits] = {}  # after the point, of the columns where zeros at the end are printed
    comparable: str = ""
    measures: Mapping[str, str] = {}  # column → our measure of the same thing
    radar: tuple[str, ...] = ()  # columns that a radar shows, in this order
    radar_more: tuple[str, ...] = ()  # further ones, where those are too few
    short: Mapping[str, str] = {}  # column → its name where there is little room

    def __post_init__(self) -> None:
        for model, values in self.rows:
            if len(values) != len(self.columns):
                raise ValueError(f"{self.title}: {model} has {len(values)} values for {len(self.columns)} columns")


class Facts(Struct, frozen=True):
    """A benchmark's row in the coverage table."""

    title: str
    cues: str
    tasks: str
    hears: str  # what goes in
    answers: str  # what comes out
    turns: Literal["one", "several", "both"]
    metrics: str
    data: str  # where its files come from
    licence: str
    offline: str  # what runs without a network


class Release(Struct, frozen=True):
    """Where a benchmark's own files are published, and on what terms."""

    repo: str
    licence: str
    host: Literal["hub", "github"] = "hub"  # a dataset hub, or a repository's files
    folders: tuple[str, ...] = ()  # only what lies below these, where not all of it is wanted
    also: tuple[Release, ...] = ()  # the rest of it, where it is published in several places


class Suite(Struct, frozen=True):
    facts: Facts
    release: Release | None = None
    headlines: tuple[Headline, ...] = ()
    models: tuple[ModelTable, ...] = ()  # tables with a line for each model, of levels that share their scripts
    published: tuple[Published, ...] = ()
    rubrics: tuple[str, ...] = ()  # what a judge of its replies is asked where the user names no rubric
    speech: bool = True  # whether a spoken reply is wanted in its conversations; False where it is answered in text
    layout: tuple[str, ...] = ()  # glob patterns, below the data folder, of files that no other benchmark has


def find_suite(benchmark: str) -> Suite | None:
    """Return the `SUITE` that an installed benchmark declares, or None if it declares none.

    Raises UsageError for an unknown benchmark, and for a `SUITE` that cannot be read as a Suite.
    """
    found = getattr(registry.find("benchmarks", benchmark), "SUITE", None)
    if found is None:
        return None
    try:
        return msgspec.convert(msgspec.to_builtins(found), Suite)
    except (TypeError, msgspec.ValidationError) as error:  # such as a function, which a run cannot store
        raise UsageError(f"the benchmark {benchmark}: SUITE must be a Suite of plain data: {error}") from None


def is_installed(benchmark: str) -> bool:
    """Return whether a benchmark is built in or an installed plug-in."""
    return benchmark.replace("_", "-").lower() in registry.listing("benchmarks")


def _check_fields(names: Iterable[str]) -> None:
    for name in names:
        if name not in Item.__struct_fields__:
            raise ValueError(f"an item has no field {name!r}; it has {', '.join(Item.__struct_fields__)}")
