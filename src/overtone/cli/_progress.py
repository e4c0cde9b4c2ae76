"""The live display of a run: one updated line on a terminal or in a notebook, a line every 10 s in a log."""

from __future__ import annotations

import logging
import sys
import time
from typing import TYPE_CHECKING, Any

from overtone.paths import OneLine, shown

if TYPE_CHECKING:
    from rich.live import Live

    from overtone.benchmarks import Benchmark
    from overtone.models import Model
    from overtone.runs.engine import Progress
    from overtone.runs.settings import Settings
    from overtone.runs.store import Store

REFRESH = 0.1  # seconds between two drawings on a terminal
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


class Display:
    """Shows done, failed, in flight, rate, time left and cost. Use as a context; pass `start` and `update` as hooks."""

    def __init__(self, settings: Settings, *, verbose: bool, quiet: bool) -> None:
        self.settings = settings
        self.quiet = quiet
        self.terminal = on_terminal() and not quiet
        self._live: Live | None = None
        self._cell: Any = None  # the line in a notebook's output that is rewritten
        self._began = self._drawn = time.monotonic()
        self._last: Progress | None = None
        self._handler: logging.Handler | None = None
        if verbose:
            self._handler = logging.StreamHandler(sys.stderr)
            self._handler.setFormatter(OneLine("%(message)s"))
        elif not quiet:
            self._handler = logging.StreamHandler(sys.stderr)
            self._handler.setFormatter(OneLine("warning: %(message)s"))
            self._handler.setLevel(logging.WARNING)
        if self._handler:
            logging.getLogger("overtone").addHandler(self._handler)

    def __enter__(self) -> Display:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._last is not None and not self.quiet:
            self._draw(self._last)
        if self._live is not None:
            self._live.stop()
        if self._handler:
            logging.getLogger("overtone").removeHandler(self._handler)

    def start(self, store: Store, model: Model, benchmark: Benchmark) -> None:
        counts = store.counts(wanted_only=True)
        self._began = self._drawn = time.monotonic()
        if not self.quiet:
            todo = counts["pending"] + counts["failed"]
            print(
                f"{benchmark.name} · {shown(str(model.spec))}: {todo} to ask, {counts['answered']} answered before",
                file=sys.stderr,
                flush=True,
            )
            from overtone.runs.clips import OWN_RATE

            clips = store.meta().get("clips", OWN_RATE)
            if clips != OWN_RATE:
                print(f"clips are {clips}", file=sys.stderr, flush=True)
        if self.terminal:
            from rich.console import Console
            from rich.live import Live

            self._live = Live("", console=Console(stderr=True), auto_refresh=False, transient=False)
            self._live.start()
        elif not self.quiet and in_notebook():
            self._cell = _notebook_line()

    def update(self, progress: Progress) -> None:
        self._last = progress
        now = time.monotonic()
        every = REFRESH if self._live else NOTEBOOK_EVERY if self._cell else PLAIN_EVERY
        if self.quiet or now - self._drawn < every:
            return
        self._drawn = now
        self._draw(progress)

    def _draw(self, progress: Progress) -> None:
        line = self._line(progress)
        if self._live is not None:
            self._live.update(line, refresh=True)
        elif self._cell is not None:
            self._cell.update({"text/plain": line}, raw=True)
        else:
            print(line, file=sys.stderr, flush=True)

    def _line(self, p: Progress) -> str:
        done = p.answered + p.failed
        seconds = max(1e-6, time.monotonic() - self._began)
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
        return f"{seconds:.0f} s"
    return (
        f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"
        if whole >= 3600
        else f"{whole // 60}:{whole % 60:02d}"
    )
