"""People's labels for runs whose findings are tested."""

from __future__ import annotations

from pathlib import Path

from overtone.runs.people_labels import Label, LabelStudy, Question, write_labels
from overtone.runs.store import Store


def ask_people(run: Path, worth: int) -> None:
    """Let eight people rate every conversation of a run with this many points of five, or one more."""
    study = LabelStudy(
        id="listening", title="A listening test", design="acr", questions={"fit": Question(label="Fit", low=1, high=5)}
    )
    with Store.create(run) as store:
        asks = [ask.id for ask in store.answered() if ask.item.task == "converse"]
        labels = [
            Label(
                ask=ask, study=study.id, unit=str(ask), rater=f"rater{person}", dimension="fit",
                value=worth + (ask + person) % 2, usable=True, at="2026-01-01",
            )
            for ask in asks
            for person in range(8)
        ]  # fmt: skip
        write_labels(store, study, labels)
