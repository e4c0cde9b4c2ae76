"""The builder: scripts in, a benchmark folder in EchoMind's layout out, with a manifest of every sound's making.

A clip's bytes depend on its script, its recipe, the seed and this room's code, never on the number of jobs or on what
was built before; so a second build keeps what is there and a killed one goes on where it stopped.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct

from overtone import audio
from overtone.build import questions as ask
from overtone.build.delivery import NEUTRAL, ORDINARY_DBFS, RATE, Recipe, Voiced, analyse, deliver, recipe_of
from overtone.build.replies import speak_reply
from overtone.build.scenes import scene
from overtone.build.script import Script, read_set
from overtone.build.voices import REPLY_VOICE
from overtone.embedded import require, version
from overtone.embedded.voice import identity, speak
from overtone.errors import DataError, UsageError
from overtone.spec import suggest

LICENCE = "CC-BY-4.0"
SCENE_DBFS, SCENE_SNR = -20.0, 10.0
_PACE = 160  # words a minute of plain speech
_CLIPS, _REPLIES = "data_synthesis/audio/", "audio_response/"
_CODE = ("tract", "events", "scenes", "delivery", "replies", "make")  # files whose change changes sounds


class Made(Struct, frozen=True):
    """One sound of the manifest. `made_from` is a hash of everything that went into it."""

    path: str
    sha256: str
    seconds: float
    case_id: str
    style: str
    voice: str
    made_from: str
    cue: str = ""
    scene: str = ""
    recipe: dict[str, Any] = {}
    manner: str = ""  # of a reply
    licence: str = LICENCE


class Manifest(Struct, frozen=True):
    """What a build wrote beside the clips."""

    name: str
    licence: str
    engine: str
    clips: tuple[Made, ...]


class Built(Struct, frozen=True):
    """What a build did."""

    scripts: int
    made: int
    kept: int
    sound_seconds: float  # of the sounds made now
    wall_seconds: float
    questions: tuple[ask.Question, ...]
    clips: tuple[Made, ...]

    @property
    def speed(self) -> float:
        """Seconds of sound per second of building."""
        return self.sound_seconds / max(self.wall_seconds, 1e-9)


Progress = Callable[[int, int, str], None]


def build(
    name: str,
    out: Path,
    *,
    only: Sequence[str] = (),
    jobs: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Built:
    """Build a script set into `out`, or only the scripts of some cues. Sounds already there and unchanged are kept."""
    began = time.monotonic()
    require("pyworld", "the WORLD vocoder, for deliveries")
    require("espeakng_loader", "the offline voices")
    scripts = read_set(name)
    chosen = _chosen(scripts, only)
    before = _open(out, name)
    _sweep(out)
    done: dict[str, Made] = {m.path: m for m in before if (out / m.path).is_file()}
    todo: list[tuple[Script, tuple[str, ...]]] = []
    kept = 0
    for script in chosen:
        wanted = tuple(_plan(script, seed))
        missing = tuple(p for p, made_from in wanted if not _same(out, done.get(p), made_from))
        kept += len(wanted) - len(missing)
        if missing:
            todo.append((script, missing))
    _write_manifest(out, name, scripts, done)  # first of all, so that a build killed at once knows its folder again
    made = 0
    seconds = 0.0
    for count, (script, fresh) in enumerate(_work(todo, out, seed, jobs or os.cpu_count() or 1), 1):
        done |= {m.path: m for m in fresh}
        made += len(fresh)
        seconds += sum(m.seconds for m in fresh)
        _write_manifest(out, name, scripts, done)
        if progress:
            progress(count, len(todo), script.cue)
    whole = [s for s in scripts if all(path in done for path, _ in _plan(s, seed))]
    questions = _write_texts(out, scripts, whole, seed)
    clips = _write_manifest(out, name, whole, done)
    return Built(len(chosen), made, kept, seconds, time.monotonic() - began, tuple(questions), clips)


def _chosen(scripts: Sequence[Script], only: Sequence[str]) -> list[Script]:
    cues = [s.cue for s in scripts]
    for slug in only:
        if slug not in cues:
            raise UsageError(f"no script for the cue {slug!r}{suggest(slug, cues)}; there are: {', '.join(cues)}")
    return [s for s in scripts if not only or s.cue in only]


def _open(out: Path, name: str) -> tuple[Made, ...]:
    """The manifest of an earlier build of the same set; refuses a folder that holds something else."""
    path = out / "manifest.json"
    if path.is_file():
        try:
            found = msgspec.json.decode(path.read_bytes(), type=Manifest)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise DataError(f"{path}: not a manifest of this builder ({error}); give another --out") from error
        if found.name != name:
            raise UsageError(f"{out} holds the set {found.name!r}; give another --out for {name!r}")
        return found.clips
    if (out / "data_synthesis").exists() or (out / "audio_response").exists():
        raise UsageError(f"{out} holds a benchmark that was not built here; give another --out")
    out.mkdir(parents=True, exist_ok=True)
    return ()


def _sweep(out: Path) -> None:
    """Remove the unfinished files of a killed build."""
    for part in out.rglob(".*.part"):
        part.unlink(missing_ok=True)


def _same(out: Path, made: Made | None, made_from: str) -> bool:
    if made is None or made.made_from != made_from:
        return False
    return hashlib.sha256((out / made.path).read_bytes()).hexdigest() == made.sha256


def _plan(script: Script, seed: int) -> Iterator[tuple[str, str]]:
    """Every sound of a script: its path, and the hash of what it is made from."""
    for style in script.styles:
        cue, voice = script.cue_in(style), script.voice_in(style)
        parts = (
            _code(),
            script.id,
            script.cue,
            script.words,
            voice,
            cue.slug if cue else "",
            _recipe(script, style),
            seed,
        )
        yield _CLIPS + script.file_name(style), _hash(parts)
        reply = (_code(), script.reply[style], script.style[style], REPLY_VOICE)
        yield _REPLIES + script.file_name(style, "_response.wav"), _hash(reply)


def _hash(parts: tuple[object, ...]) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


@functools.cache
def _code() -> str:
    """What the sounds depend on besides the scripts: this room's source and the versions of its engines."""
    here = Path(__file__).parent
    source = b"".join((here / f"{name}.py").read_bytes() for name in _CODE)
    engines = f"{identity()} {version('pyworld-prebuilt')} {version('pyworld')} {version('soxr')} {np.__version__}"
    return hashlib.sha256(source + engines.encode()).hexdigest()[:16]


def _recipe(script: Script, style: str) -> Recipe:
    cue = script.cue_in(style)
    return recipe_of(cue.slug) if cue else NEUTRAL


def _work(
    todo: list[tuple[Script, tuple[str, ...]]], out: Path, seed: int, jobs: int
) -> Iterator[tuple[Script, list[Made]]]:
    """Make what is missing, script by script, in this process or in several."""
    jobs = min(jobs, len(todo))
    if jobs <= 1:
        for script, paths in todo:
            yield script, _make(script, paths, out, seed)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_start_worker) as pool:
        futures = {pool.submit(_make, script, paths, out, seed): script for script, paths in todo}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def _start_worker() -> None:
    """Leave interrupts to the parent, and end with it: a killed build must not leave processes behind."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()

    def follow() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


def _make(script: Script, paths: tuple[str, ...], out: Path, seed: int) -> list[Made]:
    """Make the named sounds of one script. Runs in a worker process."""
    plans = dict(_plan(script, seed))
    plain: dict[str, Voiced] = {}
    made: list[Made] = []
    for style in script.styles:
        path = _CLIPS + script.file_name(style)
        if path in paths:
            voice = script.voice_in(style)
            if voice.engine not in plain:
                samples, rate = speak(script.words, voice=voice.engine, rate_wpm=_PACE)
                plain[voice.engine] = analyse(audio.resample(samples, rate, RATE).astype(np.float64))
            made.append(_clip(script, style, plain[voice.engine], out, path, plans[path], seed))
        path = _REPLIES + script.file_name(style, "_response.wav")
        if path in paths:
            samples = speak_reply(script.reply[style], script.style[style])
            digest, seconds = _write_wav(out / path, samples)
            made.append(
                Made(path, digest, seconds, script.id, style, REPLY_VOICE, plans[path], manner=script.style[style])
            )
    return made


def _clip(script: Script, style: str, plain: Voiced, out: Path, path: str, made_from: str, seed: int) -> Made:
    cue, voice, recipe = script.cue_in(style), script.voice_in(style), _recipe(script, style)
    rng = np.random.default_rng(int.from_bytes(hashlib.sha256(f"{seed}/{path}".encode()).digest()[:8], "big"))
    outdoors = script.cue_in("target")
    in_scene = outdoors is not None and outdoors.dimension == "environment"
    # A neutral clip of a scene script is as loud as its mixes: only the scene may tell them apart.
    samples = deliver(plain, recipe, rng, voice.scale, SCENE_DBFS if in_scene else ORDINARY_DBFS)
    behind = cue.slug if cue is not None and cue.dimension == "environment" else ""
    if behind:
        background = scene(behind, samples.size, RATE, rng)
        samples = audio.mix(samples, background, RATE, SCENE_SNR, speech_dbfs=SCENE_DBFS).astype(np.float64)
    digest, seconds = _write_wav(out / path, samples)
    return Made(
        path, digest, seconds, script.id, style, voice.engine, made_from,
        cue=cue.slug if cue else "", scene=behind, recipe=_changes(recipe),
    )  # fmt: skip


def _changes(recipe: Recipe) -> dict[str, Any]:
    """A recipe's fields that differ from doing nothing."""
    plain = dataclasses.asdict(NEUTRAL)
    return {key: value for key, value in dataclasses.asdict(recipe).items() if value != plain[key]}


def _write_wav(path: Path, samples: Any) -> tuple[str, float]:
    peak = float(np.abs(samples).max())
    if peak > 0.98:
        samples = samples * (0.98 / peak)
    data = audio.encode_wav(samples, RATE)
    _write(path, data)
    return hashlib.sha256(data).hexdigest(), round(len(samples) / RATE, 4)


def _write(path: Path, data: bytes) -> None:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    part.write_bytes(data)
    part.replace(path)


def _write_json(path: Path, value: object) -> None:
    _write(path, msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n")


def _write_manifest(out: Path, name: str, scripts: Sequence[Script], done: dict[str, Made]) -> tuple[Made, ...]:
    ids = {s.id for s in scripts}
    clips = tuple(sorted((m for m in done.values() if m.case_id in ids), key=lambda m: m.path))
    _write_json(out / "manifest.json", Manifest(name, LICENCE, identity(), clips))
    return clips


def _write_texts(out: Path, scripts: Sequence[Script], whole: Sequence[Script], seed: int) -> list[ask.Question]:
    """The scripts and questions whose clips exist, in EchoMind's keys. Questions are drawn over all scripts, so that a
    part of the set asks what the whole would ask."""
    home = out / "data_synthesis"
    _write_json(home / "script_info_synthesis.json", [_script_info(s) for s in whole])
    ids = {s.id for s in whole}
    everything: list[ask.Question] = []
    for kind, drawn in (
        ("understanding", ask.understanding(scripts, seed)),
        ("reasoning", ask.reasoning(scripts, seed)),
    ):
        questions = [q for q in drawn if q.script.id in ids]
        _write_json(home / "MCQ" / f"{kind}.json", [_question_info(q) for q in questions])
        everything += questions
    return everything


def _script_info(script: Script) -> dict[str, Any]:
    info: dict[str, Any] = {
        "case_id": script.id,
        "spoken_info": script.cue,
        "topic": script.topic,
        "speak_A": script.words,
    }
    for style in script.styles:
        told = {
            f"{style}_input_audio_file": script.file_name(style),
            f"{style}_response_audio_file": script.file_name(style, "_response.wav"),
            f"{style}_response_text": script.reply[style],
            "style_profile": script.style[style],
        }
        if style == "alternative":
            told["alternative_spoken_info"] = script.alternative
        info[f"{style}_audio_info"] = told
    return info


def _question_info(q: ask.Question) -> dict[str, Any]:
    folder, _, name = q.script.file_name(q.style).partition("/")
    return {
        "question_id": q.id,
        "question_type": q.category,
        "audio_dir": folder,
        "audio_name": name,
        "script": q.script.words,
        "question": q.question,
        "options_text": q.options_text,
        "answer": q.answer,
        "option_provenance": list(q.provenance),
    }
