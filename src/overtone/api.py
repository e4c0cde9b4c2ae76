"""The public interface: run, score, open_run, compare. For scripts, notebooks and code inside a running event loop."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from overtone.blocking import wait
from overtone.errors import UsageError
from overtone.objects import benchmark_name, metric_name, model_spec
from overtone.runs.session import Hooks, execute
from overtone.runs.settings import Settings, resolve
from overtone.runs.store import Store, StoredReply
from overtone.schema import Item, Reply, Request, Score
from overtone.spec import suggest
from overtone.text import count

if TYPE_CHECKING:
    from overtone.metrics import Answered, Metric
    from overtone.models import Model
    from overtone.notebook import Compared, Findings, Tables
    from overtone.results.cases import CaseView
    from overtone.results.load import Reading
    from overtone.results.summary import Summary

Ask = Callable[[Request], "str | tuple[str, bytes] | Reply"]
log = logging.getLogger("overtone")


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
        """Close the run's files."""
        self._store.close()

    @property
    def about(self) -> dict[str, str]:
        """The run's model, benchmark, settings, versions and prompts."""
        return self._store.meta()

    def items(self) -> Iterator[Item]:
        """Yield every item of the run once."""
        return self._store.items()

    def replies(self) -> Iterator[StoredReply]:
        """Yield every stored reply."""
        return self._store.replies()

    def scores(self) -> Iterator[tuple[int, Score]]:
        """Yield every score with the number of its ask (`StoredReply.ask`).

        If a metric scored the run with several options or versions, only the scores that tables show are yielded:
        those that were requested last.
        """
        return self._store.scores()

    def case(self, case: str) -> CaseView:
        """Return transcript, voice answers, reasoning answers and replies of one case, side by side."""
        from overtone.results.cases import case as view

        return view(self._store, case)

    def summary(self) -> Summary:
        """Return the headline numbers, with n scored of n asked, intervals and bounds."""
        from overtone.results.summary import summarise

        return summarise(self._store)

    def table(self, name: str = "results") -> Tables:
        """Return the tables that `overtone table` prints under this name: `results`, `tasks`, `cues`, `headline`, a
        finding …

        Raises UsageError for an unknown name, and if the run has no data for the table.
        """
        from overtone.notebook import run_tables

        return run_tables([self._reading()], name)

    def findings(self, *names: str) -> Findings:
        """Return the findings with these names, or all findings: sentences, tables and the cases behind each number."""
        from overtone.findings.finding import Settings as FindingSettings
        from overtone.findings.lookup import check_names
        from overtone.notebook import Findings
        from overtone.report.findings_text import analyze

        return Findings(analyze([self._reading()], check_names(names), FindingSettings()))

    def report(self, path: str | Path, **options: Any) -> Path:
        """Write the HTML report and return its path. `options` are those of `overtone report`: embed_audio, arena, …"""
        from overtone.report.page import write_report

        return write_report([self.folder], Path(path), **options)

    def to_pandas(self) -> Any:
        """Return a DataFrame with one row per reply, its item and its scores (columns `score_NAME`). Needs pandas."""
        from overtone.notebook import pandas
        from overtone.runs.export_rows import flat_rows

        return pandas().DataFrame(flat_rows(self._store))

    def __repr__(self) -> str:
        from overtone.notebook import one_screen

        return one_screen(f"{self._facts()}\n{self.table()}", "print(run.table())") if self._scored() else self._facts()

    def _repr_html_(self) -> str:
        from overtone.notebook import Tables, run_html

        return run_html(self._store, self.table() if self._scored() else Tables([], []), self._facts())

    def _facts(self) -> str:
        meta, counts = self.about, self._store.counts()
        states = ", ".join(f"{counts[state]:,} {state}" for state in ("answered", "failed", "pending") if counts[state])
        return f"Run of {meta.get('model', '?')} on {meta.get('benchmark', '?')}: {states or 'empty'} ({self.folder})"

    def _scored(self) -> bool:
        return next(self.scores(), None) is not None

    def _reading(self) -> Reading:
        from overtone.results.load import open_run as load

        return load(self.folder, light=True)


def run(
    benchmark: Any,
    *,
    model: str | Model | Ask,
    data: str | Path | None = None,
    out: str | Path | None = None,
    metrics: Sequence[str | Metric | Callable[[Answered], float | None]] = (),
    judges: Sequence[str] = (),
    reader: str | None = None,
    progress: bool | None = None,
    **settings: Any,
) -> Run:
    """Ask `model` the items of `benchmark`, score the replies, and return the run, opened for reading.

    `benchmark` is a name, a plug-in file, or a module or object with `load(data)`. `model` is a SPEC, a function that
    takes a `Request` and returns a text (or text and WAV bytes, or a `Reply`), or an object with `ask`. `metrics` are
    names, metric objects, or functions of an `Answered` that return a number. `judges` are SPECs of models that judge
    the replies; `reader` is the SPEC of a model that reads the choices which the rules cannot read. `settings` are the
    flags of `overtone run` with underscores: levels, prompt, limit, … `progress` shows a progress line (default: in a
    terminal and in a notebook).

    An existing run is resumed: items that have a reply are not asked again. Raises OvertoneError. Failures of single
    items do not raise; they are stored in the run. If the run stops early, what was answered is scored, and a warning
    gives the reason.
    """
    from overtone.scoring import check, check_reader

    known = [f for f in Settings.__struct_fields__ if f not in ("judges", "reader", "plugins", "metrics")]
    for name in sorted(settings.keys() - set(known)):
        raise UsageError(f"run() has no setting {name!r}{suggest(name, known)}")
    flags = {
        "benchmark": benchmark_name(benchmark),
        "data": str(data) if data is not None else None if isinstance(benchmark, str) else ".",
        "model": [model_spec(model)],
        "out": str(out) if out else None,
        "metric": [metric_name(metric) for metric in metrics],
        "judge": list(judges),
        "reader": reader,
    }
    (plan,) = resolve({**flags, **settings}, None, os.environ)
    check(plan.metrics, plan.judges, plan.benchmark)
    check_reader(plan.reader)
    outcome = _execute(plan, progress)
    score(plan.folder, metrics=plan.metrics, judges=judges, reader=str(plan.reader) if plan.reader else None)
    if outcome.stopped:
        log.warning("the run stopped (%s): %s; the same call resumes it", outcome.stopped, outcome.detail)
    elif outcome.failed:
        log.warning("%s got no reply; the same call asks again", count(outcome.failed, "request"))
    if outcome.warning:
        log.warning(outcome.warning)
    return Run(plan.folder)


def _execute(settings: Settings, progress: bool | None) -> Any:
    from overtone.cli._progress import Display, in_notebook, on_terminal

    shown = (on_terminal() or in_notebook()) if progress is None else progress
    with Display(quiet=not shown) as display:
        return wait(execute(settings, Hooks(display.start, display.update)))


def score(
    folder: str | Path | Run,
    *,
    metrics: Sequence[str | Metric | Callable[[Answered], float | None]] = (),
    judges: Sequence[str] = (),
    reader: str | None = None,
) -> dict[str, int]:
    """Recompute a run's scores from its stored replies; return the number of scores by metric.

    `metrics` are the metrics computed on request: names, objects or functions. `judges` are SPECs of models that judge
    the replies; `reader` is the SPEC of a model that reads the choices which the rules cannot read. Stored verdicts
    are reused, so no verdict is paid for twice.
    """
    from overtone.judges.policy import parse_judge
    from overtone.scoring import check_reader, score_run
    from overtone.spec import parse_spec

    chosen = check_reader(parse_spec(reader) if reader else None)
    names = [metric_name(metric) for metric in metrics]
    return score_run(_folder(folder), metrics=names, judges=[parse_judge(text) for text in judges], reader=chosen)


def open_run(folder: str | Path) -> Run:
    """Open a run to read it."""
    return Run(Path(folder))


def compare(first: str | Path | Run, second: str | Path | Run, *, metrics: Sequence[str] = ()) -> Compared:
    """Compare two runs on the items both were asked: paired differences, intervals, p-values, and changed answers.

    Raises UsageError if the runs share no item or were scored with different settings.
    """
    from overtone.notebook import Compared
    from overtone.results.comparability import refuse
    from overtone.results.comparison import compare as paired
    from overtone.results.headline_condition import over_headline
    from overtone.results.heard_items import check_left, mark_heard
    from overtone.results.load import open_run as load

    readings = [load(_folder(run), light=True) for run in (first, second)]
    mark_heard(readings)
    ours, theirs = headline = over_headline(readings)
    check_left(headline)
    result = paired(ours, theirs, metrics)
    if not result.shared:
        raise UsageError("the runs share no item under one condition")
    refuse(result.unlike, "compare other measures, named with metrics=[…]", "compare the runs' tables by eye")
    return Compared(result)


def _folder(run: str | Path | Run) -> Path:
    return run.folder if isinstance(run, Run) else Path(run)
