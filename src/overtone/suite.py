"""A benchmark's description as data: its headline tables, the results its authors published, and facts about it.

If a file in `benchmarks/` defines `SUITE = Suite(...)`, reports and the coverage table show these for its runs. No
other code has to change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from overtone.schema import Item


class Scored(Struct, frozen=True):
    """One reply with its scores, as a headline reads it.

    `values` has the scores by name: a metric's, or a rubric's dimension (the mean of the judges that all replies have);
    and, as `metric.key`, the numbers in their details that a column uses. `told` has the texts in a metric's details,
    as `metric.key`.
    """

    item: Item
    condition: str
    repeat: int
    values: Mapping[str, float | None]
    told: Mapping[str, str] = {}
    item_id: str = ""  # `item` has none where equal items share one object


Groups = Sequence[Sequence[Scored]]  # replies, the variants of one utterance together
Reduce = Callable[[Groups], float | None]


class Column(Struct, frozen=True):
    """One number of a headline: which items and score it covers, and how replies are combined."""

    key: str
    label: str
    score: str = ""  # the mean of this score, unless `reduce` says otherwise
    only: Mapping[str, tuple[str | int, ...]] = {}  # field of an item → the values that count
    reduce: Reduce | None = None  # of all replies that count, scored or not, by group
    kind: Literal["percent", "number", "points"] = "percent"  # points: a difference of percentages
    digits: int = 2  # of a number
    scale: float = 1.0  # what is shown is so many times what was scored
    better: Literal["higher", "lower", "neither"] = "higher"
    help: str = ""  # what it is, and where its protocol misleads
    # Instead of `score` and `reduce`, where each sub-task counts once whatever its size: the mean of the categories'
    # means. Category → its score, and what that is multiplied by.
    balance: Mapping[str, tuple[str, float]] = {}
    # Of a score that belongs to a group and that all its replies hold: it counts once.
    each: Literal["reply", "group"] = "reply"
    offset: float = 0.0  # what is added to a score before it is scaled
    where: Callable[[Item], bool] | None = None  # beside `only`: a rule for items, where no field says it
    read: Callable[[Scored], float | None] | None = None  # what one reply counts, where that is not the score itself
    among: Callable[[Sequence[Scored]], list[Scored]] | None = (
        None  # which of a row's replies count, by what others got
    )
    ends: tuple[float, float] | None = None  # of what is shown, where neither its rubric nor its metric tells them

    def value(self, reply: Scored) -> float | None:
        """Return the value of one reply, for a column that is a mean over replies."""
        if self.read is not None:
            return self.read(reply)
        if not self.balance:
            return reply.values.get(self.score)
        score, times = self.balance.get(reply.item.category, ("", 1.0))
        found = reply.values.get(score)
        return None if found is None else times * found

    def counts(self, item: Item) -> bool:
        named = all(getattr(item, field) in allowed for field, allowed in self.only.items())
        return named and (self.where is None or self.where(item))

    def counted(self, replies: Sequence[Scored]) -> list[Scored]:
        """Return those of a row's replies that the number covers."""
        found = [reply for reply in replies if self.counts(reply.item)]
        return found if self.among is None else self.among(found)


class Headline(Struct, frozen=True):
    """A table with one line per condition and, if `rows` names a field of an item, per value of that field."""

    key: str
    title: str
    columns: tuple[Column, ...]
    rows: str = ""
    hint: str = ""
    differences: str = ""  # title of a second table: how its means differ between conditions, reply by reply


class Published(Struct, frozen=True):
    """Published results: each model's values in the order of `columns` (key → label), None for a dash.

    `comparable` is empty if our runs may be compared with them, or says why not.
    """

    title: str
    source: str
    columns: Mapping[str, str]
    rows: tuple[tuple[str, tuple[float | None, ...]], ...]
    digits: Mapping[str, int] = {}  # after the point, of the columns where zeros at the end are printed
    comparable: str = ""
    measures: Mapping[str, str] = {}  # column → our measure of the same thing
    radar: tuple[str, ...] = ()  # columns that a radar shows, in this order
    radar_more: tuple[str, ...] = ()  # further ones, where those are too few
    short: Mapping[str, str] = {}  # column → its name where there is little room


class Facts(Struct, frozen=True):
    """A benchmark's line of the coverage table."""

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
    published: tuple[Published, ...] = ()
    rubrics: tuple[str, ...] = ()  # what a judge of its replies is asked where the user names no rubric
    speech: bool = True  # whether a spoken reply is wanted in its conversations; False where it is answered in text
    layout: tuple[str, ...] = ()  # glob patterns, below the data folder, of files that no other benchmark has
