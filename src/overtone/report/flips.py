"""Runs compared on a page: each further run with the first of its benchmark, and cards of changed cases.

If two runs are not comparable, the page shows the reason instead of numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from overtone.display.table_data import BASES, Line, PartTable
from overtone.report.arena_page import capital
from overtone.report.comparison_tables import HINT, listed, tables
from overtone.report.links import Links
from overtone.report.media import Media
from overtone.results import measure_names
from overtone.results.case_names import KeyedCases, unique
from overtone.results.comparison import Change, Comparison, Flip, Flips, compare, share, tie_of
from overtone.results.comparison_text import overview, sentences
from overtone.results.headline_condition import over_headline
from overtone.results.judge_scores import by_status
from overtone.results.load import Answer, Reading, whole
from overtone.results.measures import Measure
from overtone.results.wording import Sentence
from overtone.text import by_kind

SHOWN = 3  # cards each way; all the cases are a link away
GROUPS = 4  # measures with cards; the table has links to what flipped under every one
CUES = "Cues that differ"
LONGEST = 280  # characters of a reply on a card


class Half(NamedTuple):
    """The cases that changed in one direction: their number, the key of all of them, and some of them as cards."""

    head: str
    total: int
    key: str
    cards: list[dict[str, Any]]


class Group(NamedTuple):
    """The changed cases of one measure."""

    title: str
    halves: list[Half]


class Compared(NamedTuple):
    """One run compared with another. If they are not comparable, `refused` says why and the rest is empty."""

    first: str
    second: str
    refused: list[str]
    sentences: list[Sentence]
    tables: list[PartTable]
    groups: list[Group]
    notes: list[str]
    overview: str = ""  # which run is better, on what and by how much
    prefix: str = ""  # before the names of cases, if the report has several benchmarks


def comparisons(
    readings: Sequence[Reading], labels: Sequence[str], links: Links, media: Media, sounds: list[list[str]]
) -> list[Compared]:
    """Compare every run with the first of its benchmark. The sounds of cards are added to `sounds`."""
    made = []
    firsts: dict[str, int] = {}
    for number, reading in enumerate(readings):
        first = firsts.setdefault(reading.benchmark, number)
        if first != number:
            made.append(_compared(readings, labels, (first, number), links, media, sounds))
    return made


def _compared(
    readings: Sequence[Reading],
    labels: Sequence[str],
    both: tuple[int, int],
    links: Links,
    media: Media,
    sounds: list[list[str]],
) -> Compared:
    here, there = over_headline([readings[number] for number in both])
    names = labels[both[0]], labels[both[1]]
    comparison = msgspec.structs.replace(compare(here, there), first=names[0], second=names[1])
    if comparison.unlike or not comparison.shared:
        why = [str(reason) for reason in comparison.unlike] or ["they share no item in any condition"]
        return Compared(*names, why, [], [], [], [])
    prefix = f"{both[1] + 1}:"
    scales = {row.key: (row.shown, row.digits) for table in comparison.tables[:1] for row in table.rows}
    cards = _Cards(here, there, names, scales, media, sounds)
    significant = {row.key for table in comparison.tables[:1] for row in table.rows if row.verdict}
    ordered = sorted(comparison.flips, key=lambda f: (f.key not in significant, not f.right_or_wrong))
    changed = [f for f in ordered if f.worse_total or f.improved_total][:GROUPS]
    cards.prepare(flip for flips in changed for _, cases, _ in listed(flips) for flip in _shown(cases))
    groups = [_group(flips, prefix, cards) for flips in changed]
    ordered_sentences = sorted(sentences(comparison), key=lambda s: s.key not in significant)
    shown = [Sentence(s.text, prefix + s.key if s.key else "") for s in ordered_sentences]
    made = [_titled(table, comparison) for table in _tables(comparison, prefix)]
    wanted = {s.key for s in shown} | {half.key for group in groups for half in group.halves}
    wanted |= {cell.key for table in made for line in table.lines for cell in line.cells}
    links.take(((prefix + key, cases) for key, cases in cases_by_key(here, there)), wanted, both)
    before = f"{here.benchmark}/" if len({r.benchmark for r in readings}) > 1 else ""
    notes = [*comparison.notes, *_apart(comparison)]
    return Compared(*names, [], shown, made, groups, notes, overview(comparison), before)


def _apart(comparison: Comparison) -> Iterator[str]:
    if comparison.only_first or comparison.only_second:
        yield (
            f"{comparison.shared:,} asks are in both runs, {comparison.only_first:,} only in {comparison.first} and "
            f"{comparison.only_second:,} only in {comparison.second}"
        )
    if comparison.conditions_apart:
        yield f"conditions in one run only: {', '.join(comparison.conditions_apart)}"


def cases_by_key(first: Reading, second: Reading) -> Iterator[KeyedCases]:
    """Yield the key of every row of a comparison with its cases; /worse and /improved select those that changed."""
    by_condition: dict[str, list[tuple[Answer, Answer]]] = {}
    for a, b in share(first, second)[0]:
        by_condition.setdefault(a.condition, []).append((a, b))
    for condition, pairs in by_condition.items():
        for measure in measure_names.headline([first, second]):
            read = ((a, measure.read(a), measure.read(b)) for a, b in pairs if measure.belongs(a.item))
            valued = [(a, x, y) for a, x, y in read if x is not None and y is not None]
            parts: dict[str, list[tuple[Answer, float, float]]] = {}
            basis = {a.ask: f"all/{name}" if name else "all" for name, part in _bases(pairs, measure) for a in part}
            for a, x, y in valued:
                parts.setdefault(basis[a.ask], []).append((a, x, y))
                parts.setdefault(f"cue/{a.item.cue or 'neutral'}", []).append((a, x, y))
            sign, tie = -1 if measure.about.better == "lower" else 1, tie_of(measure)
            for name, part in parts.items():
                key = f"compare/{condition}/{measure.name}/{name}"
                yield key, unique(a.item.case for a, _, _ in part)
                yield f"{key}/worse", unique(a.item.case for a, x, y in part if sign * (x - y) >= tie)
                yield f"{key}/improved", unique(a.item.case for a, x, y in part if sign * (y - x) >= tie)


def _bases(pairs: Sequence[tuple[Answer, Answer]], measure: Measure) -> list[tuple[str, list[Answer]]]:
    return by_status([a for a, _ in pairs if measure.belongs(a.item)])


# ── the tables, with keys ───────────────────────────────────────────────────────────────────────────────────────────


def _tables(comparison: Comparison, prefix: str) -> list[PartTable]:
    """Return the table of all shared items, then a table of only the cues that differ, because a table of all cues
    would be too long."""
    made = [
        _keyed(shown, table.rows, prefix)
        for shown, table in zip(tables(comparison), comparison.tables, strict=True)
        if not any(row.cue for row in table.rows) or any(row.verdict for row in table.rows)
    ]
    by_cue = [table for table in made if table.names == ("cue",)]
    if not by_cue:
        return made
    lines = tuple(
        Line(None, line.condition, (name, *line.names), line.cells)
        for table, name in ((t, t.title.partition(" by cue")[0]) for t in by_cue)
        for line in table.lines
        if line.cells[-1].text
    )
    hint = f"{HINT} Only cues that differ; all of them: overtone compare."
    joined = PartTable(f"{prefix}compare/cues", CUES, hint, ("measure", "cue"), by_cue[0].heads, lines)
    return [*(table for table in made if table.names != ("cue",)), joined]


def _titled(table: PartTable, comparison: Comparison) -> PartTable:
    """Return a table with capitalised column heads; the names of the runs are not changed."""
    heads = tuple(head if head in (comparison.first, comparison.second) else capital(head) for head in table.heads)
    return msgspec.structs.replace(table, names=tuple(map(capital, table.names)), heads=heads)


def _keyed(table: PartTable, rows: Sequence[Change], prefix: str) -> PartTable:
    """Return the table with keys: a row's numbers link to its pairs, and the counts of changes link to the changed
    cases."""
    ends = {head: f"/{end}" for head, end in (("worse", "worse"), ("better", "improved"))}
    lines = []
    for line, row in zip(table.lines, rows, strict=True):
        cells = tuple(
            msgspec.structs.replace(cell, key=prefix + row.key + ends.get(head, "")) if head else cell
            for head, cell in zip(table.heads, line.cells, strict=True)
        )
        lines.append(Line(None, line.condition, line.names, cells))
    return msgspec.structs.replace(table, key=prefix + table.key, lines=tuple(lines))


# ── what flipped ────────────────────────────────────────────────────────────────────────────────────────────────────


def _shown(cases: Sequence[Flip]) -> list[Flip]:
    """Return the changes that get a card: the first change of each case."""
    return list({flip.case: flip for flip in reversed(cases)}.values())[::-1][:SHOWN]


def _group(flips: Flips, prefix: str, cards: _Cards) -> Group:
    halves = []
    for head, cases, total in listed(flips):
        end = "worse" if head in ("right → wrong", "largest losses") else "improved"
        made = [cards.card(flip, flips) for flip in _shown(cases)]
        halves.append(Half(head, total, f"{prefix}{flips.key}/{end}", made))
    over = f", {BASES[flips.basis]}" if flips.basis in BASES and flips.basis else ""
    return Group(f"{flips.label}, {flips.condition}{over}", halves)


class _Cards:
    """Changed cases as cards: the clip, and the reply of each run."""

    def __init__(
        self,
        first: Reading,
        second: Reading,
        names: tuple[str, str],
        scales: Mapping[str, tuple[str, int]],  # of a row's values: percent or number, and its digits
        media: Media,
        sounds: list[list[str]],
    ) -> None:
        self.scales = scales
        self.readings, self.names, self.media, self.sounds = (first, second), names, media, sounds
        self._asked: list[dict[tuple[str, str, int], Answer]] = [{}, {}]

    def prepare(self, flips: Iterable[Flip]) -> None:
        """Read the asks behind these changes from both runs, before their cards are made."""
        wanted = {(flip.item, flip.condition, flip.repeat) for flip in flips}
        for asked, reading in zip(self._asked, self.readings, strict=True):
            asks = (a.ask for a in reading.answers if (a.item_id, a.condition, a.repeat) in wanted)
            asked.update({(a.item_id, a.condition, a.repeat): a for a in whole(reading, asks).values()})

    def card(self, flip: Flip, flips: Flips) -> dict[str, Any]:
        """Return the card of one change."""
        both = [asked[flip.item, flip.condition, flip.repeat] for asked in self._asked]
        item = both[0].item
        clip = next((turn.clip.path for turn in item.turns if turn.clip), "")
        self.sounds.append(
            [self.media.clip(self.readings[0], clip) if clip else "", *map(self._sound, self.readings, both)]
        )
        values = (flip.first, flip.second)
        sides = zip(self.names, both, values, (flip.was, flip.now), strict=True)
        return {
            "number": len(self.sounds) - 1,
            "case": flip.case,
            "cue": item.cue_text or flip.cue or "no cue",
            "style": item.style,
            "words": next((turn.words for turn in item.turns if turn.words), ""),
            "question": item.question,
            "sides": [
                {
                    "name": name,
                    "right": value == 1 if flips.right_or_wrong else None,
                    "value": "" if flips.right_or_wrong else by_kind(value, *self.scales[flips.key]),
                    "said": _said(answer, letter),
                }
                for name, answer, value, letter in sides
            ],
        }

    def _sound(self, reading: Reading, answer: Answer) -> str:
        name = next((reply.audio for reply in reversed(answer.replies) if reply.audio), "")
        return self.media.reply(reading, name) if name else ""


def _said(answer: Answer, letter: str) -> str:
    """Return the chosen option, or the reply if no option was chosen. Long texts are cut."""
    text = next((f"{o.letter}. {o.text}" for o in answer.item.options if o.letter == letter), "")
    text = text or (answer.replies[-1].text if answer.replies else "")
    return text if len(text) <= LONGEST else text[:LONGEST].rstrip() + " …"
