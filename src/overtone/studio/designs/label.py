"""Labels of what one hears: cues or emotions, several or none, with intensity and sliders, of replies or clips."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from overtone import cues
from overtone.judges.rubric import Rubric
from overtone.studio import designs
from overtone.studio.designs import Answered, Design, LabelRow, Played, Spread, Unit
from overtone.studio.fields import AnyField, Scale, Slider, Tags
from overtone.studio.replies import RunReplies, UserClip
from overtone.studio.study import Study

HEARD, NONE, INTENSITY = "heard", "none", "intensity"
STRENGTHS = {"1": "barely there", "2": "weak", "3": "moderate", "4": "strong", "5": "very strong"}
SLIDERS = {  # key → label, question, ends
    "valence": ("Valence", "How pleasant does the speaker feel?", ("very unpleasant", "very pleasant")),
    "arousal": ("Arousal", "How much energy is in the voice?", ("calm", "excited")),
    "dominance": ("Dominance", "How much is the speaker in control?", ("controlled by others", "in control")),
}
HEADINGS = {
    "gender": "Speaker", "age": "Speaker", "physiological": "Voice", "volume": "Voice", "speed": "Voice",
    "emotion": "Emotion", "nonverbal": "Sounds that the speaker makes",
    "weather": "Background", "location": "Background", "voices": "Background", "event": "Background",
    "other": "Background",
}  # fmt: skip


def offered(study: Study) -> tuple[str, ...]:
    """Return the cues that a study offers, in the order of the taxonomy."""
    named = set(study.label.cues)
    return tuple(
        cue.slug
        for cue in cues.CUES
        if "all" in named or cue.slug in named or ("emotions" in named and cue.category == "emotion")
    )


def units(study: Study, runs: Sequence[RunReplies]) -> list[Unit]:
    """Return one unit per reply, or one unit per clip of the sources."""
    if study.of == "replies":
        return [Unit(reply.id, reply.group, run.name, (reply,)) for run in runs for reply in run.replies]
    sources: dict[str, list[str]] = {}
    clips: dict[str, UserClip] = {}
    for run in runs:
        for clip in run.clips:
            sources.setdefault(clip.path, []).append(run.name)
            clips.setdefault(clip.path, clip)
    return [_of_clip(clip, sources[name]) for name, clip in clips.items()]


def _of_clip(clip: UserClip, sources: Sequence[str]) -> Unit:
    cells = {"id": clip.item, "group": clip.group, "style": clip.style, "words": clip.words, "cue": clip.cue}
    texts = {"words": clip.words, "cue": clip.cue}
    name = hashlib.sha256(f"{clip.path} {clip.sound.sha256}".encode()).hexdigest()[:16]
    return Unit(
        id=name, group=clip.group, system=clip.style or "clip", sounds={"clip": clip.sound}, texts=texts, cells=cells,
        sources=tuple(sources), style=clip.style, language=clip.language,
    )  # fmt: skip


def fields(rubrics: Sequence[Rubric], study: Study) -> tuple[AnyField, ...]:
    """Return the cues, and intensity and sliders if the study asks for them. All come before the words are shown."""
    slugs = offered(study)
    groups: dict[str, tuple[str, ...]] = {}
    for slug in slugs:
        heading = HEADINGS[cues.BY_SLUG[slug].category]
        groups[heading] = (*groups.get(heading, ()), slug)
    options = {slug: _button(slug) for slug in slugs} | {NONE: "none of these"}
    asked: list[AnyField] = [
        Tags(
            key=HEARD, label="What one hears", question="What do you hear? Choose all that apply.", stage="voice",
            options=options, none=NONE, groups=groups if len(groups) > 1 else {},
        )
    ]  # fmt: skip
    if study.label.intensity:
        question = "How strong is it? Leave this out if you chose none of these."
        strength = Scale(
            key=INTENSITY, label="Intensity", question=question, stage="voice", required=False,
            low=1, high=5, anchors=STRENGTHS,
        )  # fmt: skip
        asked.append(strength)
    if study.label.sliders:
        asked += [
            Slider(key=key, label=label, question=question, stage="voice", low=1, high=5, step=0.1, ends=ends)
            for key, (label, question, ends) in SLIDERS.items()
        ]
    return tuple(asked)


def _button(slug: str) -> str:
    text = cues.BY_SLUG[slug].phrase
    return text.removeprefix("a voice full of ").removesuffix(" in the background")


def played(unit: Unit, study: Study, swap: bool, slot: str) -> tuple[Played, ...]:
    """Return only the clip or only the reply. The user's clip would suggest what to hear in the reply."""
    if unit.replies:
        (reply,) = unit.replies
        return (Played("reply", "Recording", reply.sound, designs.gain_db(study, reply.run)),)
    return (Played("clip", "Recording", unit.sounds["clip"], designs.gain_db(study, unit.sources[0])),)


def labels(answered: Answered, study: Study) -> list[LabelRow]:
    """Return one label per offered cue (yes or no), one for "none of these", and the other answers unchanged.

    A cue that was offered and not chosen is an answer too, which the computation of agreement needs.
    """
    heard = answered.values.get(HEARD)
    values: dict[str, object] = {}
    if isinstance(heard, list):
        values = {f"{HEARD}_{slug}": "yes" if slug in heard else "no" for slug in (*offered(study), NONE)}
    values |= {key: value for key, value in answered.values.items() if key not in (HEARD, designs.REMARK)}
    runs, cells = _about(answered)
    return [
        LabelRow(run, "labels", {**cells, **designs.note(answered), "dimension": key, "value": value})
        for run in runs
        for key, value in values.items()
    ]


def _about(answered: Answered) -> tuple[tuple[str, ...], dict[str, object]]:
    unit = answered.unit
    if not unit.replies:
        return unit.sources, {**unit.cells, "rater": answered.rater}
    (reply,) = unit.replies
    sound = {"reply_sound": designs.sound_cell(reply)}
    return (reply.run,), {**designs.label_cells(reply, answered.rater), "system": reply.run, **reply.texts, **sound}


DESIGN = Design(
    summary="label the cues or emotions that one hears in replies or clips",
    noun="recordings",
    layout="single",
    sides=("reply",),
    units=units,
    fields=fields,
    labels=labels,
    played=played,
    spread=Spread(item=0.25, rater=0.1, error=0.4, span=1, unit="share of people who hear a cue"),
    kinds=("run", "set"),
)
