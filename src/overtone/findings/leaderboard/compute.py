"""Rank a user's runs among the twelve models of EchoMind's paper, on the paper's three boards.

The paper's rows are as printed. Each cell of a run lists the differences between its measurement and the paper's, and
the details that the paper does not state. If a cell differs, the rank is only a guide.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from overtone.languages import error_rate
from overtone.results import measure_names
from overtone.results.case_names import KeyedCases, unique
from overtone.results.headline_condition import headline, prompt_notes, talk_condition
from overtone.results.load import Answer, Reading
from overtone.results.measures import Estimate, Measure, from_interval, within
from overtone.results.published import COLUMNS, PublishedColumn, papers, published
from overtone.results.wording import Sentence, shortfall
from overtone.schema import STYLES
from overtone.stats import cluster
from overtone.stats.minimums import RATE
from overtone.text import plain

SIGNATURE = "leaderboard|v1|lb1:mean(voice_accuracy,reasoning_accuracy)|lb2:ves|lb3:mean(c1,c4)|prompt:fixed"
IN_CHARACTERS = "unit:"  # how the note begins if an error rate counts characters
SCRIPTS = 1137  # the number of scripts in the paper's benchmark
BOARDS = (
    (
        "lb1",
        "Understanding and reasoning: mean of voice and reasoning accuracy",
        ("voice_accuracy", "reasoning_accuracy"),
    ),
    ("lb2", "Spoken replies: VES", ("ves",)),
    ("lb3", "Words of the replies: mean of C1 and C4", ("c1", "c4")),
)
_JUDGE = re.compile(r"\|judge:(.*?)(?:\|temperature:|\|seed:|\|repeats:|\|calls:|\|hears:|$)")
_PART = re.compile(r"\|([a-z]+):([^|]*)")


class Cell(Struct, frozen=True):
    """A number on the scale that the paper prints (percentages from 0 to 100). A run's number also has an interval.

    `differs` lists the differences between this measurement and the paper's, `untold` the details that the paper omits.
    """

    column: str
    value: float | None
    estimate: Estimate | None = None
    differs: tuple[str, ...] = ()
    untold: tuple[str, ...] = ()

    @property
    def alike(self) -> bool:
        return not self.differs


class Entrant(Struct, frozen=True):
    """A row: a model of the paper, or a run under one prompt. `run` is its position among the given runs."""

    key: str
    name: str
    run: int | None
    condition: str
    cells: dict[str, Cell]  # by the keys of published.COLUMNS


class Place(Struct, frozen=True):
    """The rank of a row on a board. `sure` is the range of ranks that are possible within the run's interval."""

    rank: int
    entrant: Entrant
    score: Estimate
    sure: tuple[int, int] | None = None


class Board(Struct, frozen=True):
    """One of the paper's rankings, with the rows that have all columns it sorts by."""

    key: str
    title: str
    columns: tuple[str, ...]
    places: list[Place]
    absent: tuple[str, ...]  # rows without the columns that the board sorts by


class Leaderboard(Struct, frozen=True):
    """The paper's boards, with the user's runs ranked among the paper's models."""

    source: str
    boards: list[Board]
    entrants: list[Entrant]
    notes: list[str]
    signature: str = SIGNATURE


def leaderboard(readings: Sequence[Reading], *, prompt: str = "", input: str = "audio") -> Leaderboard:
    """Rank the runs, one row each, among the paper's rows, using replies under the same prompt for all runs.

    This prompt is `prompt` or, without one, the first of enhance, basic and zero that all runs have.
    """
    entrants = _papers()
    scores: dict[str, dict[str, Estimate]] = {e.key: _paper_scores(e) for e in entrants}
    conditions = talk_condition(readings, prompt, input)
    for number, (key, reading, condition) in enumerate(zip(_keys(readings), readings, conditions, strict=True)):
        entrant, board_scores = _entrant(key, number, reading, condition, input)
        entrants.append(entrant)
        scores[key] = board_scores
    boards = [_board(key, title, columns, entrants, scores) for key, title, columns in BOARDS]
    return Leaderboard(published().source, boards, entrants, prompt_notes(readings, conditions))


def cases_by_key(readings: Sequence[Reading], *, prompt: str = "", input: str = "audio") -> Iterator[KeyedCases]:
    """Yield the key of each number of a run with the cases that the number counts. The paper's numbers have no cases.

    A row's key gives the cases of all cells in the row. With the key of a column appended, it gives the cases of that
    cell; with the key of a board, the cases of the columns that the board sorts by.
    """
    conditions = talk_condition(readings, prompt, input)
    for key, reading, condition in zip(_keys(readings), readings, conditions, strict=True):
        measures = measure_names.measures_of([reading])
        tasks = _by_task(_over(reading, condition, input))
        cases_of: dict[str, list[str]] = {}
        for column in COLUMNS:
            name = _measure_of(column, measures)
            if (measure := measures.get(name)) is not None:
                own = (a for a in tasks.get(measure.task, ()) if measure.belongs(a.item))
                cases_of[column.key] = unique(a.item.case for a in own if measure.read(a) is not None)
        yield key, unique(case for cases in cases_of.values() for case in cases)
        for column_key, cases in cases_of.items():
            yield f"{key}/{column_key}", cases
        for board, _, columns in BOARDS:
            if all(cases_of.get(column) for column in columns):
                yield f"{key}/{board}", unique(case for column in columns for case in cases_of[column])


def _keys(readings: Sequence[Reading]) -> list[str]:
    """Return a key for each run's row. Runs with the same name get different keys."""
    keys: list[str] = []
    for number, reading in enumerate(readings, 1):
        key = f"leaderboard/{_safe(reading.name)}"
        while key in keys:
            key = f"{key}-{number}"
        keys.append(key)
    return keys


def _safe(name: str) -> str:
    """Return the name with "-" in place of characters that are not allowed in a key."""
    return re.sub(r"[^A-Za-z0-9._+-]+", "-", name).strip("-") or "-"


def _by_task(answers: Iterable[Answer]) -> dict[str, list[Answer]]:
    tasks: dict[str, list[Answer]] = {}
    for answer in answers:
        tasks.setdefault(answer.item.task, []).append(answer)
    return tasks


def sentences(data: Leaderboard) -> list[Sentence]:
    """Return sentences on the rank of each run on each board, and on the differences from the paper's measurement."""
    lines = []
    few: list[tuple[str, int]] = []
    for board in data.boards:
        for place in board.places:
            entrant = place.entrant
            if entrant.run is None:
                continue
            if place.score.scripts < RATE.least:
                few.append((f"{board.title}, the rank of {entrant.name}", place.score.scripts))
                continue
            cells = [entrant.cells[c] for c in board.columns]
            differs = list(dict.fromkeys(d for cell in cells for d in cell.differs))
            ranks = (
                "" if place.sure is None else f", and by its interval anywhere from {place.sure[0]} to {place.sure[1]}"
            )
            scale = 0 if "accuracy" in board.columns[0] else 2
            score = plain(place.score, scale)
            text = f"{board.title}: {entrant.name} would rank {place.rank} of {len(board.places)} with {score}{ranks}"
            text += f"; not measured as in the paper: {'; '.join(differs)}." if differs else "."
            lines.append(Sentence(text, f"{entrant.key}/{board.key}"))
    return [*lines, *shortfall(RATE, few)]


# ── rows ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _papers() -> list[Entrant]:
    rows = []
    for name, values in papers().items():
        cells = {c.key: Cell(c.key, values[c.key]) for c in COLUMNS}
        rows.append(Entrant(f"leaderboard/published/{_safe(name)}", name, None, "best of three", cells))
    return rows


def _paper_scores(entrant: Entrant) -> dict[str, Estimate]:
    scores = {}
    for board, _, columns in BOARDS:
        known = [x for c in columns if (x := entrant.cells[c].value) is not None]
        if len(known) == len(columns):
            scores[board] = Estimate(sum(known) / len(known), None, None, 0, 0)
    return scores


def _entrant(
    key: str, number: int, reading: Reading, condition: str, input: str
) -> tuple[Entrant, dict[str, Estimate]]:
    measures = measure_names.measures_of([reading])
    over = _over(reading, condition, input)
    everywhere = _of_all(reading, over)
    tasks = _by_task(over)
    cells = {}
    for column in COLUMNS:
        name = _measure_of(column, measures)
        measure = measures.get(name)
        asked = [a for a in tasks.get(measure.task, ()) if measure.belongs(a.item)] if measure is not None else []
        value = measure.estimate(asked) if measure is not None else None
        if value is None or value.value is None:
            cells[column.key] = Cell(column.key, None, value)
            continue
        scale = 100.0 if column.kind == "percent" else 1.0
        differs, untold = _marks(column, name, reading, condition, asked)
        cells[column.key] = Cell(
            column.key, scale * value.value, _scaled(value, scale), (*everywhere, *differs), tuple(untold)
        )
    scores = {board: score for board, _, columns in BOARDS if (score := _score(columns, measures, tasks)) is not None}
    return Entrant(key, reading.name, number, condition, cells), scores


def _over(reading: Reading, condition: str, input: str) -> list[Answer]:
    return headline(a for a in reading.answers if a.condition in (f"task/{input}", condition))


def _measure_of(column: PublishedColumn, measures: dict[str, Measure]) -> str:
    """Return the name of a column's measure. The paper does not state whether DNMOS is UTMOS or DNSMOS: UTMOS is used
    if the run has it."""
    return "dnsmos_ovrl" if column.key == "dnmos" and "utmos" not in measures else column.measure


def _scaled(e: Estimate, by: float) -> Estimate:
    value, low, high, best, worst = (None if x is None else by * x for x in (e.value, e.low, e.high, e.best, e.worst))
    return Estimate(value, low, high, e.scored, e.asked, best, worst, e.scripts, e.note)


def _score(columns: Sequence[str], measures: dict[str, Measure], tasks: dict[str, list[Answer]]) -> Estimate | None:
    """Return the number that a board sorts by: the unweighted mean of its columns; None if a column has no value."""
    values: list[float] = []
    strata: list[str] = []
    groups: list[str] = []
    asked = 0
    lows: list[float] = []  # ends of the scales
    highs: list[float] = []
    percent = False
    for column in (c for c in COLUMNS if c.key in columns):
        measure = measures.get(column.measure)
        if measure is None:
            return None
        percent = column.kind == "percent"
        own = [a for a in tasks.get(measure.task, ()) if measure.belongs(a.item)]
        asked += len(own)
        rows = [(x, a.item.group) for a in own if (x := measure.read(a)) is not None]
        if not rows:
            return None
        values += [x for x, _ in rows]
        low, high = measure.ends([x for x, _ in rows])
        lows.append(low)
        highs.append(high)
        groups += [g for _, g in rows]
        strata += [column.key] * len(rows)
    mean = cluster.mean_of_means(values, strata, groups)
    score = within(from_interval(mean, mean.low, mean.high, asked), min(lows), max(highs))
    return _scaled(score, 100.0 if percent else 1.0)


def _board(
    key: str, title: str, columns: tuple[str, ...], entrants: list[Entrant], scores: dict[str, dict[str, Estimate]]
) -> Board:
    present = [(e, scores[e.key][key]) for e in entrants if key in scores[e.key]]
    present.sort(key=lambda row: (-(row[1].value or 0.0), row[0].run is not None, row[0].name))
    values = [score.value or 0.0 for _, score in present]
    places = []
    for entrant, score in present:
        rank = 1 + sum(v > (score.value or 0.0) for v in values)
        sure = None
        if score.low is not None and score.high is not None:
            others = [s.value or 0.0 for e, s in present if e.key != entrant.key]
            sure = (1 + sum(v > score.high for v in others), 1 + sum(v > score.low for v in others))
        places.append(Place(rank, entrant, score, sure))
    absent = tuple(e.name for e in entrants if key not in scores[e.key])
    return Board(key, title, columns, places, absent)


# ── what differs ────────────────────────────────────────────────────────────────────────────────────────────────────


def _of_all(reading: Reading, answers: Sequence[Answer]) -> list[str]:
    """Return the differences that apply to every cell of a run: in benchmark, clips, number of scripts, or cues."""
    if reading.benchmark != "echomind":
        return [f"benchmark: {reading.benchmark or 'not named'}, not EchoMind"]
    differs = []
    sources = sorted({a.item.source for a in answers} - {"synthesis", ""})
    if sources:
        differs.append(f"clips: {', '.join(sources)}; the paper's table has the synthesised ones")
    scripts = len({a.item.group for a in answers})
    if scripts != SCRIPTS:
        differs.append(f"scripts: {scripts:,} of the paper's {SCRIPTS:,}")
    if any(a.item.status == "validated" for a in answers):
        differs.append("cues: validated ones only")
    return differs


def _marks(
    column: PublishedColumn, name: str, reading: Reading, condition: str, asked: Sequence[Answer]
) -> tuple[list[str], list[str]]:
    """Return the differences that apply to one cell, and the details that the paper omits."""
    signatures = measure_names.measured_by(reading, name)
    differs: list[str] = []
    untold: list[str] = []
    if not signatures:
        return ["signature: unknown"], untold
    parameters = dict(_PART.findall(signatures[0]))
    present = {a.item.style for a in asked}
    styles = [s for s in STYLES if s in present]
    if asked and asked[0].item.task == "converse":
        prompt = condition.partition("/")[0]
        differs.append(f"prompt: {prompt} for all; the paper takes each model's best of three by C4 and VES")
        untold.append(f"styles averaged: {', '.join(styles)} here; the paper does not say")
    if column.key == "wer" and (rate := error_rate(a.language for a in asked)) != "WER":
        differs.append(f"{IN_CHARACTERS} {rate}; the paper's is a WER")
    if column.key == "wer" and styles != ["target"]:
        differs.append(f"clips transcribed: {', '.join(styles)}; the paper's code transcribes target clips")
    if column.key in ("voice_accuracy", "reasoning_accuracy"):
        untold.append(f"reading of answers: {parameters.get('extract', 'ours')} here; the paper's is not released")
    if column.key == "semsim" and "qwen3-embedding-0.6b" not in signatures[0].lower():
        differs.append(f"embedder: {_bare(parameters.get('embedder', 'another'))}; the paper's is Qwen3-Embedding-0.6B")
    if column.key == "bertscore":
        model, rescaled = _bare(parameters.get("model", "another")), parameters.get("rescaled", "no")
        if "bert-base-uncased" not in model.lower() or rescaled == "no":
            differs.append(
                f"BERTScore: {model}, rescaled: {rescaled}; the paper's is bert-base-uncased, rescaled by its baseline"
            )
    if column.key == "rouge_l":
        untold.append("stemming: none here; the paper does not say")
    if column.key == "dnmos":
        which = "UTMOS" if name == "utmos" else "DNSMOS"
        untold.append(f"predictor: {which} here; the paper prints DNMOS and does not say which it is")
    if column.key == "emoalign":
        predictor = parameters.get("predictor", "another")
        if "emotion2vec_plus_large" not in predictor:
            differs.append(f"emotions heard by {_bare(predictor)}; the paper's by emotion2vec_plus_large")
        untold.append("compared with: the emotion heard in the reference reply; the paper does not say")
    if column.key in ("c1", "c2", "c3", "c4", "ves"):
        _of_judges(column.key, signatures, differs)
        if column.key == "c4" and "neutral" not in styles:
            untold.append("C4 is asked of clips with a cue only; what the paper does with neutral ones it does not say")
    return differs, untold


def _of_judges(column: str, signatures: Sequence[str], differs: list[str]) -> None:
    names = [m[1] if (m := _JUDGE.search(s)) else "unknown" for s in signatures]
    wanted = "gemini-2.5-pro" if column == "ves" else "gpt-4o"
    bare = [n.rpartition(":")[2].partition("?")[0] for n in names]
    if any(n != wanted and not re.fullmatch(rf"{re.escape(wanted)}-\d{{4}}-\d\d-\d\d", n) for n in bare):
        differs.append(f"judge: {', '.join(names)}; the paper's is {wanted}")
    elif len(names) > 1:
        differs.append(f"judge: the mean of {len(names)}; the paper's is {wanted} alone")
    parts = [dict(_PART.findall(s)) for s in signatures]
    differs.append("rubric: in our own words")
    if column == "ves" and any(p.get("hears", "nothing") != "audio" for p in parts):
        differs.append("the judge does not hear the reply; the paper's does")
    if column != "ves" and any(p.get("calls", "together") == "apart" for p in parts):
        differs.append("one question at a time; the paper's judge is asked all four at once")


def _bare(text: str) -> str:
    return text.partition("@")[0]
