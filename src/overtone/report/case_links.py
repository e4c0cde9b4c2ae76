"""The cases behind a number of the plain tables. A number is named by its position: run, condition, measure, cue …

The name is also the link on the page (`#where=run:1,condition:task/audio,measure:voice_accuracy,cue:sad`). The
functions that compute the numbers also select the cases, so that a count and its cases always agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from urllib.parse import quote, unquote

from overtone.errors import UsageError
from overtone.results import judge_scores, people_scores, style_following
from overtone.results.corpus_scores import WER_CORPUS, counts
from overtone.results.failure_ledger import entries
from overtone.results.headline_condition import by_condition, headline
from overtone.results.judge_agreement import draws_of
from overtone.results.load import Answer, Reading
from overtone.results.measures import Measure, chosen, is_choice, picked, status, table_measures
from overtone.results.score_details import LABELS, complete
from overtone.results.side_measures import UNREAD, agree, at_turn, by_basis, control_clips, false_cues, of_script
from overtone.results.timings import read_timings
from overtone.results.voice_scores import voice_columns
from overtone.scores import CHOICE, CHOICE_STRICT

Fields = Mapping[str, str]
BY = ("style", "dimension", "cue", "category")
NONE = "none"  # in place of an empty name


def where(run: int, measure: str, **more: str) -> str:
    """Return the name of a number. `run` is a position, written from 1; empty fields are left out."""
    fields = {"run": str(run + 1), "condition": more.pop("condition", ""), "measure": measure, **more}
    return "where=" + ",".join(f"{name}:{quote(value, safe='/')}" for name, value in fields.items() if value)


def read(key: str) -> dict[str, str]:
    """Parse the name of a number into its fields."""
    parts = (part.partition(":") for part in key.removeprefix("where=").split(","))
    return {name: unquote(value) for name, _, value in parts}


class CaseFinder:
    """Finds the cases behind the numbers of one run."""

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
        """Return the cases of the scored replies behind a number, each once, in the run's order."""
        fields = read(key)
        if fields.get("measure") == "calibrated" and fields.get("read") != "judge":
            return list(self.labelled.get((fields["score"], fields["condition"]), ()))
        return list(dict.fromkeys(answer.item.case for answer in self.answers(key)))

    def answers(self, key: str) -> list[Answer]:
        """Return the scored replies behind a number."""
        fields = read(key)
        name = fields.get("measure", "")
        if name not in FAMILIES and name not in self.measures:
            raise UsageError(f"no number has the key {key!r}; --format json shows the keys")
        return list(FAMILIES.get(name, _measured)(self, fields))

    def asked(self, fields: Fields) -> list[Answer]:
        """Return everything asked under the condition, or in the run."""
        return self._by_condition.get(fields["condition"], []) if "condition" in fields else self.reading.answers

    def core(self, fields: Fields) -> list[Answer]:
        """Return the part of the core that a table covers, restricted to one style, dimension, cue or sub-task."""
        over, by = fields.get("over", ""), next((name for name in BY if name in fields), "")
        known = (fields["condition"], over, by)
        if known not in self._parts:
            selections: dict[str, list[Answer]] = {}
            empty = "neutral" if by == "cue" else NONE
            for answer in self._over(fields, over):
                selections.setdefault((getattr(answer.item, by) or empty) if by else "", []).append(answer)
            self._parts[known] = selections
        return self._parts[known].get(fields[by] if by else "", [])

    def _over(self, fields: Fields, over: str) -> list[Answer]:
        asked = self.asked(fields)
        if over == "unvalidated":
            return [a for a in asked if not a.item.part and a.item.status == "unvalidated"]
        return [a for a in asked if not a.item.part] if over == "core" else headline(asked)

    def ledger(self, kind: str, reason: str) -> list[Answer]:
        if self._ledger is None:
            self._ledger = {}
            for answer, what, why, _ in entries(self.reading.answers, self.reading.declared):
                self._ledger.setdefault((what, why), []).append(answer)
        return self._ledger.get((kind, reason), [])

    def replies(self, fields: Fields) -> list[Answer]:
        """Return the replies of one basis that were judged, or whose voice was measured."""
        condition = fields["condition"]
        if condition not in self._replies:
            self._replies[condition] = dict(judge_scores.by_status(judge_scores.replies_of(self.asked(fields))))
        return self._replies[condition].get(_basis(fields), [])

    def scope(self, fields: Fields) -> tuple[list[Answer], list[str]]:
        """Return the replies that a judged dimension is asked about, and its judges."""
        key, condition = fields["rubric"], fields.get("condition", "")
        if condition not in self._names:
            every = judge_scores.replies_of(self.asked(fields))
            self._names[condition] = judge_scores.judge_names(every, self.reading.signatures)
        judges = judge_scores.judges_of(key, self._names[condition])
        replies = self.replies(fields) if condition else judge_scores.replies_of(self.asked(fields))
        scope = judge_scores.scope_of(self._dimensions[key], judges, replies)
        return [a for a in scope if fields.get("style", a.item.style) == a.item.style], judges


def _basis(fields: Fields) -> str:
    return fields.get("over", "")


def _valued(answers: Iterable[Answer], *scores: str) -> list[Answer]:
    return [a for a in answers if all(a.value(score) is not None for score in scores)]


# ── hearing and reasoning ───────────────────────────────────────────────────────────────────────────────────────────


def _measured(finder: CaseFinder, fields: Fields) -> list[Answer]:
    measure = finder.measures[fields["measure"]]
    answers = [a for a in finder.core(fields) if measure.belongs(a.item)]
    return _read(answers, fields) if "read" in fields else [a for a in answers if measure.read(a) is not None]


def _read(answers: Sequence[Answer], fields: Fields) -> list[Answer]:
    """Return the questions whose answers were read in the way that `fields` names."""
    how = fields["read"]
    if how == "strict":
        return _valued(answers, CHOICE_STRICT)
    scored = _valued(answers, CHOICE)
    if how == "unparsed":
        return [a for a in scored if status(a) != "parsed"]
    return [a for a in scored if status(a) == how]


def _corpus(finder: CaseFinder, fields: Fields) -> list[Answer]:
    return [a for a in finder.core(fields) if a.item.task == "transcribe" and counts(a) is not None]


def _fixed(finder: CaseFinder, fields: Fields) -> list[Answer]:
    belongs = is_choice(2)
    return _valued((a for a in finder.asked(fields) if a.item.part == "fixed" and belongs(a.item)), CHOICE)


def _wrong(finder: CaseFinder, fields: Fields) -> list[Answer]:
    belongs = is_choice(2)
    asked = [a for a in finder.core(fields) if belongs(a.item) and any(o.provenance for o in a.item.options)]
    missed = [a for a in _valued(asked, CHOICE) if a.value(CHOICE) != 1]
    if "reading" not in fields:
        return missed
    want = "" if fields["reading"] == NONE else fields["reading"]
    return [a for a in missed if (picked(a) if chosen(a) else UNREAD) == want]


# ── replies ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _replies(finder: CaseFinder, fields: Fields) -> list[Answer]:
    replies = [a for a in finder.core(fields) if a.item.task == "converse" and a.answered]
    if "score" in fields:
        return _valued(replies, fields["score"])
    return [a for a in replies if any(r.audio for r in a.replies)] if fields.get("read") == "spoken" else replies


def _judged(finder: CaseFinder, fields: Fields) -> list[Answer]:
    scope, judges = finder.scope(fields)
    return [a for a in scope if judge_scores.value(a, fields["rubric"], fields.get("judge", ""), judges) is not None]


def _by_people(finder: CaseFinder, fields: Fields) -> list[Answer]:
    study = finder.reading.studies[fields["study"]]
    return [a for a in finder.replies(fields) if people_scores.opinions([a], study, fields["rubric"])]


def _differing(finder: CaseFinder, fields: Fields) -> list[Answer]:
    scope, _ = finder.scope(fields)
    names = judge_scores.judge_names(judge_scores.replies_of(finder.asked(fields)), finder.reading.signatures)
    if fields["kind"] == "hears":
        labels = judge_scores.judges_by_ear_and_text(fields["rubric"], names, finder.reading.signatures)
        return _valued(scope, *(f"{fields['rubric']}@{label}" for label in labels[fields["judge"]].values()))
    both = [
        j
        for j in judge_scores.judges_of(judge_scores.SPEECH, names)
        if j in judge_scores.judges_of(judge_scores.IMPLICIT, names)
    ]
    judge = fields.get("judge", "")
    keys = (judge_scores.SPEECH, judge_scores.IMPLICIT)
    return [a for a in scope if all(judge_scores.value(a, key, judge, both) is not None for key in keys)]


def _agreeing(finder: CaseFinder, fields: Fields) -> list[Answer]:
    scope, judges = finder.scope(fields)

    def rated(answer: Answer) -> int:
        if "judge" in fields:
            return sum(x is not None for x in draws_of(answer, f"{fields['rubric']}@{fields['judge']}"))
        return sum(answer.value(f"{fields['rubric']}@{judge}") is not None for judge in judges)

    return [a for a in scope if rated(a) > 1]


_ABSENT = ("unread", "missing", "skipped")


def _trouble(finder: CaseFinder, fields: Fields) -> Iterator[Answer]:
    for answer in judge_scores.replies_of(finder.asked(fields)):
        score = answer.scores.get(f"{fields['rubric']}@{fields['judge']}")
        if score is None:
            continue
        if (
            score.value is None
            if fields["read"] == "unscored"
            else judge_scores.absent(score)[_ABSENT.index(fields["read"])]
        ):
            yield answer


def _calibrated(finder: CaseFinder, fields: Fields) -> list[Answer]:
    return _valued((a for a in finder.asked(fields) if not a.item.part), fields["score"])


def _following(finder: CaseFinder, fields: Fields) -> Iterator[Answer]:
    for basis, size, scripts in style_following.by_size(finder.asked(fields)):
        if basis == _basis(fields) and str(size) == fields["styles"]:
            for _, replies in scripts:
                if (style_following.square_of(replies) is None) == (fields.get("read") == "left-out"):
                    yield from replies.values()


def _voice(finder: CaseFinder, fields: Fields) -> Iterator[Answer]:
    columns = voice_columns(finder.reading.declared).values()
    column = next(c for table in columns for c in table if c.key == fields["score"])
    for answer in finder.replies(fields):
        if fields.get("style", answer.item.style) != answer.item.style:
            continue
        if column.read(answer) is not None:
            yield answer


def _emoalign(finder: CaseFinder, fields: Fields) -> list[Answer]:
    replies = [
        a for a in judge_scores.replies_of(finder.asked(fields)) if fields.get("style", a.item.style) == a.item.style
    ]
    return [a for a in _valued(replies, fields["score"]) if complete(a.scores[fields["score"]], LABELS)]


# ── parts outside the headline ────────────────────────────────────────────────────────────────────────────────────────


def _false_cue(finder: CaseFinder, fields: Fields) -> list[Answer]:
    answers = dict(false_cues(finder.asked(fields))).get(_basis(fields), [])
    if fields.get("read") == "unparsed":
        return [a for a in answers if a.answered and status(a) not in ("", "parsed")]
    side = fields.get("clips", "")
    return _valued((a for a in answers if not side or bool(a.item.cue) == (side == "cued")), CHOICE)


def _conflict(finder: CaseFinder, fields: Fields) -> list[Answer]:
    asked = [a for a in finder.asked(fields) if a.item.part == "conflict"]
    answers = dict(by_basis(asked, of_script(asked))).get(_basis(fields), [])
    answers = [a for a in answers if a.item.style == fields["style"]]
    about = {"dominance": "voice"}.get(fields["score"], fields["score"])
    if about in ("words", "voice", "agreement"):
        return _valued((a for a in answers if a.item.category == f"conflict-{about}" and a.item.gold), CHOICE)
    measure = finder.measures[about]
    plain = (a for a in answers if not a.item.category.startswith("conflict") and measure.belongs(a.item))
    return [a for a in plain if measure.read(a) is not None]


def _dialogue(finder: CaseFinder, fields: Fields) -> list[Answer]:
    talks = [a for a in finder.asked(fields) if a.item.part == "dialogue"]
    answers = dict(by_basis(talks, of_script(talks))).get(_basis(fields), [])
    turn, score = int(fields["turn"]) - 1, fields["score"]
    scored = [a for a in answers if a.answered and at_turn(a, score, turn) is not None]
    if "style" in fields:
        return [a for a in scored if a.item.style == fields["style"]]
    sides = [{(a.item.group, a.repeat) for a in scored if a.item.style == s} for s in ("changed", "steady")]
    return [
        a
        for a in scored
        if (a.item.group, a.repeat) in sides[0] & sides[1] and a.item.style in ("changed", "steady")
    ]  # fmt: skip


def _control(finder: CaseFinder, fields: Fields) -> Iterator[Answer]:
    for answer, twin, other in control_clips(finder.asked(fields)):
        if fields["read"] == "same" and agree(answer, twin) is not None:
            yield from (answer, twin)
        elif fields["read"] == "moved" and other is not None and agree(twin, other) is not None:
            yield from (twin, other)


# ── the run ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _state(finder: CaseFinder, fields: Fields) -> list[Answer]:
    keep: dict[str, Callable[[Answer], bool]] = {
        "answered": lambda a: a.answered,
        "failed": lambda a: a.failed,
        "pending": lambda a: not a.answered and not a.failed,
    }
    return [a for a in finder.asked(fields) if keep[fields["read"]](a)]


def _ledger(finder: CaseFinder, fields: Fields) -> list[Answer]:
    return finder.ledger(fields["kind"], fields.get("reason", ""))


def _timings(finder: CaseFinder, fields: Fields) -> list[Answer]:
    timed = {ask for ask, timings in read_timings(finder.reading) if getattr(timings, fields["score"]) is not None}
    return [a for a in finder.asked(fields) if a.ask in timed]


FAMILIES: dict[str, Callable[[CaseFinder, Fields], Iterable[Answer]]] = {
    WER_CORPUS: _corpus,
    "fixed": _fixed,
    "wrong": _wrong,
    "replies": _replies,
    "judged": _judged,
    "people": _by_people,
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
    "timings": _timings,
    "ledger": _ledger,
}
