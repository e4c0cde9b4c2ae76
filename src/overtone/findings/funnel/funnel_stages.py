"""The stages of the funnel, their thresholds, and the outcome of every stage for every case of a run."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec import Meta, Struct

from overtone import cues
from overtone.results.judge_scores import SPEECH, judges_of
from overtone.results.load import Answer, Reading, reader
from overtone.schema import Item

ORDER = ("words", "cue", "reasoned", "used", "sounded")
VERSION = 2
MARGIN, VES = "style_margin", "ves"

Key = tuple[str, int]  # case, repeat
Rated = Callable[[Answer], float | None]  # the judges' rating of a reply
Array = npt.NDArray[np.float64]


class Stages(Struct, frozen=True):
    """The thresholds of the stages."""

    words: Annotated[float, Meta(ge=0)] = 0.2  # at most this normalised word error rate
    cue: Literal["fine", "coarse"] = "fine"  # the question about the clip's own cue that must be right
    reasoned: Annotated[float, Meta(ge=0, le=1)] = 0.5  # at least this share of the case's reasoning questions right
    used: Annotated[float, Meta(ge=1, le=5)] = 4.0  # at least this speech relevance (C4), by the panel
    margin: float = 0.0  # without a judge: above this style margin
    sounded: Annotated[float, Meta(ge=1, le=5)] = 4.0  # at least this vocal empathy (VES), by the panel


DEFAULT = Stages()
NAMES = {"fine": "funnel", "coarse": "funnel-coarse"}  # the beginning of keys, by the question about the cue


@dataclass(frozen=True)
class Table:
    """The cases of one condition.

    `known` has a row for each case and repeat and a column for each stage: 1 is passed, 0 failed, NaN missing. `chance`
    is the probability that blind guessing passes the stage, NaN for a stage that cannot be guessed. `has` marks the
    stages for which at least one case has data.
    """

    name: str  # in the order of NAMES
    condition: str
    keys: list[Key]
    items: list[Item]
    known: Array
    chance: Array
    has: tuple[bool, ...]

    @functools.cached_property
    def again(self) -> bool:
        """Whether any case was asked more than once."""
        return any(repeat for _, repeat in self.keys)


def signature(stages: Stages, judged: bool | None = None) -> str:
    """Return the thresholds as text. `judged` is True if a judge decides the stage "use", False if the style margin
    does, and None to name both."""
    used = {True: f"{SPEECH}>={stages.used:g}", False: f"{MARGIN}>{stages.margin:g}"}
    rule = "|else:".join([used[True], used[False]] if judged is None else [used[judged]])
    return (
        f"funnel|v{VERSION}|words:wer<={stages.words:g}|cue:{stages.cue}|reasoned:>={stages.reasoned:g}"
        f"|used:{rule}|sounded:{VES}>={stages.sounded:g}|rates:wilson-clustered|differences:newcombe-clustered"
    )


class _Asked:
    """The questions about one clip, in one repeat."""

    __slots__ = ("cue", "item", "reasoned", "words")

    def __init__(self, item: Item) -> None:
        self.item = item
        self.words: list[Answer] = []
        self.cue: list[Answer] = []
        self.reasoned: list[Answer] = []


def read_tables(reading: Reading, stages: Stages) -> tuple[dict[str, Table], bool]:
    """Return condition → table for all conversations, and whether judges rated the replies' use of the cue.

    Questions and transcripts are joined to the replies with the same input, by case and repeat. A run without
    conversations gets tables of its questions only.
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
        if (questions := cases.get(key)) is None:
            questions = cases[key] = _Asked(item)
        if item.task == "transcribe":
            questions.words.append(answer)
        elif item.task == "choose" and item.gold and item.level == 2:
            questions.reasoned.append(answer)
        elif item.task == "choose" and item.gold and item.level == 1 and item.category == _category(item, stages):
            questions.cue.append(answer)
    if not replies:
        replies = {f"task/{given}": {} for given in asked}
    judges = {key: judges_of(key, reading.signatures) for key in (SPEECH, VES)}
    rated = {key: reader([f"{key}@{label}" for label in labels]) for key, labels in judges.items() if labels}
    heard = {given: {key: _heard(own, stages) for key, own in cases.items()} for given, cases in asked.items()}
    tables = {}
    for condition, own in replies.items():
        given = condition.partition("/")[2]
        tables[condition] = _table(condition, asked.get(given, {}), heard.get(given, {}), own, stages, rated)
    return tables, bool(judges[SPEECH])


def _category(item: Item, stages: Stages) -> str:
    if stages.cue == "coarse":
        return "coarse"
    cue = cues.BY_SLUG.get(item.cue)
    return cue.task if cue is not None else ""


class _Heard(NamedTuple):
    """The outcome of each stage that is decided by questions about one clip, and the chance of passing by guessing."""

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
        if (passed := heard.get(key)) is not None:
            known[row, :3] = passed.words, passed.cue[0], passed.reasoned[0]
            chance[row, 1:3] = passed.cue[1], passed.reasoned[1]
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
    """Return, for each reply, the probability that its style margin passes if replies do not depend on the voice.

    This is the share of the script's replies that would pass as the reply to the same clip; 0.5 if the script has only
    one reply.
    """
    scripts: dict[tuple[str, int], list[tuple[Key, Answer]]] = {}
    for key, reply in replies.items():
        if reply.value(MARGIN) is not None:
            scripts.setdefault((reply.item.group, key[1]), []).append((key, reply))
    chances = {}
    for own in scripts.values():
        for key, reply in own:
            margins = [_margin(other, reply.item.style) for _, other in own]
            known = [margin for margin in margins if margin is not None]
            passed = sum(margin > stages.margin for margin in known)
            chances[key] = passed / len(known) if len(known) > 1 else 0.5
    return chances


def _margin(reply: Answer, style: str) -> float | None:
    """Return the style margin of a reply as if it answered the clip of the same script in `style`."""
    detail = reply.scores[MARGIN].detail
    alike = {name: x for name, x in detail.items() if name.startswith("sim_") and isinstance(x, int | float)}
    own = alike.pop(f"sim_{style}", None)
    return None if own is None or not alike else own - sum(alike.values()) / len(alike)


def _at_least(given: float | None, least: float) -> float:
    # A mean of judges that is exactly 4 may be slightly below it by rounding.
    return np.nan if given is None else float(given >= least - 1e-9)


def share(questions: Sequence[Answer], least: float) -> tuple[float, float]:
    """Return whether at least the share `least` of the questions is right (1 or 0), and the chance of that by guessing.

    Both are NaN without questions. The first is also NaN if the outcome depends on missing answers.
    """
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
    """Return the probability that at least `needed` of several independent guesses, with these odds, are right."""
    counts = [1.0]  # the probability that 0, 1, … of the guesses so far are right
    for p in odds:
        counts = [
            (counts[n] * (1 - p) if n < len(counts) else 0.0) + (counts[n - 1] * p if n else 0.0)
            for n in range(len(counts) + 1)
        ]
    return sum(c for n, c in enumerate(counts) if n >= needed)
