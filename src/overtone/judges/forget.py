"""Remove one judge or reader from a run: its scores, its verdicts and its description.

Afterwards the run is as if that judge had never been asked. If it is asked again, every verdict costs money again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from overtone.judges.judge_run import FILE
from overtone.judges.policy import parse_judge
from overtone.judges.verdict_cache import Verdicts
from overtone.paths import shown
from overtone.runs.store import Store

_ASKED_BY = re.compile(r"\|rubric:([^|]*)\|judge:(.*?)\|temperature:")  # in the signature of a judge's score


class Forgotten(Struct, frozen=True):
    """The numbers of removed scores and verdicts. `known` lists the judges and readers that the run had before."""

    label: str
    scores: int
    replies: int
    verdicts: int
    known: tuple[str, ...]

    @property
    def sentence(self) -> str:
        if not self.scores and not self.verdicts:
            return f"this run has no scores or verdicts by {self.label!r}"
        return (
            f"removed {self.scores:,} scores of {self.replies:,} replies and {self.verdicts:,} verdicts by {self.label}"
        )


def forget(folder: Path, judge: str) -> Forgotten:
    """Remove a judge or reader, given by its label or SPEC, from a run. Return the numbers of removed entries."""
    label = parse_judge(judge).label if ":" in judge or "?" in judge else judge
    Store.read(folder).close()  # a folder that is not a run is an error, not a new run
    with Store.create(folder) as store:
        known = store.judge_labels()
        signatures, scores, replies = store.remove_judge(label)
        store.set_meta(_without(store, label))
        asked, others = (_asked_by(texts) for texts in (signatures, store.selection().shown.values()))
        verdicts = 0
        if (folder / FILE).is_file():
            with Verdicts(folder / FILE) as cache:
                verdicts = cache.forget(label, asked - others)
    return Forgotten(shown(label), scores, replies, verdicts, tuple(known))


def _asked_by(signatures: Iterable[str]) -> set[tuple[str, str]]:
    """Return the (rubric, model) pairs in these signatures of judges' scores."""
    return {(match[1], match[2]) for text in signatures if (match := _ASKED_BY.search(text))}


def _without(store: Store, label: str) -> dict[str, str]:
    """Return the run's stored descriptions of rubrics and of readers, with every entry of this judge removed."""
    meta, kept = store.meta(), {}
    with suppress(msgspec.MsgspecError, RecursionError):  # the run may come from elsewhere and hold anything
        about = msgspec.json.decode(meta.get("rubrics", "") or "{}", type=dict[str, dict[str, object]])
        for key, entry in list(about.items()):
            marks = entry.get("unvalidated")
            if isinstance(marks, dict) and marks.pop(label, None) is not None and not marks:
                del about[key]
        kept["rubrics"] = msgspec.json.encode(about).decode()
    with suppress(msgspec.MsgspecError, RecursionError):
        readers = msgspec.json.decode(meta.get("readers", "") or "{}", type=dict[str, object])
        readers.pop(label, None)
        kept["readers"] = msgspec.json.encode(readers).decode()
    return kept
