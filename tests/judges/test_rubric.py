"""Rubrics as data: the built-in ones say all they must, one's own is a file, and a wrong file is told what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from overtone import registry
from overtone.cues import CUES
from overtone.errors import UsageError
from overtone.judges import rubric
from overtone.schema import STYLES

NAMES = tuple(registry.builtins("rubrics"))
OF_RUNS = ("echomind", "implicit", "ves", "false-cue", "pair", "pair-voice")  # the others are for testing judges
TEXTS = {"cue", "topic", "words", "context", "reply", "reference", "reply_a", "reply_b"}
DOCS = Path(__file__).parents[2] / "docs" / "reference" / "rubrics"


def test_a_run_can_be_judged_by_these() -> None:
    assert set(OF_RUNS) <= set(NAMES)
    for name in OF_RUNS:
        assert set(rubric.load(name).shows) <= TEXTS, "texts that a run offers"


@pytest.mark.parametrize("name", NAMES)
def test_a_rubric_says_what_it_measures_what_it_cannot_see_and_where_it_comes_from(name: str) -> None:
    found = rubric.load(name)
    assert found.measures and found.cannot_see and found.source and found.title
    assert set(found.hears) <= {"clip", "reply", "a", "b"}
    assert set(found.headings) == {*found.shows, *found.hears}, "everything put before the judge has a heading"
    for dimension in found.dimensions:
        assert set(dimension.styles) <= set(STYLES)
        assert dimension.question.endswith(("?", "."))
        if name in OF_RUNS:
            assert set(dimension.anchors) == {str(answer) for answer in dimension.menu}, "every answer has an anchor"


@pytest.mark.parametrize("name", [n for n in NAMES if rubric.load(n).shows and not n.startswith("hears-")])
def test_a_rubric_tells_the_judge_that_what_it_is_shown_gives_no_orders(name: str) -> None:
    assert "never an instruction" in " ".join(rubric.load(name).system.split())


@pytest.mark.parametrize("name", NAMES)
def test_a_rubric_has_a_page_that_names_its_scores(name: str) -> None:
    page = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    for dimension in rubric.load(name).dimensions:
        assert f"`{dimension.key}`" in page
    assert all(part in page for part in ("**Measures**", "**Cannot see**", "**Signature**", "**Source**"))
    assert f"rubric:{name}.{rubric.load(name).version}." in page


def test_speech_relevance_and_the_voice_are_asked_where_there_is_a_cue_and_false_cues_where_there_is_none() -> None:
    asked = {d.key: d.styles for name in NAMES for d in rubric.load(name).dimensions}
    with_cue = ("target", "alternative")
    assert asked["cspeechrel"] == asked["cspeechrel_implicit"] == asked["ves"] == with_cue
    assert asked["false_cue"] == ("neutral",)
    assert asked["cctxfit"] == asked["crespnat"] == asked["ccolloqdeg"] == ()


def test_what_two_rubrics_call_the_same_has_the_same_answers() -> None:
    menus: dict[str, set[object]] = {}
    for name in NAMES:
        for dimension in rubric.load(name).dimensions:
            menus.setdefault(dimension.key, set()).add(dimension.menu)
    assert all(len(found) == 1 for found in menus.values())
    assert len({d.key for name in OF_RUNS for d in rubric.load(name).dimensions}) == 9


def test_the_system_texts_do_not_tell_the_form_of_the_answer() -> None:
    for name in NAMES:
        assert "json" not in rubric.load(name).system.casefold(), "the contract alone writes it"


def test_the_judge_of_false_cues_is_told_of_every_kind_of_cue_that_was_not_there() -> None:
    told = rubric.load("false-cue").system
    named = {
        "age": "child",
        "physiological": "illness",
        "emotion": "strong feeling",
        "volume": "whispering or shouting",
        "speed": "hurry",
        "nonverbal": "coughing",
        "weather": "noise",
        "location": "noise",
        "voices": "other people",
        "event": "noise",
        "other": "music",
        "gender": "speaking to the user as a man, a woman",  # every voice has one: no false cue
    }
    assert {cue.category for cue in CUES} == set(named)
    assert all(words in told for words in named.values())


OWN = """
version = 3
title = "Brevity"
measures = "m"
cannot_see = "c"
source = "s"
shows = ["words", "reply"]
system = "Judge."
[[dimension]]
key = "brevity"
label = "Brevity"
question = "Short?"
scale = [1, 3]
"""


def _own(folder: Path, text: str = OWN, name: str = "brevity.toml") -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def test_ones_own_rubric_is_a_file(tmp_path: Path) -> None:
    found = rubric.load(_own(tmp_path))
    assert (found.name, found.version, found.dimensions[0].menu) == ("brevity", 3, (1, 2, 3))
    assert found.heading("words") == "Words"
    assert found.identity == f"brevity.3.{found.sha256[:8]}"


def test_the_example_in_the_docs_is_a_rubric(tmp_path: Path) -> None:
    page = (DOCS / "index.md").read_text(encoding="utf-8")
    example = page.partition("```toml\n")[2].partition("```")[0]
    assert rubric.load(_own(tmp_path, example)).dimensions[0].anchors.keys() == {"1", "3"}


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('key = "brevity"', 'key = "Brevity!"', "must have only small letters"),
        ('key = "brevity"', 'key = "brevity_reason"', "_reason"),
        ("scale = [1, 3]", "", "needs either scale"),
        ("scale = [1, 3]", "scale = [3, 1]", "from a smaller to a larger"),
        ("scale = [1, 3]", 'scale = [1, 3]\nchoices = ["a"]', "needs either scale"),
        ("scale = [1, 3]", 'choices = ["yes", "no"]\nvalues = { yes = 1.0 }', "values must give the number of each"),
        (
            "scale = [1, 3]",
            'scale = [1, 3]\n[dimension.anchors]\n4 = "x"',
            "answers that are not allowed: 4",
        ),
        ('shows = ["words", "reply"]', "shows = []", "the judge gets nothing to judge"),
        ('shows = ["words", "reply"]', 'shows = ["words"]\nsubject = "pair"', "choices A and B"),
        ('system = "Judge."', 'system = "Judge."\nagainst = "reference"', "needs subject"),
        ('system = "Judge."', 'system = "Judge."\ntasks = ["chose"]', "did you mean 'choose'"),
        ('title = "Brevity"', 'titel = "Brevity"', "titel"),
        ("version = 3", 'version = "three"', "int"),
        ("version = 3", "version = ", "line 2"),
        ("[[dimension]]", "[[dimensions]]", "dimension"),
    ],
)
def test_a_wrong_rubric_is_told_what_is_wrong_and_where(tmp_path: Path, old: str, new: str, problem: str) -> None:
    assert old in OWN
    path = _own(tmp_path, OWN.replace(old, new))
    with pytest.raises(UsageError, match=problem) as error:
        rubric.load(path)
    assert "brevity.toml" in str(error.value)


def test_an_unknown_name_gets_the_nearest_and_a_missing_file_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="did you mean 'echomind'"):
        rubric.load("ecomind")
    with pytest.raises(UsageError, match="does not exist"):
        rubric.load(str(tmp_path / "none.toml"))
    with pytest.raises(UsageError, match="brevity: small"):
        rubric.load(_own(tmp_path, name="brevity: small.toml"))


def test_the_hash_follows_what_the_judge_is_told_and_nothing_else(tmp_path: Path) -> None:
    first = rubric.load(_own(tmp_path))
    said = rubric.load(_own(tmp_path, OWN.replace("Judge.", "Judge well.")))
    told_readers = rubric.load(_own(tmp_path, "# a note\n" + OWN.replace('measures = "m"', 'measures = "other"')))
    assert first.sha256 != said.sha256
    assert first.sha256 == told_readers.sha256
