"""Record: a speaker speaks each script in every delivery that its styles need, so that the takes are paired."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import field

from overtone.errors import UsageError
from overtone.judges.rubric import Rubric
from overtone.paths import user_path
from overtone.studio import user_clips
from overtone.studio.designs import Answered, Design, LabelRow, Unit
from overtone.studio.fields import AnyField
from overtone.studio.replies import RunReplies, Sound
from overtone.studio.script_parts import Part, spoken
from overtone.studio.study import ConsentPart, Study

CONSENT = """\
You will read short sentences aloud, each in several ways, for instance plainly and sadly. We record your voice.

We store the recordings, the settings of your microphone and the noise of the room under a random number: neither your \
name nor your network address. A voice can be recognised by people who know you. You can stop at any time by closing \
the page and go on later. You can withdraw on every later page: your recordings are then deleted.

What the recordings may be used for is your choice below; only the first use is needed to take part. If you are not an \
adult, a parent or guardian must read this with you and agree."""
PARTS = (
    ConsentPart(
        key="analysis", required=True,
        text="My recordings may be used for research: played to speech models and listeners to measure what they hear.",
    ),
    ConsentPart(key="publication", text="My recordings may be published under the licence {licence}."),
    ConsentPart(key="training", text="My recordings may be used to train speech models."),
    ConsentPart(key="cloning", text="My voice may be imitated by a synthetic voice (voice cloning)."),
)  # fmt: skip


class ScriptUnit(Unit, frozen=True):
    """One script for one speaker. The same person records all its deliveries, so the styles are paired."""

    parts: tuple[Part, ...] = ()
    examples: dict[str, Sound] = field(default_factory=dict)  # key of a part → how it may sound


def units(study: Study, runs: Sequence[RunReplies]) -> list[Unit]:
    """Return one unit per script. Scripts about the speaker's sex or age are left out: they need two speakers."""
    known = _examples(study)
    return [
        ScriptUnit(
            one.id, one.id, "record", texts={"words": one.words}, cells={"script": one.id}, language=one.language,
            parts=one.parts,
            examples={part.key: known[one.id, s] for part in one.parts if (s := _style(part)) and (one.id, s) in known},
        )
        for one in spoken(study)[0]
    ]  # fmt: skip


def _examples(study: Study) -> dict[tuple[str, str], Sound]:
    """Return the clips of the set with examples by script and style."""
    if not study.record.examples:
        return {}
    read = user_clips.read(study.path.parent / user_path(study.record.examples)).clips
    return {(clip.group.rpartition("/")[2], clip.style): clip.sound for clip in read}


def _style(part: Part) -> str:
    """Return the style whose clip is an example of a delivery: never one with a scene behind the voice."""
    if part.cue:
        return part.styles[0]
    return "neutral" if "neutral" in part.styles else ""


def fields(rubrics: Sequence[Rubric], study: Study) -> tuple[AnyField, ...]:
    """Return no questions: a screen is finished when every delivery has a take that the speaker keeps."""
    return ()


def check_rubric(rubric: Rubric) -> None:
    """Raise UsageError: recordings are not rated."""
    raise UsageError("the design record takes no rubric; leave --rubric out")


def labels(answered: Answered, study: Study) -> list[LabelRow]:
    """Return no labels: takes become clips by 'overtone build --voice recordings:STUDY.toml'."""
    return []


def consent_parts(licence: str) -> tuple[ConsentPart, ...]:
    """Return the separate consents of speakers, all of them "no" until the speaker ticks them."""
    return tuple(ConsentPart(key=p.key, required=p.required, text=p.text.format(licence=licence)) for p in PARTS)


DESIGN = Design(
    summary="record scripts in the asked deliveries",
    noun="scripts",
    layout="record",
    sides=(),
    units=units,
    check_rubric=check_rubric,
    fields=fields,
    labels=labels,
    kinds=("scripts",),
)
