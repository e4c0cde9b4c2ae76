"""The public interface: run, score, open_run. Usable in a script, in a notebook and inside a running event loop."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from overtone.errors import UsageError
from overtone.runs.blocking import wait
from overtone.runs.session import execute
from overtone.runs.settings import Settings, resolve
from overtone.runs.store import Store, StoredReply
from overtone.schema import Item, Score
from overtone.spec import suggest

if TYPE_CHECKING:
    from overtone.analysis.cases import CaseView
    from overtone.analysis.summary import Summary
    from overtone.runs.asking import Outcome


class Run:
    """A run's folder, open for reading. Use it as a context, or `close()` it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._store = Store.read(folder)

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        self._store.close()

    @property
    def about(self) -> dict[str, str]:
        """What the run is: model, benchmark, settings, versions, prompts."""
        return self._store.meta()

    def items(self) -> Iterator[Item]:
        """Every item of the run, once."""
        return self._store.items()

    def replies(self) -> Iterator[StoredReply]:
        return self._store.replies()

    def scores(self) -> Iterator[tuple[int, Score]]:
        """Every score with the number of the ask it belongs to (`StoredReply.ask`). Where a metric was measured in
        several ways, these are the scores that tables show: those of the measurement that was asked for last."""
        return self._store.scores()

    def case(self, case: str) -> CaseView:
        """Transcript, voice answers, reasoning answers and replies of one case, side by side."""
        from overtone.analysis.cases import case as view

        return view(self._store, case)

    def summary(self) -> Summary:
        """The headline numbers, with n scored of n asked, intervals and bounds."""
        from overtone.analysis.summary import summarise

        return summarise(self._store)


def run(
    benchmark: str,
    *,
    data: str | Path,
    model: str,
    out: str | Path | None = None,
    judges: Sequence[str] = (),
    reader: str | None = None,
    **settings: Any,
) -> Run:
    """Ask `model` (a SPEC) the items of `benchmark` and score the replies; returns the run, open.

    `judges` are SPECs of models that judge the replies; `reader` is the SPEC of a model that reads the answers to
    questions which the rules cannot read. `settings` are the flags of `overtone run` with underscores:
    levels, prompt, limit, metrics, … A run that is there already goes on: what is answered is not asked again. Raises
    OvertoneError; failures of single items are values of the run.
    """
    from overtone.scoring import check, check_reader

    unknown = settings.keys() - {f for f in Settings.__struct_fields__ if f not in ("judges", "reader", "plugins")}
    for name in sorted(unknown):
        raise UsageError(f"run() has no setting {name!r}{suggest(name, Settings.__struct_fields__)}")
    flags = {"benchmark": benchmark, "data": str(data), "model": [model], "out": str(out) if out else None, **settings}
    (found,) = resolve({**flags, "judge": list(judges), "reader": reader}, None, os.environ)
    check(found.metrics, found.judges)
    check_reader(found.reader)
    outcome: Outcome = wait(execute(found))
    if not outcome.stopped:
        score(found.folder, metrics=found.metrics, judges=judges, reader=str(found.reader) if found.reader else None)
    return Run(found.folder)


def score(
    folder: str | Path, *, metrics: Sequence[str] = (), judges: Sequence[str] = (), reader: str | None = None
) -> dict[str, int]:
    """Recompute a run's scores from its stored replies; returns how many each metric gave.

    `metrics` names those computed on request; `judges` are SPECs of models that judge the replies; `reader` is the SPEC
    of a model that reads the answers to questions which the rules cannot read. A verdict that was paid for is not asked
    for again.
    """
    from overtone.judges.policy import parse_judge
    from overtone.scoring import check_reader, score_run
    from overtone.spec import parse_spec

    chosen = check_reader(parse_spec(reader) if reader else None)
    return score_run(Path(folder), metrics=metrics, judges=[parse_judge(text) for text in judges], reader=chosen)


def open_run(folder: str | Path) -> Run:
    """Open a run to read it."""
    return Run(Path(folder))
