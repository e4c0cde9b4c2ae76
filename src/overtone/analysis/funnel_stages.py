"""The stages of the funnel as named parameters, and every case of a run with the stages it passed, failed or lacks."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from overtone import cues
from overtone.analysis.judged import SPEECH, judges_of
from overtone.analysis.reading import Answer, Reading, reader
from overtone.schema import Item

ORDER = ("words", "cue", "reasoned", "used", "sounded")
VERSION = 2
MARGIN, VES = "style_margin", "ves"

Key = tuple[str, int]  # case, repeat
Rated = Callable[[Answer], float | None]  # what judges gave a reply
Array = npt.NDArray[np.float64]


class Stages(Struct, frozen=True):
    """What it takes to pass each stage."""

    words: float = 0.2  # at most this normalised word error rate
    cue: Literal["fine", "coarse"] = "fine"  # which question about the clip's own cue must be right
    reasoned: float = 0.5  # at least this share of the case's reasoning questions right
    used: float = 4.0  # at least this speech relevance (C4), by the panel
    margin: float = 0.0  # where nobody judged the run: above this style margin
    sounded: float = 4.0  # at least this vocal empathy (VES), by the panel


DEFAULT = Stages()
NAMES = {"fine": "funnel", "coarse": "funnel-coarse"}  # the variants in keys


@dataclass(frozen=True)
class Table:
    """The cases of one condition. `known` has a row for each case and repeat, a column for each stage: 1 passed, 0
    failed, NaN lacking. `chance` is how likely blind guessing passes it, NaN where it cannot be guessed. `has` says
    which stages any case has."""

    name: str  # of NAMES
    condition: str
    keys: list[Key]
    items: list[Item]
    known: Array
    chance: Array
    has: tuple[bool, ...]

    @functools.cached_property
    def again(self) -> bool:
        """Whether a case was asked more than once."""
        return any(repeat for _, repeat in self.keys)


def signature(stages: Stages, judged: bool | None = None) -> str:
    """The parameters by name; `judged` says which of the two ways to see use of the cue was taken, None both."""
    used = {True: f"{SPEECH}>={stages.used:g}", False: f"{MARGIN}>{stages.margin:g}"}
    told = "|else:".join([used[True], used[False]] if judged is None else [used[judged]])
    return (
        f"funnel|v{VERSION}|words:wer<={stages.words:g}|cue:{stages.cue}|reasoned:>={stages.reasoned:g}"
        f"|used:{told}|sounded:{VES}>={stages.sounded:g}|rates:wilson-clustered|differences:newcombe-clustered"
    )


class _Asked:
    """What was asked about one clip, at one repeat."""

    __slots__ = ("cue", "item", "reasoned", "words")

    def __init__(self, item: Item) -> None:
        self.item = item
        self.words: list[Answer] = []
        self.cue: list[Answer] = []
        self.reasoned: list[Answer] = []


def read_tables(reading: Reading, stages: Stages) -> tuple[dict[str, Table], bool]:
    """A table for every condition of conversations, and whether judges said how far replies use the cue.

    Questions and transcripts join by case and repeat those replies that were given the same input. Where a run holds
    no conversations its questions stand alone.
    """
    asked: dict[str, dict[Key, _Asked]] = {}  # by input
    replies: dict[str, dict[Key, Answer]] = {}  # by condition
    for answer in reading.answers:
        item = answer.item
        if item.part:
            continue
        key = (item.case, answer.repeat)
        if item.task == "converse":
            replies.setdefault(answer.condition, {})[key] = answer
            continue
        cases = asked.setdefault(answer.condition.partition("/")[2], {})
        if (found := cases.get(key)) is None:
            found = cases[key] = _Asked(item)
        if item.task == "transcribe":
            found.words.append(answer)
        elif item.task == "choose" and item.gold and item.level == 2:
            found.reasoned.append(answer)
        elif item.task == "choose" and item.gold and item.level == 1 and item.category == _category(item, stages):
            found.cue.append(answer)
    if not replies:
        replies = {f"task/{given}": {} for given in asked}
    judges = {key: judges_of(key, reading.signatures) for key in (SPEECH, VES)}
    rated = {key: reader([f"{key}@{label}" for label in labels]) for key, labels in judges.items() if labels}
    heard = {given: {key: _heard(found, stages) for key, found in cases.items()} for given, cases in asked.items()}
    tables = {}
    for condition, told in replies.items():
        given = condition.partition("/")[2]
        tables[condition] = _table(condition, asked.get(given, {}), heard.get(given, {}), told, stages, rated)
    return tables, bool(judges[SPEECH])


def _category(item: Item, stages: Stages) -> str:
    if stages.cue == "coarse":
        return "coarse"
    cue = cues.BY_SLUG.get(item.cue)
    return cue.task if cue is not None else ""


class _Heard(NamedTuple):
    """What the questions about one clip say, and what blind guessing would."""

    words: float
    cue: tuple[float, float]
    reasoned: tuple[float, float]


def _heard(asked: _Asked, stages: Stages) -> _Heard:
    return _Heard(_words(asked.words, stages), share(asked.cue, 1.0), share(asked.reasoned, stages.reasoned))


def _table(
    condition: str,
    asked: dict[Key, _Asked],
    heard: dict[Key, _Heard],
    replies: dict[Key, Answer],
    stages: Stages,
    rated: dict[str, Rated],
) -> Table:
    keys = list(dict.fromkeys([*replies, *asked]))
    guessed = {} if SPEECH in rated else _margin_chances(replies, stages)
    sounds = rated.get(VES)
    known = np.full((len(keys), len(ORDER)), np.nan)
    chance = np.full((len(keys), len(ORDER)), np.nan)
    for row, key in enumerate(keys):
        if (told := heard.get(key)) is not None:
            known[row, :3] = told.words, told.cue[0], told.reasoned[0]
            chance[row, 1:3] = told.cue[1], told.reasoned[1]
        if (reply := replies.get(key)) is not None:
            known[row, 3] = _used(reply, stages, rated.get(SPEECH))
            chance[row, 3] = guessed.get(key, np.nan)
            known[row, 4] = _at_least(sounds(reply), stages.sounded) if sounds is not None else np.nan
    items = [replies[key].item if key in replies else asked[key].item for key in keys]
    has = tuple(bool(x) for x in (~np.isnan(known)).any(axis=0))
    return Table(NAMES[stages.cue], condition, keys, items, known, chance, has)


def _words(transcripts: Sequence[Answer], stages: Stages) -> float:
    rate = transcripts[0].value("wer") if transcripts else None
    return np.nan if rate is None else float(rate <= stages.words)


def _used(reply: Answer, stages: Stages, relates: Rated | None) -> float:
    if relates is not None:
        return _at_least(relates(reply), stages.used)
    margin = reply.value(MARGIN)
    return np.nan if margin is None else float(margin > stages.margin)


def _margin_chances(replies: dict[Key, Answer], stages: Stages) -> dict[Key, float]:
    """How likely each reply passes by its style margin where replies do not depend on the voice: the share of the
    script's replies that would pass in its place. A half where the script has one reply alone."""
    scripts: dict[tuple[str, int], list[tuple[Key, Answer]]] = {}
    for key, reply in replies.items():
        if reply.value(MARGIN) is not None:
            scripts.setdefault((reply.item.group, key[1]), []).append((key, reply))
    found = {}
    for told in scripts.values():
        for key, reply in told:
            margins = [_margin(other, reply.item.style) for _, other in told]
            known = [margin for margin in margins if margin is not None]
            passed = sum(margin > stages.margin for margin in known)
            found[key] = passed / len(known) if len(known) > 1 else 0.5
    return found


def _margin(reply: Answer, style: str) -> float | None:
    """The style margin that a reply would have as the reply to another style's clip of its script."""
    detail = reply.scores[MARGIN].detail
    alike = {name: x for name, x in detail.items() if name.startswith("sim_") and isinstance(x, int | float)}
    own = alike.pop(f"sim_{style}", None)
    return None if own is None or not alike else own - sum(alike.values()) / len(alike)


def _at_least(given: float | None, least: float) -> float:
    # A mean of judges that should be 4 may miss it by a rounding error.
    return np.nan if given is None else float(given >= least - 1e-9)


def share(questions: Sequence[Answer], least: float) -> tuple[float, float]:
    """Whether at least this share of the questions is right, and the chance that blind guessing gets there.

    NaN where there are none, and where those that are missing would decide."""
    if not questions:
        return np.nan, np.nan
    values = [answer.value("accuracy") for answer in questions]
    right, missing = sum(v == 1 for v in values), sum(v is None for v in values)
    needed = least * len(questions) - 1e-9
    chance = _chance(tuple(1 / len(a.item.options) for a in questions if a.item.options), needed)
    if right >= needed:
        return 1.0, chance
    return (0.0 if right + missing < needed else np.nan), chance


@functools.lru_cache
def _chance(odds: tuple[float, ...], needed: float) -> float:
    """How likely at least `needed` of independent guesses are right."""
    counts = [1.0]  # how likely 0, 1, … of the guesses so far are right
    for p in odds:
        counts = [
            (counts[n] * (1 - p) if n < len(counts) else 0.0) + (counts[n - 1] * p if n else 0.0)
            for n in range(len(counts) + 1)
        ]
    return sum(c for n, c in enumerate(counts) if n >= needed)
