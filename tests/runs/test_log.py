"""A run's log on a disk that is full: said once, without a traceback, and the run is not ended by it."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from overtone.runs.session import _log_to, log


def test_a_full_disk_under_the_log_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    handler = _log_to(tmp_path)
    assert isinstance(handler, logging.FileHandler)
    handler.setStream(Path("/dev/full").open("w"))  # noqa: SIM115 - the handler closes it
    for number in range(3):
        log.info("line %d", number)
    handler.close()
    assert [record.message for record in caplog.records if record.levelname == "WARNING"] == [
        "run.log cannot be written: [Errno 28] No space left on device"
    ]
    assert "Logging error" not in capsys.readouterr().err
    assert handler not in log.handlers
