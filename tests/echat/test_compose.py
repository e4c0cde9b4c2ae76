"""What is said to whom in which way: shares, splits, replies and thoughts of the open EChat set."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest

from overtone.build.recipes import manners
from overtone.build.voices import held_out
from overtone.build.voices.espeak import split_voice
from overtone.echat.data.labels import CUE_OF_LABEL, REPLY
from overtone.echat.making import clip_plan, compose, texts
from overtone.echat.making.clip_plan import Clip, clip_of
from overtone.echat.making.compose import Exchange

COUNT = 3000
TESTS = ("seen", "recipe", "engine")  # they have the same queries, so that they can be compared


@pytest.fixture(scope="module")
def written() -> texts.Texts:
    return texts.read()


@pytest.fixture(scope="module")
def composed(written: texts.Texts) -> list[Exchange]:
    return compose.compose(written, 0, compose.sizes_for(COUNT))


@pytest.fixture(scope="module")
def clips(composed: list[Exchange]) -> dict[str, Clip]:
    return {x.key: clip_of(x, 0) for x in composed}


def test_parts_have_the_sizes_asked_for_and_no_key_twice(composed: list[Exchange]) -> None:
    counts = Counter(x.part for x in composed)
    assert counts["train"] == COUNT
    assert all(counts[part] == compose.sizes_for(COUNT)[part] for part in ("dev", *TESTS))
    assert len({x.key for x in composed}) == len(composed)


def test_the_whole_set_has_at_least_20_000_exchanges_of_which_800_follow_another() -> None:
    assert compose.SIZES["train"] >= 20_000
    assert round(compose.TWO_TURNS * compose.SIZES["train"]) >= 800


def test_about_seventy_in_a_hundred_have_one_label(composed: list[Exchange]) -> None:
    train = [x for x in composed if x.part == "train"]
    single = sum(len(x.labels.known()) == 1 for x in train) / len(train)
    assert 0.67 < single < 0.73
    assert all(len(x.labels.known()) == len(x.kind.split("+")) for x in train)


def test_labels_of_a_dimension_are_balanced(composed: list[Exchange]) -> None:
    for kind in ("age", "gender", "event", "scene"):
        counts = Counter(str(x.labels) for x in composed if x.part == "train" and x.kind == kind and not x.first)
        assert min(counts.values()) >= 0.6 * max(counts.values()), (kind, counts)
    emotions = Counter(x.labels.emotion for x in composed if x.part == "train" and x.kind == "emotion" and not x.first)
    assert len(emotions) == 7
    assert 1.5 < emotions["neutral"] / emotions["sad"] < 2.6  # as often as two others


def test_a_label_is_claimed_only_where_a_cue_or_the_speaker_makes_it_true(
    composed: list[Exchange], clips: dict[str, Clip]
) -> None:
    for x in composed:
        if x.part == "style":
            continue
        clip = clips[x.key]
        for dimension, name in x.labels.known().items():
            assert getattr(x.heard, dimension) == name
            if dimension == "gender":
                assert clip.sex == name
                assert "child" not in clip.cues
            elif (dimension, name) not in (("emotion", "neutral"), ("age", "adult")):
                assert CUE_OF_LABEL[dimension, name] in clip.cues
        assert {"child", "elderly"}.isdisjoint(clip.cues) == (x.heard.age == "adult")


def test_no_speaker_and_no_query_and_no_sound_is_in_train_and_in_a_test(
    composed: list[Exchange], clips: dict[str, Clip]
) -> None:
    speakers, queries, sounds = defaultdict(set), defaultdict(set), defaultdict(set)
    for x in composed:
        side = "train" if x.part in ("train", "style") else "dev" if x.part == "dev" else "test"
        clip = clips[x.key]
        speakers[side].add((clip.engine, clip.speaker))
        queries[side].add(x.question)
        sounds[side].add((clip.seed, clip.drawn))
    for found in (speakers, queries, sounds):
        assert found["train"].isdisjoint(found["test"] | found["dev"])
        assert found["dev"].isdisjoint(found["test"])
    assert len(clip_plan.TRAIN["male"]) + len(clip_plan.TRAIN["female"]) >= 24


def test_who_is_trained_on_speaks_in_no_benchmark() -> None:
    trained = {
        split_voice(name)[0]
        for people in (clip_plan.TRAIN, clip_plan.DEV)
        for names in people.values()
        for name in names
    }
    assert trained.isdisjoint(held_out())


def test_an_engine_is_held_out_whole(composed: list[Exchange], clips: dict[str, Clip]) -> None:
    assert {clips[x.key].engine for x in composed if x.part == "engine"} == {"flite"}
    assert {clips[x.key].engine for x in composed if x.part != "engine"} == {"espeak"}


def test_the_part_recipe_has_bands_and_kinds_that_no_other_part_has(
    composed: list[Exchange], clips: dict[str, Clip]
) -> None:
    def inside(value: float, band: clip_plan.Band) -> bool:
        return any(low <= value <= high for low, high in band)

    for x in composed:
        clip, held = clips[x.key], x.part == "recipe"
        assert inside(clip.strength, clip_plan.HELD_STRENGTH if held else clip_plan.STRENGTH)
        assert not inside(clip.strength, clip_plan.STRENGTH if held else clip_plan.HELD_STRENGTH)
        assert inside(clip.snr, clip_plan.HELD_SNR if held else clip_plan.SNR)
        if "child" in clip.cues:
            assert inside(clip.hertz, clip_plan.HELD_CHILD[0] if held else clip_plan.CHILD[0])
            assert inside(clip.throat, clip_plan.HELD_CHILD[1] if held else clip_plan.CHILD[1])
        if "laughter" in clip.cues:
            assert (clip.manner == "nervous") == held
            assert clip.manner in manners("laughter")


def test_every_test_query_is_said_in_two_ways_by_one_person_but_where_that_is_the_label(
    composed: list[Exchange], clips: dict[str, Clip]
) -> None:
    groups: dict[tuple[str, str], list[Exchange]] = defaultdict(list)
    for x in composed:
        if x.part in ("dev", *TESTS):
            groups[x.part, x.group].append(x)
    assert groups
    for pair in groups.values():
        one, two = pair
        assert one.question == two.question
        assert one.kind == two.kind
        assert one.labels != two.labels
        assert one.txt != two.txt
        a, b = clips[one.key], clips[two.key]
        assert (a.f0, a.room, a.noise, a.rate) == (b.f0, b.room, b.noise, b.rate)
        if one.labels.gender == two.labels.gender:
            assert a.speaker == b.speaker


def test_the_three_tests_say_the_same_queries_in_the_same_ways(composed: list[Exchange]) -> None:
    said = {p: {(x.question, x.labels, x.txt) for x in composed if x.part == p} for p in TESTS}
    assert said["seen"] == said["recipe"] == said["engine"]


def test_the_same_question_in_the_same_way_has_one_reply_and_in_another_way_another(composed: list[Exchange]) -> None:
    train = [x for x in composed if x.part == "train" and not x.first]
    by_query: dict[str, dict[str, str]] = defaultdict(dict)
    for x in train:
        by_query[x.question][str(x.labels)] = x.txt
    several = [replies for replies in by_query.values() if len(replies) > 1]
    assert len(several) > 0.8 * len(by_query)
    assert all(len(set(replies.values())) == len(replies) for replies in several)
    assert len({x.txt for x in train}) < 0.75 * len(train)


def test_replies_and_thoughts_keep_their_lengths(composed: list[Exchange]) -> None:
    for x in composed:
        if x.part != "style":
            assert 12 <= len(x.txt.split()) <= 34, x.txt
            assert len(x.think_str.split()) <= 45, x.think_str
            assert x.reply_emotion in REPLY
            assert "{" not in x.txt + x.think_str + x.question


def test_a_thought_names_every_label(composed: list[Exchange]) -> None:
    words = {"anger": "angry", "fear": "afraid", "surprise": "surprised", "disgust": "disgusted", "neutral": "even"}
    words |= {"male": "man", "female": "woman", "adult": "grown", "laugh": "laughing", "cough": "coughing"}
    words |= {"cry": "crying", "sigh": "sighing"}
    for x in composed:
        if x.part != "style":
            for name in x.labels.known().values():
                assert words.get(name, name) in x.think_str.lower(), (name, x.think_str)


def test_what_follows_is_said_by_the_same_person(composed: list[Exchange], clips: dict[str, Clip]) -> None:
    by_key = {x.key: x for x in composed}
    second = [x for x in composed if x.first]
    assert second
    for x in second:
        before = by_key[x.first]
        a, b = clips[x.key], clips[before.key]
        assert (a.speaker, a.f0, a.room) == (b.speaker, b.f0, b.room)
        assert (x.labels.age, x.labels.gender) == (before.labels.age, before.labels.gender)
    assert any(by_key[x.first].labels != x.labels for x in second)


def test_the_same_seed_composes_the_same_and_another_one_another(written: texts.Texts) -> None:
    one, two, other = (compose.compose(written, seed, {"train": 200}) for seed in (0, 0, 1))
    assert one == two
    assert [x.key for x in one] != [x.key for x in other]


def test_one_frame_more_leaves_the_clips_of_the_others_as_they_are(written: texts.Texts) -> None:
    fewer = texts.Texts(written.frames[1:], written.strategies, written.styles, written.followups, written.plain)
    a, b = (compose.compose(those, 0, {"train": 400}) for those in (written, fewer))
    first, second = ({repr(clip_of(x, 0)) for x in those} for those in (a, b))
    assert len(first & second) > 0.2 * len(second)


def test_another_take_is_another_speaker_and_the_same_else(composed: list[Exchange]) -> None:
    x = composed[0]
    one, two = clip_of(x, 0), clip_of(x, 0, 1)
    assert one.speaker != two.speaker
    assert (one.sex, one.strength, one.text) == (two.sex, two.strength, two.text)


def test_some_clips_are_in_a_room_and_some_in_noise(composed: list[Exchange], clips: dict[str, Clip]) -> None:
    train = [clips[x.key] for x in composed if x.part == "train"]
    rooms, noisy = (sum(map(bool, those)) / len(train) for those in ([c.room for c in train], [c.noise for c in train]))
    assert 0.16 < rooms < 0.24
    assert 0.09 < noisy < 0.15
    assert not any(c.room and c.noise for c in train)
