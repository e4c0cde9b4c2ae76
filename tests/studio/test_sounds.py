"""Rendered sounds: gain, level, limiter, cap, backwards, low-pass; each made once, and again if it is damaged."""

from __future__ import annotations

import hashlib
import io
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt
import pytest
import soundfile

from overtone.audio import encode_wav
from overtone.errors import StoreError
from overtone.studio import sounds
from overtone.studio.replies import PEAK, TARGET_DB
from overtone.studio.sounds import LostSound, Sounds, Wanted

RATE = 16_000
Wave = npt.NDArray[np.float64]


def chirp(seconds: float = 0.8, level: float = 0.1) -> Wave:
    """A tone that rises and grows, so that its ends differ."""
    time = np.arange(round(seconds * RATE)) / RATE
    wave: Wave = level * np.sin(2 * np.pi * (200 + 600 * time) * time) * (0.2 + time)
    return wave


def source(folder: Path, wave: Wave, rate: int = RATE, name: str = "a.wav") -> Wanted:
    data = encode_wav(wave.astype(np.float32), rate)
    path = folder / name
    path.write_bytes(data)
    return Wanted(str(path), hashlib.sha256(data).hexdigest())


def heard(folder: Sounds, wanted: Wanted) -> tuple[Wave, int]:
    samples, rate = soundfile.read(io.BytesIO(folder.data(wanted)))
    return samples, rate


@pytest.fixture
def folder(tmp_path: Path) -> Sounds:
    return Sounds(tmp_path / "sounds")


def test_one_gain_is_applied_and_the_rate_is_kept(tmp_path: Path, folder: Sounds) -> None:
    wave = chirp()
    out, rate = heard(folder, msgspec.structs.replace(source(tmp_path, wave), gain_db=-6.0))
    assert rate == RATE and np.allclose(out, wave * 10 ** (-6 / 20), atol=2e-4)


def test_a_rate_that_browsers_may_not_play_is_resampled(tmp_path: Path, folder: Sounds) -> None:
    assert heard(folder, source(tmp_path, np.repeat(chirp(), 6), 96_000))[1] == 48_000


def test_backwards_is_the_same_sound_from_its_end(tmp_path: Path, folder: Sounds) -> None:
    wanted = source(tmp_path, chirp())
    forwards, _ = heard(folder, wanted)
    backwards, _ = heard(folder, msgspec.structs.replace(wanted, backwards=True))
    assert np.array_equal(forwards[::-1], backwards) and not np.array_equal(forwards, backwards)


def test_each_clip_is_brought_to_the_common_level_if_the_study_says_so(tmp_path: Path, folder: Sounds) -> None:
    for number, level in enumerate((0.01, 0.3)):
        one = source(tmp_path, chirp(level=level), name=f"{number}.wav")
        out, _ = heard(folder, msgspec.structs.replace(one, level_db=TARGET_DB))
        assert 10 * np.log10(np.mean(out**2)) == pytest.approx(TARGET_DB, abs=0.1)


def test_silence_stays_silent(tmp_path: Path, folder: Sounds) -> None:
    wanted = msgspec.structs.replace(source(tmp_path, np.zeros(RATE)), level_db=TARGET_DB)
    assert not heard(folder, wanted)[0].any()


def test_peaks_are_limited_without_changing_the_rest_and_logged(tmp_path: Path, folder: Sounds) -> None:
    wave = chirp(level=0.05)
    wave[6_000] = 0.4  # a click
    wanted = msgspec.structs.replace(source(tmp_path, wave), gain_db=12.0)
    out, _ = heard(folder, wanted)
    assert np.max(np.abs(out)) <= PEAK + 1e-3
    away = np.abs(np.arange(len(wave)) - 6_000) > 2 * sounds.LIMITER_SECONDS * RATE
    assert np.allclose(out[away], wave[away] * 10 ** (12 / 20), atol=3e-4)
    line = msgspec.json.decode((folder.folder / sounds.LOG).read_bytes())
    assert line["limited_db"] == pytest.approx(20 * np.log10(0.4 * 10 ** (12 / 20) / PEAK), abs=0.1)
    assert line["gain_db"] == 12.0 and line["source"] == wanted.sha256


def test_a_sound_that_is_too_loud_for_ears_is_made_softer_as_a_whole(tmp_path: Path, folder: Sounds) -> None:
    wave = chirp(1.0, 0.7)
    capped, _ = heard(folder, msgspec.structs.replace(source(tmp_path, wave), cap_db=-20.0))
    assert sounds.loudest_db(capped.astype(np.float32), RATE) == pytest.approx(-20.0, abs=0.1)
    assert np.corrcoef(capped, wave)[0, 1] > 0.9999


@pytest.mark.parametrize("cutoff", [3_500, 7_000])
def test_an_anchor_has_nothing_above_its_cutoff(tmp_path: Path, folder: Sounds, cutoff: int) -> None:
    noise = 0.05 * np.random.default_rng(1).standard_normal(48_000)
    wanted = source(tmp_path, noise, 48_000)
    low, _ = heard(folder, msgspec.structs.replace(wanted, lowpass=cutoff))
    spectrum, whole = (np.abs(np.fft.rfft(wave)) ** 2 for wave in (low, noise))
    hz = np.fft.rfftfreq(48_000, 1 / 48_000)
    below, above = hz < cutoff - 500, hz > cutoff + 500
    assert 10 * np.log10(spectrum[below].mean() / whole[below].mean()) == pytest.approx(0, abs=0.2)
    assert 10 * np.log10(spectrum[above].mean() / whole[above].mean()) < -50
    assert len(low) == len(noise)


def test_a_sound_is_rendered_once_also_by_many_threads_and_after_a_restart(
    tmp_path: Path, folder: Sounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    real = sounds.rendering
    monkeypatch.setattr(sounds, "rendering", lambda wanted: (made.append(wanted.key), real(wanted))[1])
    wanted = source(tmp_path, chirp())
    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(folder.data, [wanted] * 16))) == 1
    again = Sounds(folder.folder)
    assert again.data(wanted) == folder.data(wanted) and made == [wanted.key]


def test_a_damaged_rendering_is_made_again(tmp_path: Path, folder: Sounds) -> None:
    wanted = source(tmp_path, chirp())
    data = folder.data(wanted)
    (file,) = folder.folder.glob("*/*.flac")
    for damage in (data[:-10], b""):
        file.write_bytes(damage)
        assert Sounds(folder.folder).data(wanted) == data
        assert file.read_bytes() == data
    file.unlink()
    with (folder.folder / sounds.LOG).open("ab") as log:
        log.write(b'{"key": "cut off')
    assert Sounds(folder.folder).data(wanted) == data


def test_a_missing_or_changed_source_is_named(tmp_path: Path, folder: Sounds) -> None:
    wanted = source(tmp_path, chirp())
    path = Path(wanted.path)
    path.write_bytes(path.read_bytes()[:-2] + b"\x01\x01")
    with pytest.raises(LostSound, match=r"a\.wav has changed since the study was made; restore the file"):
        folder.data(wanted)
    path.unlink()
    with pytest.raises(LostSound, match=r"a\.wav.*no such file.*restore the file"):
        folder.data(wanted)
    path.write_bytes(b"not audio")
    with pytest.raises(LostSound, match=r"a\.wav"):
        folder.data(Wanted(str(path), hashlib.sha256(b"not audio").hexdigest()))


def test_a_full_disk_is_reported_and_leaves_nothing_half_written(
    tmp_path: Path, folder: Sounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    wanted = source(tmp_path, chirp())
    with monkeypatch.context() as patched:
        patched.setattr(sounds, "write_whole", full)
        with pytest.raises(StoreError, match="No space left on device"):
            folder.data(wanted)
    assert folder.data(wanted).startswith(b"fLaC")


def test_the_name_of_a_rendering_depends_on_content_and_processing_alone() -> None:
    one = Wanted("/here/a.wav", "0" * 64, gain_db=-3.0)
    assert one.key == msgspec.structs.replace(one, path="/there/b.wav").key
    others = ({"sha256": "1" * 64}, {"gain_db": -4.0}, {"level_db": -26.0}, {"cap_db": -12.0}, {"lowpass": 3_500},
              {"backwards": True})  # fmt: skip
    assert len({msgspec.structs.replace(one, **change).key for change in others} | {one.key}) == 7
