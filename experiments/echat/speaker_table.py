"""How well the speakers of the EChat set's train and dev parts are understood: the table of docs/how-to/build-echat.md.

python -m experiments.echat.speaker_table
"""

from __future__ import annotations

import numpy as np

from overtone import audio
from overtone.build.gates.facts import heard
from overtone.build.render import Renderer
from overtone.build.sound_plan import Group, Job, Options
from overtone.build.voices._records import SCALE, Speaker
from overtone.echat.making.clip_plan import DEV, TRAIN
from overtone.embedded.recogniser import transcribe

SAID = (
    "Could you help me find a good place to eat near the station?",
    "I left my keys on the kitchen table this morning.",
    "What is the best way to clean a wool coat?",
    "My sister is coming over for dinner on Sunday.",
    "Please remind me to call the school before noon.",
    "How long does it take to walk to the library?",
)


def main() -> None:
    """One line for each speaker: part, sex, name, word error rate, median pitch."""
    for part, people in (("train", TRAIN), ("dev", DEV)):
        for sex, names in people.items():
            for name in names:
                errors = words = 0
                pitch = []
                for text in SAID:
                    job = Job(name, name, "", text, Speaker("espeak", name, sex, SCALE[sex]))
                    x = Renderer(Group(name, "", (job,)), Options()).make(job).samples.astype(np.float32)
                    found = heard(text, transcribe(x, 24_000))
                    errors, words = errors + found.errors, words + found.reference_words
                    pitch.append(audio.measure(x, 24_000).f0_hz or 0.0)
                print(f"| {part} | {sex} | {name} | {errors / words:.2f} | {np.median(pitch):.0f} |")


if __name__ == "__main__":
    main()
