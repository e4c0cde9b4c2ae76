"""The open AEQ set's texts: they keep the rules of writing, and each rule notices when it is broken."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec
import pytest

from overtone.build import aeq_texts
from overtone.build.aeq_texts import (
    EMOV_DB,
    FOLDER,
    NEUTRAL,
    TONES,
    Group,
    read,
)
from overtone.build.script import sets
from overtone.cues import BY_SLUG
from overtone.errors import DataError
from tests.build.aeq_rules import TOPICS, leanings, names, open_texts, problems


@pytest.fixture(scope="module")
def groups() -> list[Group]:
    return read()


def _of(groups: list[Group], setting: str) -> list[Group]:
    return [group for group in groups if group.setting == setting]


def _with(group: Group, place: int, **changed: str) -> Group:
    variants = list(group.variant)
    variants[place] = msgspec.structs.replace(variants[place], **changed)
    return msgspec.structs.replace(group, variant=tuple(variants))


def test_the_open_set_keeps_every_rule_and_says_nothing_that_the_scripts_say(groups: list[Group]) -> None:
    assert problems(groups, open_texts()) == []


def test_there_are_enough_groups_of_both_settings_for_some_to_fall(groups: list[Group]) -> None:
    context, tone = _of(groups, "context"), _of(groups, "tone")
    assert len(context) >= 66 and len(tone) >= 34
    assert sum(len(group.variant) == 3 for group in context) >= 40
    assert {group.topic for group in context} == {group.topic for group in tone} == set(TOPICS)


def test_every_tone_group_has_a_neutral_voice_and_three_cues_and_the_common_ones_come_often(
    groups: list[Group],
) -> None:
    tone = _of(groups, "tone")
    assert all([v.tone for v in group.variant].count(NEUTRAL) == 1 for group in tone)
    counts = Counter(v.tone for group in tone for v in group.variant)
    assert all(counts[slug] >= 8 for slug in ("happy", "angry", "sad", "tired", "disgust"))
    assert set(counts) == {NEUTRAL, *TONES}


def test_no_variant_of_a_kind_has_replies_that_its_length_gives_away(groups: list[Group]) -> None:
    longest: Counter[str] = Counter()
    shown: Counter[str] = Counter()
    for group in groups:
        lengths = [len(v.reply.split()) for v in group.variant]
        for place, variant in enumerate(group.variant):
            kind = variant.tone or f"context {place + 1}"
            shown[kind] += 1
            longest[kind] += lengths[place] == max(lengths)
    assert all(count <= 0.6 * shown[kind] for kind, count in longest.items() if shown[kind] >= 7), longest


def test_no_two_replies_of_a_group_begin_alike(groups: list[Group]) -> None:
    for group in groups:
        openings = {tuple(variant.reply.lower().split()[:3]) for variant in group.variant}
        assert len(openings) == len(group.variant), group.id


def test_tones_are_our_cues_and_emov_dbs_five_have_one_each(groups: list[Group]) -> None:
    assert all(slug in BY_SLUG for slug in TONES)
    assert set(EMOV_DB) == {"neutral", "amused", "angry", "sleepy", "disgust"}
    assert {tone for tones in EMOV_DB.values() for tone in tones} <= {NEUTRAL, *TONES}
    cues = [v.cue for v in _of(groups, "tone")[0].variant]
    assert cues[0] is None and all(cue is not None for cue in cues[1:])


def test_variants_have_names_of_their_own_and_a_context_each(groups: list[Group]) -> None:
    found = [group.name_of(v) for group in groups for v in group.variant]
    assert len(set(found)) == len(found)
    assert all(group.context_of(v) for group in groups for v in group.variant)


def test_the_folder_is_no_set_of_scripts() -> None:
    assert FOLDER.name not in sets() and (FOLDER / "LICENSE").is_file()


def test_broken_rules_are_listed_with_the_group_and_the_reason(groups: list[Group]) -> None:
    context, tone = _of(groups, "context")[0], _of(groups, "tone")[0]
    replaced = msgspec.structs.replace
    cases: list[tuple[list[Group], str]] = [
        ([replaced(context, words="Too few words.")], "3 words"),
        ([replaced(context, words="My husband wants to bring the other chairs up here.")], "'My husband' says who"),
        ([_with(context, 0, reply="Of course I will.")], "words; a reply has 15 to 30"),
        ([_with(context, 0, reply=" ".join(["well"] * 16)), context], "times the shortest"),
        ([_with(context, 1, reply=context.variant[0].reply)], "say almost the same"),
        ([_with(context, 1, context=context.variant[0].context + " Now.")], "almost the same situation"),
        ([_with(context, 1, context="One. Two. Three. Four.")], "4 sentences"),
        ([_with(context, 1, context=f"Your host says: {context.words}")], "before it is said"),
        ([_with(context, 1, context="You met at the office of Microsoft.")], "'Microsoft' may be the name"),
        ([context, replaced(context, id="context-99", words="Quite other words that nobody has used before.")], "too:"),
        ([context, replaced(context, id="context-99")], "begins like context-01"),
        ([replaced(tone, words="They have put that disgusting thing on the shelf.")], "lean towards a tone"),
        ([replaced(tone, context="Your worried colleague has opened the fridge.")], "the context lean towards a tone"),
        ([_with(tone, 0, reply=tone.variant[0].reply + " You sound angry.")], "neutral reply names the cue 'angry'"),
        ([replaced(g, topic="home") for g in groups], "balance them"),
        ([replaced(context, topic="gardens")], "no topic 'gardens'"),
        ([_with(group, 0, reply=f"Well, {group.variant[0].reply}") for group in groups], "begin with 'well'"),
    ]
    for broken, reason in cases:
        assert any(reason in problem for problem in problems(broken)), reason
    said = f"And then: {context.variant[0].reply.lower()}"
    assert any("also said in another set" in problem for problem in problems([context], [said]))


def test_leanings_and_names_are_found_as_words_and_not_in_others() -> None:
    assert leanings("The window was open all winter, and it won't close.") == []
    assert leanings("We won, and she laughed.") == ["won", "laughed", "laugh"]
    assert names("On Monday I saw Europe, and then Picasso came. Nobody else.") == {"Picasso"}


@pytest.mark.parametrize(
    ("file", "old", "new", "complaint"),
    [
        ("context_1.toml", 'id = "context-02"', 'id = "context-01"', "another group has this id"),
        ("context_1.toml", 'id = "context-02"', 'id = "../02"', "an id is the setting and a number"),
        ("context_1.toml", 'setting = "context"', 'setting = "contexts"', "contexts"),
        ("context_1.toml", 'topic = "family"', 'tpoic = "family"', "tpoic"),
        ("context_1.toml", 'topic = "family"', 'topic = "../family"', "a topic is one word"),
        ("context_1.toml", 'style = "low and considerate"', 'style = ""', "printable"),
        ("context_1.toml", 'style = "low and considerate"', 'style = "low"\ntone = "sad"', "and no tone"),
        ("tone_1.toml", 'tone = "disgust"', 'tone = "digust"', "did you mean 'disgust'"),
        ("tone_1.toml", 'tone = "disgust"', 'tone = "neutral"', "the same"),
        ("tone_1.toml", 'tone = "disgust"', 'tone = "sad"\ncontext = "x"', "given once, before the variants"),
    ],
)
def test_a_group_that_is_not_whole_is_refused_by_name(
    tmp_path: Path, file: str, old: str, new: str, complaint: str
) -> None:
    text = (FOLDER / file).read_text("utf-8")
    assert old in text
    (tmp_path / file).write_text(text.replace(old, new, 1), "utf-8")
    with pytest.raises(DataError, match=complaint):
        read(tmp_path)


def test_a_folder_without_groups_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="contains no files of groups"):
        read(tmp_path)
    cut = msgspec.structs.replace(read()[0], variant=read()[0].variant[:1])
    assert "1 variants" in aeq_texts._problem(cut)
