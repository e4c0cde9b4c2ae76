"""Labels: inventories, tags and cues."""

from __future__ import annotations

import pytest

from overtone import cues
from overtone.build import echat_texts, recipes
from overtone.echat.data import labels
from overtone.echat.data.labels import Labels
from overtone.errors import DataError


def test_the_inventories_have_the_published_sizes() -> None:
    sizes = [len(names) for names in (labels.EMOTIONS, labels.AGES, labels.GENDERS, labels.VOCAL, labels.STYLES)]
    assert sizes == [8, 3, 2, 8, 8]
    assert (len(labels.REPLY), len(labels.OLDER_REPLY)) == (11, 14)
    assert len(set(labels.EVENTS)) == len(labels.EVENTS)
    assert all(name == name.lower() for names in labels.DIMENSIONS.values() for name in names)
    assert all(labels.DEFAULTS[dimension] in names for dimension, names in labels.DIMENSIONS.items())


def test_a_tag_and_its_label_are_each_others() -> None:
    assert labels.tag("throat clearing") == "<THROAT CLEARING>"
    for dimension, names in labels.DIMENSIONS.items():
        for name in names:
            assert labels.label(dimension, labels.tag(name)) == name
    for name in labels.REPLY:
        assert labels.reply(labels.tag(name)) == name


def test_events_have_the_names_of_the_open_set() -> None:
    for slug, caption in echat_texts.EVENTS.items():
        assert labels.LABEL_OF_CUE[slug] == ("event", caption.lower())
    for slug in ("angry", "fear", "surprise"):
        told = echat_texts.TAGS.get(slug, slug.upper())
        assert labels.LABEL_OF_CUE[slug] == ("emotion", told.lower())


def test_labels_become_cues_and_cues_labels() -> None:
    known = Labels(emotion="anger", age="old", gender="female", event="sea waves")
    assert known.cues() == ("angry", "elderly", "female", "waves")
    assert labels.of_cues(known.cues()) == known
    assert Labels(emotion="neutral", event="sneeze").cues() == ()
    assert labels.of_cues(["hoarse"]) == Labels()
    assert set(labels.LABEL_OF_CUE) <= set(cues.BY_SLUG)
    with pytest.raises(DataError, match="two labels for emotion"):
        labels.of_cues(["sad", "happy"])


@pytest.mark.parametrize(
    ("dimension", "told", "name"),
    [
        ("emotion", "<ANGRY>", "anger"),
        ("emotion", "<悲伤>", "sad"),
        ("age", "<YOUTH>", "adult"),
        ("age", "middle", "adult"),
        ("event", "<LAUGHTER>", "laugh"),
        ("event", "throat_clearing", "throat clearing"),
        ("emotion", "<&&>", ""),
        ("gender", "unknown", ""),
        ("emotion", "<BORED>", "bored"),
    ],
)
def test_other_spellings_are_read(dimension: str, told: str, name: str) -> None:
    assert labels.label(dimension, told) == name


def test_reply_emotions_of_the_original_are_read_and_unknown_ones_are_neutral() -> None:
    chinese = ["愉悦", "抱歉", "开心", "愤怒", "惊讶", "厌恶", "悲伤", "害怕", "哭腔", "安慰鼓励", "中立"]
    assert tuple(labels.reply(f"<{told}>") for told in chinese) == labels.REPLY
    assert [labels.reply(told) for told in ("sorry", "worried", "<XYZ>", "")] == [
        "apologetic",
        "neutral",
        "neutral",
        "",
    ]
    assert set(labels.OLDER_REPLY.values()) <= set(labels.REPLY)


def test_every_reply_emotion_can_be_spoken() -> None:
    assert set(labels.SPOKEN) == set(labels.REPLY)
    for slug, strength in labels.SPOKEN.values():
        assert recipes.recipe_of(slug, strength=strength) is not None
    comforting = recipes.recipe_of(*labels.SPOKEN["comforting"][:1], strength=labels.SPOKEN["comforting"][1])
    assert 0.9 < comforting.rate < 0.97
    assert -3 < comforting.gain < -1


def test_a_label_outside_the_inventory_is_told_with_the_nearest() -> None:
    assert Labels(emotion="hapy", age="adult").problems() == [
        "unknown emotion 'hapy'; did you mean 'happy'",
    ]
