"""One chain for all: no classifier tells which clips were processed; the voice under a scene is the neutral one's."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from overtone import audio
from overtone.build.delivery import ORDINARY_DBFS, RATE
from overtone.build.gates.twin import compare
from overtone.build.render import SCENE_DBFS, Renderer
from overtone.build.script import Script, read_set
from overtone.build.sound_plan import Group, Job, Options
from overtone.build.tract import Sound
from overtone.build.voices import How, Speaker, cast
from overtone.embedded import hearing
from overtone.stats import cluster

pytestmark = pytest.mark.local
Array = NDArray[np.float64]
N = 24
SCENES = ("rain", "dog", "chatter", "music")


def scripts() -> Sequence[Script]:
    return read_set("open")[7 :: len(read_set("open")) // N][:N]


def render(script: Script, speaker: Speaker, cue: str, *, strength: float = 1.0, outdoors: bool = False) -> Sound:
    """A clip at the level of the chain, before it is written."""
    path = f"data_synthesis/audio/x/{script.id}_{cue or 'neutral'}_{strength}_{outdoors}.wav"
    job = Job(path, script.id, "target" if cue else "neutral", script.words, speaker, cue, "", outdoors)
    return Renderer(Group(script.id, cue, (job,)), Options(strength=strength)).clip(job).samples


def written(x: Sound) -> audio.Samples:
    """The samples as they are read back from disk."""
    return audio.decode(audio.encode_wav(x, RATE))[0]


def processed(k: int, script: Script, speaker: Speaker) -> Sound:
    """A clip that went through the chain for the sake of a cue, with nothing in it that a listener could hear."""
    if k % 3 == 0:
        return render(script, speaker, speaker.sex)  # the cue is the voice itself
    if k % 3 == 1:
        return render(script, speaker, ("happy", "whisper", "cough", "slow")[k // 3 % 4], strength=0.0)
    louder = render(script, speaker, "", outdoors=True)  # the neutral clip of a script with a scene
    return louder * 10 ** ((ORDINARY_DBFS - SCENE_DBFS) / 20)  # its level is by design; what else is there?


@functools.cache
def clips() -> tuple[tuple[audio.Samples, audio.Samples, audio.Samples], ...]:
    """Of each script: the neutral clip, a processed one, and the engine's own sound at the same rate and level."""
    out = []
    speakers = cast(("espeak",)).speakers()
    for k, script in enumerate(scripts()):
        speaker = speakers[k % len(speakers)]
        engine = cast(("espeak",)).engine(speaker)
        raw, rate = engine.speak(script.words, speaker, How(script.id, "neutral", "", "", "", ""))
        plain = np.asarray(audio.level(audio.resample(raw, rate, RATE), ORDINARY_DBFS), np.float64)
        three = (render(script, speaker, ""), processed(k, script, speaker), plain)
        out.append((written(three[0]), written(three[1]), written(three[2])))
    return tuple(out)


def features(x: audio.Samples) -> Array:
    """What the ear goes by, and every trace a chain could leave: silent ends, floor, highs, peak, offset, size."""
    loud = np.flatnonzero(np.abs(x) > 1e-3)
    power = np.abs(np.fft.rfft(x)) ** 2
    high = power[int(8000 / (RATE / 2) * len(power)) :].sum() / power.sum()
    data = audio.encode_wav(x, RATE)
    trace = [
        loud[0] / RATE, (len(x) - loud[-1]) / RATE, np.log10(np.abs(x[: RATE // 50]).mean() + 1e-7),
        np.log10(np.abs(x[-RATE // 50 :]).mean() + 1e-7), np.log10(high + 1e-12), np.abs(x).max(), x.mean() * 1e3,
        len(x) % 2, len(x) % 120, float((x == 0).mean()), float(len(data) - 2 * len(x)), len(np.unique(x)) / len(x),
    ]  # fmt: skip
    return np.concatenate([hearing.features(x, RATE), trace])


def told_apart(first: Sequence[audio.Samples], second: Sequence[audio.Samples]) -> cluster.Interval:
    """How often a ridge classifier, fitted on the other scripts, names the class of a script's clips: six folds."""
    x = np.nan_to_num(np.array([features(c) for pair in zip(first, second, strict=True) for c in pair]))
    y = np.tile([-1.0, 1.0], len(first))
    script = np.repeat(np.arange(len(first)), 2)
    right = np.zeros(len(y))
    for fold in range(6):
        test = script % 6 == fold
        centre, spread = x[~test].mean(0), x[~test].std(0) + 1e-9
        z = np.clip((x - centre) / spread, -5, 5)
        a, b = z[~test], y[~test]
        weights = a.T @ np.linalg.solve(a @ a.T + 10.0 * np.eye(len(a)), b)
        score = z[test] @ weights
        right[test] = np.where(np.abs(score) < 1e-9, 0.5, np.sign(score) == y[test])
    return cluster.mean(right.tolist(), script.tolist())


def test_no_classifier_tells_which_clips_were_processed() -> None:
    found = told_apart([c[0] for c in clips()], [c[1] for c in clips()])
    assert found.low <= 0.5 <= found.high, found


def test_the_same_classifier_tells_an_engines_own_sound_from_the_chains() -> None:
    found = told_apart([c[0] for c in clips()], [c[2] for c in clips()])
    assert found.low > 0.5, found


def test_a_processed_clip_with_nothing_to_hear_is_the_neutral_clip_up_to_a_gain_and_rounding() -> None:
    for neutral, other, _ in clips():
        assert len(neutral) == len(other)
        gain = float(other @ neutral / (neutral @ neutral))  # 1, or less where a peak would have passed full scale
        assert 0.5 < gain < 1.001
        assert float(np.abs(gain * neutral - other).max()) < 2.5 / 32768


@pytest.mark.parametrize("slug", SCENES)
def test_the_voice_under_a_scene_is_the_neutral_twins_sample_for_sample(slug: str) -> None:
    script = scripts()[SCENES.index(slug)]
    one, other = cast(("espeak",)).speakers()[:2]
    neutral = written(render(script, one, "", outdoors=True))
    pair = compare(written(render(script, one, slug, outdoors=True)), neutral, RATE, RATE)
    assert pair.snr_db == pytest.approx(10.0, abs=0.25)
    assert pair.gain_db == pytest.approx(0.0, abs=1.5)  # a mix that would pass full scale is turned down as a whole
    swapped = compare(written(render(script, other, slug, outdoors=True)), neutral, RATE, RATE)
    assert swapped.snr_db is None or swapped.snr_db < 0  # the measure can fail
