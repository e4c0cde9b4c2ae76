"""Designs of studies, one file each. A file defines DESIGN; the registry finds it by the file's name.

A design says what is asked (units made of the runs' replies), with which controls, which answers to a gold question are
right, and how answers become labels. Pages, storage, assignment and export do not depend on the design.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from overtone import registry
from overtone.judges.rubric import Rubric
from overtone.studio.fields import AnyField, Value
from overtone.studio.replies import RunReplies, SpokenReply
from overtone.studio.study import Study


class Unit(Struct, frozen=True):
    """The subject of one screen: one reply, or two replies that are compared.

    A person meets each `group` (script) at most once. `system` is what assignment is balanced over: a run, or two runs
    joined by "|". A screen with `swap` plays the replies in reverse order.
    """

    id: str
    group: str
    system: str
    replies: tuple[SpokenReply, ...]


class Answered(Struct, frozen=True):
    """One person's newest answers about one unit. With `swap`, the second reply was the first on the screen."""

    rater: str
    unit: Unit
    values: dict[str, Value]
    swap: bool = False


class LabelRow(Struct, frozen=True):
    """A row for the file RUN/KIND-STUDY.csv of the run called `run`; `kind` is labels or votes."""

    run: str
    kind: str
    cells: dict[str, Any]


class Design(Struct, frozen=True):
    """One design; see the module. `gold` gets the fields of a screen and the place of the reply played backwards."""

    summary: str
    sides: tuple[str, ...]  # names of the replies on a screen, in order
    runs: int  # the least number of runs
    rubric: str  # the default
    units: Callable[[Sequence[RunReplies]], list[Unit]]
    check_rubric: Callable[[Rubric], None]
    fields: Callable[[Sequence[Rubric], Study], tuple[AnyField, ...]]
    gold: Callable[[Sequence[AnyField], Sequence[Rubric], int], dict[str, list[Value]]]  # field → right answers
    labels: Callable[[Answered], list[LabelRow]]


def find(name: str) -> Design:
    """Return the design with this name. Raises UsageError with the nearest name for an unknown one."""
    design: Design = registry.find("designs", name).DESIGN
    return design


def label_cells(reply: SpokenReply, rater: str) -> dict[str, Any]:
    """Return the columns of a label that identify the reply and the rater."""
    identity = {"id": reply.item, "condition": reply.condition, "group": reply.group, "style": reply.style}
    return {**identity, "rater": rater}
