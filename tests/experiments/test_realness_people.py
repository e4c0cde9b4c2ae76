"""The second look at cues with people's speech: halves that share no speaker, and cues with too few speakers."""

from __future__ import annotations

import pytest

from experiments.realness import people
from tests.needs import SHARED


def test_the_halves_share_no_speaker_and_are_the_same_every_time() -> None:
    names = [f"{n:02d}" for n in range(19)]
    first, second = (people.half(names, which) for which in ("set", "test"))
    assert not first & second and first | second == set(names)
    assert (len(first), len(second)) == (10, 9)
    assert people.half([*reversed(names), *names], "set") == first


@pytest.mark.shared
def test_yawns_and_wind_have_too_few_speakers_to_be_tested() -> None:
    assert people.short(SHARED / "data") == {"yawn": (4, 5), "wind": (6, 5)}


@pytest.mark.shared
def test_the_families_have_enough_speakers_of_fear_and_sighs_in_each_half() -> None:
    for which in ("set", "test"):
        emotions = people.emotions(SHARED / "data", which)
        events = people.events(SHARED / "data", which)
        for jobs, cue in ((emotions, "fear"), (events, "sigh")):
            assert len({job.who for job in jobs if job.label == cue}) >= people.LEAST
        assert all(job.beside for job in (*emotions, *events))
