"""The cases under a number of the plain tables. A number is named by where it stands: run, condition, measure, cue …

The name is also the link of the page (`#where=run:1,condition:task/audio,measure:voice_accuracy,cue:sad`). Which cases
it means is told by the functions that made the number, so that a count and its cases cannot part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from urllib.parse import quote, unquote

from overtone.errors import UsageError
from overtone.results import judge_scores, style_following
from overtone.results.corpus_scores import WER_CORPUS, counts
from overtone.results.failure_ledger import entries
from overtone.results.headline_condition import by_condition, headline
from overtone.results.judge_agreement import draws_of
from overtone.results.load import Answer, Reading
from overtone.results.measures import Measure, chosen, is_choice, picked, status, table_measures
from overtone.results.score_details import LABELS, complete
from overtone.results.side_measures import UNREAD, agree, at_turn, by_basis, control_clips, false_cues, of_script
from overtone.results.voice_scores import voice_columns
from overtone.scores import CHOICE, CHOICE_STRICT

Fields = Mapping[str, str]
BY = ("style", "dimension", "cue", "category")
NONE = "none"  # in place of an empty name


def where(run: int, measure: str, **more: str) -> str:
    """The name of a number. `run` is a position, told from 1; empty fields are left out."""
    told = {"run": str(run + 1), "condition": more.pop("condition", ""), "measure": measure, **more}
    return "where=" + ",".join(f"{name}:{quote(value, safe='/')}" for name, value in told.items() if value)


def read(key: str) -> dict[str, str]:
    """The fields of a name."""
    parts = (part.partition(":") for part in key.removeprefix("where=").split(","))
    return {name: unquote(value) for name, _, value in parts}


class Under:
    """The cases under the numbers of one run."""

    def __init__(self, reading: Reading, labelled: Mapping[tuple[str, str], Sequence[str]] | None = None) -> None:
        self.reading = reading
        self.labelled = labelled or {}  # (judge's score, condition) → cases that people labelled
        self._by_condition = by_condition(reading)
        self._parts: dict[tuple[str, ...], dict[str, list[Answer]]] = {}
        self._replies: dict[str, dict[str, list[Answer]]] = {}  # condition → basis → replies
        self._names: dict[str, set[str]] = {}  # condition → judges' scores
        self._ledger: dict[tuple[str, str], list[Answer]] | None = None
        self._dimensions = judge_scores.read_dimensions(reading.meta, reading.signatures)
        self.measures: dict[str, Measure] = {m.name: m for m in table_measures(reading.declared)}

    def cases(self, key: str) -> list[str]:
        """The cases of the scored replies under a number, each once, in the run's order."""
        told = read(key)
        if told.get("measure") == "calibrated" and told.get("read") != "judge":
            return list(self.labelled.get((told["score"], told["condition"]), ()))
        return list(dict.fromkeys(answer.item.case for answer in self.answers(key)))

    def answers(self, key: str) -> list[Answer]:
        """The scored replies themselves."""
        told = read(key)
        name = told.get("measure", "")
        if name not in FAMILIES and name not in self.measures:
            raise UsageError(f"no number is named {key!r}")
        return list(FAMILIES.get(name, _measured)(self, told))

    def asked(self, told: Fields) -> list[Answer]:
        """Everything asked under the condition, or in the run."""
        return self._by_condition.get(told["condition"], []) if "condition" in told else self.reading.answers

    def core(self, told: Fields) -> list[Answer]:
        """The part of the benchmark's core that a table is over, narrowed to one style, dimension, cue or sub-task."""
        over, by = told.get("over", ""), next((name for name in BY if name in told), "")
        known = (told["condition"], over, by)
        if known not in self._parts:
            found: dict[str, list[Answer]] = {}
            empty = "neutral" if by == "cue" else NONE
            for answer in self._over(told, over):
                found.setdefault((getattr(answer.item, by) or empty) if by else "", []).append(answer)
            self._parts[known] = found
        return self._parts[known].get(told[by] if by else "", [])

    def _over(self, told: Fields, over: str) -> list[Answer]:
        asked = self.asked(told)
        if over == "unvalidated":
            return [a for a in asked if not a.item.part and a.item.status == "unvalidated"]
        return [a for a in asked if not a.item.part] if over == "core" else headline(asked)

    def ledger(self, kind: str, reason: str) -> list[Answer]:
        if self._ledger is None:
            self._ledger = {}
            for answer, what, why, _ in entries(self.reading.answers, self.reading.declared):
                self._ledger.setdefault((what, why), []).append(answer)
        return self._ledger.get((kind, reason), [])

    def replies(self, told: Fields) -> list[Answer]:
        """The replies of one basis that judges are asked about, or the voice is measured of."""
        condition = told["condition"]
        if condition not in self._replies:
            self._replies[condition] = dict(judge_scores.by_status(judge_scores.replies_of(self.asked(told))))
        return self._replies[condition].get(_basis(told), [])

    def scope(self, told: Fields) -> tuple[list[Answer], list[str]]:
        """The replies a judged dimension is asked about, and its judges."""
        key, condition = told["rubric"], told.get("condition", "")
        if condition not in self._names:
            every = judge_scores.replies_of(self.asked(told))
            self._names[condition] = judge_scores.judge_names(every, self.reading.signatures)
        judges = judge_scores.judges_of(key, self._names[condition])
        found = self.replies(told) if condition else judge_scores.replies_of(self.asked(told))
        scope = judge_scores.scope_of(self._dimensions[key], judges, found)
        return [a for a in scope if told.get("style", a.item.style) == a.item.style], judges


def _basis(told: Fields) -> str:
    return told.get("over", "")


def _valued(answers: Iterable[Answer], *scores: str) -> list[Answer]:
    return [a for a in answers if all(a.value(score) is not None for score in scores)]


# ── hearing and reasoning ───────────────────────────────────────────────────────────────────────────────────────────


def _measured(under: Under, told: Fields) -> list[Answer]:
    measure = under.measures[told["measure"]]
    found = [a for a in under.core(told) if measure.belongs(a.item)]
    return _read(found, told) if "read" in told else [a for a in found if measure.read(a) is not None]


def _read(found: Sequence[Answer], told: Fields) -> list[Answer]:
    """Questions by how their answers were read."""
    how = told["read"]
    if how == "strict":
        return _valued(found, CHOICE_STRICT)
    scored = _valued(found, CHOICE)
    if how == "unparsed":
        return [a for a in scored if status(a) != "parsed"]
    return [a for a in scored if status(a) == how]


def _corpus(under: Under, told: Fields) -> list[Answer]:
    return [a for a in under.core(told) if a.item.task == "transcribe" and counts(a) is not None]


def _fixed(under: Under, told: Fields) -> list[Answer]:
    belongs = is_choice(2)
    return _valued((a for a in under.asked(told) if a.item.part == "fixed" and belongs(a.item)), CHOICE)


def _wrong(under: Under, told: Fields) -> list[Answer]:
    belongs = is_choice(2)
    asked = [a for a in under.core(told) if belongs(a.item) and any(o.provenance for o in a.item.options)]
    missed = [a for a in _valued(asked, CHOICE) if a.value(CHOICE) != 1]
    if "reading" not in told:
        return missed
    want = "" if told["reading"] == NONE else told["reading"]
    return [a for a in missed if (picked(a) if chosen(a) else UNREAD) == want]


# ── replies ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _replies(under: Under, told: Fields) -> list[Answer]:
    found = [a for a in under.core(told) if a.item.task == "converse" and a.answered]
    if "score" in told:
        return _valued(found, told["score"])
    return [a for a in found if any(r.audio for r in a.replies)] if told.get("read") == "spoken" else found


def _judged(under: Under, told: Fields) -> list[Answer]:
    scope, judges = under.scope(told)
    return [a for a in scope if judge_scores.value(a, told["rubric"], told.get("judge", ""), judges) is not None]


def _differing(under: Under, told: Fields) -> list[Answer]:
    scope, _ = under.scope(told)
    names = judge_scores.judge_names(judge_scores.replies_of(under.asked(told)), under.reading.signatures)
    if told["kind"] == "hears":
        ways = judge_scores.ways_of_hearing(told["rubric"], names, under.reading.signatures)[told["judge"]]
        return _valued(scope, *(f"{told['rubric']}@{ways[way]}" for way in ("audio", "description")))
    both = [
        j
        for j in judge_scores.judges_of(judge_scores.SPEECH, names)
        if j in judge_scores.judges_of(judge_scores.IMPLICIT, names)
    ]
    judge = told.get("judge", "")
    keys = (judge_scores.SPEECH, judge_scores.IMPLICIT)
    return [a for a in scope if all(judge_scores.value(a, key, judge, both) is not None for key in keys)]


def _agreeing(under: Under, told: Fields) -> list[Answer]:
    scope, judges = under.scope(told)

    def rated(answer: Answer) -> int:
        if "judge" in told:
            return sum(x is not None for x in draws_of(answer, f"{told['rubric']}@{told['judge']}"))
        return sum(answer.value(f"{told['rubric']}@{judge}") is not None for judge in judges)

    return [a for a in scope if rated(a) > 1]


_ABSENT = ("unread", "missing", "skipped")


def _trouble(under: Under, told: Fields) -> Iterator[Answer]:
    for answer in judge_scores.replies_of(under.asked(told)):
        score = answer.scores.get(f"{told['rubric']}@{told['judge']}")
        if score is None:
            continue
        if (
            score.value is None
            if told["read"] == "unscored"
            else judge_scores.absent(score)[_ABSENT.index(told["read"])]
        ):
            yield answer


def _calibrated(under: Under, told: Fields) -> list[Answer]:
    return _valued((a for a in under.asked(told) if not a.item.part), told["score"])


def _following(under: Under, told: Fields) -> Iterator[Answer]:
    for basis, size, scripts in style_following.by_size(under.asked(told)):
        if basis == _basis(told) and str(size) == told["styles"]:
            for _, replies in scripts:
                if (style_following.square_of(replies) is None) == (told.get("read") == "left-out"):
                    yield from replies.values()


def _voice(under: Under, told: Fields) -> Iterator[Answer]:
    columns = voice_columns(under.reading.declared).values()
    column = next(c for found in columns for c in found if c.key == told["score"])
    for answer in under.replies(told):
        if told.get("style", answer.item.style) != answer.item.style:
            continue
        if column.read(answer) is not None:
            yield answer


def _emoalign(under: Under, told: Fields) -> list[Answer]:
    found = [a for a in judge_scores.replies_of(under.asked(told)) if told.get("style", a.item.style) == a.item.style]
    return [a for a in _valued(found, told["score"]) if complete(a.scores[told["score"]], LABELS)]


# ── what is kept apart ──────────────────────────────────────────────────────────────────────────────────────────────


def _false_cue(under: Under, told: Fields) -> list[Answer]:
    found = dict(false_cues(under.asked(told))).get(_basis(told), [])
    if told.get("read") == "unparsed":
        return [a for a in found if a.answered and status(a) not in ("", "parsed")]
    side = told.get("clips", "")
    return _valued((a for a in found if not side or bool(a.item.cue) == (side == "cued")), CHOICE)


def _conflict(under: Under, told: Fields) -> list[Answer]:
    asked = [a for a in under.asked(told) if a.item.part == "conflict"]
    found = dict(by_basis(asked, of_script(asked))).get(_basis(told), [])
    found = [a for a in found if a.item.style == told["style"]]
    about = {"dominance": "voice"}.get(told["score"], told["score"])
    if about in ("words", "voice", "agreement"):
        return _valued((a for a in found if a.item.category == f"conflict-{about}" and a.item.gold), CHOICE)
    measure = under.measures[about]
    plain = (a for a in found if not a.item.category.startswith("conflict") and measure.belongs(a.item))
    return [a for a in plain if measure.read(a) is not None]


def _dialogue(under: Under, told: Fields) -> list[Answer]:
    talks = [a for a in under.asked(told) if a.item.part == "dialogue"]
    found = dict(by_basis(talks, of_script(talks))).get(_basis(told), [])
    turn, score = int(told["turn"]) - 1, told["score"]
    scored = [a for a in found if a.answered and at_turn(a, score, turn) is not None]
    if "style" in told:
        return [a for a in scored if a.item.style == told["style"]]
    sides = [{(a.item.group, a.repeat) for a in scored if a.item.style == s} for s in ("changed", "steady")]
    return [
        a
        for a in scored
        if (a.item.group, a.repeat) in sides[0] & sides[1] and a.item.style in ("changed", "steady")
    ]  # fmt: skip


def _control(under: Under, told: Fields) -> Iterator[Answer]:
    for answer, twin, other in control_clips(under.asked(told)):
        if told["read"] == "same" and agree(answer, twin) is not None:
            yield from (answer, twin)
        elif told["read"] == "moved" and other is not None and agree(twin, other) is not None:
            yield from (twin, other)


# ── the run ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _state(under: Under, told: Fields) -> list[Answer]:
    keep: dict[str, Callable[[Answer], bool]] = {
        "answered": lambda a: a.answered,
        "failed": lambda a: a.failed,
        "pending": lambda a: not a.answered and not a.failed,
    }
    return [a for a in under.asked(told) if keep[told["read"]](a)]


def _ledger(under: Under, told: Fields) -> list[Answer]:
    return under.ledger(told["kind"], told.get("reason", ""))


FAMILIES: dict[str, Callable[[Under, Fields], Iterable[Answer]]] = {
    WER_CORPUS: _corpus,
    "fixed": _fixed,
    "wrong": _wrong,
    "replies": _replies,
    "judged": _judged,
    "differences": _differing,
    "agreement": _agreeing,
    "troubles": _trouble,
    "calibrated": _calibrated,
    "following": _following,
    "voice": _voice,
    "emoalign": _emoalign,
    "false-cue": _false_cue,
    "conflict": _conflict,
    "dialogue": _dialogue,
    "control": _control,
    "asks": _state,
    "ledger": _ledger,
}
