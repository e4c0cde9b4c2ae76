"""MUSHRA (ITU-R BS.1534-3): all systems and hidden anchors beside an open reference, each rated from 0 to 100.

Only where a reference exists: the benchmark's spoken reply, or the clip that a codec's run was given. The reference is
also among the rated sounds; a person who does not recognise it often enough is excluded (post-screening).
"""

from __future__ import annotations

import hashlib
import statistics
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import soundfile

from overtone.errors import DataError
from overtone.judges.rubric import Rubric
from overtone.paths import shown
from overtone.studio import designs
from overtone.studio.designs import Answered, Design, LabelRow, Played, Spread, Unit
from overtone.studio.fields import AnyField, Slider
from overtone.studio.replies import RunReplies, Sound, SpokenReply
from overtone.studio.study import Study

DIMENSION = "mushra"
REFERENCE, ANCHOR = "reference", "anchor-3500"  # conditions besides the systems
MARKS = ("Bad", "Poor", "Fair", "Good", "Excellent")
QUESTION = "Rate the quality of each sound in comparison with the reference. One of them is the reference itself."
RECOGNISED = 90  # a person who hears the hidden reference rates it at least so (BS.1534-3, 4.1.2)
MISSED = 0.15  # and may miss it in at most this share of the screens
MOST_SYSTEMS = 9  # BS.1534-3 advises at most 12 sounds on a screen, with reference and anchors
OTHER_LENGTH = 0.25  # a codec keeps the length of its clip


def units(study: Study, runs: Sequence[RunReplies]) -> list[Unit]:
    """Return one unit per request that all runs answered and that has a reference.

    Raises DataError if there is no reference, or if a codec's replies are not as long as its clips.
    """
    if len(runs) > MOST_SYSTEMS:
        raise DataError(f"a MUSHRA screen compares at most {MOST_SYSTEMS} systems; there are {len(runs)} runs")
    others = [{reply.key: reply for reply in run.replies} for run in runs[1:]]
    shared = [
        (reply, *(other[reply.key] for other in others))
        for reply in runs[0].replies
        if all(reply.key in other for other in others)
    ]
    made = [
        Unit(_id(replies), replies[0].group, "|".join(run.name for run in runs), replies, {REFERENCE: reference})
        for replies in shared
        if (reference := _reference(replies[0], study)) is not None
    ]
    if shared and not made:
        raise DataError(_no_reference(study, runs[0]))
    if study.mushra.reference == "clip":
        _check_lengths(made)
    return made


def _id(replies: Sequence[SpokenReply]) -> str:
    return hashlib.sha256("".join(reply.id for reply in replies).encode()).hexdigest()[:16]


def _reference(reply: SpokenReply, study: Study) -> Sound | None:
    return reply.clip if study.mushra.reference == "clip" else reply.reference


def _no_reference(study: Study, run: RunReplies) -> str:
    missing = (
        "the clips that the runs were given are not there; restore the set's folder"
        if study.mushra.reference == "clip"
        else "the benchmark has no spoken reference replies, or their files are not there. For runs of a codec, which "
        "repeat their clips, write --reference clip. To compare replies without a reference, use --design cmos or ab"
    )
    return f"{shown(str(run.folder))}: MUSHRA needs a reference: {missing}"


def _check_lengths(units: Sequence[Unit]) -> None:
    """Refuse replies that are not the clip again: a reference must be the same sound before coding."""
    ratios = [
        abs(_seconds(reply.sound) / max(_seconds(unit.sounds[REFERENCE]), 1e-3) - 1)
        for unit in units[:50]
        for reply in unit.replies
    ]
    if ratios and (other := statistics.median(ratios)) > OTHER_LENGTH:
        raise DataError(
            f"the replies are not the clips again: their lengths differ by {other:.0%} (median). A clip is a reference "
            "only for a run that codes and decodes it; use --design cmos or ab"
        )


def _seconds(sound: Sound) -> float:
    try:
        return float(soundfile.info(sound.path).duration)
    except (RuntimeError, OSError) as error:
        raise DataError(f"{shown(Path(sound.path).name)}: cannot be read as audio ({error})") from None


def fields(rubrics: Sequence[Rubric], study: Study) -> tuple[AnyField, ...]:
    """Return one slider per sound: the systems, the hidden reference and the anchor."""
    count = len(study.sources) + 1 + study.mushra.anchor
    return tuple(
        Slider(
            key=f"s{place}", label=f"Sound {place}", question=QUESTION, stage="voice",
            low=0, high=100, ends=("0", "100"), marks=MARKS,
        )
        for place in range(1, count + 1)
    )  # fmt: skip


def _conditions(unit: Unit, study: Study) -> list[str | SpokenReply]:
    return [*unit.replies, REFERENCE, *([ANCHOR] if study.mushra.anchor else [])]


def on_screen(unit: Unit, study: Study, swap: bool, slot: str) -> dict[str, str | SpokenReply]:
    """Return, for each slider of a screen, the reply that it rates, or the name of another condition."""
    conditions = _conditions(unit, study)
    places = designs.order(len(conditions), swap, slot)
    return {f"s{number}": conditions[place] for number, place in enumerate(places, 1)}


def played(unit: Unit, study: Study, swap: bool, slot: str) -> tuple[Played, ...]:
    """Return the open reference, and the rated sounds in the order of the screen."""
    reference = unit.sounds[REFERENCE]
    own = None if study.loudness.per == "clip" else study.mushra.gain_db
    sounds = [Played(REFERENCE, "Reference", reference, own)]
    for number, (name, one) in enumerate(on_screen(unit, study, swap, slot).items(), 1):
        label = f"Sound {number}"
        if isinstance(one, SpokenReply):
            sounds.append(Played(name, label, one.sound, designs.gain_db(study, one.run)))
        else:
            sounds.append(Played(name, label, reference, own, "lowpass-3500" if one == ANCHOR else ""))
    return tuple(sounds)


def labels(answered: Answered, study: Study) -> list[LabelRow]:
    """Return one label per sound. Those of the hidden reference and the anchor belong to the first run."""
    rows = []
    first = answered.unit.replies[0]
    for name, one in on_screen(answered.unit, study, answered.swap, answered.slot).items():
        if (value := answered.values.get(name)) is None:
            continue
        if isinstance(one, SpokenReply):
            cells = {**designs.label_cells(one, answered.rater), "system": one.run, **one.texts}
            more = {"reply_sound": designs.sound_cell(one), "dimension": DIMENSION}
            rows.append(LabelRow(one.run, "labels", {**cells, **more, **designs.note(answered), "value": value}))
        else:
            cells = {**designs.label_cells(first, answered.rater), "system": one}
            rows.append(LabelRow(first.run, "labels", {**cells, "dimension": f"{DIMENSION}_{one}", "value": value}))
    return rows


def screened(answers: Sequence[Answered], study: Study) -> dict[str, str]:
    """Return the people who rate the hidden reference below 90 in more than 15 % of their screens, with the reason."""
    ratings: dict[str, list[float]] = defaultdict(list)
    for answered in answers:
        for name, one in on_screen(answered.unit, study, answered.swap, answered.slot).items():
            if one == REFERENCE and isinstance(value := answered.values.get(name), int | float):
                ratings[answered.rater].append(value)
    excluded = {}
    for rater, values in ratings.items():
        missed = sum(value < RECOGNISED for value in values)
        if missed / len(values) > MISSED:
            excluded[rater] = f"rated the hidden reference below {RECOGNISED} on {missed} of {len(values)} screens"
    return excluded


DESIGN = Design(
    summary="rate all systems beside a reference, from 0 to 100",
    noun="screens",
    layout="mushra",
    sides=(),
    units=units,
    fields=fields,
    labels=labels,
    played=played,
    screened=screened,
    spread=Spread(item=8, rater=6, error=12, span=100, unit="points"),
    replays=2.0,
)
