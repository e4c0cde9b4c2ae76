"""Deliveries keep their promise: a target clip differs from its neutral twin in the direction and amount it names."""

from __future__ import annotations

import functools
import re
from dataclasses import fields
from typing import get_args

import numpy as np
import pytest

from overtone import audio
from overtone.audio import Measures
from overtone.build import recipes
from overtone.build.delivery import ORDINARY_DBFS, RATE, Voiced, analyse, deliver
from overtone.build.recipes import NEUTRAL, PROMISES, RECIPES, Promise, Recipe, promises_of, recipe_of
from overtone.build.script import MANNERS
from overtone.build.tract import Rng, Sound
from overtone.build.vocal_events import EVENTS, event
from overtone.cues import CUES
from overtone.errors import UsageError
from tests.conftest import REPOSITORY

pytestmark = pytest.mark.local
VOICES = {"en-us+m3": 1.0, "en-us+f2": 1.16, "en-us+f3": 1.16}  # and the size of their throats
WORDS = "The old laptop works again, and every one of the photographs is safe."
SPOKEN = sorted(PROMISES)
KINDS = [*((slug, "") for slug in SPOKEN), *recipes.OTHER_MANNERS]


@functools.cache
def _plain(voice: str) -> Voiced:
    from overtone.embedded.espeak_voice import speak

    samples, rate = speak(WORDS, voice=voice, rate_wpm=160)
    return analyse(audio.resample(samples, rate, RATE).astype(np.float64))


@functools.cache
def _clip(voice: str, recipe: Recipe, seed: int = 5) -> Sound:
    return deliver(_plain(voice), recipe, np.random.default_rng(seed), VOICES[voice])


@functools.cache
def _measures(voice: str, recipe: Recipe) -> Measures:
    return audio.measure(_clip(voice, recipe), RATE)


def _moved(promise: Promise, recipe: Recipe, voice: str) -> tuple[float, float]:
    target, neutral = (getattr(_measures(voice, r), promise.measure) for r in (recipe, NEUTRAL))
    return float(target), float(neutral)


def _kept(promise: Promise, target: float, neutral: float) -> bool:
    change = target / neutral if promise.how == "ratio" else target - neutral
    return change > promise.least if promise.sign > 0 else change < promise.least


@pytest.mark.parametrize(("slug", "manner"), KINDS)
def test_a_delivery_moves_as_it_promises_in_every_voice(slug: str, manner: str) -> None:
    for voice in VOICES:
        for promise in promises_of(slug, manner):
            target, neutral = _moved(promise, recipe_of(slug, manner), voice)
            assert _kept(promise, target, neutral), f"{voice}: {neutral:.2f} → {target:.2f}, {promise}"


def test_plain_speech_keeps_none_of_the_promises_of_a_cue() -> None:
    for slug in SPOKEN:
        assert not all(_kept(p, *_moved(p, NEUTRAL, "en-us+m3")) for p in promises_of(slug)), slug


def test_every_cue_of_the_voice_has_a_recipe_and_a_promise() -> None:
    of_the_voice = {c.slug for c in CUES if c.dimension != "environment"}
    assert set(PROMISES) | {"male", "female"} == of_the_voice
    assert set(RECIPES) == of_the_voice | {"adult"}
    assert all(recipe_of(slug) != NEUTRAL for slug in PROMISES)
    measures = set(Measures.__struct_fields__)
    assert all(p.measure in measures for slug, manner in KINDS for p in promises_of(slug, manner))


def test_the_manners_are_those_that_scripts_may_name() -> None:
    assert {s: recipes.manners(s) for s in recipes.FIRST_MANNER} == {s: MANNERS[s] for s in recipes.FIRST_MANNER}
    assert recipe_of("laughter", "hearty") == recipe_of("laughter") != recipe_of("laughter", "nervous")
    with pytest.raises(UsageError, match=r"no manner 'nervus'; did you mean 'nervous'"):
        recipe_of("laughter", "nervus")


@pytest.mark.parametrize("voice", VOICES)
def test_two_manners_of_a_cue_differ_from_each_other_as_far_as_from_plain_speech(voice: str) -> None:
    """Nervous laughter is softer, with less voice; a joyful shout is higher and less pressed than an angry one."""
    hearty, nervous = (_measures(voice, recipe_of("laughter", m)) for m in MANNERS["laughter"])
    assert hearty.rms_dbfs - nervous.rms_dbfs > 2
    assert hearty.seconds - nervous.seconds > 1
    angry, joyful = (_measures(voice, recipe_of("shout", m)) for m in MANNERS["shout"])
    assert (joyful.f0_hz or 0) / (angry.f0_hz or 1) > 1.12
    assert (angry.tilt_db_oct or 0) - (joyful.tilt_db_oct or 0) > 0.3


def test_strength_zero_changes_nothing_one_is_as_written_and_more_is_more() -> None:
    for slug, manner in KINDS:
        written = recipe_of(slug, manner)
        assert recipe_of(slug, manner, 0.0) == NEUTRAL
        assert recipe_of(slug, manner, 1.0) == written
        for name in ("f0", "rate", "range", "formants"):
            weak, strong = (getattr(recipe_of(slug, manner, s), name) for s in (0.5, 1.5))
            assert weak == pytest.approx(getattr(written, name) ** 0.5)
            assert strong == pytest.approx(getattr(written, name) ** 1.5)
        assert 0 <= recipe_of(slug, manner, 1.5).breath <= 1
    assert recipe_of("angry", strength=0.5).gain == RECIPES["angry"].gain / 2
    pitch = [_measures("en-us+m3", recipe_of("surprise", strength=s)).f0_hz or 0.0 for s in (0.0, 0.5, 1.0, 1.5)]
    assert pitch == sorted(pitch) and pitch[3] > 1.3 * pitch[0]
    assert np.array_equal(_clip("en-us+m3", recipe_of("angry", strength=0.0)), _clip("en-us+m3", NEUTRAL))


@pytest.mark.parametrize("strength", [-0.1, 1.6, float("nan")])
def test_a_strength_outside_its_bounds_is_refused(strength: float) -> None:
    with pytest.raises(UsageError, match="strength must be between 0"):
        recipe_of("angry", strength=strength)


def test_a_scene_leaves_the_voice_as_it_is_and_a_typo_is_named() -> None:
    assert recipe_of("rain") == recipe_of("music", "sad") == recipe_of("") == NEUTRAL
    with pytest.raises(UsageError, match="did you mean 'happy'"):
        recipe_of("hapy")


def test_a_child_is_a_child_whoever_speaks() -> None:
    for voice in VOICES:
        assert 240 < (_measures(voice, recipe_of("child")).f0_hz or 0) < 290


def test_ordinary_shouted_and_sad_clips_have_the_levels_of_recorded_ones() -> None:
    for slug, low, high in (
        ("shout", -22, -20), ("sad", -33, -31), ("", -27, -25), ("fast", -27, -25), ("whisper", -33, -31),
    ):  # fmt: skip
        for voice in VOICES:
            assert low < _measures(voice, recipe_of(slug)).rms_dbfs < high, slug


def test_the_same_seed_gives_the_same_samples_and_another_seed_others() -> None:
    plain = _plain("en-us+m3")
    first, again, other = (
        deliver(plain, recipe_of("breath"), np.random.default_rng(seed), 1.0, ORDINARY_DBFS) for seed in (1, 1, 2)
    )
    assert np.array_equal(first, again)
    assert first.size != other.size or not np.array_equal(first, other)


def test_an_event_can_come_from_elsewhere() -> None:
    asked: list[str] = []

    def recorded(name: str, rate: int, rng: Rng, f0: float, scale: float) -> Sound:
        asked.append(name)
        return np.ones(rate)

    recipe = recipe_of("moan")
    made = deliver(_plain("en-us+m3"), recipe, np.random.default_rng(0), 1.0, event=recorded)
    assert asked == [name for name, _, _ in recipe.events] == ["moan", "moan"]
    assert made.size > _clip("en-us+m3", NEUTRAL).size + 2 * RATE


@pytest.mark.parametrize("name", sorted(EVENTS))
def test_an_event_is_at_level_one_finite_starts_and_ends_softly(name: str) -> None:
    for seed, f0, scale in ((1, 105.0, 1.0), (2, 210.0, 1.16), (3, 265.0, 1.3)):
        sound = event(name, RATE, np.random.default_rng(seed), f0, scale)
        assert np.isfinite(sound).all()
        assert np.sqrt(np.mean(sound**2)) == pytest.approx(1, abs=1e-6)
        assert 0.15 < sound.size / RATE < 3.2
        assert max(abs(sound[0]), abs(sound[-1])) < 0.5  # no click against peaks of three and more


def test_recipes_use_events_and_places_that_exist() -> None:
    places = set(get_args(recipes.Place))
    for slug, manner in KINDS:
        for name, place, _ in recipe_of(slug, manner).events:
            assert name in EVENTS and place in places


def test_no_clip_is_clipped_silent_or_off_centre() -> None:
    for slug, manner in KINDS:
        clip = _clip("en-us+f3", recipe_of(slug, manner))
        assert np.isfinite(clip).all()
        assert 0.02 < float(np.abs(clip).max()) < 1.6  # the builder turns a peaky clip down
        assert abs(float(clip.mean())) < 0.002


def test_added_pauses_are_silent_and_between_the_words() -> None:
    slow = Recipe(halts=0.5)
    plain, halting = (_measures("en-us+m3", r) for r in (NEUTRAL, slow))
    assert halting.pause_seconds - plain.pause_seconds > 0.25
    assert halting.seconds - plain.seconds == pytest.approx(0.28 * 2, abs=0.1)


@pytest.mark.parametrize("slug", ["", "happy", "child", "breath", "whisper", "elderly"])
def test_the_recogniser_still_understands_most_words(slug: str) -> None:
    from overtone.embedded.recogniser import transcribe

    expected = re.findall(r"[a-z]+", WORDS.lower())
    heard = [
        set(re.findall(r"[a-z]+", transcribe(_clip(v, recipe_of(slug)).astype(np.float32), RATE).lower()))
        for v in VOICES
    ]
    assert np.mean([word in words for words in heard for word in expected]) > 0.55


def test_the_page_on_deliveries_lists_every_recipe_as_it_is() -> None:
    page = (REPOSITORY / "docs" / "reference" / "delivery.md").read_text("utf-8")
    assert f"Version {recipes.VERSION}." in page
    for slug, manner in KINDS:
        kind = manner or recipes.FIRST_MANNER.get(slug, "")
        row = re.search(rf"^\| {slug}{', ' + kind if kind else ''} \| ([^|]*) \|", page, re.M)
        assert row, f"{slug} {kind} is not on the page"
        recipe = recipe_of(slug, manner)
        for field in fields(recipe):
            value = getattr(recipe, field.name)
            if field.name != "events" and value != getattr(NEUTRAL, field.name):
                assert f"{field.name} {value:g}" in row[1], f"{slug} {kind}: {field.name}"
