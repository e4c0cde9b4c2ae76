"""A metric's source cannot change while its version stays: scores of the same name would silently differ."""

from __future__ import annotations

import pytest

from tests.metrics.refresh import SIGNATURES, SOURCES, Stamp, drifted, now, stored


@pytest.mark.parametrize("metric", SIGNATURES)
def test_sources_and_versions_move_together(metric: str) -> None:
    was = stored().get(metric)
    assert was is not None, f"{metric} is not in versions.json; run 'python -m tests.metrics.refresh'"
    assert not (problem := drifted(metric, was, now(metric))), problem


def test_a_changed_source_with_an_unchanged_version_is_caught() -> None:
    stamp = now("wer")
    was = Stamp(stamp.signatures, {**stamp.sources, "metrics/wer.py": "0" * 64})
    assert "bump VERSION" in drifted("wer", was, stamp)


def test_a_changed_version_asks_for_a_new_stamp() -> None:
    stamp = now("wer")
    assert "changed; run" in drifted("wer", Stamp(("wer|v0",), stamp.sources), stamp)
    assert "metrics/normalise.py" in SOURCES["wer"]
