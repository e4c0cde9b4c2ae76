"""Take annotations that were made in Label Studio into a study."""

from __future__ import annotations

import hashlib
from pathlib import Path

from msgspec import Struct

from overtone.studio import label_studio
from overtone.studio.labels.collect import frozen_units
from overtone.studio.store import Store
from overtone.studio.store.imports import Elsewhere
from overtone.studio.study import Study


class Imported(Struct, frozen=True):
    """The counts of an import. `known` annotations were made in the study itself and exported from it."""

    people: int
    annotations: int
    new: int
    known: int


def import_annotations(study: Study, store: Store, path: Path) -> Imported:
    """Read a file of Label Studio and store its annotations, each annotator as a person with a random pseudonym.

    The annotators' ids are stored only as a hash, until the study is closed. The same file again changes nothing.
    Raises DataError for a file that does not belong to this study; then nothing is stored.
    """
    found = label_studio.read(path, study, frozen_units(store))
    own = {person.label for person in store.people.all()}
    known = sum(one.person in own for one in found)
    by_person: dict[str, list[Elsewhere]] = {}
    for one in found:
        if one.person not in own:
            by_person.setdefault(one.person, []).append(Elsewhere(one.unit, one.values, one.swap))
    new = 0
    for name, answers in by_person.items():
        external = hashlib.sha256(f"{study.id}/label-studio/{name}".encode()).hexdigest()
        new += store.imports.add(store.people.join("label-studio", external).label, answers)
    return Imported(len(by_person), len(found), new, known)
