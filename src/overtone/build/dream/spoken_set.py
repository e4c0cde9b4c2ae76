"""`overtone build dream`: every dialogue of a split as one recording, with one voice per speaker.

The output folder has DREAM's own layout (SPLIT.json with the dialogues that passed, the annotators' files) and
`audio/SPLIT/ID.wav`, so the benchmark reads it like the original. Dialogues that the recogniser does not understand are
spoken again by other voices, then left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from overtone.build.acceptance import GateReport
from overtone.build.datasheet import About
from overtone.build.dream import casting
from overtone.build.dream.dialogue_sound import DialogueJob, DialogueRenderer
from overtone.build.dream.dream_files import (
    ANNOTATORS,
    LICENCE,
    SPLITS,
    Dialogue,
    Split,
    encode,
    encode_types,
    read_dialogues,
    read_split,
    split_file,
    type_files,
)
from overtone.build.gates import DIALOGUE
from overtone.build.manifest import write
from overtone.build.sound_plan import Group, Options, settled
from overtone.build.speak_set import Built, Source, speak_set
from overtone.build.voices import cast
from overtone.errors import DataError, UsageError
from overtone.paths import shown
from overtone.pool import Progress, no_progress
from overtone.spec import suggest

_WHY = """
To ask DREAM's questions about spoken dialogues. DREAM measures understanding of words: a recogniser with a language
model answers as well as a model that listens. It is a control, never evidence that a model hears how something is said.
""".strip()
_TEXTS = f"The texts are DREAM's (nlpdata/dream, TACL 2019), for {LICENCE}."
_CHAIN = "Every turn went through the same chain in the voice of its speaker, and pauses separate the turns;"
_INSTEAD = "no cue is delivered: the voices are plain."


def build(
    out: Path,
    data: Path,
    *,
    split: str = "test",
    limit: int | None = None,
    options: Options | None = None,
    jobs: int | None = None,
    gates: bool = True,
    progress: Progress = no_progress,
) -> Built:
    """Speak the dialogues of a split into `out`. `limit` builds only the first ones.

    Raises DataError for files that are not DREAM's and UsageError if `out` holds another set.
    """
    options = options or Options()
    _check_voices(options)
    chosen = _split(split)
    if not data.is_dir():
        raise DataError(f"{shown(str(data))}: not a folder; give the folder with DREAM's files, and --split")
    root = data.resolve()
    if out.resolve().is_relative_to(root):
        raise UsageError(f"{shown(str(out))} is in the folder of DREAM's own files; give another --out")
    dialogues = read_split(root, chosen)
    part = dialogues[:limit]

    def write_texts(checked: GateReport) -> About:
        kept = [d for d in part if not checked.out(d.id, DIALOGUE)]
        _write_files(out, root, chosen, kept)
        questions = sum(len(d.questions) for d in kept)
        lines = (f"{chosen}: {len(kept)} of {len(part)} dialogues, {questions} questions",)
        holds = f"{len(kept)} dialogues of DREAM's {chosen} split with {questions} questions. English."
        return About(name_of(chosen), _WHY, holds, _TEXTS, _CHAIN, _INSTEAD, lines=lines)

    return speak_set(
        out, Source(name_of(chosen), LICENCE, frozenset(d.id for d in dialogues)),
        lambda takes: plan(part, chosen, options, takes), write_texts, file=f"{chosen}.json", options=options,
        jobs=jobs, gates=gates, progress=progress, renderer=DialogueRenderer,
    )  # fmt: skip


def name_of(split: Split) -> str:
    """Return the name of a spoken set in its manifest."""
    return f"dream-{split}"


def clip_path(split: Split, dialogue: str) -> str:
    """Return the path of a dialogue's clip in a spoken set."""
    return f"audio/{split}/{dialogue}.wav"


def spoken_split(root: Path) -> Split | None:
    """Return the split whose clips a folder holds, or None for a folder without clips."""
    return next((split for split in SPLITS if (root / "audio" / split).is_dir()), None)


def plan(dialogues: Sequence[Dialogue], split: Split, options: Options, takes: Mapping[str, int]) -> list[Group]:
    """Return the clips of the dialogues. `takes` maps the id of a dialogue to its take number."""
    return settled([Group(d.id, "", (_job(d, split, options, takes.get(d.id, 0)),)) for d in dialogues], options)


def _job(dialogue: Dialogue, split: Split, options: Options, take: int) -> DialogueJob:
    said = [line for line in dialogue.lines if any(character.isalnum() for character in line.words)]
    labels = dict.fromkeys(line.speaker for line in said)
    voices = casting.voices(tuple(labels), dialogue.id, cast(options.voices), options.seed, take)
    return DialogueJob(
        path=clip_path(split, dialogue.id),
        case_id=dialogue.id,
        style=DIALOGUE,
        text=" ".join(line.words for line in said),
        speaker=voices[said[0].speaker],
        take=take,
        spoken=tuple((voices[line.speaker], line.words) for line in said),
    )


def _split(given: str) -> Split:
    for split in SPLITS:
        if given == split:
            return split
    raise UsageError(f"no split {given!r}{suggest(given, SPLITS)}; known: {', '.join(SPLITS)}")


def _check_voices(options: Options) -> None:
    for spec, engine in cast(options.voices).engines.items():
        if hasattr(engine, "missing"):  # recordings have takes of scripts, not of dialogues with several speakers
            raise UsageError(f"--voice {spec}: dialogues are spoken by synthetic voices; use espeak, openai:MODEL, …")


def _write_files(out: Path, root: Path, split: Split, kept: list[Dialogue]) -> None:
    """Write the texts of the set in DREAM's layout. The train split is copied because the baselines learn from it."""
    path, train = split_file(root, split), split_file(root, "train")
    if train is not None and split != "train":
        write(out / "train.json", encode(read_dialogues(train)))
    if path is not None and type_files(path, split):
        for annotator in ANNOTATORS:
            write(out / f"annotator{annotator}_{split}.txt", encode_types(kept, annotator - 1))
    write(out / f"{split}.json", encode(kept))
