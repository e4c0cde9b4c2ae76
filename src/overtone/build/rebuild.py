"""Compare a set with its rebuild, clip by clip, by measurements rather than bytes.

The same versions on one machine give the same bytes. Another machine, or another version of an engine or of NumPy,
rounds differently. Such a rebuild is the same set if no clip differs by more than TOLERANCES.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from msgspec import Struct

from overtone import audio
from overtone.audio import Measures
from overtone.build.gates import Finding
from overtone.build.gates.facts import Sound, heard, long_spectrum, read
from overtone.build.manifest import FILE, LEFT_OUT, Manifest, read_manifest
from overtone.errors import AudioError, DataError
from overtone.paths import inside, read_plain, shown
from overtone.pool import Progress, no_progress, spread

if TYPE_CHECKING:
    from overtone.build.sound_plan import Group, Options

GATE = "rebuild"
# replies are not transcribed: they are long, and the set's texts contain their words
_CLIPS = re.compile(r"data_(synthesis|human)/|audio/(?!replies/)|steps/")
_MAX_BYTES = 500_000_000
_FAINT_DB = -40.0  # a band this far below the whole is not compared, because rounding alone changes it
_VOICED = 0.1  # share of voiced frames that a median pitch needs


class Tolerance(Struct, frozen=True):
    """The maximum difference of a measure between a clip and its rebuild, and the unit of the measure."""

    most: float
    unit: str
    why: str


TOLERANCES: dict[str, Tolerance] = {
    "duration": Tolerance(0.02, "of the longer", "a frame or two of the vocoder; a word more or less is 10 %"),
    "level": Tolerance(0.5, "dB", "half of what a listener notices"),
    "pitch": Tolerance(0.03, "of the higher", "half a semitone; the smallest recipe moves it by 5 %"),
    "spectrum": Tolerance(1.5, "dB", "of any band, against the whole; another voice differs by 3 and more"),
    "words": Tolerance(0.34, "WER", "between what is heard of both: one word in three, as near noise words tip over"),
}


class _Clip(Struct, frozen=True):
    path: str


class _Manifest(Struct, frozen=True):
    """The fields of a manifest that are read here; all others may change between versions."""

    name: str
    clips: tuple[_Clip, ...]


def compare(
    folder: Path, rebuilt: Path, *, words: bool = True, jobs: int = 1, progress: Progress = no_progress
) -> list[Finding]:
    """Compare a set with its rebuild. Return a finding for each clip that only one of the two has, and for each clip
    that differs by more than the tolerances. With `words=False` nothing is transcribed."""
    mine, other = _clips(folder), _clips(rebuilt)
    advice = "rebuild with the same scripts and flags"
    lacking = f"is in {shown(str(folder))} and not in the rebuild; {advice}"
    findings = [Finding(GATE, name, lacking) for name in sorted(set(mine) - set(other))]
    findings += [Finding(GATE, name, f"is in the rebuild only; {advice}") for name in sorted(set(other) - set(mine))]
    pairs = [(name, str(mine[name]), str(other[name])) for name in sorted(set(mine) & set(other))]
    return findings + _compared(pairs, words, jobs, progress)


def rebuild_and_compare(
    folder: Path,
    sample: int | None,
    tmp: Path,
    *,
    scripts: str | None = None,
    words: bool = True,
    jobs: int = 1,
    progress: Progress = no_progress,
) -> list[Finding]:
    """Rebuild the set in `folder` under `tmp` and compare the two. `sample` is the number of evenly spread scripts to
    rebuild (None: all). `scripts` names the script file of a set that is not the package's own."""
    known, made = _clips(folder), read_manifest(folder)
    planned = _planned(made, scripts)
    groups = [g for g in planned if any(j.path in known for j in g.jobs)]
    if sample is not None and 0 < sample < len(groups):
        groups = [groups[k] for k in sorted({round(x) for x in np.linspace(0, len(groups) - 1, sample)})]
    if not groups:
        raise DataError(f"{shown(str(folder))} contains no clips of the set {shown(made.name)}; give --scripts FILE")
    tasks = [(g, made.options, tuple(j.path for j in g.jobs if j.path in known), str(tmp)) for g in groups]
    for count, _ in enumerate(spread(_render_again, tasks, jobs), 1):
        progress("scripts spoken again", count, len(tasks))
    wanted = sorted(path for _, _, paths, _ in tasks for path in paths)
    pairs = [(name, str(known[name]), str(tmp / name)) for name in wanted]
    return _compared(pairs, words, jobs, progress)


def _planned(made: Manifest, scripts: str | None) -> list[Group]:
    """Return the sounds that the build of a manifest planned."""
    from overtone.build import aeq_set, echat_eval_set
    from overtone.build.script import read_collection
    from overtone.build.sound_plan import plan

    others = {aeq_set.NAME: aeq_set.plan, echat_eval_set.NAME: echat_eval_set.plan}
    if made.name in others and not scripts:
        return others[made.name](made.options, made.takes)
    return plan(read_collection(scripts or made.name), made.options, made.takes)


def _clips(folder: Path) -> dict[str, Path]:
    """Return the files of a set's clips by name, including clips that were left out."""
    path = folder / FILE
    try:
        manifest = msgspec.json.decode(read_plain(path, _MAX_BYTES), type=_Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{shown(str(path))}: not a manifest of a built set ({error}); give a set's folder") from error
    return {clip.path.removeprefix(LEFT_OUT): inside(folder, clip.path) for clip in manifest.clips}


def _render_again(task: tuple[Group, Options, tuple[str, ...], str]) -> None:
    """Render some sounds of one group again. Runs in a worker process."""
    from overtone.build.delivery import RATE
    from overtone.build.manifest import write
    from overtone.build.render import Renderer

    group, options, paths, tmp = task
    renderer = Renderer(group, options)
    for job in group.jobs:
        if job.path in paths:
            write(Path(tmp) / job.path, audio.encode_wav(renderer.make(job).samples, RATE))


def _compared(pairs: Sequence[tuple[str, str, str]], words: bool, jobs: int, progress: Progress) -> list[Finding]:
    findings: list[Finding] = []
    tasks = [(*pair, words and bool(_CLIPS.match(pair[0]))) for pair in pairs]
    for count, differences in enumerate(spread(_differences, tasks, jobs), 1):
        findings += differences
        progress("clips compared", count, len(tasks))
    return sorted(findings, key=lambda f: f.subject)


def _differences(task: tuple[str, str, str, bool]) -> list[Finding]:
    """Return a finding for each measure in which two files differ too much. Runs in a worker process."""
    name, path, other_path, words = task
    try:
        one, two = read(Path(path)), read(Path(other_path))
    except AudioError as error:
        return [Finding(GATE, name, str(error))]
    if one.sha256 == two.sha256:
        return []
    return [
        Finding(GATE, name, _reason(measure, value), round(value, 4), TOLERANCES[measure].most)
        for measure, value in distances(one, two, words=words).items()
        if value > TOLERANCES[measure].most
    ]


def _reason(measure: str, value: float) -> str:
    bound = TOLERANCES[measure]
    return (
        f"its {measure} differs by {value:.3g} {bound.unit}, at most {bound.most:g} is expected of a rebuild; compare "
        "the versions of the engines in both manifests"
    )


def distances(one: Sound, two: Sound, *, words: bool) -> dict[str, float]:
    """Return the difference of two sounds in each measure of TOLERANCES."""
    a, b = audio.measure(one.samples, one.rate), audio.measure(two.samples, two.rate)
    bands = zip(long_spectrum(one.samples, one.rate), long_spectrum(two.samples, two.rate), strict=True)
    out = {
        "duration": abs(a.seconds - b.seconds) / max(a.seconds, b.seconds),
        "level": abs(a.rms_dbfs - b.rms_dbfs),
        "pitch": _pitch(a, b),
        "spectrum": max(abs(x - y) for x, y in bands if max(x, y) > _FAINT_DB),
    }
    if words:
        from overtone.embedded.recogniser import transcribe

        first, second = (transcribe(s.samples, s.rate) for s in (one, two))
        counts = heard(first, second)
        out["words"] = counts.errors / max(counts.reference_words, 1)
    return out


def _pitch(a: Measures, b: Measures) -> float:
    """Return the relative difference in pitch; 0 if both are almost unvoiced, as in a whisper."""
    if min(a.voiced, b.voiced) < _VOICED:
        return 0.0 if max(a.voiced, b.voiced) < 2 * _VOICED else 1.0
    low, high = sorted((a.f0_hz or 0.0, b.f0_hz or 0.0))
    return 1 - low / high if high else 0.0
