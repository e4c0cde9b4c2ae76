"""Quality of answers: the rules of ITU-T P.808's toolkit, with versions, applied to every session.

A session is *payable* if it is finished, all sounds were played to the end and a trap was answered correctly. It is
*usable* if all sounds were played, a trap and a gold question are right, ratings vary if there are anchors, and the
person has not done more sessions than P.808 allows. An unfinished session can be usable. Both are
decisions about a session: answers are flagged, never deleted, and results are shown with and without the sessions that
are not usable.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import groupby

from msgspec import Struct

from overtone.studio.fields import Value
from overtone.studio.store.store_records import Answered, Flag

TRAP_FIELD = "tones"  # a trap asks how many tones were heard; the slot's target is the right answer
RULES: dict[str, int] = {  # rule → version; a rule that decides differently gets a new version
    "unfinished": 1,
    "trap": 1,
    "gold": 1,
    "skipped": 1,
    "played": 1,
    "variance": 1,
    "fast": 1,
    "sessions": 1,
    "design": 1,
}
LEAST_VARIANCE = 0.1
MOST_FAST = 1  # screens of a session that may be quicker than their sounds
MOST_SESSIONS = 60
_PAY = frozenset(("unfinished", "trap", "played"))  # rules on which the payment depends
_HEARD = ("real", "gold", "anchor", "repeat")

# the right answers of a gold question: unit id, side played backwards (on the screen) → field → right answers
Gold = Callable[[str, int], Mapping[str, Sequence[Value]]]


class Verdict(Struct, frozen=True, kw_only=True):
    """The two decisions about one session, with the flags behind them. `failed` are the rules that were not kept."""

    person: str
    session: int
    usable: bool
    payable: bool
    flags: tuple[Flag, ...]
    failed: tuple[str, ...] = ()


class _Rules(Struct, frozen=True, kw_only=True):
    """The study's side of the rules; see `assess`."""

    gold: Gold
    must_play: Mapping[str, Sequence[str]]
    seconds: Mapping[str, float]
    finished: Collection[tuple[str, int]] | None
    varied: bool
    excluded: Mapping[str, str]
    skipped: Collection[tuple[str, int, str]]


def assess(
    answers: Sequence[Answered],
    *,
    gold: Gold,
    must_play: Mapping[str, Sequence[str]],
    seconds: Mapping[str, float] | None = None,
    finished: Collection[tuple[str, int]] | None = None,
    varied: bool = False,
    excluded: Mapping[str, str] | None = None,
    skipped: Collection[tuple[str, int, str]] = (),
) -> list[Verdict]:
    """Return a verdict for every session, by person and session.

    `answers` are those of all kinds of places, training excepted. `must_play`: unit id → names of the sounds to be
    played to the end. `seconds`: unit id → how long these last together; an empty one switches the rule off.
    `finished`: (person, session) of finished sessions; None: all. `varied`: the design rates single sounds on a scale
    (ACR), so the ratings of a session with anchors must vary. `excluded`: person → why the design itself excludes them.
    `skipped`: (person, session, kind) of skipped traps and gold questions; without any other of
    its kind, the session is not usable.
    """
    rules = _Rules(
        gold=gold,
        must_play=must_play,
        seconds=seconds or {},
        finished=finished,
        varied=varied,
        excluded=excluded or {},
        skipped=skipped,
    )
    ordered = sorted(answers, key=lambda one: (one.person, one.session, one.seq))
    sessions = groupby(ordered, key=lambda one: (one.person, one.session))
    return [_verdict(person, session, list(screens), rules) for (person, session), screens in sessions]


def _verdict(person: str, session: int, screens: list[Answered], rules: _Rules) -> Verdict:
    flags: list[Flag] = []
    failed: set[str] = set()
    for check in (_finished, _traps, _gold, _skipped, _played, _variance, _fast, _sessions, _design):
        for rule, slot, detail, fails in check(person, session, screens, rules):
            flags.append(Flag(person=person, session=session, slot=slot, rule=rule, version=RULES[rule], detail=detail))
            failed |= {rule} if fails else set()
    return Verdict(
        person=person, session=session, usable=not failed - {"unfinished"}, payable=not failed & _PAY,
        flags=tuple(flags), failed=tuple(sorted(failed)),
    )  # fmt: skip


# Each check yields (rule, slot, detail, whether the session fails the rule by it).
_Found = Iterable[tuple[str, str, str, bool]]


def _finished(person: str, session: int, screens: list[Answered], rules: _Rules) -> _Found:
    if rules.finished is not None and (person, session) not in rules.finished:
        yield "unfinished", "", "the session was not finished", True


def _traps(person: str, session: int, screens: list[Answered], rules: _Rules) -> _Found:
    """Flag wrong traps; the session fails if none is right."""
    traps = [one for one in screens if one.kind == "trap"]
    wrong = [one for one in traps if not _same_number(one.values.get(TRAP_FIELD), one.target)]
    for one in wrong:
        detail = f"answered {one.values.get(TRAP_FIELD, 'nothing')}, heard {one.target}"
        yield "trap", one.slot, detail, len(wrong) == len(traps)


def _gold(person: str, session: int, screens: list[Answered], rules: _Rules) -> _Found:
    """Flag wrong gold questions; the session fails if none is right."""
    asked = [(one, rules.gold(one.unit, one.target)) for one in screens if one.kind == "gold"]
    asked = [(one, right) for one, right in asked if right]
    wrong = [(one, field) for one, right in asked if (field := _wrong_field(one, right))]
    for one, field in wrong:
        detail = f"{field}: answered {one.values.get(field, 'nothing')}"
        yield "gold", one.slot, detail, len(wrong) == len(asked)


def _skipped(person: str, session: int, screens: list[Answered], rules: _Rules) -> _Found:
    """Fail a session whose traps or gold questions were all skipped. Its pay stays, as the page promises."""
    for kind, what in (("trap", "traps"), ("gold", "gold questions")):
        if (person, session, kind) in rules.skipped and not any(one.kind == kind for one in screens):
            yield "skipped", "", f"all {what}", True


def _wrong_field(one: Answered, right: Mapping[str, Sequence[Value]]) -> str:
    """Return the first field whose answer is not right, or ""; questions that this screen did not ask do not count."""
    return next((field for field, allowed in right.items() if one.values.get(field, allowed[0]) not in allowed), "")


def _played(person: str, session: int, screens: list[Answered], rules: _Rules) -> _Found:
    for one in screens:
        if one.kind not in _HEARD:
            continue
        if missing := [name for name in rules.must_play.get(one.unit, ()) if not one.plays.get(name)]:
            yield "played", one.slot, f"not played to the end: {', '.join(missing)}", True


def _variance(person: str, session: int, screens: list[Answered], rules: _Rules) -> _Found:
    """Fail a session with anchors whose ratings hardly vary on any scale."""
    if not rules.varied or not any(one.kind == "anchor" for one in screens):
        return
    rated: dict[str, list[float]] = {}
    for one in screens:
        if one.kind in ("real", "anchor", "gold"):
            for field, value in one.values.items():
                if isinstance(value, int | float):
                    rated.setdefault(field, []).append(float(value))
    found = [_spread(values) for values in rated.values() if len(values) > 1]
    if found and max(found) < LEAST_VARIANCE:
        yield "variance", "", f"variance {max(found):.3f}, at least {LEAST_VARIANCE}", True


def _spread(values: Sequence[float]) -> float:
    """Return the variance of a sample."""
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)


def _fast(person: str, session: int, screens: list[Answered], rules: _Rules) -> _Found:
    heard = [one for one in screens if one.kind in _HEARD]
    fast = [one for one in heard if one.ms < 1000 * rules.seconds.get(one.unit, 0.0)]
    for one in fast:
        detail = f"{one.ms / 1000:.1f} s, the sounds last {rules.seconds[one.unit]:.1f} s"
        yield "fast", one.slot, detail, len(fast) > MOST_FAST


def _sessions(person: str, session: int, screens: list[Answered], rules: _Rules) -> _Found:
    if session > MOST_SESSIONS:
        yield "sessions", "", f"session {session}, at most {MOST_SESSIONS} a person", True


def _design(person: str, session: int, screens: list[Answered], rules: _Rules) -> _Found:
    if person in rules.excluded:
        yield "design", "", rules.excluded[person], True


def _same_number(value: Value | None, target: int) -> bool:
    """Return whether a trap's answer is right: a number, or its digits (the value of a choice)."""
    return not isinstance(value, bool) and str(value) == str(target)
