"""Ask several runs of one command at the same time. They share the limits of endpoints, and Ctrl-C stops them all."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from overtone.cli._judges import Judging
from overtone.cli._progress import Line, Messages, start_lines
from overtone.errors import OvertoneError
from overtone.paths import OneLine
from overtone.runs.asker import Outcome, Policy
from overtone.runs.session import Hooks, current_run, execute

if TYPE_CHECKING:
    from overtone.benchmarks import Benchmark
    from overtone.models import Model
    from overtone.runs.engine import Progress
    from overtone.runs.limiter import Limiters
    from overtone.runs.settings import Settings
    from overtone.runs.store import Store


class Asked:
    """A run that was asked: its judges and its outcome, or the error that ended it. Neither: it was not begun."""

    def __init__(self, settings: Settings) -> None:
        self.judging = Judging(settings.judges, settings.reader)
        self.outcome: Outcome | None = None
        self.error: OvertoneError | None = None


def ask_together(
    runs: Sequence[Settings], jobs: int, limiters: Limiters, *, verbose: bool, quiet: bool
) -> dict[Path, Asked]:
    """Ask up to `jobs` runs at the same time. Return each one's outcome by its folder."""
    asked = {settings.folder: Asked(settings) for settings in runs}
    with _Display(len(runs), verbose=verbose, quiet=quiet) as display:
        asyncio.run(_ask(runs, asked, jobs, limiters, display))
    return asked


async def _ask(
    runs: Sequence[Settings], asked: dict[Path, Asked], jobs: int, limiters: Limiters, display: _Display
) -> None:
    free = asyncio.Semaphore(jobs)
    waiting: dict[Path, asyncio.Task[None]] = {}  # the runs that have not sent a request

    async def one(settings: Settings) -> None:
        mine = asked[settings.folder]
        judging = mine.judging

        def start(store: Store, model: Model, benchmark: Benchmark) -> None:
            waiting.pop(settings.folder, None)
            display.start(store, model, benchmark)

        async with free:
            try:
                judging.check_keys()
                beside = judging.beside(limiters, Policy(wait=settings.wait, patience=settings.patience))
                tell = display.teller(settings.folder)
                hooks = Hooks(start, tell, signals=True, limiters=limiters, beside=beside)
                mine.outcome = await execute(settings, hooks)
            except OvertoneError as error:
                mine.error = error
            finally:
                display.done += 1
        waiting.pop(settings.folder, None)
        if mine.outcome is not None and mine.outcome.stopped == "interrupted":
            for task in waiting.values():
                task.cancel()

    tasks = {settings.folder: asyncio.create_task(one(settings)) for settings in runs}
    waiting.update(tasks)
    ended = await asyncio.gather(*tasks.values(), return_exceptions=True)
    for result in ended:
        if isinstance(result, BaseException) and not isinstance(result, asyncio.CancelledError):
            raise result


class _Named(OneLine):
    """Begins a message with the name of its run."""

    def format(self, record: logging.LogRecord) -> str:
        folder = current_run()
        return f"{folder.name}: {super().format(record)}" if folder else super().format(record)


class _Display:
    """One line of progress for all runs, with the runs' messages above it."""

    def __init__(self, runs: int, *, verbose: bool, quiet: bool) -> None:
        self.runs = runs
        self.done = 0
        self._quiet = quiet
        self._began = time.monotonic()
        self._progress: dict[Path, tuple[int, int, int, int]] = {}  # done, total, failed, in flight
        self._line: Line | None = None
        self._messages: Messages | None = None
        if verbose or not quiet:
            self._messages = Messages(logging.NOTSET if verbose else logging.WARNING)
            self._messages.setFormatter(_Named("%(message)s" if verbose else "warning: %(message)s"))

    def __enter__(self) -> _Display:
        if self._messages:
            logging.getLogger("overtone").addHandler(self._messages)
        if not self._quiet:
            self._line = Line(self._text, keep=True)
        return self

    def __exit__(self, *exc: object) -> None:
        if self._line:
            self._line.stop()
        if self._messages:
            logging.getLogger("overtone").removeHandler(self._messages)

    def start(self, store: Store, model: Model, benchmark: Benchmark) -> None:
        """Print what a run will ask."""
        if not self._quiet:
            print("\n".join(start_lines(store, model, benchmark)), file=sys.stderr, flush=True)

    def teller(self, folder: Path) -> _Teller:
        return _Teller(self._progress, folder)

    def _text(self) -> str:
        counts = [sum(column) for column in zip(*self._progress.values(), strict=True)] or [0, 0, 0, 0]
        done, total, failed, in_flight = counts
        rate = done / max(1e-6, time.monotonic() - self._began)
        runs = f"{self.done} of {self.runs} runs asked"
        return f"{runs} · {done}/{total} · {failed} failed · {in_flight} in flight · {rate:.1f}/s"


class _Teller:
    """Notes the progress of one run."""

    def __init__(self, noted: dict[Path, tuple[int, int, int, int]], folder: Path) -> None:
        self._noted = noted
        self._folder = folder

    def __call__(self, now: Progress) -> None:
        self._noted[self._folder] = (now.answered + now.failed, now.total, now.failed, now.in_flight)
