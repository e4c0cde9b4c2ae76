"""Render every clip by one chain: speech, delivery, room, scene, level, 16-bit samples.

A neutral clip takes every step that its cued twins take, with a recipe that changes nothing. The output of an engine
that delivers cues itself (a recording, a voice that follows instructions) only gets one gain for all clips of a script.
"""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct

from overtone import audio
from overtone.build import room
from overtone.build.delivery import EDGE, ORDINARY_DBFS, RATE, Voiced, analyse, deliver
from overtone.build.licence import Ingredient
from overtone.build.real_sounds import Library
from overtone.build.recipes import NEUTRAL, Recipe, recipe_of, together
from overtone.build.reference_replies import speak_reply
from overtone.build.scenes import scene
from overtone.build.script import SET_LICENCE
from overtone.build.sound_plan import Group, Job, Options, how
from overtone.build.tract import Rng, Sound, random_of
from overtone.build.vocal_events import event
from overtone.build.voices import PACE, Cast, Engine, Speaker, cast

SCENE_DBFS = -20.0
CEILING = 0.98
_AUDIBLE = 0.02  # share of a recording's peak: softer sound at its ends is room noise
OURS = Ingredient("sounds", "synthesised by Overtone", SET_LICENCE)


class Rendered(Struct, frozen=True):
    """A finished sound and its ingredients."""

    samples: Sound
    voice: str
    recipe: dict[str, Any]
    ingredients: tuple[Ingredient, ...]


class Renderer:
    """Renders the sounds of one group. These share each speaker's plain speech and its analysis, which are cached."""

    def __init__(self, group: Group, options: Options) -> None:
        self.group = group
        self.options = options
        self.cast: Cast = cast(options.voices)
        self.library = library(options.sounds)
        self._plain: dict[tuple[Speaker, str], Voiced] = {}
        self._gains: dict[str, float] = {}  # by speaker; "" for the user's recordings
        self._files: dict[str, Sound] = {}

    def make(self, job: Job) -> Rendered:
        """Render any sound of the group."""
        if job.file:
            return self.recorded(job)
        return self.clip(job) if job.speaker else self.reply(job)

    def clip(self, job: Job) -> Rendered:
        if job.speaker is None:
            raise ValueError(f"{job.path} is not a clip: it has no speaker")
        rng = random_of(self.options.seed, str(job.take), job.drawn_as or job.path)
        engine = self.cast.engine(job.speaker)
        used = [Ingredient("voice", engine.identity(), engine.licence)]
        dbfs = SCENE_DBFS if job.outdoors else ORDINARY_DBFS
        recipe = NEUTRAL if engine.native else self._recipe(job)
        if engine.native:
            samples = self._take(job, job.speaker, engine) * self._gain(job, job.speaker, engine, dbfs)
        else:
            voiced = self._voiced(job, job.speaker, engine)
            samples = deliver(voiced, recipe, rng, job.speaker.scale, dbfs, functools.partial(self._event, used))
        if self.options.room:
            # one room for all clips of a script, so that the voice in a scene is the neutral twin's voice
            room_rng = random_of(self.options.seed, str(job.take), self.group.id, "room")
            samples = room.respond(samples, RATE, room_rng, self.options.room)
        if job.scene:
            behind = self._scene(job, samples.size, rng, used)
            loud = (dbfs if job.also else SCENE_DBFS) + recipe.gain  # a soft voice stays soft in the rain
            samples = audio.mix(samples, behind, RATE, self.options.snr, speech_dbfs=loud).astype(np.float64)
        return Rendered(_under(samples), job.speaker.name, _changes(recipe), tuple(dict.fromkeys(used)))

    def reply(self, job: Job) -> Rendered:
        if not job.cue:
            samples, name, used = speak_reply(self.cast, job.text, job.voice_style, job.path)
            return Rendered(_under(samples), name, {}, (used,))
        samples, name, used = speak_reply(self.cast, job.text, "", job.path)
        recipe = self._recipe(job)
        samples = deliver(analyse(samples), recipe, random_of(self.options.seed, str(job.take), job.path))
        return Rendered(_under(samples), name, _changes(recipe), (used,))

    def recorded(self, job: Job) -> Rendered:
        """Convert a recording to a clip: one channel, our rate, and one gain for all recordings of the group. The
        common gain keeps a shout louder than a whisper."""
        if "" not in self._gains:
            takes = [self._file(j) for j in self.group.jobs if j.file]
            loudest = max(float(np.abs(take).max(initial=0.0)) for take in takes)
            usual = float(np.mean([np.log10(np.mean(take**2) + 1e-12) for take in takes]))
            self._gains[""] = min(10 ** (ORDINARY_DBFS / 20 - usual / 2), CEILING / (loudest + 1e-12))
        used = Ingredient("takes", self.group.corpus, self.group.licence)
        return Rendered(_under(self._file(job) * self._gains[""]), job.recorded_by, {}, (used,))

    def _file(self, job: Job) -> Sound:
        if job.file not in self._files:
            samples, rate = audio.read(Path(job.file))
            self._files[job.file] = _cut(audio.resample(samples, rate, RATE).astype(np.float64))
        return self._files[job.file]

    def _recipe(self, job: Job) -> Recipe:
        strength = self.options.strength
        return together(
            [recipe_of(job.cue, job.manner, strength), *(recipe_of(slug, "", strength) for slug in job.also)]
        )

    def _take(self, job: Job, speaker: Speaker, engine: Engine) -> Sound:
        samples, rate = engine.speak(job.text, speaker, how(job), pace=PACE)
        return audio.resample(samples, rate, RATE).astype(np.float64)

    def _voiced(self, job: Job, speaker: Speaker, engine: Engine) -> Voiced:
        if (speaker, job.text) not in self._plain:
            self._plain[speaker, job.text] = analyse(self._take(job, speaker, engine))
        return self._plain[speaker, job.text]

    def _gain(self, job: Job, speaker: Speaker, engine: Engine, dbfs: float) -> float:
        """Return the gain that brings the speaker's plain take to the ordinary level. All takes get the same gain, so
        that a shout stays louder than a whisper."""
        if speaker.name not in self._gains:
            plain = next((j for j in self.group.jobs if j.speaker == speaker and not j.cue), job)
            take = self._take(plain, speaker, engine)
            self._gains[speaker.name] = 10 ** (dbfs / 20) / (float(np.sqrt(np.mean(take**2))) + 1e-12)
        return self._gains[speaker.name]

    def _event(self, used: list[Ingredient], name: str, rate: int, rng: Rng, f0: float, scale: float) -> Sound:
        real = self.library.event(name, rate, rng) if self.library else None
        used.append(self._credit(real))
        return real[0] if real else event(name, rate, rng, f0, scale)

    def _scene(self, job: Job, n: int, rng: Rng, used: list[Ingredient]) -> Sound:
        real = self.library.scene(job.scene, n, RATE, rng, job.manner) if self.library else None
        used.append(self._credit(real))
        return real[0] if real else scene(job.scene, n, RATE, rng, job.manner)

    def _credit(self, real: tuple[Sound, Path] | None) -> Ingredient:
        """Return the ingredient of a real sound, or that of synthesised sounds if `real` is None."""
        return Ingredient("recording", real[1].name, self.library.licence(real[1])) if real and self.library else OURS


@functools.cache
def library(folder: str) -> Library | None:
    return Library(Path(folder)) if folder else None


def _cut(take: Sound) -> Sound:
    """Trim both ends of a recording, keeping at most EDGE seconds before the first and after the last audible sample.

    A silent recording is returned unchanged.
    """
    loud = np.flatnonzero(np.abs(take) > _AUDIBLE * float(np.abs(take).max(initial=0.0)))
    edge = int(EDGE * RATE)
    return take[max(int(loud[0]) - edge, 0) : int(loud[-1]) + edge] if loud.size else take


def _under(samples: Sound) -> Sound:
    peak = float(np.abs(samples).max(initial=0.0))
    return samples * (CEILING / peak) if peak > CEILING else samples


def _changes(recipe: Recipe) -> dict[str, Any]:
    """Return the fields of a recipe that differ from the neutral one."""
    plain = dataclasses.asdict(NEUTRAL)
    return {key: value for key, value in dataclasses.asdict(recipe).items() if value != plain[key]}
