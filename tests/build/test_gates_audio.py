"""The gates on audio: for every cue a clip that lacks it is caught; so are swapped voices, lost words, bad files."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any
from zlib import crc32

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace

from overtone import audio
from overtone.audio import Measures
from overtone.build import recipes
from overtone.build.delivery import RATE
from overtone.build.gates import Finding, cue, hygiene, run_gates, speaker, survive
from overtone.build.gates.facts import VERSION, ClipRecord, Facts, heard, measure_sound, read
from overtone.build.gates.run_gates import audio_gates
from overtone.build.gates.twin import Pair, compare
from overtone.build.render import Renderer
from overtone.build.sound_plan import Group, Job, Options
from overtone.build.voices import Speaker, cast
from overtone.cues import BY_SLUG, CUES

WORDS = "The parcel came on Friday and I put it on the kitchen table."
OTHER = "Nobody has watered the plants since the neighbours went away."
MEASURES = Measures(
    seconds=4.0, rms_dbfs=-26.0, peak_dbfs=-10.0, clipped=0.0, noise_floor_dbfs=-60.0, snr_db=34.0, active=0.8,
    pauses=2, pause_seconds=0.5, longest_pause=0.3, voiced=0.7, f0_hz=120.0, f0_range_st=8.0, f0_sd_st=3.0, rate_hz=4.5,
    tilt_db_oct=-6.0, centroid_hz=900.0, hnr_db=12.0, modulation=0.7,
)  # fmt: skip
PAIR = Pair(1.0, 0.0, None, None, -60.0, 0.0, 0.5)


def facts(path: str, transcript: str = WORDS, words: str = WORDS, **changes: Any) -> Facts:
    found = Facts(
        sha256=path, version=VERSION, words=words, transcript=transcript, heard=heard(words, transcript),
        measures=MEASURES, rate=24_000, channels=1, bits=16, peak=0.3, clipped=0, dc=0.0, silent=0.1, lead=0.04,
        trail=0.04, spectrum=(0.0,) * 9,
        envelope=tuple(np.random.default_rng(crc32(path.encode())).normal(-26, 6, 32).tolist()),
    )  # fmt: skip
    return replace(found, **changes)


def clip(path: str, style: str = "target", slug: str = "", **changes: Any) -> ClipRecord:
    scene = slug if slug in BY_SLUG and BY_SLUG[slug].dimension == "environment" else ""
    record = ClipRecord(path, WORDS, "id_1", style, slug, twin="" if style == "neutral" else "n", scene=scene)
    return replace(record, **changes)


def as_promised(slug: str) -> Facts:
    """Facts of a clip that keeps every promise of its cue, a little more than it has to."""
    values = msgspec.structs.asdict(MEASURES)
    pair = PAIR
    if slug in ("male", "female"):
        values["f0_hz"] = 110.0 if slug == "male" else 210.0
    elif BY_SLUG[slug].dimension == "environment":
        pair = replace(pair, snr_db=10.0, over=0.1)
    for promise in recipes.promises_of(slug):
        if hasattr(pair, promise.measure):
            pair = replace(pair, **{promise.measure: promise.least + promise.sign * 0.1})
        elif promise.how == "ratio":
            values[promise.measure] *= promise.least * (1 + promise.sign * 0.02)
        else:
            values[promise.measure] += promise.least + promise.sign * 0.02
    if recipes.recipe_of(slug).events:
        pair = replace(pair, events_db=max(pair.events_db, -5.0), events_seconds=1.0)
    return facts("t", measures=Measures(**values), pair=pair)


@pytest.mark.parametrize("slug", [c.slug for c in CUES])
def test_a_clip_with_its_cue_passes_and_one_that_sounds_like_its_twin_is_caught(slug: str) -> None:
    neutral = facts("n")
    clips = [clip("t", slug=slug), clip("n", "neutral")]
    assert cue.check(clips, {"t": as_promised(slug), "n": neutral}) == []
    same = facts("t", pair=replace(PAIR, snr_db=60.0, over=0.0))
    if slug == "male":  # its twin is no neutral clip: a voice of the other pitch is what fails
        same = replace(same, measures=replace_measures(f0_hz=200.0))
    found = cue.check(clips, {"t": same, "n": neutral})
    assert found and {f.subject for f in found} == {"t"} and {f.gate for f in found} == {cue.GATE}
    assert all("expected" in f.reason or "promises" in f.reason or "lies" in f.reason for f in found)


def replace_measures(**changes: Any) -> Measures:
    return replace(MEASURES, **changes)


@pytest.mark.parametrize("ratio", [7.0, 13.0, None])
def test_a_scene_at_another_ratio_than_it_was_mixed_at_is_caught(ratio: float | None) -> None:
    known = {"t": facts("t", pair=replace(PAIR, snr_db=ratio, over=0.2)), "n": facts("n")}
    assert [f.value for f in cue.check([clip("t", slug="rain")], known)] == [ratio]
    assert bool(cue.check([clip("t", slug="rain")], known, snr=13.0)) == (ratio != 13.0)


def test_a_scene_that_hides_behind_the_words_is_caught() -> None:
    known = {"t": facts("t", pair=replace(PAIR, snr_db=10.0, over=0.001)), "n": facts("n")}
    assert "hides" in cue.check([clip("t", slug="dog")], known)[0].reason


def test_a_weaker_set_promises_less() -> None:
    known = {"t": facts("t", measures=replace_measures(seconds=5.2, rate_hz=3.9), pair=PAIR), "n": facts("n")}
    strong = cue.check([clip("t", slug="slow")], known)
    assert strong and not cue.check([clip("t", slug="slow")], known, strength=0.3)


def test_an_actor_needs_the_right_directions_and_no_amounts() -> None:
    known = {"n": facts("n"), "t": facts("t", measures=replace_measures(seconds=4.1, rate_hz=4.4), pair=PAIR)}
    assert cue.check([clip("t", slug="slow")], known)
    assert not cue.check([clip("t", slug="slow", native=True)], known)
    assert cue.check([clip("t", slug="fast", native=True)], known)


def test_a_sound_between_the_words_that_no_recipe_puts_there_is_caught() -> None:
    good = as_promised("fast")
    assert good.pair is not None
    loud = replace(good, pair=replace(good.pair, events_db=-3.0))
    assert "listen" in cue.check([clip("t", slug="fast")], {"t": loud, "n": facts("n")})[0].reason


def test_lost_words_are_caught_clip_by_clip_and_style_by_style() -> None:
    half = "The parcel came on Friday and I"
    clips = [clip("a", slug="happy"), clip("b", slug="happy"), clip("c", slug="happy")]
    known = {name: facts(name, transcript) for name, transcript in (("a", WORDS), ("b", half), ("c", "no"))}
    found = survive.check(clips, known)
    assert [f.subject for f in found if "/" not in f.subject] == ["c"]
    rate = survive.rates(clips, known)[0]
    assert (rate.clips, rate.failed, rate.errors, rate.words) == (2, 1, 6, 26)
    worse = survive.check(clips[1:2] * survive.LEAST, known)
    assert [f.subject for f in worse] == ["target/happy"] and worse[0].bound == survive.bound("happy").corpus
    assert not survive.check(clips[1:2], known), "one clip is no style"


def test_every_cue_has_a_bound_on_lost_words_with_a_reason() -> None:
    assert set(survive.KIND) <= set(BY_SLUG)
    for slug in ("", *BY_SLUG):
        bound = survive.bound(slug)
        assert 0 < bound.corpus < bound.clip < 1 and bound.why


def test_a_clip_with_another_scripts_words_is_caught() -> None:
    clips = [clip("t"), clip("n", "neutral"), clip("o", words=OTHER, case_id="id_2", twin="")]
    known = {"t": facts("t", OTHER), "n": facts("n"), "o": facts("o", OTHER, OTHER)}
    found = speaker.check(clips, known)
    assert [f.subject for f in found] == ["t"] and "which file" in found[0].reason


def test_a_script_in_two_voices_is_caught_unless_the_voice_is_the_cue() -> None:
    far = facts("t", pair=replace(PAIR, voice_db=speaker.SAME_DB + 0.1))
    known = {"t": far, "n": facts("n")}
    assert [f.value for f in speaker.check([clip("t", slug="sad")], known)] == [speaker.SAME_DB + 0.1]
    assert speaker.check([clip("t", slug="child")], known) == []
    assert speaker.check([clip("t", "control")], known) == []


def test_a_control_in_the_scripts_own_voice_is_caught() -> None:
    known = {"t": facts("t", pair=replace(PAIR, voice_db=0.2)), "n": facts("n")}
    assert "control" in speaker.check([clip("t", "control")], known)[0].reason


def test_a_scene_over_another_voice_is_caught() -> None:
    known = {"t": facts("t", pair=replace(PAIR, snr_db=-20.0)), "n": facts("n")}
    assert "same take" in speaker.check([clip("t", slug="rain")], known)[0].reason


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"clipped": 40, "peak": 1.0}, "clipped"),
        ({"measures": replace_measures(rms_dbfs=-70.0)}, "silent"),
        ({"dc": 0.02}, "offset"),
        ({"silent": 0.7}, "silent for 70%"),
        ({"lead": 1.6}, "begins"),
        ({"trail": 1.6}, "ends"),
        ({"measures": replace_measures(seconds=0.4)}, "lasts"),
        ({"measures": replace_measures(seconds=45.0)}, "lasts"),
        ({"rate": 22_050}, "format"),
        ({"channels": 2}, "format"),
        ({"bits": 24}, "format"),
    ],
)
def test_a_file_that_is_not_clean_is_caught(changes: dict[str, Any], told: str) -> None:
    assert hygiene.check([clip("t")], {"t": facts("t")}) == []
    found = hygiene.check([clip("t")], {"t": facts("t", **changes)})
    assert len(found) == 1 and told in found[0].reason


def test_copies_are_caught_byte_for_byte_and_nearly() -> None:
    one = facts("a")
    near = facts("b", envelope=tuple(v + 3.1 for v in one.envelope))  # the same outline, louder
    clips = [clip("a"), clip("b"), clip("c"), clip("d", "plain")]
    known = {"a": one, "b": near, "c": facts("c", sha256="a"), "d": facts("d", sha256="a")}
    found = {f.subject: f.reason for f in hygiene.check(clips, known)}
    assert set(found) == {"b", "c"} and "same bytes as a" in found["c"] and "near copy of a" in found["b"]


# --- real sounds ---------------------------------------------------------------------------------------------------

local = pytest.mark.local


@functools.cache
def spoken(slug: str = "", voice: int = 0, words: str = WORDS, outdoors: bool = False) -> bytes:
    who = _men()[voice]
    job = Job(f"x/{slug}.wav", "id_1", "target" if slug else "neutral", words, who, slug, "", outdoors)
    return audio.encode_wav(Renderer(Group("id_1", slug, (job,)), Options()).clip(job).samples, RATE)


def _men() -> list[Speaker]:
    return [s for s in cast(("espeak",)).speakers() if s.sex == "male"]


def _set(out: Path, files: dict[str, bytes]) -> None:
    for name, data in files.items():
        (out / name).write_bytes(data)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[ClipRecord], run_gates.Checked]:
    """A small set with a clip of each kind, good and bad, through all gates."""
    out = tmp_path_factory.mktemp("set")
    good, _ = audio.decode(spoken())
    _set(
        out,
        {
            "n": spoken(), "slow": spoken("slow"), "cough": spoken("cough"), "whisper": spoken("whisper"),
            "outdoors": spoken(outdoors=True), "rain": spoken("rain", outdoors=True), "control": spoken(voice=1),
            "not slow": audio.encode_wav(good * 0.9, RATE), "swapped": spoken("slow", voice=1),
            "loud": audio.encode_wav(good * 40, RATE), "cut": audio.encode_wav(good[:30_000], RATE),
            "broken": b"RIFF no sound at all", "other words": spoken("slow", words=OTHER),
        },
    )  # fmt: skip
    clips = [
        clip("n", "neutral"), clip("slow", slug="slow"), clip("cough", slug="cough"), clip("whisper", slug="whisper"),
        clip("outdoors", "neutral"), clip("rain", slug="rain", twin="outdoors"), clip("control", "control"),
        clip("not slow", slug="slow"), clip("swapped", slug="slow"), clip("loud", slug="shout"),
        clip("cut", slug="sad"), clip("broken", slug="sad"), clip("gone", slug="sad"), clip("other words", slug="slow"),
        clip("q", words=OTHER, at="other words", case_id="id_2", style="neutral"),
    ]  # fmt: skip
    return out, clips, audio_gates(clips, out)


def _of(found: run_gates.Checked, path: str, gate: str = "") -> list[Finding]:
    return [f for f in found.findings if f.subject == path and gate in ("", f.gate)]


@pytest.mark.usefixtures("built")
class TestRealSounds:
    pytestmark = local

    @pytest.mark.parametrize("path", ["n", "slow", "cough", "whisper", "outdoors", "rain", "control"])
    def test_good_clips_pass(self, built: tuple[Path, Any, run_gates.Checked], path: str) -> None:
        assert [f for f in _of(built[2], path) if f.gate != survive.GATE and "copy" not in f.reason] == []

    @pytest.mark.parametrize(
        ("path", "gate"),
        [
            ("not slow", cue.GATE), ("swapped", speaker.GATE), ("loud", hygiene.GATE), ("broken", hygiene.GATE),
            ("gone", hygiene.GATE), ("other words", survive.GATE), ("other words", speaker.GATE), ("cut", survive.GATE),
        ],
    )  # fmt: skip
    def test_bad_clips_are_caught_by_their_gate(
        self, built: tuple[Path, Any, run_gates.Checked], path: str, gate: str
    ) -> None:
        assert _of(built[2], path, gate), _of(built[2], path)
        assert path in built[2].clips

    def test_what_was_measured_is_kept_and_a_killed_writer_costs_one_line(
        self, built: tuple[Path, list[ClipRecord], run_gates.Checked], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        out, clips, first = built
        store = out / run_gates.FILE
        whole = store.read_bytes()
        store.write_bytes(whole[:-40])  # killed in the middle of its last line
        measured: list[str] = []
        really = run_gates.measure_sound

        def counted(sound: Any, *rest: Any) -> Facts:
            measured.append(sound.sha256)
            return really(sound, *rest)

        monkeypatch.setattr(run_gates, "measure_sound", counted)
        again = audio_gates(clips, out)
        assert again == first
        assert len(measured) == 1
        assert store.read_bytes().count(b"\n") == whole.count(b"\n") + 1

    def test_facts_say_what_is_in_the_file(self, built: tuple[Path, Any, run_gates.Checked]) -> None:
        found = measure_sound(read(built[0] / "cough"), WORDS, read(built[0] / "n"))
        assert found == built[2].facts["cough"]
        assert (found.rate, found.channels, found.bits) == (24_000, 1, 16)
        assert found.pair is not None and found.pair.events_db > -12 and found.pair.events_seconds > 0.3


def test_an_alignment_finds_what_was_added_and_not_what_was_drawn_out() -> None:
    rng = np.random.default_rng(5)
    shape = np.repeat(rng.normal(0, 1, 60), 1200)
    words = np.convolve(rng.normal(0, 0.1, shape.size) * np.exp(shape), [1, 0.9, 0.5], "same").astype(np.float32)
    burst = rng.normal(0, 0.6, RATE // 2).astype(np.float32)
    with_burst = np.concatenate([words[:30_000], burst, words[30_000:]])
    longer = audio.resample(words, RATE, int(RATE * 1.3))
    assert compare(with_burst, words, RATE, RATE).events_db > -12
    assert compare(longer, words, RATE, RATE).events_db < -20


@pytest.mark.full
@pytest.mark.timeout(900)
class TestTheSpeakerGate:
    pytestmark = local

    def test_hardly_alarms_on_one_voice_and_finds_a_swapped_one(self, capsys: pytest.CaptureFixture[str]) -> None:
        """The rates of docs/reference/gates-audio.md: every delivery of a voice against the plain speech of all."""
        from overtone.build.script import read_set

        team = cast(("espeak",)).speakers()
        cues = [c.slug for c in CUES if c.dimension == "paralinguistic"]
        same: list[float] = []
        other: list[float] = []
        sexes: list[float] = []
        for k, script in enumerate(read_set("open")[3::60][: len(team)]):
            who = team[k]
            plain = {s: _samples(script.words, s, "") for s in team}
            for slug in cues:
                delivered = _samples(script.words, who, slug)
                for s, x in plain.items():
                    apart = compare(delivered, x, RATE, RATE, recipes.recipe_of(slug).formants).voice_db
                    kind = same if s == who else other if s.sex == who.sex else sexes
                    kind.append(np.nan if apart is None else apart)
        alarms, found, crossed = (float(np.mean(np.array(v) > speaker.SAME_DB)) for v in (same, other, sexes))
        with capsys.disabled():
            spread = [np.nanpercentile(v, (5, 50, 95, 99)).round(2).tolist() for v in (same, other, sexes)]
            print(f"\nfalse alarms {alarms:.3f} of {len(same)}; swaps found {found:.3f} of {len(other)}, ", end="")
            print(f"with the other sex {crossed:.3f} of {len(sexes)}; 5, 50, 95, 99 % {spread}")
        assert alarms <= 0.02 and found >= 0.85 and crossed >= 0.99


def _samples(words: str, who: Speaker, slug: str) -> audio.Samples:
    job = Job(f"x/{slug}.wav", "id_1", "target", words, who, slug)
    return audio.decode(audio.encode_wav(_renderer(words).clip(job).samples, RATE))[0]


@functools.lru_cache(1)
def _renderer(words: str) -> Renderer:
    """One renderer per script: it keeps the analysis of each voice."""
    return Renderer(Group("id_1", "", ()), Options())
