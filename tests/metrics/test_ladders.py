"""Sanity ladders: added noise lowers the voice metrics, and what is not the voice does not change them."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from bench.ladders import (
    LADDER,
    LOWER_IS_BETTER,
    Clip,
    Rater,
    consistency,
    emoalign,
    in_order,
    measure,
    people,
    prosody,
    synthetic,
)
from bench.ladders import rated as rater_of
from overtone.metrics import distillmos, dnsmos, nisqa, utmos
from overtone.metrics._quality import Quality

RATES = ("rate 24 kHz", "rate 48 kHz")
LEVELS = ("level −12 dB", "level +6 dB")
UTMOS = [os.environ.get(f"OVERTONE_UTMOS_{name}", "") for name in ("SOURCE", "WEIGHTS")]


def apart(found: dict[str, np.ndarray], change: str) -> float:
    """The largest difference of a clip from its clean value."""
    return float(np.nanmax(np.abs(found[change] - found["clean"])))


def assert_ladder(score: str, found: dict[str, np.ndarray], least: float) -> None:
    means = [float(np.nanmean(found[change])) for change in LADDER]
    assert means == sorted(means, reverse=score not in LOWER_IS_BETTER), f"{score}: {means}"
    assert in_order(score, found) >= least, score


@pytest.mark.local
def test_noise_lowers_the_fit_and_neither_rate_nor_silence_changes_the_delivery() -> None:
    found = measure(synthetic(3), [prosody])
    assert_ladder("prosody_fit", found["prosody_fit"], 1.0)
    assert found["prosody_fit"]["noise 0 dB"].mean() < 0.9 < found["prosody_fit"]["noise 20 dB"].mean()
    for score in ("prosody_fit", "expressiveness"):
        for change in (*RATES, "1 s silence"):
            assert apart(found[score], change) < 0.02, (score, change)
    assert max(apart(found["expressiveness"], change) for change in LEVELS) < 0.02
    assert found["prosody_fit"]["level −12 dB"].mean() < 0.95  # the level is one of its five parts


@pytest.mark.local
def test_noise_makes_emotions_differ_and_rate_level_and_silence_do_not() -> None:
    found = measure(synthetic(4), [emoalign])["emoalign_reference"]
    assert_ladder("emoalign_reference", found, 0.75)
    assert found["noise 0 dB"][~np.isnan(found["noise 0 dB"])].mean() < 1.0
    for change in (*RATES, *LEVELS, "1 s silence"):
        assert apart(found, change) == 0.0, change


@pytest.mark.local
def test_noise_raises_word_errors_and_the_rate_hardly_does() -> None:
    changes = (*LADDER, *RATES, *LEVELS)
    found = measure(synthetic(3), [consistency], changes)["consistency_wer"]
    assert_ladder("consistency_wer", found, 1.0)
    assert found["noise 0 dB"].mean() > found["clean"].mean() + 0.3
    assert max(float(np.mean(found[change] - found["clean"])) for change in (*RATES, *LEVELS)) < 0.15


def quality(name: str, shared: Path) -> Quality:
    if name.startswith("nisqa"):
        return nisqa.load(weights=str(shared / "weights" / f"{name}.tar"))
    if name == "utmos":
        if not all(UTMOS):
            pytest.skip("UTMOS's weights are not here; set OVERTONE_UTMOS_SOURCE and OVERTONE_UTMOS_WEIGHTS")
        return utmos.load(source=UTMOS[0], weights=UTMOS[1])
    return {"dnsmos": dnsmos, "distillmos": distillmos}[name].load()


@pytest.mark.worker
@pytest.mark.shared
@pytest.mark.parametrize(
    ("name", "scores", "level_matters"),
    [
        pytest.param("dnsmos", ("dnsmos_ovrl", "dnsmos_bak", "dnsmos_p808"), True, marks=pytest.mark.full),
        ("distillmos", ("distillmos",), False),
        ("nisqa", nisqa.NAMES, True),
        pytest.param("nisqa_tts", ("nisqa_tts",), True, marks=pytest.mark.full),
        ("utmos", ("utmos",), False),
    ],
)
def test_noise_lowers_the_predicted_quality_of_people(
    shared: Path, name: str, scores: tuple[str, ...], level_matters: bool
) -> None:
    metric = quality(name, shared)
    clips: list[Clip] = people(shared / "data" / "librispeech", 3)
    rater: Rater = rater_of(metric)
    found = measure(clips, [rater], (*LADDER, "rate 48 kHz", "level −12 dB"))
    metric.close()
    for score in scores:
        assert_ladder(score, found[score], 0.6)
        assert apart(found[score], "rate 48 kHz") < 0.25, score
        if not level_matters:
            assert apart(found[score], "level −12 dB") < 0.1, score
    if name == "nisqa":  # it rates the loudness, as its documentation says
        assert np.mean(found["nisqa_loudness"]["level −12 dB"] - found["nisqa_loudness"]["clean"]) < -0.3
