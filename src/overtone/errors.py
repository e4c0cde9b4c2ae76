"""The errors that a user may see. Each says what is wrong, where, and what to do next."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

EXIT_OK = 0
EXIT_REQUIREMENT = 1
EXIT_USAGE = 2
EXIT_FAILURES = 3
EXIT_BUDGET = 4
EXIT_INTERRUPTED = 130


class OvertoneError(Exception):
    """An error that the user can fix. The command line prints only its text and exits with `exit_code`."""

    exit_code = EXIT_USAGE


class UsageError(OvertoneError):
    """A wrong flag, SPEC, run file or name."""


class DataError(OvertoneError):
    """A benchmark's files are missing, broken or outside their folder."""


class AudioError(DataError):
    """A sound that cannot be decoded, or is longer or larger than allowed."""


class StoreError(OvertoneError):
    """The run folder cannot be used: locked, read-only, full, of an unknown version, or from another run."""


class RunLocked(StoreError):
    """The run is being written by another process."""


class MissingExtra(OvertoneError):
    """An optional package is not installed; the text contains the command that installs it."""


def install_line(extra: str, python: str = "") -> str:
    """Return the command that installs an optional part (extra) of this package.

    If the package runs from a clone of its repository, the command installs from that clone.
    """
    program = f"{python or sys.executable} -m pip install"
    root = Path(__file__).resolve().parents[2]
    if (root / "pyproject.toml").is_file():
        return f"{program} -e '{root}[{extra}]'"
    return f"{program} 'overtone[{extra}]'"


class ModelFailure(Exception):
    """A model did not answer. The engine retries according to its policy, then stores the failure in the run.

    `reason` is one of REASONS. `retry` says whether asking again can help. `fatal` says that all other items would
    fail too (a wrong key, an unknown model, no server), so the run stops instead of failing each item in turn.
    `overload` asks the limiter to slow down. `unavailable` says that the endpoint is absent or still loading, so that
    waiting can help. `item` says that the cause is this item (its clip, its length), so the failure says nothing
    about other items.
    """

    REASONS = (
        "timeout",
        "connection",
        "rate_limited",
        "server",
        "malformed",
        "truncated_audio",
        "too_large",
        "auth",
        "not_found",
        "rejected",
        "speech_refused",
        "worker_died",
        "not_recorded",
        "bad_clip",
        "exception",
    )
    OF_ITEM = frozenset(("too_large", "not_recorded", "bad_clip"))  # reasons that are always caused by the item

    def __init__(
        self,
        reason: str,
        detail: str,
        *,
        retry: bool = False,
        fatal: bool = False,
        overload: bool = False,
        retry_after: float | None = None,
        unavailable: bool = False,
        item: bool = False,
    ) -> None:
        if reason not in self.REASONS:
            raise ValueError(f"unknown failure reason {reason!r}")
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail
        self.retry = retry
        self.fatal = fatal
        self.overload = overload
        self.retry_after = retry_after
        self.unavailable = unavailable
        self.item = item or reason in self.OF_ITEM
        self.attempts = 0  # the number of tries before the engine gave up


def raised(error: BaseException) -> str:
    """Return an exception as one line: its type, its text, and the file and line that raised it."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = f" ({Path(trace.tb_frame.f_code.co_filename).name}, line {trace.tb_lineno})" if trace else ""
    return f"{type(error).__name__}: {error}".rstrip(": ") + place


@contextlib.contextmanager
def foreign(what: str) -> Iterator[None]:
    """Turn an exception in a plug-in's code into a UsageError that begins with `what`. An OvertoneError passes
    unchanged."""
    try:
        yield
    except OvertoneError:
        raise
    except Exception as error:
        raise UsageError(f"{what}: {raised(error)}") from error
