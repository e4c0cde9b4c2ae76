"""Every picture is drawn from runs whose models are known, stands where its numbers say, and leads to their cases."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench.findings_runs import make_runs
from overtone.display import axes, value_rows
from overtone.display.drawing import Box, Dot, Drawing, Line, Words, svg, width_of
from overtone.display.value_rows import Block, Panel, Place, Row
from overtone.errors import UsageError
from overtone.figures import MM, draw, names
from overtone.findings.analysis import cases_behind, cases_by_key
from overtone.findings.figure_source import FigureSource, NothingToDraw
from overtone.findings.finding import Settings
from overtone.findings.funnel.compute import Funnel
from overtone.findings.funnel.funnel_stages import Stages
from overtone.results.load import Reading, open_run
from overtone.results.measures import Estimate
from tests.findings.asked_people import ask_people
from tests.results.small import Maker, item

MINE = ("funnel", "levels", "sensitivity", "text-only")
WIDTHS = (170 * MM, 84 * MM)
ALL_WIDTHS = (*WIDTHS, 70 * MM, 121 * MM, 400 * MM)
ODD = ("<script>alert(1)</script>", "emoji 😀 中文 $x_1$ & \x1b[31m\u202e", "a-very-long-name-" * 5)


@pytest.fixture(scope="module")
def readings(tmp_path_factory: pytest.TempPathFactory) -> list[Reading]:
    folder = tmp_path_factory.mktemp("made-up")
    runs = make_runs(folder, runs=3, scripts=24)
    for worth, run in enumerate(runs, 2):
        ask_people(run, worth)
    return [open_run(run, light=True) for run in runs]


@pytest.fixture(scope="module")
def source(readings: list[Reading]) -> FigureSource:
    return FigureSource(readings, ["chain", "deaf", "parrot"])


@pytest.fixture(scope="module")
def many(readings: list[Reading]) -> Callable[[int], FigureSource]:
    """So many runs, the first three with odd names."""

    @functools.cache
    def made(runs: int) -> FigureSource:
        labels = [ODD[n] if n < 3 else f"run number {n}" for n in range(runs)]
        return FigureSource([readings[n % 3] for n in range(runs)], labels)

    return made


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> FigureSource:
    """A run of one question about the voice, answered rightly."""
    maker = Maker(tmp_path_factory.mktemp("bare") / "run")
    maker.choice(item("q1", "choose"), "A")
    return FigureSource([open_run(maker.done(), light=True)])


# ── where things stand ──────────────────────────────────────────────────────────────────────────────────────────────


def _number(text: str) -> float | None:
    found = re.fullmatch(r"−?[\d,]+(\.\d+)?", text)
    return float(text.replace("−", "-").replace(",", "")) if found else None


class _Axis:
    """An axis as a reader takes it from the picture: round numbers at places."""

    def __init__(self, ticks: list[tuple[float, float]], y: float) -> None:
        (self.x0, self.v0), *_, (self.x1, self.v1) = ticks
        self.y = y

    def value(self, x: float) -> float:
        return self.v0 + (x - self.x0) * (self.v1 - self.v0) / (self.x1 - self.x0)


def _axes_of(drawing: Drawing) -> list[_Axis]:
    at: dict[float, list[tuple[float, float]]] = {}
    for mark in drawing.marks:
        if isinstance(mark, Words) and mark.anchor == "middle" and (value := _number(mark.text)) is not None:
            at.setdefault(mark.y, []).append((mark.x, value))
    found = []
    for y, ticks in at.items():
        run: list[tuple[float, float]] = []
        for tick in [*sorted(ticks), (9e9, -9e9)]:
            if run and tick[1] <= run[-1][1]:
                found.append(_Axis(run, y))
                run = []
            run.append(tick)
    return found


def _axis_of(axes: Sequence[_Axis], x: float, y: float) -> _Axis:
    below = min(axis.y for axis in axes if axis.y > y)
    return min((a for a in axes if a.y == below), key=lambda a: max(a.x0 - x, x - a.x1, 0))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["funnel", "sensitivity", "text-only"])
def test_dots_and_their_intervals_stand_where_the_numbers_say(name: str, width: float, source: FigureSource) -> None:
    drawing = draw(name, source, width)
    axes = _axes_of(drawing)
    told = re.compile(r": (−?[\d.]+)(?: %| points|) \((?:95 % interval (−?[\d.]+) to (−?[\d.]+)|no interval)\)")
    seen = 0
    for mark in drawing.marks:
        if not mark.key or not isinstance(mark, Dot | Line):
            continue
        numbers = told.search(mark.title)
        assert numbers, mark.title
        value, low, high = (_number(text) if text else None for text in numbers.groups())
        places = [(mark.x, mark.y)] if isinstance(mark, Dot) else list(mark.points)
        wanted = [value] if isinstance(mark, Dot) else [low, high]
        for (x, y), number in zip(places, wanted, strict=True):
            axis = _axis_of(axes, x, y)
            assert axis.value(x) == pytest.approx(number, abs=0.006 * abs(axis.v1 - axis.v0) + 0.06), mark.title
            seen += 1
    assert seen > 60


def test_rows_stand_where_their_values_are_and_zero_is_always_shown() -> None:
    drawing = Drawing(400, 0, "t")
    values = [Estimate(v, v - 0.05, v + 0.05, 10, 12) for v in (0.2, 0.4, 0.6)]
    made = [Block("", tuple(Row(f"r{n}", (Place((axes.Spot(e, "x", f"k{n}", kind="points"),)),)) for n, e in
                            enumerate(values)))]  # fmt: skip
    value_rows.rows(drawing, 0, made, [Panel("p", "points", zero=0.0)])
    (axis,) = _axes_of(drawing)
    dots = [mark for mark in drawing.marks if isinstance(mark, Dot)]
    assert [axis.value(dot.x) for dot in dots] == pytest.approx([20, 40, 60])
    assert [dot.y for dot in dots] == sorted({dot.y for dot in dots})
    firm = [m for m in drawing.marks if isinstance(m, Line) and m.ink == "quiet" and m.points[0][0] == m.points[1][0]]
    assert [axis.value(line.points[0][0]) for line in firm] == pytest.approx([0])


def test_the_funnel_shows_the_findings_own_numbers(source: FigureSource) -> None:
    drawing = draw("funnel", source, WIDTHS[0])
    written = {
        mark.key: mark.text for mark in drawing.marks if isinstance(mark, Words) and mark.key and "(" in mark.text
    }
    for finding in source.results("funnel"):
        assert isinstance(finding.data, Funnel)
        for row in finding.data.rows:
            if (row.condition, row.by, row.basis) == ("enhance/audio", "overall", "validated"):
                e = row.reached
                assert e.value is not None and e.low is not None and e.high is not None
                expected = f"{100 * e.value:.0f} ({100 * e.low:.0f} to {100 * e.high:.0f})"
                assert written[finding.prefix + row.key] == expected


def test_correlations_stand_in_their_cells_with_their_interval(source: FigureSource) -> None:
    drawing = draw("levels", source, WIDTHS[0])
    boxes = {mark.key: mark for mark in drawing.marks if isinstance(mark, Box) and mark.key}
    found = source.results("levels")[0].data
    row = found.row("case", "within", "voice_accuracy", "reasoning_accuracy")
    assert row is not None and row.pearson.value is not None
    box = boxes[row.key]
    inside = [m.text for m in drawing.marks if isinstance(m, Words) and box.x < m.x < box.x + box.width
              and box.y < m.y < box.y + box.height]  # fmt: skip
    assert inside[0] == f"{row.pearson.value:.2f}".replace("0.", ".", 1).replace("-", "−")
    assert len(inside) == 2 and " to " in inside[1]


# ── keys ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", MINE)
def test_every_number_leads_to_the_cases_under_it(name: str, source: FigureSource) -> None:
    keys = {mark.key for mark in draw(name, source).marks if mark.key}
    known = dict(pair for f in source.results(name) for pair in cases_by_key(source.readings, f, source.settings))
    assert keys and not keys - set(known)
    for key in sorted(keys)[:5]:
        assert cases_behind(source.readings, key, source.settings) == known[key]


@pytest.mark.parametrize("name", MINE)
def test_every_mark_with_a_key_tells_its_number_in_words(name: str, source: FigureSource) -> None:
    for mark in draw(name, source).marks:
        if mark.key and not isinstance(mark, Words):
            assert re.search(r"n = [\d,]+( of [\d,]+)?|unknown", mark.title), mark


# ── any runs, any names ─────────────────────────────────────────────────────────────────────────────────────────────


def _extent(mark: Words) -> tuple[float, float]:
    wide = width_of(mark.text, mark.size, mark.bold) if not mark.turn else 0.0
    start = {"start": mark.x, "middle": mark.x - wide / 2, "end": mark.x - wide}[mark.anchor]
    return start, start + wide


@pytest.mark.parametrize("width", ALL_WIDTHS)
@pytest.mark.parametrize("runs", [1, 2, 10])
@pytest.mark.parametrize("name", MINE)
def test_pictures_hold_on_their_page_with_few_runs_and_many(
    name: str, runs: int, width: float, many: Callable[[int], FigureSource]
) -> None:
    drawing = draw(name, many(runs), width)
    assert drawing.height > 50
    for mark in drawing.marks:
        xs: tuple[float, ...] = ()
        ys: tuple[float, ...] = ()
        if isinstance(mark, Words):
            xs, ys = _extent(mark), (mark.y,)
        elif isinstance(mark, Line):
            xs, ys = tuple(x for x, _ in mark.points), tuple(y for _, y in mark.points)
        elif isinstance(mark, Box):
            xs, ys = (mark.x, mark.x + mark.width), (mark.y, mark.y + mark.height)
        else:
            xs, ys = (mark.x,), (mark.y,)
        assert all(-4 <= x <= width + 4 for x in xs), mark
        assert all(0 <= y <= drawing.height for y in ys), mark
    root = ElementTree.fromstring(svg(drawing, inline=True))
    assert not [node for node in root.iter() if node.tag.endswith("script")]


@pytest.mark.parametrize("name", MINE)
def test_labels_of_ten_runs_do_not_overlap(name: str, many: Callable[[int], FigureSource]) -> None:
    drawing = draw(name, many(10))
    lines: dict[float, list[Words]] = {}
    for mark in drawing.marks:
        if isinstance(mark, Words) and not mark.turn and mark.text:
            lines.setdefault(round(mark.y, 1), []).append(mark)
    for words in lines.values():
        words.sort(key=lambda w: _extent(w)[0])
        for one, other in itertools.pairwise(words):
            assert _extent(one)[1] <= _extent(other)[0] + 4, (one.text, other.text)


def test_labels_that_look_alike_when_cut_are_numbered() -> None:
    cut = axes.fitted(["same-start-and-" + "x" * 60 + c + "-same-end" for c in "ab"], 80)
    assert len(set(cut)) == 2 and all(width_of(text) <= 80 for text in cut)


def test_a_single_run_is_named_in_its_picture(readings: list[Reading]) -> None:
    for name in MINE:
        drawing = draw(name, FigureSource(readings[:1], ["The only one"]))
        assert any(isinstance(mark, Words) and mark.text.startswith("The only one: ") for mark in drawing.marks)


def test_findings_are_made_once_and_only_for_the_runs_shown(readings: list[Reading]) -> None:
    source = FigureSource(readings[:1], beside=readings[1:2], settings=Settings(deaf=(1,)))
    assert source.results("text-only") is source.results("text-only")
    assert [finding.runs for finding in source.results("text-only")] == [(0,)]
    alone = FigureSource(readings[:1])
    tries = [s.results("text-only")[0].data.unsolved[0].tries for s in (alone, source)]
    assert tries[0] < tries[1]


def test_the_stages_chosen_stand_in_the_signature(readings: list[Reading]) -> None:
    drawing = draw("funnel", FigureSource(readings[:1], settings=Settings({"funnel": Stages(words=0.5)})))
    assert "words:wer<=0.5" in drawing.signature
    assert any(isinstance(mark, Words) and "wer<=0.5" in mark.text for mark in drawing.marks)


def test_the_input_chosen_is_the_one_drawn(readings: list[Reading]) -> None:
    keys = {
        m.key for m in draw("funnel", FigureSource(readings[:1], settings=Settings(input="transcript"))).marks if m.key
    }
    assert keys and all("/transcript/" in key for key in keys)


# ── nothing to draw ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "advice"), [("levels", "--levels"), ("sensitivity", "overtone run"), ("text-only", "--input")]
)
def test_a_run_without_the_data_is_told_what_to_run(name: str, advice: str, bare: FigureSource) -> None:
    with pytest.raises(NothingToDraw, match=advice):
        draw(name, bare)


def test_a_run_of_one_question_has_a_funnel_of_one_stage(bare: FigureSource) -> None:
    drawing = draw("funnel", bare)
    assert [m.key for m in drawing.marks if isinstance(m, Dot)][-1] == "1:funnel/task/audio/overall/cue"
    assert any(isinstance(m, Words) and "Not measured" in m.text for m in drawing.marks)


def test_levels_do_not_average_over_benchmarks(readings: list[Reading], bare: FigureSource) -> None:
    with pytest.raises(NothingToDraw, match="benchmarks"):
        draw("levels", FigureSource([readings[0], bare.readings[0]]))


def test_an_unknown_name_or_width_is_refused(source: FigureSource) -> None:
    with pytest.raises(UsageError, match="did you mean 'funnel'"):
        draw("funel", source)
    with pytest.raises(UsageError, match="70 to 1000 mm"):
        draw("funnel", source, 10)
    with pytest.raises(NothingToDraw, match="at least one run"):
        draw("funnel", FigureSource([]))


def test_every_picture_says_in_one_line_what_it_shows() -> None:
    found = names()
    assert next(iter(found)) == "funnel" and set(MINE) <= set(found)
    assert all(20 < len(line) <= 120 and line.endswith((".", "?")) for line in found.values())


def test_every_picture_draws_at_any_width_or_says_why_not(source: FigureSource, tmp_path: Path) -> None:
    for name in names():
        for width in WIDTHS:
            if name == "arena":
                with pytest.raises(NothingToDraw, match="overtone arena"):
                    draw(name, source, width)
                continue
            drawing = draw(name, source, width)
            assert drawing.width == width and drawing.signature and drawing.text and drawing.title
