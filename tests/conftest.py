"""What all tests share: the data beside the project, a small benchmark, and the two rules about skips: a test whose
marker names something that is missing skips and says how to install it, and the checks accept only listed reasons."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from bench.data import make
from overtone import plugins, registry
from tests.needs import SHARED, missing, replace_uncollectable

REPOSITORY = Path(__file__).parent.parent
ALLOWED = Path(__file__).with_name("allowed_skips.txt")
os.environ.pop("COLUMNS", None)  # which pytest-xdist sets: tables are as wide as where nobody looks
os.environ.setdefault("OVERTONE_MEASURES", str(REPOSITORY / ".venv-worker"))  # tests measure where workers are tested


settings.register_profile("unhurried", deadline=None)  # a busy machine is no failure
settings.load_profile("unhurried")


@pytest.fixture(autouse=True)
def own_config(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test trusts files for itself alone, not for whoever runs it."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))


@pytest.fixture(autouse=True)
def own_plugins(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Plug-ins that a test loads are gone after it."""
    monkeypatch.setattr(registry, "_plugins", {room: dict(found) for room, found in registry._plugins.items()})
    monkeypatch.setattr(plugins, "_files", dict(plugins._files))
    monkeypatch.setenv(plugins.VARIABLE, os.environ.get(plugins.VARIABLE, ""))
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.startswith(f"{plugins.__name__}."):
            del sys.modules[name]


@pytest.fixture(scope="session")
def shared() -> Path:
    """Return the folder of real data that is not part of the project. Skip the test if the folder is missing."""
    if reason := missing("shared"):
        pytest.skip(reason)
    return SHARED


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A benchmark of three scripts in three styles and six questions, in EchoMind's layout."""
    return make(tmp_path / "data", scripts=3, questions=6, seconds=0.2)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker in item.iter_markers():
        if reason := missing(marker.name):
            pytest.skip(reason)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    return replace_uncollectable(collector, (yield))  # type: ignore[func-returns-value]


_skipped: list[tuple[str, str]] = []


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.skipped and isinstance(report.longrepr, tuple):
        _skipped.append((report.nodeid, str(report.longrepr[2]).removeprefix("Skipped: ")))


@pytest.hookimpl(wrapper=True)
def pytest_sessionfinish(session: pytest.Session) -> Iterator[None]:
    """Where skips are counted (OVERTONE_STRICT_SKIPS), one whose reason is not on the list fails the run."""
    yield
    if not os.environ.get("OVERTONE_STRICT_SKIPS"):
        return
    allowed = [line.strip() for line in ALLOWED.read_text().splitlines() if line.strip() and not line.startswith("#")]
    unknown = [(test, reason) for test, reason in _skipped if not any(reason.startswith(a) for a in allowed)]
    for test, reason in unknown:
        print(f"\nnot on {ALLOWED.name}: {test} skipped: {reason}")
    if unknown and session.exitstatus == 0:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
