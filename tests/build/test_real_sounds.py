"""Real sounds from a folder: every layout is found out, labels become our cues, licences stay with their files."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import msgspec
import numpy as np
import pytest

from overtone import audio
from overtone.build.real_sounds import CAPTIONS, LABELS, Library, captioned, spdx, stretch, trimmed
from overtone.build.scenes import MOODS, SCENES
from overtone.build.vocal_events import EVENTS
from overtone.errors import AudioError, DataError

SHARED = Path(os.environ.get("OVERTONE_SHARED", Path(__file__).parents[3] / "shared")) / "data"
RATE = 16_000


def _tone(path: Path, hertz: float = 440.0, seconds: float = 0.6, silence: float = 0.0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    x = 0.3 * np.sin(2 * np.pi * hertz * np.arange(int(seconds * RATE)) / RATE)
    quiet = np.zeros(int(silence * RATE))
    path.write_bytes(audio.encode_wav(np.concatenate([quiet, x, quiet]).astype(np.float32), RATE))
    return path


def _table(path: Path, *rows: dict[str, object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def _rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_every_scene_and_every_vocal_event_has_labels_and_captions() -> None:
    wanted = (set(SCENES) - {"music"}) | set(EVENTS) | {f"music/{mood}" for mood in MOODS}
    assert set(LABELS) == wanted == set(CAPTIONS)
    labels = [label for names in LABELS.values() for label in names.split()]
    assert len(labels) == len(set(labels))


def test_esc50_as_released_is_read_with_its_two_licences(tmp_path: Path) -> None:
    _tone(tmp_path / "audio/1-1-A-10.wav")
    _tone(tmp_path / "audio/1-2-A-43.wav")
    _tone(tmp_path / "audio/1-3-A-24.wav")
    _tone(tmp_path / "audio/1-4-A-7.wav")
    _table(
        tmp_path / "meta/esc50.csv",
        {"filename": "1-1-A-10.wav", "fold": 1, "category": "rain", "esc10": "True"},
        {"filename": "1-2-A-43.wav", "fold": 1, "category": "car_horn", "esc10": "False"},
        {"filename": "1-3-A-24.wav", "fold": 1, "category": "coughing", "esc10": "False"},
        {"filename": "1-4-A-7.wav", "fold": 1, "category": "rooster", "esc10": "False"},
        {"filename": "1-5-A-10.wav", "fold": 1, "category": "rain", "esc10": "True"},  # not unpacked
    )
    library = Library(tmp_path)
    assert library.layout == "ESC-50"
    assert library.counts() == {"cough": 1, "honking": 1, "rain": 1}
    rain, horn = library.scene("rain", RATE, RATE, _rng()), library.scene("honking", RATE, RATE, _rng())
    assert rain and library.licence(rain[1]) == "CC-BY-3.0"
    assert horn and library.licence(horn[1]) == "CC-BY-NC-3.0"
    assert library.event("cough", RATE, _rng())


def test_fsd50k_gives_each_clip_its_own_licence_and_leaves_out_what_holds_two_things(tmp_path: Path) -> None:
    for name in ("101", "102", "103", "104"):
        _tone(tmp_path / f"FSD50K.dev_audio/{name}.wav")
    _tone(tmp_path / "FSD50K.eval_audio/201.wav")
    _table(
        tmp_path / "FSD50K.ground_truth/dev.csv",
        {"fname": "101", "labels": "Bark,Dog,Domestic_animals_and_pets,Animal", "mids": "/m/0,/m/1", "split": "train"},
        {"fname": "102", "labels": "Rain,Thunder,Thunderstorm", "mids": "/m/2", "split": "train"},
        {"fname": "103", "labels": "Wind,Speech,Human_voice", "mids": "/m/3", "split": "val"},
        {"fname": "104", "labels": "Cheering,Crowd,Human_group_actions", "mids": "/m/4", "split": "val"},
    )
    _table(tmp_path / "FSD50K.ground_truth/eval.csv", {"fname": "201", "labels": "Cough", "mids": "/m/5"})
    info = {
        "101": {"license": "http://creativecommons.org/licenses/by/3.0/", "uploader": "a"},
        "104": {"license": "http://creativecommons.org/publicdomain/zero/1.0/", "uploader": "b"},
    }
    (tmp_path / "FSD50K.metadata").mkdir()
    (tmp_path / "FSD50K.metadata/dev_clips_info_FSD50K.json").write_bytes(msgspec.json.encode(info))
    library = Library(tmp_path)
    assert library.layout == "FSD50K"
    assert library.counts() == {"cheering": 1, "cough": 1, "dog": 1}
    licences = {name: library.licence(found[1]) for name in ("dog", "cheering") if (found := _some(library, name))}
    assert licences == {"dog": "CC-BY-3.0", "cheering": "CC0-1.0"}
    cough = library.event("cough", RATE, _rng())
    assert cough and library.licence(cough[1]) == "unknown"


def _some(library: Library, slug: str) -> tuple[np.ndarray, Path] | None:
    return library.scene(slug, RATE, RATE, _rng())


def test_audiocaps_is_chosen_by_what_its_captions_say(tmp_path: Path) -> None:
    _tone(tmp_path / "audio/Yabc.wav")
    _tone(tmp_path / "audio/77.wav")
    _tone(tmp_path / "audio/def_30.wav")
    _table(
        tmp_path / "train.csv",
        {"audiocap_id": 7, "youtube_id": "abc", "start_time": 0, "caption": "Rain falls on a roof"},
        {"audiocap_id": 77, "youtube_id": "xyz", "start_time": 10, "caption": "A dog is barking repeatedly"},
        {"audiocap_id": 78, "youtube_id": "def", "start_time": 30, "caption": "Rain falls while a man speaks"},
    )
    library = Library(tmp_path)
    assert library.layout == "AudioCaps" and library.counts() == {"dog": 1, "rain": 1}
    rain = _some(library, "rain")
    assert rain and rain[1].name == "Yabc.wav" and library.licence(rain[1]) == "unknown"


@pytest.mark.parametrize(
    ("caption", "slug"),
    [
        ("Thunder roars in the distance", "thunder"),
        ("Ocean waves crash on the shore", "waves"),
        ("A vehicle engine is idling", "car"),
        ("A crowd applauds", "applause"),
        ("A telephone rings", "ringtone"),
        ("A telephone ringing", "ringtone"),
        ("Sad piano music plays", "music/sad"),
        ("A man coughs and a dog is barking", ""),
        ("A woman laughs while speaking", ""),
        ("Someone types on a keyboard", ""),
    ],
)
def test_a_caption_names_one_thing_or_nothing(caption: str, slug: str) -> None:
    assert captioned(caption) == slug


def test_one_folder_per_cue_needs_no_table_and_music_goes_by_its_mood(tmp_path: Path) -> None:
    _tone(tmp_path / "rain/a.wav")
    _tone(tmp_path / "Coughing/b.wav")
    _tone(tmp_path / "music/sad/c.wav")
    _tone(tmp_path / "holiday/d.wav")
    library = Library(tmp_path)
    assert library.layout == "by cue" and library.counts() == {"cough": 1, "music": 1, "rain": 1}
    assert library.scene("music", RATE, RATE, _rng(), "sad")
    assert library.scene("music", RATE, RATE, _rng(), "angry") is None
    assert "thunder" in library.missing() and "rain" not in library.missing()


def test_a_table_of_ones_own_may_name_licences_and_must_stay_in_its_folder(tmp_path: Path) -> None:
    _tone(tmp_path / "x/a.wav")
    _table(tmp_path / "labels.csv", {"file": "x/a.wav", "category": "wind", "licence": "CC0-1.0"})
    library = Library(tmp_path)
    wind = _some(library, "wind")
    assert wind and library.licence(wind[1]) == "CC0-1.0"
    _table(tmp_path / "labels.csv", {"file": "../a.wav", "category": "wind"})
    with pytest.raises(DataError, match="leaves its folder"):
        Library(tmp_path)


def test_a_scene_has_the_wanted_length_at_level_one_and_a_short_sound_is_looped_without_a_gap(tmp_path: Path) -> None:
    _tone(tmp_path / "rain/a.wav", 200.0, seconds=0.7, silence=1.0)
    found = Library(tmp_path).scene("rain", 5 * RATE, RATE, _rng())
    assert found
    x = found[0]
    assert x.shape == (5 * RATE,) and float(np.mean(x * x)) == pytest.approx(1.0)
    moments = (x[: x.size // 800 * 800].reshape(-1, 800) ** 2).mean(1)
    assert float(moments.min()) > 0.05  # the silence around the sound and the seam of the loop are not heard


def test_the_generator_alone_decides_which_sound_is_taken(tmp_path: Path) -> None:
    for k in range(6):
        _tone(tmp_path / f"rain/{k}.wav", 200.0 + 50 * k)
    library, again = Library(tmp_path), Library(tmp_path)
    drawn = [library.scene("rain", RATE, RATE, _rng(seed)) for seed in range(12)]
    same = [again.scene("rain", RATE, RATE, _rng(seed)) for seed in range(12)]
    for a, b in zip(drawn, same, strict=True):
        assert a and b and a[1] == b[1] and np.array_equal(a[0], b[0])
    assert len({found[1] for found in drawn if found}) >= 4


def test_an_event_is_short_and_ends_softly(tmp_path: Path) -> None:
    _tone(tmp_path / "laugh/a.wav", seconds=6.0)
    found = Library(tmp_path).event("laugh", RATE, _rng())
    assert found and 0.7 * RATE < found[0].size < 2.6 * RATE
    assert float(np.abs(found[0][-20:]).max()) < 0.05


def test_broken_and_silent_files_are_left_out_and_listed(tmp_path: Path) -> None:
    _tone(tmp_path / "rain/good.wav")
    (tmp_path / "rain/broken.wav").write_bytes(b"RIFF no sound")
    (tmp_path / "rain/silent.wav").write_bytes(audio.encode_wav(np.zeros(RATE, np.float32), RATE))
    library = Library(tmp_path)
    for seed in range(8):
        found = library.scene("rain", RATE, RATE, _rng(seed))
        assert found and found[1].name == "good.wav"
    assert len(library.warnings) == 2
    assert any("broken.wav" in w for w in library.warnings) and any("silent" in w for w in library.warnings)
    (tmp_path / "rain/good.wav").unlink()
    assert Library(tmp_path).scene("rain", RATE, RATE, _rng()) is None


def test_a_scene_the_folder_lacks_is_none_so_that_it_is_synthesised(tmp_path: Path) -> None:
    _tone(tmp_path / "rain/a.wav")
    library = Library(tmp_path)
    assert library.scene("dog", RATE, RATE, _rng()) is None and library.event("cough", RATE, _rng()) is None


def test_what_is_no_collection_is_refused_with_the_layouts_that_are_known(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such folder"):
        Library(tmp_path / "none")
    with pytest.raises(DataError, match=r"is empty(.|\n)*FSD50K"):
        Library(tmp_path)
    _tone(tmp_path / "holiday/a.wav")
    with pytest.raises(DataError, match=r"not a supported collection(.|\n)*ESC-50"):
        Library(tmp_path)
    _table(tmp_path / "labels.csv", {"file": "gone.wav", "category": "rain"})
    with pytest.raises(DataError, match="no usable sound exists"):
        Library(tmp_path)
    _table(tmp_path / "labels.csv", {"name": "a", "kind": "rain"})
    with pytest.raises(DataError, match="columns file and category"):
        Library(tmp_path)


@pytest.mark.parametrize(
    ("said", "licence"),
    [
        ("http://creativecommons.org/licenses/by-nc/3.0/", "CC-BY-NC-3.0"),
        ("https://creativecommons.org/licenses/by/4.0/", "CC-BY-4.0"),
        ("http://creativecommons.org/publicdomain/zero/1.0/", "CC0-1.0"),
        ("http://creativecommons.org/licenses/sampling+/1.0/", "unknown"),
        ("CC-BY-SA-4.0", "CC-BY-SA-4.0"),
        ("", "unknown"),
    ],
)
def test_a_licences_address_becomes_its_identifier(said: str, licence: str) -> None:
    assert spdx(said) == licence


def test_a_stretch_of_a_long_recording_is_its_own_and_silence_has_none() -> None:
    x = np.sin(np.arange(10 * RATE) / 3).astype(np.float32)
    cut = stretch(x, RATE, RATE, _rng(3))
    assert cut.size == RATE and any(np.array_equal(cut, x[k : k + RATE]) for k in range(0, 9 * RATE + 1))
    assert trimmed(np.zeros(RATE, np.float32), RATE).size == 0
    with pytest.raises(AudioError):
        stretch(np.zeros(RATE, np.float32), RATE, RATE, _rng())


@pytest.mark.shared
@pytest.mark.skipif(
    not (SHARED / "esc50").is_dir(), reason="no ESC-50; set OVERTONE_SHARED to the folder that holds data/"
)
def test_real_recordings_serve_ten_scenes_and_two_events() -> None:
    library = Library(SHARED / "esc50")
    counts = library.counts()
    assert len([slug for slug in SCENES if slug in counts]) == 10 and {"cough", "laugh"} <= set(counts)
    for slug in counts:
        found = (
            library.scene(slug, 2 * 24_000, 24_000, _rng(1)) if slug in SCENES else library.event(slug, 24_000, _rng(1))
        )
        assert found and float(np.mean(found[0] ** 2)) == pytest.approx(1.0)
        assert library.licence(found[1]) in ("CC-BY-3.0", "CC-BY-NC-3.0")
    assert not library.warnings
