"""Cues, radar, arena, prompts, source, upper and leaderboard: drawn from runs whose models are known, each mark where
its number says, each number leading to its cases."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import numpy as np
import pytest

from bench.findings_runs import make_runs
from overtone.arena import electorates
from overtone.arena.pairing import Pair
from overtone.arena.standings import Standings, standings
from overtone.arena.vote_store import Vote
from overtone.display.drawing import Box, Dot, Drawing, Line, Mark, Words, on, ramp, svg, width_of
from overtone.figures import MM, draw
from overtone.figures.arena import PREFIX
from overtone.findings.analysis import cases_behind, cases_by_key
from overtone.findings.figure_source import FigureSource, NothingToDraw
from overtone.findings.funnel.compute import Funnel, StageRow
from overtone.findings.leaderboard.compute import Leaderboard
from overtone.findings.prompts.compute import Prompts
from overtone.findings.source.compute import Sources
from overtone.findings.upper.compute import Upper
from overtone.results.load import Reading, open_run
from tests.results.small import Maker, item

FINDING = {
    "cues": "funnel",
    "radar": "leaderboard",
    "prompts": "prompts",
    "source": "source",
    "upper": "upper",
    "leaderboard": "leaderboard",
}
WIDTHS = (170 * MM, 84 * MM)
ODD = ('<script>alert(1)</script> & "x"', "🎻 музыка 語音 \u202e evil", "n" * 80)


@pytest.fixture(scope="module")
def readings(tmp_path_factory: pytest.TempPathFactory) -> list[Reading]:
    folder = tmp_path_factory.mktemp("minds")
    return [open_run(path, light=True) for path in make_runs(folder, runs=3, scripts=40, seed=2)]


@pytest.fixture(scope="module")
def source(readings: list[Reading]) -> FigureSource:
    return FigureSource(readings, arena=rank(ODD)[2])


@pytest.fixture(scope="module")
def plain(readings: list[Reading]) -> FigureSource:
    return FigureSource(readings, ("a", "b", "c"), arena=rank(("x", "y", "z"))[2])


@pytest.fixture(scope="module")
def odd(readings: list[Reading]) -> Callable[[int], FigureSource]:
    """So many runs with odd names; after three they come again."""

    @functools.cache
    def made(runs: int) -> FigureSource:
        return FigureSource([readings[n % 3] for n in range(runs)], [ODD[n % 3] for n in range(runs)])

    return made


@pytest.fixture
def bare(tmp_path: Path) -> FigureSource:
    """One question, answered."""
    maker = Maker(tmp_path / "bare")
    maker.choice(item("q", "choose"), "A")
    return FigureSource([open_run(maker.done(), light=True)])


@functools.cache
def rank(
    runs: tuple[str, ...], pairs: int = 90, judges: tuple[str, ...] = ("one", "two")
) -> tuple[list[Vote], dict[str, Pair], Standings]:
    """Votes of two people and of judges; later runs are better."""
    rng = np.random.default_rng(4)
    held: dict[str, Pair] = {}
    votes = []
    for n in range(pairs):
        first, second = rng.choice(len(runs), 2, replace=False)
        a, b = runs[first], runs[second]
        held[f"p{n}"] = Pair(f"p{n}", f"i{n}|c", f"case{n}", f"s{n // 2}", "sad", a, b)
        for rater in ("ann", "bob", *judges):
            chance = 1 / (1 + np.exp(0.6 * (second - first)))
            winner = "tie" if rng.random() < 0.2 else "A" if rng.random() < chance else "B"
            votes.append(Vote(f"p{n}", a, b, winner, rater, "judge" if rater in judges else "person"))
    return votes, held, standings(votes, held, runs=runs)


def keyed(
    drawing: Drawing, kind: type[Mark] | tuple[type[Mark], ...] = (Line, Box, Dot, Words)
) -> dict[str, list[Mark]]:
    found: dict[str, list[Mark]] = {}
    for mark in drawing.marks:
        if mark.key and isinstance(mark, kind):
            found.setdefault(mark.key, []).append(mark)
    return found


def value_in(title: str) -> float:
    """The value that a mark's title tells."""
    found = re.search(r": (−?[\d.,]+)", title)
    assert found, title
    return float(found[1].replace("−", "-").replace(",", ""))


# ── all of them ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("width", WIDTHS, ids=["page", "column"])
@pytest.mark.parametrize("name", [*FINDING, "arena"])
def test_every_number_of_a_picture_is_told_in_words_and_has_cases_under_it(
    source: FigureSource, name: str, width: float
) -> None:
    drawing = draw(name, source, width)
    marks = keyed(drawing)
    assert len(marks) > 5
    assert all(mark.title for held in marks.values() for mark in held if isinstance(mark, Dot | Box | Line))
    if name == "arena":
        votes, pairs, _ = rank(ODD)
        assert all(electorates.behind(votes, pairs, key.removeprefix(PREFIX)) for key in marks)
        return
    known = {key for f in source.results(FINDING[name]) for key, _ in cases_by_key(source.readings, f, source.settings)}
    assert marks.keys() <= known
    some = next(iter(marks))
    assert cases_behind(source.readings, some, source.settings)


@pytest.mark.parametrize("width", WIDTHS, ids=["page", "column"])
@pytest.mark.parametrize("name", FINDING)
@pytest.mark.parametrize("runs", [1, 2, 10])
def test_no_mark_leaves_the_page_and_odd_names_are_plain_text(
    odd: Callable[[int], FigureSource], name: str, width: float, runs: int
) -> None:
    drawing = draw(name, odd(runs), width)
    for x, y in places(drawing):
        assert -1 <= x <= drawing.width + 1, (x, y)
        assert -1 <= y <= drawing.height + 1, (x, y)
    root = ElementTree.fromstring(svg(drawing))
    assert "script" not in {element.tag.rpartition("}")[2] for element in root.iter()}
    assert drawing.text
    assert drawing.signature


def places(drawing: Drawing) -> Iterator[tuple[float, float]]:
    """The corners of every mark; of level texts from end to end."""
    for mark in drawing.marks:
        if isinstance(mark, Line):
            yield from mark.points
        elif isinstance(mark, Box):
            yield from ((mark.x, mark.y), (mark.x + mark.width, mark.y + mark.height))
        elif isinstance(mark, Dot):
            yield from ((mark.x - mark.size, mark.y - mark.size), (mark.x + mark.size, mark.y + mark.size))
        elif not mark.turn:
            wide = width_of(mark.text, mark.size, mark.bold)
            start = mark.x - {"start": 0.0, "middle": wide / 2, "end": wide}[mark.anchor]
            yield from ((start, mark.y), (start + wide, mark.y))
        else:
            yield from ((mark.x, mark.y), (mark.x, mark.y - width_of(mark.text, mark.size)))


def test_the_arena_of_many_runs_stays_on_the_page_and_names_the_places_left_open() -> None:
    runs = tuple(f"{ODD[n % 3][:30]} {n}" for n in range(10))
    found = rank(runs, 300)[2]
    for width in WIDTHS:
        drawing = draw("arena", FigureSource([], arena=found), width)
        assert all(-1 <= x <= width + 1 for x, _ in places(drawing))
        texts = [m.text for m in drawing.marks if isinstance(m, Words)]
        for place in found.electorates[0].places:
            assert place.places
            low, high = place.places
            assert any(text.startswith(f"{low}–{high} " if low < high else f"{low} ") for text in texts)


# ── each mark where its number says ─────────────────────────────────────────────────────────────────────────────────

AXES = [  # picture, and what the names of the dots on one of its axes look like
    ("arena", r"rating \(rank"),
    ("arena", r", (wins|ties): "),
    ("prompts", r", C4: "),
    ("prompts", r", VES: "),
    ("source", r", (Voice accuracy|EmoAlign), (synthesis|human): "),
    ("source", r", (C1|C4|NISQA), (synthesis|human): "),
    ("source", r", (Voice accuracy|EmoAlign), synthesis minus human: "),
    ("upper", r", (C4|VES|C1), (cue not stated|cue stated|wrong cue stated): "),
    ("upper", r"^[^,]*, (C4|VES), (gain from|difference with)"),
    ("leaderboard", r"rank \d+ of 17"),
]


@pytest.mark.parametrize(("name", "which"), AXES, ids=[f"{a}{n}" for n, (a, _) in enumerate(AXES)])
def test_dots_stand_on_their_axis_where_their_numbers_say(plain: FigureSource, name: str, which: str) -> None:
    drawing = draw(name, plain)
    dots = [mark for mark in drawing.marks if isinstance(mark, Dot) and re.search(which, mark.title)]
    if name == "leaderboard":  # two boards have as many rows: the first of them
        dots = dots[: len(dots) // 2]
    assert len(dots) >= 4
    values = np.array([value_in(dot.title) for dot in dots])
    slope, start = np.polyfit(values, [dot.x for dot in dots], 1)
    assert slope > 0
    assert np.allclose([dot.x for dot in dots], start + slope * values, atol=0.6)  # titles are rounded
    for dot in dots:  # and its interval lies about it
        lines = [m for m in drawing.marks if isinstance(m, Line) and (m.title, m.points[0][1]) == (dot.title, dot.y)]
        ends = re.search(r"interval (−?[\d.,]+) to (−?[\d.,]+)", dot.title)
        assert len(lines) == (1 if ends else 0)
        if ends:
            low, high = (float(end.replace("−", "-").replace(",", "")) for end in ends.groups())
            at = [x for x, _ in lines[0].points]
            assert at == pytest.approx([start + slope * low, start + slope * high], abs=1.2)


def test_cells_have_the_colour_and_the_text_of_their_value(source: FigureSource) -> None:
    drawing = draw("cues", source)
    boxes, texts = keyed(drawing, Box), keyed(drawing, Words)
    rows: dict[str, StageRow] = {}
    for finding in source.results("funnel"):
        assert isinstance(finding.data, Funnel)
        rows |= {finding.prefix + row.key: row for row in finding.data.rows}
    assert len(boxes) > 3 * 39 * 4
    for key, (box,) in boxes.items():
        value = rows[key].reached.value
        assert value is not None
        assert isinstance(box, Box)
        assert box.fill == ramp(value)
        text = texts[key][0]
        assert isinstance(text, Words)
        assert (text.text, text.ink) == (f"{100 * value:.0f}", on(box.fill))
        assert box.x <= text.x <= box.x + box.width
        assert box.y < text.y < box.y + box.height


def test_what_was_not_scored_is_hatched_and_cues_that_are_not_validated_are_marked(tmp_path: Path) -> None:
    maker = Maker(tmp_path / "odd")
    maker.choice(item("q1", "choose", status="validated"), "A")
    maker.transcript(item("t1", "transcribe", status="validated"), 0, 4)
    maker.choice(item("q2", "choose", script="s2", cue="happy", status="unvalidated"), "B")
    drawing = draw("cues", FigureSource([open_run(maker.done(), light=True)]))
    texts = [m.text for m in drawing.marks if isinstance(m, Words)]
    assert {"sad", "happy °", "all cues"} <= set(texts)
    assert any(text.startswith("° Unvalidated cue") for text in texts)
    hatched = [m.title for m in drawing.marks if isinstance(m, Box) and m.fill == "paper" and m.title]
    assert hatched == ["odd, happy °: no scores for “heard the words”"]
    assert "Not scored in these runs: reasoning, used in reply, sounded right." in texts


def test_corners_of_a_radar_stand_as_far_out_as_their_scale_says(source: FigureSource) -> None:
    found = source.results("leaderboard")[0].data
    assert isinstance(found, Leaderboard)
    drawing = draw("radar", source)
    spokes = [m.points for m in drawing.marks if isinstance(m, Line) and m.ink == "grid" and len(m.points) == 2]
    (x, y) = spokes[0][0]
    radius = np.hypot(spokes[0][1][0] - x, spokes[0][1][1] - y)
    checked = 0
    for entrant in (e for e in found.entrants if e.run is not None):
        for key, cell in entrant.cells.items():
            for dot in keyed(drawing, Dot).get(f"{entrant.key}/{key}", []):
                assert isinstance(dot, Dot)
                assert cell.value is not None
                low, high = (1, 5) if cell.value <= 5 and key[0] in "cvn" and key != "voice_accuracy" else (0, 100)
                share = np.hypot(dot.x - x, dot.y - y) / radius
                assert share == pytest.approx((cell.value - low) / (high - low), abs=1e-6)
                checked += 1
    assert checked == 3 * len(spokes) >= 24


def test_a_radar_of_more_than_six_runs_is_several_small_ones(odd: Callable[[int], FigureSource]) -> None:
    drawing = draw("radar", odd(10))
    grid = [m for m in drawing.marks if isinstance(m, Line) and m.ink == "grid" and len(m.points) == 2]
    assert len({line.points[0] for line in grid}) == 10


def test_models_of_the_paper_stand_behind_runs_of_its_benchmark_only(readings: list[Reading]) -> None:
    def grey(one: Reading) -> int:
        return sum(isinstance(m, Line) and m.ink == "quiet" for m in draw("radar", FigureSource([one])).marks)

    other = msgspec.structs.replace(readings[0], meta=readings[0].meta | {"benchmark": "open"})
    assert grey(readings[0]) >= 12
    assert grey(other) == 0


def test_an_outline_is_broken_where_a_run_lacks_a_measure(readings: list[Reading]) -> None:
    deaf = msgspec.structs.replace(readings[1], answers=[a for a in readings[1].answers if a.item.task != "transcribe"])
    drawing = draw("radar", FigureSource([readings[0], deaf]))
    outlines = [m for m in drawing.marks if isinstance(m, Line) and m.ink in ("s0", "s1") and not m.fill]
    assert [(m.ink, m.closed) for m in outlines] == [("s0", True), ("s1", False)]


def test_a_rate_of_characters_is_not_drawn_on_the_axis_of_word_errors(readings: list[Reading]) -> None:
    def chinese(reading: Reading) -> Reading:
        answers = [msgspec.structs.replace(a, language="zh") for a in reading.answers if a.item.task != "converse"]
        return msgspec.structs.replace(reading, answers=answers)

    def corners(*runs: Reading) -> list[str]:
        drawing = draw("radar", FigureSource(list(runs), ("a", "b")[: len(runs)]))
        assert any("No WER for b" in m.text for m in drawing.marks if isinstance(m, Words)) == (len(runs) > 1)
        return [m.title for m in drawing.marks if isinstance(m, Dot) and "WER" in m.title]

    words = msgspec.structs.replace(readings[0], answers=[a for a in readings[0].answers if a.item.task != "converse"])
    assert len(corners(words)) == 1, "the axis is there"
    assert [title.partition(",")[0] for title in corners(words, chinese(readings[1]))] == ["a"]


# ── what each one is for ────────────────────────────────────────────────────────────────────────────────────────────


def test_the_fair_choice_stands_beside_the_flattering_one_with_its_optimism(source: FigureSource) -> None:
    drawing = draw("prompts", source)
    for finding in source.results("prompts"):
        assert isinstance(finding.data, Prompts)
        choice = finding.data.choices[0]
        for measure in choice.by:
            dots = keyed(drawing, Dot)[f"{finding.prefix}{choice.key}/{measure}"]
            said = [d.title for d in dots]
            assert ["fair" in said[0], "in sample" in said[1]] == [True, True]
            fair, flattered = choice.fair[measure].value, choice.in_sample[measure].value
            assert fair is not None
            assert flattered is not None
            assert [value_in(text) for text in said] == [
                pytest.approx(fair, abs=0.006),
                pytest.approx(flattered, abs=0.006),
            ]
    heads = [m.text for m in drawing.marks if isinstance(m, Words) and "optimism" in m.text]
    assert len(heads) == 3


def test_sources_are_shown_with_their_paired_difference(source: FigureSource) -> None:
    drawing = draw("source", source)
    for finding in source.results("source"):
        assert isinstance(finding.data, Sources)
        rows = [r for r in finding.data.rows if r.by == "overall" and r.condition in ("task/audio", "enhance/audio")]
        for row in (r for r in rows if r.difference.value is not None):
            key = finding.prefix + row.key
            assert all(len(keyed(drawing, Dot)[one]) == 1 for one in (key, f"{key}/first", f"{key}/second"))


def test_two_runs_of_one_model_are_one_row_of_sources(readings: list[Reading]) -> None:
    halves = [
        msgspec.structs.replace(
            readings[0],
            answers=[a for a in readings[0].answers if a.item.source == name],
            meta=readings[0].meta | {"label": name},
        )
        for name in ("synthesis", "human")
    ]
    drawing = draw("source", FigureSource(halves))
    titles = {m.title.partition(",")[0] for m in drawing.marks if isinstance(m, Dot) and m.title}
    assert titles == {"synthesis + human"}


def test_cues_are_sorted_by_what_telling_them_gains(readings: list[Reading]) -> None:
    source = FigureSource(readings[1:2])
    (finding,) = source.results("upper")
    assert isinstance(finding.data, Upper)
    rows = [r for r in finding.data.rows if r.by == "cue" and r.measure == "cspeechrel" and r.gain.value is not None]
    dots = keyed(draw("upper", source), Dot)
    heights = []
    for row in sorted(rows, key=lambda r: (-(r.gain.value or 0.0), r.name)):
        gain, wrong = dots[finding.prefix + row.key][:2]
        assert isinstance(gain, Dot)
        assert isinstance(wrong, Dot)
        assert (gain.hollow, wrong.hollow) == (False, True)
        heights.append(gain.y)
    assert len(heights) > 30
    assert heights == sorted(heights)


def test_the_paper_is_grey_and_leads_nowhere_and_runs_are_hollow_where_not_measured_alike(source: FigureSource) -> None:
    drawing = draw("leaderboard", source)
    dots = [m for m in drawing.marks if isinstance(m, Dot) and m.title]
    papers = [m for m in dots if "as published" in m.title]
    runs = [m for m in dots if m not in papers]
    assert len(papers) == 14 + 10 + 14
    assert {m.ink for m in papers} == {"quiet"}
    assert not any(m.key for m in papers)
    assert len(runs) == 9
    assert all(m.hollow and m.key for m in runs)  # another judge, fewer scripts
    texts = " ".join(m.text for m in drawing.marks if isinstance(m, Words))
    assert "Not as in the paper" in texts


def test_votes_that_rank_nobody_say_what_to_collect() -> None:
    pairs = {"p": Pair("p", "i|c", "case", "s", "sad", "x", "y")}
    found = standings([Vote("p", "x", "y", "A", "ann", "person")], pairs)
    with pytest.raises(NothingToDraw, match="more votes"):
        draw("arena", FigureSource([], arena=found))


def test_electorates_that_cannot_be_ranked_are_named_below_those_that_can() -> None:
    votes, pairs, _ = rank(("x", "y", "z"), judges=("one",))
    sure = [msgspec.structs.replace(v, winner="A" if v.a > v.b else "B") if v.kind == "person" else v for v in votes]
    drawing = draw("arena", FigureSource([], arena=standings(sure, pairs, runs=("x", "y", "z"))))
    texts = " ".join(m.text for m in drawing.marks if isinstance(m, Words))
    assert "people, no ratings: " in texts
    assert not any(key.startswith("arena/people/") for key in keyed(drawing))


# ── what is missing is said ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("radar", "needs three measures"),
        ("arena", "overtone arena RUN RUN"),
        ("prompts", "--prompt zero,basic,enhance"),
        ("source", "two sources"),
        ("upper", "--prompt enhance,oracle,oracle-false"),
        ("leaderboard", "--judge SPEC"),
    ],
)
def test_where_runs_lack_the_data_it_says_what_to_run(bare: FigureSource, name: str, said: str) -> None:
    with pytest.raises(NothingToDraw, match=re.escape(said)):
        draw(name, bare)


def test_a_heat_map_without_any_stage_says_what_it_takes(tmp_path: Path) -> None:
    maker = Maker(tmp_path / "neutral")
    maker.choice(item("q", "choose", style="neutral", cue=""), "A")
    with pytest.raises(NothingToDraw, match="clips with a cue"):
        draw("cues", FigureSource([open_run(maker.done(), light=True)]))
