"""Verdicts of a review desk: in the form that 'overtone build review' reads, and as texts for the next round."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from overtone.build.review_sheets import Review
from overtone.errors import UsageError
from overtone.paths import shown, user_path
from overtone.studio import study as study_file
from overtone.studio.designs import Unit
from overtone.studio.designs.review import NOTE, REVISED, VERDICT
from overtone.studio.store import Store
from overtone.studio.study import Study

UNSAID = "no reason given"  # for a rejection without a note, which a page does not send


class Proposal(Struct, frozen=True):
    """A reviewer's new version of one text. `before` is the text that was reviewed."""

    round: int
    reviewer: str
    script: str
    text: str  # its name: words, question, …
    before: str
    after: str


class Desk(Struct, frozen=True):
    """One round: the verdicts, the proposed revisions, and everything that is reviewed, as it was shown."""

    study: Study
    reviews: tuple[Review, ...]
    proposals: tuple[Proposal, ...]
    units: dict[str, Unit]


def read(path: Path, url: str = "") -> Desk:
    """Read the verdicts of a review study. Raises UsageError if it is of another design or has not been served."""
    study = study_file.read(path)
    if study.design != "review":
        raise UsageError(f"{shown(str(path))}: is a study of the design {study.design}; --studio takes a review")
    with Store.open(study, url, create=False) as store:
        units = {id: msgspec.json.decode(frozen.content, type=Unit) for id, frozen in store.units().items()}
        reviews, proposals = [], []
        for given in store.answers.all():
            verdict, unit = given.values.get(VERDICT), units.get(given.unit)
            if not isinstance(verdict, str) or unit is None:
                continue
            note = str(given.values.get(NOTE, "")).strip() or (UNSAID if verdict == "reject" else "")
            where = f"{path.name}: {given.person}"
            reviews.append(
                Review(study.review.round, given.person, given.unit, verdict, " ".join(note.split()), where=where)
            )
            proposals += _proposals(study.review.round, given.person, unit, given.values)
    return Desk(study, tuple(reviews), tuple(proposals), units)


def _proposals(round: int, person: str, unit: Unit, values: Mapping[str, object]) -> list[Proposal]:
    found = []
    for key, value in values.items():
        name, before = key.removeprefix(REVISED), unit.texts.get(key.removeprefix(REVISED), "")
        after = str(value).strip()
        if key.startswith(REVISED) and after and after != before:
            found.append(Proposal(round, person, unit.id, name, before, after))
    return found


def read_all(paths: Sequence[Path]) -> list[Desk]:
    """Read several rounds. Raises UsageError if two of them are the same round, or review different things."""
    desks = [read(path) for path in paths]
    rounds = [desk.study.review.round for desk in desks]
    if len(set(rounds)) < len(rounds):
        raise UsageError(f"two studies are round {max(rounds, key=rounds.count)}; give one study for each round")
    if len({desk.study.review.subject for desk in desks}) > 1:
        raise UsageError("the studies review different things (scripts, questions or clips); give those of one kind")
    return desks


def earlier_texts(study: Study) -> dict[str, dict[str, str]]:
    """Return the material from earlier rounds that reviewers of this round see: unit → name of the text → text."""
    texts: dict[str, dict[str, str]] = defaultdict(dict)
    for name in study.review.earlier:
        desk = read(study.path.parent / user_path(name))
        round = desk.study.review.round
        if round >= study.review.round:
            raise UsageError(f"{shown(name)}: is round {round}, which is not earlier than round {study.review.round}")
        said: dict[str, list[str]] = defaultdict(list)
        for review in desk.reviews:
            said[review.script].append(f"{review.verdict}{': ' * bool(review.note)}{review.note}")
        for proposal in desk.proposals:
            said[proposal.script].append(f"proposed {proposal.text}: {proposal.after}")
        for script, lines in said.items():
            texts[script][f"round {round}"] = "\n".join(lines)
        for script, unit in desk.units.items():
            for key in ("words", "question"):
                if unit.texts.get(key):
                    texts[script][f"round {round}, {key}"] = unit.texts[key]
    return texts
