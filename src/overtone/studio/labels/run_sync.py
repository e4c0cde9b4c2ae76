"""Write a study's labels into its runs, under each run's lock. What the study no longer has is removed there.

A run is written as a whole or not at all. A run that cannot be written is reported, and the others are written.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from overtone.errors import RunLocked, StoreError
from overtone.paths import shown
from overtone.runs.people_labels import Changes, Label, LabelStudy, read_labels, read_studies, write_labels
from overtone.runs.store import Store as RunStore
from overtone.studio.labels.given import Given
from overtone.studio.labels.rows import Draft, drafts, label_study
from overtone.studio.study import Study
from overtone.text import count

WAIT = 30.0  # seconds for a run that another process writes
_PAUSE = 0.2


class Synced(Struct, frozen=True):
    """The result of a sync in one run. Nothing was written if there is a `problem`."""

    run: str
    folder: Path
    labels: int = 0
    raters: int = 0
    changes: Changes = Changes()
    problem: str = ""

    @property
    def sentence(self) -> str:
        """The result in words."""
        where = f"{shown(self.run)} ({shown(str(self.folder))})"
        if self.problem:
            return f"{where}: not written. {self.problem}"
        held = f"{count(self.labels, 'label')} by {self.raters:,} {'person' if self.raters == 1 else 'people'}"
        if not self.changes.any:
            return f"{where}: {held}, unchanged"
        parts = ((self.changes.added, "new"), (self.changes.changed, "changed"), (self.changes.removed, "removed"))
        done = ", ".join(f"{n:,} {what}" for n, what in parts if n)
        left = f". Warning: {self.changes.leftover}" if self.changes.leftover else ""
        return f"{where}: {held} ({done}){left}"


def sync(
    study: Study, given: Sequence[Given], *, wait: float = WAIT, tell: Callable[[str], None] | None = None
) -> list[Synced]:
    """Make the labels of every run equal to the study's answers, and return what was done in each.

    `wait` is how many seconds to wait for a run that is being written; `tell` gets a sentence when that begins.
    """
    described = label_study(study)
    by_run = drafts(study, given)
    return [
        _one(
            study.folder(source), source.name, described, by_run.get(source.name, []), wait, tell or (lambda text: None)
        )
        for source in study.sources
        if source.kind == "run"
    ]


def _one(
    folder: Path, name: str, study: LabelStudy, given: Sequence[Draft], wait: float, tell: Callable[[str], None]
) -> Synced:
    try:
        study = replace(study, system=name)
        labels = _located(folder, name, study.id, given)
        changes = _written(folder, study, labels, wait, tell)
    except StoreError as error:
        return Synced(name, folder, problem=str(error))
    return Synced(name, folder, len(labels), len({label.rater for label in labels}), changes)


def _located(folder: Path, name: str, study: str, given: Sequence[Draft]) -> list[Label]:
    """Return the labels with their asks. Raises StoreError for a run that is not the one people heard."""
    if not (folder / "run.db").is_file():
        raise StoreError(
            f"There is no run at {shown(str(folder))}; if it was moved, correct its path under [[source]] in the study "
            "file, then sync again"
        )
    firsts: dict[str, int] = {}  # item → its first request
    with RunStore.read(folder) as store:
        if any(draft.seen.clip for draft in given):
            for one, _ in store.asks():
                firsts.setdefault(one.item.id, one.id)
        asks: dict[tuple[str, str, int], tuple[int, str]] = {}
        for reply in store.replies():
            asks[reply.key.item, reply.key.condition, reply.key.repeat] = reply.ask, reply.audio
    labels = []
    for draft in given:
        ask, sound = asks.get((draft.item, draft.condition, draft.repeat), (0, ""))
        if draft.seen.clip:
            ask, sound = firsts.get(draft.item, 0), ""
        if sound != draft.sound or not ask:
            what = "has no reply" if not ask else "has another reply"
            raise StoreError(
                f"{shown(str(folder))} is not the run {shown(name)} that people heard: it {what} to "
                f"{shown(draft.item)} under {shown(draft.condition)}. Correct its path in the study file, or restore "
                "the run, then sync again"
            )
        labels.append(
            Label(
                ask=ask, study=study, unit=draft.unit, rater=draft.rater, dimension=draft.dimension, value=draft.value,
                usable=draft.usable, at=draft.at, seen=draft.seen,
            )
        )  # fmt: skip
    return labels


def _written(
    folder: Path, study: LabelStudy, labels: Sequence[Label], wait: float, tell: Callable[[str], None]
) -> Changes:
    if _same(folder, study, labels):
        return Changes()
    with _locked(folder, wait, tell) as store:
        return write_labels(store, study, labels)


def _same(folder: Path, study: LabelStudy, labels: Sequence[Label]) -> bool:
    """Return whether the run holds exactly these labels, and no log that may hold removed ones."""
    if (folder / "run.db-wal").exists():
        return False
    with RunStore.read(folder) as store:
        stored = [label for label in read_labels(store) if label.study == study.id]
        described = read_studies(store).get(study.id)
    wanted = sorted(labels, key=lambda one: (one.ask, one.study, one.unit, one.rater, one.dimension))
    return stored == wanted and described == (study if labels else None)


def _locked(folder: Path, wait: float, tell: Callable[[str], None]) -> RunStore:
    """Open a run for writing; while another process writes it, try again for `wait` seconds."""
    until = time.monotonic() + wait
    told = False
    while True:
        try:
            return RunStore.create(folder)
        except RunLocked as error:
            if time.monotonic() >= until:
                raise RunLocked(f"{str(error).partition('; ')[0]}; wait for it or stop it, then sync again") from None
            if not told:
                tell(f"{shown(str(folder))} is being written by another process; waiting up to {wait:g} s")
                told = True
            time.sleep(_PAUSE)
