"""The gain from audio over the words alone: one model on the same items, with audio and with the true transcript.

A question that can be answered from the words alone says nothing about hearing. So questions that no text-only run
answers correctly are also counted separately: on them, a model that does not hear is no better than blind guessing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Generic, NamedTuple, TypeVar

from msgspec import Struct

from overtone import cues
from overtone.results import measure_names, significance
from overtone.results.case_names import KeyedCases, unique
from overtone.results.load import Answer, Reading
from overtone.results.measures import TIE, Estimate, Measure, correct, estimate
from overtone.results.wording import Sentence, headline, shortfall
from overtone.runs.measurement_choice import same_signature
from overtone.schema import STYLES, Item
from overtone.stats.minimums import DIFFERENCE, RATE
from overtone.text import percent, rate

SEED = 13
DRAWS = 4000
SIGNATURE = (
    f"text-only|v2|pair:item,prompt,repeat|difference:audio−transcript|cluster:script|test:sign-flips,within-the-scale|draws:{DRAWS}"
    f"|seed:{SEED}|adjust:holm, overall rows together, of a breakdown by measure|unsolved:no text-only answer right"
)
AUDIO, TEXT = "audio", "transcript"
SHOWN = (
    "voice_accuracy", "reasoning_accuracy", measure_names.C4, measure_names.VES, "style_margin", "reply_semsim",
)  # fmt: skip


class TextRow(Struct, frozen=True):
    """One measure with audio and with the transcript alone, over the items with a value for both inputs."""

    key: str
    prompt: str
    measure: str
    label: str
    basis: str
    by: str  # overall, dimension, style, category, cue
    name: str
    audio: Estimate
    text: Estimate
    difference: Estimate  # audio − text
    p: float | None
    adjusted: float | None = None  # corrected for all `tests` tests of its family
    tests: int = 0


class UnsolvedRow(Struct, frozen=True):
    """The questions that no text-only answer gets right, and the accuracy of the answers to audio on these questions.

    `questions` is the number of questions with a text-only answer, `unsolved` the number of those for which every
    text-only answer is wrong.
    """

    key: str
    measure: str
    label: str
    basis: str
    by: str
    name: str
    questions: int
    unsolved: int
    tries: float | None  # text-only answers per question: with more, more questions are solved by chance
    accuracy: Estimate
    corrected: Estimate
    chance: float | None


Row = TypeVar("Row", TextRow, UnsolvedRow)


class TextOnly(Struct, frozen=True):
    """The gain from audio in one run."""

    run: str
    signature: str
    rows: list[TextRow]
    unsolved: list[UnsolvedRow]
    notes: list[str]


def text_only(reading: Reading, others: Sequence[Reading] = (), *, deaf: Sequence[Reading] = ()) -> TextOnly:
    """Compare the answers to audio in `reading` with answers to transcripts.

    If `reading` has no answers to transcripts, a run of the same model in `others` supplies them. Every answer to a
    transcript, in `reading` or in `others`, of any model, is a text-only try. So is every answer in the `deaf` runs,
    whose models get only the words.
    """
    pairs, notes = _pairs(reading, others)
    unsolved = _unsolved(reading, others, deaf)
    if not pairs:
        notes.append("No item was answered with audio and with its transcript: run with --input audio,transcript.")
    return TextOnly(
        run=reading.name,
        signature=SIGNATURE,
        rows=_adjusted([_row(part) for part in _pair_parts(pairs)]),
        unsolved=[_unsolved_row(part) for part in _unsolved_parts(unsolved)],
        notes=notes,
    )


def cases_by_key(
    reading: Reading, others: Sequence[Reading] = (), *, deaf: Sequence[Reading] = ()
) -> Iterator[KeyedCases]:
    """Yield the key of every number with the cases that the number counts, for the same runs as `text_only`.

    A row's key gives the items with a value for both inputs; `gained` selects the items that are better with audio,
    `lost` the items that are worse. The key of an UnsolvedRow gives the unsolved questions with an answer to the audio;
    `right` selects the correctly answered ones, `unsolved` all unsolved questions, and `questions` all tried questions.
    """
    for part in _pair_parts(_pairs(reading, others)[0]):
        both = [(p.audio - p.text, p.item.case) for p in part.rows if p.audio is not None and p.text is not None]
        yield part.key, unique(case for _, case in both)
        yield f"{part.key}/gained", unique(case for by, case in both if by > TIE)
        yield f"{part.key}/lost", unique(case for by, case in both if by < -TIE)
    for left in _unsolved_parts(_unsolved(reading, others, deaf)):
        unsolved = [t for t in left.rows if not t.solved]
        yield left.key, unique(t.item.case for t in unsolved if t.audio is not None)
        yield f"{left.key}/right", unique(t.item.case for t in unsolved if t.audio == 1)
        yield f"{left.key}/unsolved", unique(t.item.case for t in unsolved)
        yield f"{left.key}/questions", unique(t.item.case for t in left.rows)


def sentences(data: TextOnly) -> list[Sentence]:
    """Return sentences on the overall rows."""
    lines = []
    compared = [row for row in headline(data.rows) if row.difference.value is not None]
    for row in compared:
        if row.difference.scripts < DIFFERENCE.least:
            continue
        audio, alone = measure_names.write(row.measure, row.audio), measure_names.write(row.measure, row.text)
        by = measure_names.write(row.measure, row.difference, difference=True)
        text = (
            f"{row.prompt}: {row.label} is {audio} with audio and {alone} with the transcript alone, on the same "
            f"{row.difference.scored} items: a difference of {by}"
            f"{significance.by_test(row.difference, row.adjusted, row.tests)}."
        )
        lines.append(Sentence(text, row.key))
    unsolved = [left for left in headline(data.unsolved) if left.accuracy.value is not None]
    for left in unsolved:
        if left.accuracy.scripts < RATE.least:
            continue
        chance = "" if left.chance is None else f" (blind guessing: {percent(left.chance)})"
        text = (
            f"{left.label}: no text-only run answers {left.unsolved} of {left.questions} questions correctly; with "
            f"audio, {rate(left.accuracy)} of these are correct{chance}."
        )
        lines.append(Sentence(text, left.key))
    few = [(r, r.difference.scripts) for r in compared if r.difference.scripts < DIFFERENCE.least]
    left_few = [(r, r.accuracy.scripts) for r in unsolved if r.accuracy.scripts < RATE.least]
    lines += shortfall(DIFFERENCE, ((f"{row.prompt}, {row.label} with and without audio", n) for row, n in few))
    lines += shortfall(RATE, ((f"{left.label}, questions that no text-only run solves", n) for left, n in left_few))
    return lines


# ── pairs ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class _Paired(NamedTuple):
    item: Item
    prompt: str
    measure: Measure
    audio: float | None
    text: float | None


class _Tried(NamedTuple):
    """A question with text-only tries, and one answer to the same question with audio."""

    id: str
    item: Item
    measure: Measure
    solved: bool
    tries: int
    audio: float | None


Compared = TypeVar("Compared", _Paired, _Tried)


class _Part(NamedTuple, Generic[Compared]):
    """A selection of items or questions, and its key."""

    key: str
    basis: str
    by: str
    name: str
    rows: list[Compared]


def _core(reading: Reading, given: str) -> Iterator[Answer]:
    """Return the answers of the benchmark's core with the input `given`."""
    wanted = {c for c in {a.condition for a in reading.answers} if c.partition("/")[2] == given}
    return (a for a in reading.answers if a.condition in wanted and not a.item.part) if wanted else iter(())


def _model(reading: Reading) -> str:
    return reading.meta.get("model", "") or reading.meta.get("spec", "")


def _pairs(reading: Reading, others: Sequence[Reading]) -> tuple[list[_Paired], list[str]]:
    """Pair the value of each answer to audio with the value of the answer to the transcript. Return the pairs, and
    notes."""
    same = [reading, *(other for other in others if _model(reading) and _model(other) == _model(reading))]
    source = next((r for r in same if any(True for _ in _core(r, TEXT))), None)
    if source is None:
        return [], []
    texts = {(a.item_id, a.condition.partition("/")[0], a.repeat): a for a in _core(source, TEXT)}
    measures, notes = _measures(reading, source)
    pairs: list[_Paired] = []
    changed = 0
    for audio in _core(reading, AUDIO):
        prompt = audio.condition.partition("/")[0]
        text = texts.get((audio.item_id, prompt, audio.repeat))
        if text is None:
            continue
        if text.content != audio.content:
            changed += 1
            continue
        for measure in measures:
            if measure.belongs(audio.item):
                pairs.append(_Paired(audio.item, prompt, measure, measure.read(audio), measure.read(text)))
    if changed:
        notes.append(f"{changed} items differ between {reading.name} and {source.name} and are left out.")
    if source is not reading:
        notes.append(f"The answers to transcripts come from {source.name}, a run of the same model.")
    return pairs, notes


def _measures(first: Reading, second: Reading) -> tuple[list[Measure], list[str]]:
    """Return the measures that both runs have with the same signatures, and notes on those with different ones."""
    alike = {
        name: same_signature(signature, second.signatures[name])
        for name, signature in first.signatures.items()
        if name in second.signatures
    }
    same = {name for name, is_same in alike.items() if is_same}
    known = measure_names.measures_of([first] if second is first else [first, second], only=same)
    shared = [m for name in SHOWN if (m := known.get(name)) is not None and same.issuperset(m.scores)]
    unlike = [name for name in alike if name not in same]
    notes = [f"{', '.join(unlike)}: scored differently in the two runs, so not compared."] if unlike else []
    return shared, notes


def _unsolved(reading: Reading, others: Sequence[Reading], deaf: Sequence[Reading]) -> list[_Tried]:
    """Return every question that was asked with audio in `reading` and has at least one text-only try."""
    tried: dict[tuple[str, int], list[float]] = {}
    texts = [a for r in (reading, *others) for a in _core(r, TEXT)]
    texts += [a for r in deaf for a in r.answers if not a.item.part]
    for answer in texts:
        if answer.item.task == "choose" and (right := answer.value("accuracy")) is not None:
            tried.setdefault((answer.item_id, answer.content), []).append(right)
    questions = []
    for audio in _core(reading, AUDIO):
        tries = tried.get((audio.item_id, audio.content))
        measure = next((m for m in measure_names.questions() if m.belongs(audio.item)), None) if tries else None
        if tries and measure:
            questions.append(
                _Tried(audio.item_id, audio.item, measure, 1.0 in tries, len(tries), audio.value("accuracy"))
            )
    return questions


# ── numbers ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _slices(item: Item) -> Iterator[tuple[str, str]]:
    yield "overall", ""
    if item.dimension:
        yield "dimension", item.dimension
    if item.style:
        yield "style", item.style
    if item.task == "choose":
        yield "category", item.category
    if item.cue:
        yield "cue", item.cue


_BYS = ("overall", "dimension", "style", "category", "cue")
_NAMES = ("", *cues.DIMENSIONS, *STYLES, *cues.UNDERSTANDING, *cues.REASONING, *cues.slugs())
_PLACE = {name: place for place, name in enumerate(_NAMES)}


def _split(items: Sequence[Item]) -> Iterator[tuple[str, str, str, str, list[int]]]:
    """Yield (basis, by, name, end of the key, positions of the items) for every selection."""
    sure = "validated" if any(item.status == "validated" for item in items) else ""
    selections: dict[tuple[str, str, str], list[int]] = {}
    for place, item in enumerate(items):
        basis = "unvalidated" if item.status == "unvalidated" else sure
        for by, name in _slices(item):
            selections.setdefault((basis, by, name), []).append(place)

    def order(at: tuple[str, str, str]) -> tuple[bool, int, int, str]:
        return at[0] == "unvalidated", _BYS.index(at[1]), _PLACE.get(at[2], len(_PLACE)), at[2]

    for basis, by, name in sorted(selections, key=order):
        end = ("unvalidated/" if basis == "unvalidated" else "") + by + (f"/{name}" if name else "")
        yield basis, by, name, end, selections[basis, by, name]


def _pair_parts(pairs: Sequence[_Paired]) -> Iterator[_Part[_Paired]]:
    tables: dict[tuple[str, str], list[_Paired]] = {}
    for pair in pairs:
        tables.setdefault((pair.prompt, pair.measure.name), []).append(pair)
    for (prompt, measure), rows in tables.items():
        for basis, by, name, end, places in _split([row.item for row in rows]):
            yield _Part(f"text-only/{prompt}/{measure}/{end}", basis, by, name, [rows[i] for i in places])


def _unsolved_parts(tried: Sequence[_Tried]) -> Iterator[_Part[_Tried]]:
    for measure in measure_names.questions():
        rows = [row for row in tried if row.measure is measure]
        for basis, by, name, end, places in _split([row.item for row in rows]):
            yield _Part(f"text-only/unsolved/{measure.name}/{end}", basis, by, name, [rows[i] for i in places])


def _row(part: _Part[_Paired]) -> TextRow:
    rows, measure = part.rows, part.rows[0].measure
    both = [(p.audio, p.text, p.item.group) for p in rows if p.audio is not None and p.text is not None]
    difference, p = measure.tested(((r.audio, r.text, r.item.group) for r in rows), seed=SEED, draws=DRAWS)
    return TextRow(
        key=part.key,
        prompt=rows[0].prompt,
        measure=measure.name,
        label=measure.label,
        basis=part.basis,
        by=part.by,
        name=part.name,
        audio=measure.side([(a, group) for a, _, group in both], measure.kind),
        text=measure.side([(t, group) for _, t, group in both], measure.kind),
        difference=difference,
        p=p,
    )


def _unsolved_row(left: _Part[_Tried]) -> UnsolvedRow:
    unsolved = [row for row in left.rows if not row.solved]
    accuracy = estimate([(row.audio, row.item.group) for row in unsolved], kind="proportion", good=1.0, bad=0.0)
    shares = [1 / len(row.item.options) for row in unsolved if row.audio is not None and row.item.options]
    chance = math.fsum(shares) / len(shares) if shares else None
    return UnsolvedRow(
        key=left.key,
        measure=left.rows[0].measure.name,
        label=left.rows[0].measure.label,
        basis=left.basis,
        by=left.by,
        name=left.name,
        questions=len({row.id for row in left.rows}),
        unsolved=len({row.id for row in unsolved}),
        tries=sum(row.tries for row in left.rows) / len(left.rows),
        accuracy=accuracy,
        corrected=correct(accuracy, chance),
        chance=chance,
    )


def _adjusted(rows: Sequence[TextRow]) -> list[TextRow]:
    """Return the rows with corrected p-values.

    The overall rows of all prompts and measures are one family. In a breakdown, the rows of each prompt and measure are
    one family.
    """
    families = [(r.basis, r.by, *(() if r.by == "overall" else (r.prompt, r.measure))) for r in rows]
    return significance.adjust(rows, families)
