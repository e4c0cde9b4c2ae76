"""Review: people accept, revise or reject scripts, questions or clips, with reasons and a proposed revision.

A round is a study of its own. Reviewers of one round do not see each other's verdicts; those of earlier rounds are
shown with the material.
"""

from __future__ import annotations

from collections.abc import Sequence

from overtone.build.review_sheets import VERDICTS, material
from overtone.build.script import Dialogue, Script
from overtone.errors import DataError, UsageError
from overtone.judges.rubric import Rubric
from overtone.paths import shown
from overtone.studio import user_clips
from overtone.studio.designs import Answered, Design, LabelRow, Played, Unit
from overtone.studio.fields import AnyField, Choice, Text
from overtone.studio.replies import RunReplies
from overtone.studio.script_parts import collection_of
from overtone.studio.study import Study

CONSENT = """\
You will read scripts for a listening test, or hear clips of it, and say whether they are good enough to be used.

We store your verdicts, reasons and proposals, and how long they took, under a random number: neither your name nor \
your network address. You can stop at any time by closing the page. You can withdraw on every later page: your \
verdicts are then deleted.

I am an adult, I have read this, and I take part of my own free will."""
VERDICT, NOTE, REVISED = "verdict", "note", "revised:"
OPTIONS = {"accept": "Accept", "revise": "Revise", "reject": "Reject"}
REVISABLE = {  # names of texts that a reviewer can rewrite
    "scripts": ("words", "reply to target", "reply to alternative", "reply to neutral", "questions"),
    "questions": ("question", "options"),
    "clips": (),
}


def units(study: Study, runs: Sequence[RunReplies]) -> list[Unit]:
    """Return one unit per script, question or clip, with the verdicts of earlier rounds among its texts."""
    from overtone.studio.review_verdicts import earlier_texts

    found = _clips(study) if study.review.subject == "clips" else _written(study)
    ids = [unit.id for unit in found]
    if len(set(ids)) < len(ids):
        twice = next(one for one in ids if ids.count(one) > 1)
        raise DataError(f"two sources have {shown(twice)}; a review needs different ids")
    earlier = earlier_texts(study)
    return [
        Unit(unit.id, unit.group, unit.system, sounds=unit.sounds, language=unit.language,
             texts={**unit.texts, **earlier.get(unit.id, {})}, cells=unit.cells)
        for unit in found
    ]  # fmt: skip


def _written(study: Study) -> list[Unit]:
    found = []
    for source in study.sources:
        collection = collection_of(study, source)
        if collection is None:
            raise UsageError(f"{shown(source.path)}: is a run; reviewers read scripts: name a set or a file")
        for one in collection.everything:
            found += _script(one) if study.review.subject == "scripts" else _questions(one)
    return found


def _script(script: Script | Dialogue) -> list[Unit]:
    texts = {name: text for name, text in material(script).items() if text}
    return [_unit(script.id, texts, script.language)]


def _questions(script: Script | Dialogue) -> list[Unit]:
    if isinstance(script, Dialogue):
        return []
    cues = {name: material(script)[name] for name in ("words", "target cue", "alternative cue")}
    found = []
    for one in script.reasoning:
        options = {name: getattr(one, name) for name in ("target", "alternative", "words", "harmful")}
        lines = "\n".join(f"{name}: {text}" for name, text in options.items() if text)
        texts = {**cues, "question": one.question, "options": lines}
        found.append(_unit(f"{script.id}/{one.category}", texts, script.language))
    return found


def _unit(id: str, texts: dict[str, str], language: str) -> Unit:
    return Unit(id, id, "review", texts=texts, cells={"script": id}, language=language)


def _clips(study: Study) -> list[Unit]:
    found = []
    for source in study.sources:
        for clip in user_clips.read(study.folder(source), source.name).clips:
            texts = {"words": clip.words, "cue": clip.cue, "style": clip.style}
            texts = {name: text for name, text in texts.items() if text}
            unit = Unit(
                clip.item, clip.item, "review", sounds={"clip": clip.sound}, texts=texts, cells={"script": clip.item},
                style=clip.style, language=clip.language,
            )  # fmt: skip
            found.append(unit)
    return found


def fields(rubrics: Sequence[Rubric], study: Study) -> tuple[AnyField, ...]:
    """Return the verdict, the reason, and one field for a new version of each text that can be rewritten."""
    what = study.review.subject.removesuffix("s")
    note = "Why? A rejection needs a reason."
    asked: list[AnyField] = [
        Choice(key=VERDICT, label="Verdict", question=f"Can this {what} be used?", options=OPTIONS),
        Text(key=NOTE, label="Reason", question=note, required=False),
    ]
    for name in REVISABLE[study.review.subject]:
        asked.append(Text(key=f"{REVISED}{name}", label=name.capitalize(), question="Your version", required=False))
    return tuple(asked)


def played(unit: Unit, study: Study, swap: bool, slot: str) -> tuple[Played, ...]:
    """Return the clip, if a clip is reviewed."""
    return tuple(Played(name, "The clip", sound, 0.0) for name, sound in unit.sounds.items())


def check_rubric(rubric: Rubric) -> None:
    """Raise UsageError: a review has its own questions."""
    raise UsageError("the design review takes no rubric; leave --rubric out")


def labels(answered: Answered, study: Study) -> list[LabelRow]:
    """Return no labels: verdicts are read by 'overtone build review --studio STUDY.toml'."""
    return []


assert tuple(OPTIONS) == VERDICTS
DESIGN = Design(
    summary="accept, revise or reject scripts, questions or clips, in up to three rounds",
    noun="texts",
    layout="review",
    sides=(),
    units=units,
    check_rubric=check_rubric,
    fields=fields,
    labels=labels,
    played=played,
    kinds=("scripts", "set"),
)
