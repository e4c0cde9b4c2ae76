"""The end of a study, and the work after a withdrawal: the runs get exactly the labels that the study has."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from overtone.studio.labels import Synced
from overtone.studio.labels.collect import sync_study
from overtone.studio.store import Store
from overtone.studio.store.store_records import Status
from overtone.studio.study import Study


class Closed(Struct, frozen=True):
    """The final counts, and a sentence per run about its labels."""

    status: Status
    runs: tuple[str, ...]
    problems: int


def close(study: Study, store: Store, tell: Callable[[str], None] | None = None) -> Closed:
    """End a study: refuse further answers, erase payment ids, and write the labels into the runs. Repeating it is
    harmless."""
    status = store.close_study()
    synced = write_labels(study, store, tell)
    return Closed(status, tuple(one.sentence for one in synced), sum(bool(one.problem) for one in synced))


def write_labels(study: Study, store: Store, tell: Callable[[str], None] | None = None) -> list[Synced]:
    """Write the study's labels into its runs. Labels of people who have withdrawn are removed."""
    return sync_study(study, store, tell=tell)
