"""The data of the case browser: an index small enough to filter at every key stroke, and chunks of cases read on
demand."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import IO, Any

import msgspec
from markupsafe import Markup

from overtone.languages import error_rate
from overtone.report.media import Media
from overtone.results.cases import Asked, CaseView, asks_by_case, failure, how_read, reasons, right, state, views
from overtone.results.corpus_scores import TRANSCRIPTS
from overtone.results.judge_scores import Dimension, read_dimensions
from overtone.results.load import Answer, Reading
from overtone.results.measure_names import declared_in
from overtone.results.measures import chosen
from overtone.results.people_scores import Said, said
from overtone.results.summary import LABELS
from overtone.results.timings import timing_text
from overtone.scores import undeclared
from overtone.text import cut

MOST_TEXT = 20_000  # characters of one reply: a reply may have a million, which no reader wants in a page
CHUNK = 40  # cases to a block: one is read in a few milliseconds

VOICE_RIGHT, VOICE_WRONG, REASONING_RIGHT, REASONING_WRONG = 1, 2, 4, 8
HEARD, MISHEARD, FAILED, UNREAD, SPOKE, ASKED = 16, 32, 64, 128, 256, 512
_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def to_json(value: Any) -> str:
    """Return JSON that is safe inside a script element: nothing in it can end the element or open a comment."""
    text = msgspec.json.encode(value).decode()
    for character, written in _ESCAPES.items():
        text = text.replace(character, written)
    return text


class Names:
    """Frequent strings, stored once and referred to by number."""

    def __init__(self) -> None:
        self.list: list[str] = []
        self._known: dict[str, int] = {}

    def __call__(self, name: str) -> int:
        if name not in self._known:
            self._known[name] = len(self.list)
            self.list.append(name)
        return self._known[name]


class Chunks:
    """Blocks of cases as JSON. They are kept in a file until the page is written, because together they may not fit
    into memory."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._sizes: list[int] = []  # in bytes, of each block
        self._cases = 0

    def add(self, case: dict[str, Any]) -> None:
        if self._cases % CHUNK == 0:
            self._sizes.append(0)
        opening = "," if self._cases % CHUNK else "["
        self._sizes[-1] += self._file.write(f"{opening}{to_json(case)}".encode())
        self._cases += 1

    def __iter__(self) -> Iterator[Markup]:
        self._file.seek(0)
        for size in self._sizes:
            yield Markup(self._file.read(size).decode() + "]")


def pack(readings: list[Reading], labels: list[str], media: Media, chunks: Chunks) -> dict[str, Any]:
    """Return the index of the cases of several runs, and add the cases to `chunks`. Runs of one benchmark share their
    cases."""
    benchmarks = {r.benchmark for r in readings}
    cases: dict[str, list[tuple[int, list[int]]]] = {}  # its key → the runs that have it, each with its asks
    for number, reading in enumerate(readings):
        for name, asks in asks_by_case(reading).items():
            key = name if len(benchmarks) == 1 else f"{reading.benchmark}/{name}"
            cases.setdefault(key, []).append((number, asks))
    names = {n: Names() for n in ("styles", "dimensions", "cues", "categories", "conditions", "metrics", "topics")}
    rows: list[list[Any]] = []
    with contextlib.ExitStack() as stack:
        streams = [
            stack.enter_context(contextlib.closing(views(reading, _asks_of(number, cases.values()))))
            for number, reading in enumerate(readings)
        ]
        for key, runs in cases.items():
            viewed = [(number, next(streams[number])) for number, _ in runs]
            rows.append(_row(key, viewed, len(readings), names))
            chunks.add(_case(viewed, readings, names, media))
    index = {"runs": labels, "chunk": CHUNK, "cases": rows, **{name: known.list for name, known in names.items()}}
    index["about"] = [_about(name, readings) for name in names["metrics"].list]
    index["categories"] = [LABELS.get(category, category) for category in names["categories"].list]
    return index


def _asks_of(run: int, cases: Iterable[list[tuple[int, list[int]]]]) -> Iterator[list[int]]:
    return (asks for runs in cases for number, asks in runs if number == run)


def _row(key: str, viewed: list[tuple[int, CaseView]], runs: int, names: dict[str, Names]) -> list[Any]:
    """Return a case's line of the index: its name, words, style, dimension, cue, categories, topic, and the flags of
    each run."""
    first = viewed[0][1]
    flags = [0] * runs
    categories: set[int] = set()
    for number, view in viewed:
        flags[number] = _flags(view)
        categories |= {names["categories"](a.item.category) for a in view.all()}
    return [
        key,
        first.words,
        names["styles"](first.style),
        names["dimensions"](first.dimension),
        names["cues"](first.cue),
        sorted(categories),
        names["topics"](first.topic),
        flags,
    ]


def _about(name: str, readings: list[Reading]) -> list[Any]:
    """Return how a score is shown: its label, whether it is in percent, the judge behind it, and its signature in
    each run."""
    key, at, judge = name.partition("@")
    signatures = [reading.signatures.get(name, "") for reading in readings]
    if at:
        described = [read_dimensions(r.meta, [name])[key] for r in readings if name in r.signatures]
        dimension = described[0] if described else Dimension(key, key)
        return [dimension.label, int(dimension.share), judge, signatures]
    about = declared_in(readings).get(name) or undeclared(name)
    return [about.label, int(about.scale == "percent"), "", signatures]


def _flags(view: CaseView) -> int:
    """Return the properties of a case under one run that filters use, as a bit mask."""
    bits = ASKED
    levels = ((view.voice, VOICE_RIGHT, VOICE_WRONG), (view.reasoning, REASONING_RIGHT, REASONING_WRONG))
    for asked, when_right, when_wrong in levels:
        for answer in (answer for a in asked for answer in a.answers):
            if (is_right := right(answer)) is not None:
                bits |= when_right if is_right else when_wrong
    for answer in (answer for a in view.transcripts for answer in a.answers):
        if (wer := answer.value(TRANSCRIPTS)) is not None:
            bits |= HEARD if wer == 0 else MISHEARD
    for answer in (answer for a in view.all() for answer in a.answers):
        bits |= 0 if answer.answered else FAILED
        bits |= UNREAD if _refused(answer) or how_read(answer) not in ("", "parsed") else 0
        bits |= SPOKE if any(reply.audio for reply in answer.replies) else 0
    return bits


def _case(
    views: list[tuple[int, CaseView]], readings: list[Reading], names: dict[str, Names], media: Media
) -> dict[str, Any]:
    """Return one case: each item once, with every run's answers to the item. An item that differs between runs is
    listed twice."""
    items: dict[bytes, dict[str, Any]] = {}
    for number, view in views:
        for asked in view.all():
            body = msgspec.json.encode(asked.item)
            if body not in items:
                items[body] = _item(asked, readings[number], names, media)
            items[body]["a"].extend(_answer(answer, number, readings[number], names, media) for answer in asked.answers)
    return {"items": list(items.values())}


def _item(asked: Asked, reading: Reading, names: dict[str, Names], media: Media) -> dict[str, Any]:
    item = asked.item
    clips = [[media.clip(reading, t.clip.path) if t.clip else "", t.words] for t in item.turns]
    packed: dict[str, Any] = {"id": item.id, "k": item.task, "l": item.level, "c": names["categories"](item.category)}
    optional = {
        "x": item.context,
        "q": item.question,
        "o": [
            [o.letter, o.text, o.provenance, *([media.clip(reading, o.clip.path)] if o.clip else [])]
            for o in item.options
        ],
        "g": item.gold,
        "r": list(item.references),
        "ra": media.clip(reading, item.reference_audio) if item.reference_audio else "",
        "p": item.part,
        "u": int(item.status == "unvalidated"),
    }
    if any(turn.reference for turn in item.turns):
        packed["tr"] = [
            [turn.reference, media.clip(reading, turn.reference_audio) if turn.reference_audio else ""]
            for turn in item.turns
        ]
    if any(turn.given or turn.heard for turn in item.turns):  # given replies are not the model's
        packed["gi"] = [[turn.given, turn.heard] for turn in item.turns]
    return {**packed, "t": clips, **{k: v for k, v in optional.items() if v}, "a": []}


def _answer(answer: Answer, run: int, reading: Reading, names: dict[str, Names], media: Media) -> dict[str, Any]:
    packed: dict[str, Any] = {"r": run, "c": names["conditions"](answer.condition)}
    earlier = (answer.earlier.get(turn, {}) for turn in range(len(answer.item.turns) - 1))
    turns = [
        [[names["metrics"](m), round(score.value, 4)] for m, score in scores.items() if score.value is not None]
        for scores in (*earlier, answer.scores)
    ]
    sounds = [reply.audio for reply in answer.replies]
    recordings = [reply.recording for reply in answer.replies]
    read = how_read(answer)
    optional = {
        "y": [[names["metrics"](name), cut(why, MOST_TEXT)] for name, why in reasons(answer).items() if why],
        "n": answer.repeat,
        "s": "" if answer.answered else state(answer),
        "t": [cut(reply.text, MOST_TEXT, "; 'overtone export' has them all") for reply in answer.replies],
        "au": [media.reply(reading, name) if name else "" for name in sounds] if any(sounds) else [],
        "bo": [media.reply(reading, name) if name else "" for name in recordings] if any(recordings) else [],
        "st": "" if read == "parsed" else read,
        "ch": chosen(answer),
        "m": turns if any(turns) else [],
        "la": round(sum(reply.latency for reply in answer.replies), 3),
        "ti": timing_text(answer.replies[-1].timings) if answer.replies else "",
        "rf": _refused(answer),
        "no": [
            *([f"{answer.heard} heard in training"] if answer.heard else []),
            *dict.fromkeys(note for reply in answer.replies for note in reply.notes),
        ],
        "f": failure(answer),
        "pe": [_said(one) for one in said(answer, reading.studies)],
    }
    if (is_right := right(answer)) is not None:
        packed["ok"] = int(is_right)
    if (wer := answer.value(TRANSCRIPTS)) is not None:
        packed["w"] = round(wer, 4)
        rate = error_rate([answer.language])
        optional["wn"] = "" if rate == "WER" else rate
    return {**packed, **{k: v for k, v in optional.items() if v}}


def _said(one: Said) -> list[Any]:
    """Return what people said about a reply: question, [value, people] pairs, mean, study, other run, unusable."""
    mean = None if one.mean is None else round(one.mean, 4)
    return [one.label, list(one.counts.items()), mean, one.title, one.against, one.unusable]


def _refused(answer: Answer) -> bool:
    return any(reply.refused for reply in answer.replies)
