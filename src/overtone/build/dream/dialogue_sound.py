"""Render a whole dialogue as one clip: every turn in the voice of its speaker, with short pauses between turns."""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from overtone.build.delivery import EDGE, RATE
from overtone.build.render import Rendered, Renderer
from overtone.build.sound_plan import Group, Job, Options
from overtone.build.tract import Sound, random_of
from overtone.build.voices import Speaker

VERSION = 1  # raised when the sound of a dialogue changes; part of the hash of every clip
PAUSES = (0.25, 0.6)  # seconds between two turns, drawn evenly


class DialogueJob(Job, frozen=True):
    """A dialogue to speak. `text` holds the words of all turns; `spoken` has the turns with their speakers."""

    spoken: tuple[tuple[Speaker, str], ...] = ()
    version: int = VERSION


class DialogueRenderer:
    """Renders the dialogues of a group with the chain of all other clips, turn by turn."""

    def __init__(self, group: Group, options: Options) -> None:
        self.options = options
        self.turns: dict[str, tuple[Job, ...]] = {j.path: _turns(j) for j in group.jobs if isinstance(j, DialogueJob)}
        every_turn = tuple(turn for turns in self.turns.values() for turn in turns)
        self.renderer = Renderer(Group(group.id, "", every_turn), options)

    def make(self, job: Job) -> Rendered:
        """Render one dialogue."""
        rendered = [self.renderer.make(turn) for turn in self.turns[job.path]]
        rng = random_of(self.options.seed, str(job.take), job.path, "pauses")
        sounds: list[Sound] = []
        for one in rendered:
            if sounds:
                sounds.append(np.zeros(int(rng.uniform(*PAUSES) * RATE)))
            sounds.append(_trimmed(one.samples))
        edge = np.zeros(int(EDGE * RATE))
        names = ", ".join(dict.fromkeys(one.voice for one in rendered))
        used = dict.fromkeys(ingredient for one in rendered for ingredient in one.ingredients)
        return Rendered(np.concatenate([edge, *sounds, edge]), names, {}, tuple(used))


def _turns(job: DialogueJob) -> tuple[Job, ...]:
    """Return the jobs of a dialogue's turns: plain clips, each with its own random draws."""
    plain = Job(job.path, job.case_id, job.style, job.text, take=job.take)
    return tuple(
        replace(plain, path=f"{job.path}/{number}", speaker=speaker, text=words)
        for number, (speaker, words) in enumerate(job.spoken)
    )


def _trimmed(samples: Sound) -> Sound:
    """Cut the silence that every clip has at its ends, so that the pauses alone separate turns."""
    loud = np.flatnonzero(np.abs(samples) > 1e-4)
    return samples[int(loud[0]) : int(loud[-1]) + 1] if loud.size else samples
