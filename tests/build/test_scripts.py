"""The starter scripts: complete, neutral in their words, fair in their replies."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from overtone.build.script import Script, read_scripts, read_set
from overtone.cues import BY_SLUG, CUES, REASONING
from overtone.errors import DataError


def test_every_cue_is_the_target_of_exactly_one_script(scripts: tuple[Script, ...]) -> None:
    assert Counter(s.cue for s in scripts) == Counter(c.slug for c in CUES)


def test_no_word_of_a_script_names_a_cue(scripts: tuple[Script, ...]) -> None:
    named = [(s.id, c.slug) for s in scripts for c in BY_SLUG.values() if re.search(c.pattern, s.words, re.I)]
    assert named == []


def test_words_are_short_and_no_two_scripts_begin_or_read_alike(scripts: tuple[Script, ...]) -> None:
    assert all(8 <= len(s.words.split()) <= 16 for s in scripts)
    assert len({" ".join(s.words.split()[:3]).lower() for s in scripts}) == len(scripts)
    for i, a in enumerate(scripts):
        for b in scripts[:i]:
            one, two = set(a.words.lower().split()), set(b.words.lower().split())
            assert len(one & two) / len(one | two) < 0.5, (a.id, b.id)


def test_replies_to_one_script_are_alike_in_length_and_different_in_content(scripts: tuple[Script, ...]) -> None:
    for s in scripts:
        lengths = [len(reply.split()) for reply in s.reply.values()]
        assert max(lengths) / min(lengths) <= 1.25, (s.id, lengths)
        replies = [set(re.findall(r"\w+", reply.lower())) for reply in s.reply.values()]
        for i, one in enumerate(replies):
            for two in replies[:i]:
                assert len(one & two) / len(one | two) < 0.5, s.id


def test_only_scripts_about_sex_lack_a_neutral_style(scripts: tuple[Script, ...]) -> None:
    assert {s.cue for s in scripts if "neutral" not in s.styles} == {"male", "female"}


def test_every_reasoning_category_is_asked(scripts: tuple[Script, ...]) -> None:
    assert {r.category for s in scripts for r in s.reasoning} == set(REASONING)


def test_no_option_of_a_reasoning_question_gives_itself_away_by_its_length(scripts: tuple[Script, ...]) -> None:
    four = [r for s in scripts for r in s.reasoning if r.words]
    longest = Counter(
        max(("target", "alternative", "words", "harmful"), key=lambda p: len(getattr(r, p))) for r in four
    )
    assert max(longest.values()) <= 0.45 * len(four), longest


def test_both_sexes_speak_equally_often(scripts: tuple[Script, ...]) -> None:
    sexes = Counter(s.voice_in("target").sex for s in scripts)
    assert abs(sexes["male"] - sexes["female"]) <= 1


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('cue = "male"', 'cue = "mole"', "did you mean 'male'"),
        ('voice = "arlo"', 'voice = "dora"', "is not male"),
        ('id = "id_002"', 'id = "id_001"', "another script has this id"),
        ('category = "recommendation"', 'category = "recomendation"', "did you mean 'recommendation'"),
        ('topic = "health"', 'tpoic = "health"', "tpoic"),
        ('alternative = "female"', 'alternative = "rain"', "needs another such cue"),
    ],
)
def test_a_broken_script_is_refused_by_name(tmp_path: Path, old: str, new: str, complaint: str) -> None:
    from overtone.build import script as module

    text = (Path(module.__file__).parent / "starter" / "scripts.toml").read_text("utf-8")
    assert old in text
    broken = tmp_path / "scripts.toml"
    broken.write_text(text.replace(old, new, 1), "utf-8")
    with pytest.raises(DataError, match=re.escape(complaint)):
        read_scripts(broken)


def test_an_unknown_set_is_named_with_the_nearest() -> None:
    with pytest.raises(DataError, match="did you mean 'starter'"):
        read_set("startr")
