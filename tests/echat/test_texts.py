"""The written texts keep their rules, and a broken one is named with its place."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from overtone import build
from overtone.echat.making import texts
from overtone.echat.making.evaluation_overlap import runs_of
from overtone.echat.making.texts import Frame, Strategy, Texts
from overtone.errors import DataError
from tests.build.authoring_rules import alike

FRAME = """[[frame]]
id = "tea-01"
topic = "drinks"
part = "train"
say = ["How long should {what} stand in the pot?", "When do I take {what} out again?", "Is {what} done by now, please?"]
slots.what = ["mint", "sage", "thyme", "fennel", "ginger", "nettle"]
facts = ["Five minutes are enough for a cup.", "Cover it while it stands there.", "Water just off the boil is best."]
offers = ["Shall I time it?", "Do you take honey?"]
"""


@pytest.fixture(scope="module")
def written() -> Texts:
    return texts.read()


def frame(**changed: object) -> Frame:
    tree = tomllib.loads(FRAME)["frame"][0]
    return msgspec.convert({**tree, **changed}, Frame)


def folder(tmp_path: Path, text: str) -> Path:
    (tmp_path / "one.toml").write_text(text)
    return tmp_path


def of(problems: list[str]) -> list[str]:
    """Without what a small set has too little of."""
    return [p for p in problems if not p.startswith("set:")]


def test_what_is_written_breaks_no_rule(written: Texts) -> None:
    assert written.check() == []


def test_any_opening_fact_and_close_make_a_reply_of_12_to_32_words(written: Texts) -> None:
    def lengths(found: Iterator[str]) -> tuple[int, int]:
        counts = [len(text.split()) for text in found]
        return min(counts), max(counts)

    def filled(f: Frame, text: str) -> Iterator[str]:
        return (text.format(**slots) for slots in f.fillings())

    openings = lengths(o for s in written.strategies for o in s.openings)
    facts = lengths(t for f in written.frames for fact in f.facts for t in filled(f, fact))
    offers = [t for f in written.frames for offer in f.offers for t in filled(f, offer)]
    turns = [t.format(topic_noun=f.topic) for s in written.strategies for t in s.turns for f in written.frames[:1]]
    closes = lengths(iter(offers + turns))
    assert openings[0] + facts[0] + closes[0] >= 12
    assert openings[1] + facts[1] + closes[1] <= 32


def test_every_query_of_a_frame_comes_once_with_what_fills_it() -> None:
    found = list(frame().queries())
    assert len(found) == len({words for words, _ in found}) == 18
    assert found[0] == ("How long should mint stand in the pot?", {"what": "mint"})


def test_no_run_of_words_is_shared_with_an_evaluation_set(written: Texts) -> None:
    known = {run for text in _evaluated() for run in runs_of(text)}
    assert len(known) > 10_000
    said = {words: f.id for f in written.frames for words, _ in f.queries()}
    said |= {t: f.id for f in written.frames for t in (*f.facts, *f.offers)}
    said |= {t: s.label for s in written.strategies for t in (*s.openings, *s.turns)}
    said |= {t: f.id for f in written.followups for t in (*f.say, *f.facts)}
    shared = [(where, " ".join(run)) for text, where in said.items() for run in runs_of(text) if run in known]
    assert shared == []


def _evaluated() -> Iterator[str]:
    for name in ("open", "aeq", "echat_eval"):
        for path in sorted((Path(build.__file__).parent / name).rglob("*.toml")):
            yield from (m[1] for m in re.finditer(r'"((?:[^"\\]|\\.)*)"', path.read_text()))


def test_a_held_out_query_reads_like_none_for_training(written: Texts) -> None:
    train = [f.say[0] for f in written.frames if f.part == "train"]
    held_out = [f.say[0] for f in written.frames if f.part == "held-out"]
    assert [(a, b) for a in held_out for b in train if alike(a, b) >= 0.7] == []


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"say": ["Is it the {what}?", "When do I take {what} out?", "Is {what} done by now?"]}, "query of 4 words"),
        ({"facts": ["Yes.", "Cover it while it stands there.", "Five minutes are enough for it."]}, "fact of 1 words"),
        ({"offers": ["Do you take honey?"]}, "1 offers; at least 2"),
        ({"slots": {"what": ["mint", "sage"]}}, "2 values; at least 6"),
        ({"slots": {"what": [*"abcdef"], "more": [*"abcdef"]}}, "no wording uses its slot more"),
        ({"say": ["How long does {what} stand, I'm so happy?"] * 3}, "'happy' (happy) reveals the cue"),
        ({"say": ["How long does {what} stand in the pot?"] * 3}, "duplicates among its say"),
        ({"say": ["{what} stands in the pot, and how long?"] * 3}, "must begin with a capital"),
        ({"id": "Tea"}, "an id must be a word, a dash and two digits"),
    ],
)
def test_a_frame_against_the_rules_is_named(changed: dict[str, object], problem: str) -> None:
    assert any(problem in found and "frame" in found for found in of(Texts(frames=(frame(**changed),)).check()))


def test_a_value_that_tells_is_found_in_its_query() -> None:
    values = ["mint", "sage", "thyme", "fennel", "ginger", "cough drops"]
    assert any("'cough' (cough)" in p for p in of(Texts(frames=(frame(slots={"what": values}),)).check()))


def test_the_same_query_in_two_frames_is_found() -> None:
    two = (frame(), frame(id="tea-02", part="held-out"))
    assert any("tea-02: tea-01 (train) has the same query" in p for p in Texts(frames=two).check())


def test_a_set_that_is_too_small_says_what_is_missing() -> None:
    found = Texts().check()
    assert "set: 0 train frames; at least 160" in found
    assert "set: no strategy for emotion/anger" in found


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (FRAME + FRAME.replace('part = "train"', 'part = "test"'), r"one.toml, line 9: invalid frame"),
        (FRAME.replace("offers", "offer"), "line 1: invalid frame"),
        (FRAME.replace("{what}", "{wat}"), "unknown slot wat; known: what"),
        (FRAME.replace("{what} done", "{what done"), "line 1: "),
        (FRAME.replace('"mint"', '" mint"'), "without spaces at its ends"),
        (FRAME.replace('id = "', "id = "), "invalid TOML"),
        ("[[frames]]\n", r"unknown table \[\[frames\]\]"),
        ('[[style]]\nname = "rap"\nrate = 1\nrange = 1\ngain = 1\nlines = []\n', "unknown style 'rap'"),
    ],
)
def test_a_broken_file_is_named_with_its_line(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        texts.read(folder(tmp_path, text))


def test_a_strategy_for_no_label_is_refused(tmp_path: Path) -> None:
    start = '[[strategy]]\ndimension = "emotion"\npart = "train"\nopenings = []\nturns = []\nbecause = []\n'
    with pytest.raises(DataError, match="unknown emotion 'angry'; known: sad, anger"):
        texts.read(folder(tmp_path, start + 'label = "angry"\nreply_emotion = "neutral"\n'))
    with pytest.raises(DataError, match="unknown reply emotion 'cross'"):
        texts.read(folder(tmp_path, start + 'label = "anger"\nreply_emotion = "cross"\n'))


def test_an_empty_folder_says_what_it_must_hold(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no texts; give a folder"):
        texts.read(tmp_path)


def test_a_strategy_is_found_by_its_label(written: Texts) -> None:
    found = written.strategy("age", "child")
    assert isinstance(found, Strategy)
    assert any("{topic_noun}" in turn for turn in found.turns)
    with pytest.raises(KeyError, match="age/teen"):
        written.strategy("age", "teen")
