"""The live display of a run: one line that is redrawn on a terminal or in a notebook, a line every 10 s in a log.

The line is drawn by a thread of its own, so that it also moves while a slow model or metric works on one reply.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from overtone.paths import OneLine, shown

if TYPE_CHECKING:
    from rich.live import Live

    from overtone.benchmarks import Benchmark
    from overtone.models import Model
    from overtone.runs.engine import Progress
    from overtone.runs.store import Store

REFRESH = 0.2  # seconds between two drawings on a terminal
NOTEBOOK_EVERY = 0.5  # … in a notebook
PLAIN_EVERY = 10.0  # seconds between two lines in a log


def on_terminal() -> bool:
    """Return whether a terminal reads the standard error stream."""
    return sys.stderr.isatty()


def in_notebook() -> bool:
    """Return whether this process is a notebook's kernel. Imports nothing."""
    module = sys.modules.get("IPython")
    shell = module.get_ipython() if module is not None else None
    return shell is not None and hasattr(shell, "kernel")


def _notebook_line() -> Any:
    """Return a handle on one line of a notebook's output that can be rewritten."""
    from IPython.display import display

    return display({"text/plain": ""}, raw=True, display_id=True)  # type: ignore[no-untyped-call,unused-ignore]


class Line:
    """One line of text on the standard error stream. It is redrawn until it is stopped.

    `text` returns the line. With `keep`, the last text remains on the terminal, or is the last line in a log.
    """

    def __init__(self, text: Callable[[], str], *, keep: bool = False) -> None:
        self._text = text
        self._keep = keep
        self._live: Live | None = None
        self._cell: Any = None  # the line in a notebook's output that is rewritten
        self._stopped = threading.Event()
        if on_terminal():
            from rich.console import Console
            from rich.live import Live

            self._live = Live("", console=Console(stderr=True), auto_refresh=False, transient=not keep)
            self._live.start()
        elif in_notebook():
            self._cell = _notebook_line()
        every = REFRESH if self._live else NOTEBOOK_EVERY if self._cell else PLAIN_EVERY
        self._thread = threading.Thread(target=self._tick, args=(every,), name="overtone-progress", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the line: draw it a last time, or remove it from the terminal."""
        self._stopped.set()
        self._thread.join()
        if self._keep or self._cell:
            self._draw()
        if self._live is not None:
            self._live.stop()

    def _tick(self, every: float) -> None:
        while not self._stopped.wait(every):
            self._draw()

    def _draw(self) -> None:
        from rich.text import Text

        line = self._text()
        if self._live is not None:
            self._live.update(Text(line, overflow="ellipsis", no_wrap=True), refresh=True)
        elif self._cell is not None:
            self._cell.update({"text/plain": line}, raw=True)
        else:
            print(line, file=sys.stderr, flush=True)


def start_lines(store: Store, model: Model, benchmark: Benchmark) -> list[str]:
    """Return lines that say what a run will ask."""
    from overtone.runs.sent_clips import OWN_RATE

    counts = store.counts(wanted_only=True)
    todo, clips = counts["pending"] + counts["failed"], store.meta().get("clips", OWN_RATE)
    head = f"{benchmark.name} · {shown(str(model.spec))}: {todo} to ask, {counts['answered']} answered before"
    return [head, *([f"clips are {clips}"] if clips != OWN_RATE else [])]


class Messages(logging.Handler):
    """Prints messages above the line that is being drawn."""

    def emit(self, record: logging.LogRecord) -> None:
        print(self.format(record), file=sys.stderr, flush=True)


class Display:
    """Shows what a command is doing: preparing, asking, scoring, reading the results. Use it as a context.

    A run calls `start` and `update`; `score_run` calls `scoring`.
    """

    def __init__(self, *, verbose: bool = False, quiet: bool = False) -> None:
        self.quiet = quiet
        self._line: Line | None = None
        self._began = time.monotonic()
        self._progress: Progress | None = None
        self._score_began: dict[str, float] = {}  # when each metric began
        self._scored = ("", 0, 0)  # the metric that scores, its replies done, all its replies
        self._messages: Messages | None = None
        if verbose or not quiet:
            self._messages = Messages(logging.NOTSET if verbose else logging.WARNING)
            self._messages.setFormatter(OneLine("%(message)s" if verbose else "warning: %(message)s"))

    def __enter__(self) -> Display:
        if self._messages:
            logging.getLogger("overtone").addHandler(self._messages)
        self.phase("preparing")
        return self

    def __exit__(self, *exc: object) -> None:
        self._end()
        if self._messages:
            logging.getLogger("overtone").removeHandler(self._messages)

    def phase(self, name: str) -> None:
        """Show what is being done and for how long, until the next phase."""
        self._scored = ("", 0, 0)
        self._begin(lambda: f"{name} · {_clock(self._seconds())}")

    def start(self, store: Store, model: Model, benchmark: Benchmark) -> None:
        """Print what will be asked, and begin to count the replies."""
        self._end()
        if not self.quiet:
            print("\n".join(start_lines(store, model, benchmark)), file=sys.stderr, flush=True)
        self.phase("asking")

    def update(self, progress: Progress) -> None:
        """Show new counts of a run that is being asked."""
        first = self._progress is None
        self._progress = progress
        if first:
            asked_since = self._began
            self._begin(self._asked, keep=True)
            self._began = asked_since

    def scoring(self, name: str, done: int, total: int) -> None:
        """Show new counts of one metric. For a reader or judge, whose replies are not counted, `total` is 0."""
        if not self._scored[0]:
            self._score_began.clear()
            self._begin(self._scored_line)
        # Metrics that share their work report in turn; each has its own clock.
        self._began = self._score_began.setdefault(name, time.monotonic())
        self._scored = (name, done, total)

    def _begin(self, text: Callable[[], str], *, keep: bool = False) -> None:
        self._end()
        self._began = time.monotonic()
        if not self.quiet:
            self._line = Line(text, keep=keep)

    def _end(self) -> None:
        line, self._line = self._line, None
        if line is not None:
            line.stop()

    def _seconds(self) -> float:
        return max(1e-6, time.monotonic() - self._began)

    def _scored_line(self) -> str:
        name, done, total = self._scored
        seconds = self._seconds()
        if not total:
            return f"scoring with {shown(name)} · {_clock(seconds)}"
        left = f"{_clock(seconds * (total - done) / done)} left" if done else _clock(seconds)
        return f"scoring {shown(name)} {done:,}/{total:,} · {left}"

    def _asked(self) -> str:
        p = self._progress
        assert p is not None
        done = p.answered + p.failed
        seconds = self._seconds()
        rate = done / seconds
        left = _clock((p.total - done) / rate) if rate and done < p.total else _clock(seconds)
        parts = [
            f"{done}/{p.total}",
            f"{p.failed} failed",
            f"{p.in_flight} in flight",
            f"{rate:.1f}/s" if rate < 100 else f"{rate:.0f}/s",
            f"{left} left" if done < p.total else f"took {left}",
        ]
        if p.priced and p.cost:
            parts.append(f"${p.cost:.2f}")
        return " · ".join(parts)


def _clock(seconds: float) -> str:
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    return (
        f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"
        if whole >= 3600
        else f"{whole // 60}:{whole % 60:02d}"
    )
