"""The share of answers that only a reader model could read (`--reader`), and the accuracy if only the rules read
answers."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from overtone.results.load import Answer, Reading
from overtone.results.measures import Estimate, estimate
from overtone.scores import CHOICE
from overtone.text import percent

_READER = "|reader:"


class ReaderShare(Struct, frozen=True):
    """Counts of the answers to questions under one condition: scored answers, answers that the reader read, answers in
    which the reader found no choice, and unreadable answers that the reader did not get."""

    condition: str
    model: str
    scored: int
    read: int
    none: int
    left: int
    accuracy: Estimate
    rules: Estimate  # accuracy with the rules alone
    check: str = ""  # the reader's result on replies of known meaning

    @property
    def sentence(self) -> str:
        """A sentence with the reader's share, and the accuracy with and without the reader."""
        verb = "was" if self.read == 1 else "were"
        more = [f"it found no choice in {self.none:,}"] if self.none else []
        more += [f"it did not read {self.left:,} that the rules cannot read"] if self.left else []
        sentences = ["; ".join([f"{self.read:,} of {self.scored:,} answers {verb} read by {self.model}", *more])]
        if self.accuracy.value is not None and self.rules.value is not None:
            both = f"{percent(self.accuracy.value, 1)}, by the rules alone {percent(self.rules.value, 1)}"
            sentences.append(f"Accuracy with the reader is {both}")
        if self.check:
            sentences.append(f"The reader's check: {self.check}")
        return ". ".join(sentences) + "."


def reader_shares(reading: Reading) -> list[ReaderShare]:
    """Return the share of a run's reader under each condition; an empty list if only the rules read answers."""
    _, read, rest = reading.signatures.get(CHOICE, "").partition(_READER)
    if not read:
        return []
    label = rest.partition("|")[0]
    model = rest.partition("|model:")[2].partition("|rubric:")[0] or label
    check = _check(reading, label)
    by_condition: dict[str, list[Answer]] = {}
    for answer in reading.answers:
        if answer.value(CHOICE) is not None:
            by_condition.setdefault(answer.condition, []).append(answer)
    return [_share(condition, model, check, answers) for condition, answers in by_condition.items()]


def _share(condition: str, model: str, check: str, answers: Sequence[Answer]) -> ReaderShare:
    read = none = left = 0
    by_rules: list[tuple[float | None, str]] = []
    for answer in answers:
        detail = answer.scores[CHOICE].detail
        value = answer.value(CHOICE)
        if detail.get("rule") == "reader":
            read += 1
            value = 0.0  # with the rules alone, an unreadable answer is wrong
        elif detail.get("reader") == "none":
            none += 1
        elif detail.get("reader"):
            left += 1
        by_rules.append((value, answer.item.group))
    both = [(answer.value(CHOICE), answer.item.group) for answer in answers]
    with_reader, rules = (estimate(rows, kind="proportion", good=1.0, bad=0.0) for rows in (both, by_rules))
    return ReaderShare(condition, model, len(answers), read, none, left, with_reader, rules, check)


def _check(reading: Reading, label: str) -> str:
    try:
        readers = msgspec.json.decode(reading.meta.get("readers", "") or "{}", type=dict[str, dict[str, str]])
    except (msgspec.MsgspecError, RecursionError):  # an untrusted run may hold anything there
        return ""
    return readers.get(label, {}).get("check", "")


def sentences(shares: Sequence[ReaderShare]) -> list[str]:
    """Return one sentence for each condition. The sentences name their condition if there are several."""
    several = len(shares) > 1
    return [f"{share.condition}: {share.sentence}" if several else share.sentence for share in shares]
