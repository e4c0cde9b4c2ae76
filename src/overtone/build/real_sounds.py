"""Real sounds from a user's folder, in place of the synthesised scenes and vocal events.

`Library(folder)` detects the folder's layout (ESC-50, FSD50K, AudioCaps, a labels.csv, or one folder per cue), the
sounds that match one of our scenes or events, and the licence of each sound.
"""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np

from overtone import audio
from overtone.audio import Samples
from overtone.build.licence import UNKNOWN
from overtone.build.scenes import MOODS, SCENES
from overtone.build.tract import Rng, Sound, ramp, unit
from overtone.errors import AudioError, DataError
from overtone.paths import inside, read_plain, shown

LAYOUTS = """known layouts:
  ESC-50      meta/esc50.csv and audio/
  FSD50K      FSD50K.ground_truth/dev.csv and FSD50K.dev_audio/ (eval too), licences from FSD50K.metadata/
  AudioCaps   a CSV file with youtube_id, start_time and caption, and the clips as WAV or FLAC
  labelled    labels.csv with file and category, and if you like licence
  by cue      one folder per sound: rain/, cough/, music/sad/ …"""

LABELS: dict[str, str] = {  # our scene or vocal event → its names in the collections, in lower case with `_`
    "wind": "wind wind_noise rustling_leaves",
    "thunder": "thunder thunderstorm",
    "rain": "rain raindrop rain_on_surface raining",
    "waves": "waves sea_waves waves_and_surf ocean",
    "basketball": "basketball basketball_bounce",
    "car": "car engine car_passing_by idling driving accelerating_and_revving_and_vroom",
    "subway": "subway train subway_and_metro_and_underground rail_transport railroad_car_and_train_wagon",
    "applause": "applause clapping",
    "cheering": "cheering",
    "chatter": "chatter hubbub_and_speech_noise_and_speech_babble crowd",
    "children": "children children_playing child_speech_and_kid_speaking children_shouting",
    "alarm": "alarm clock_alarm alarm_clock",
    "ringtone": "ringtone telephone_bell_ringing telephone",
    "honking": "honking car_horn vehicle_horn_and_car_horn_and_honking air_horn_and_truck_horn",
    "dog": "dog bark dogs barking",
    **{f"music/{mood}": f"{mood}_music music_{mood}" for mood in MOODS},
    "cough": "cough coughing throat_clearing",
    "sigh": "sigh sighing",
    "laugh": "laugh laughing laughter chuckle_and_chortle belly_laugh",
    "titter": "titter giggle snicker",
    "yawn": "yawn yawning",
    "moan": "moan moaning groan",
    "sob": "sob sobbing crying crying_and_sobbing whimper",
    "pant": "pant panting",
    "gasp": "gasp gasping",
    "sniff": "sniff sniffing",
}
CAPTIONS: dict[str, str] = {  # our scene or vocal event → pattern of AudioCaps captions that describe it
    "wind": r"\bwind\b.*\bblow|\bwind is blowing|\bgust",
    "thunder": r"\bthunder",
    "rain": r"\brain(s|ing|fall)?\b",
    "waves": r"\b(ocean|sea|waves?)\b.*\b(crash|waves?|surf)|\bsurf\b",
    "basketball": r"\bbasketball",
    "car": r"\b(car|vehicle) (engine )?(is )?(driv|idl|accelerat|rev)|\bengine (is )?(idl|rev|hum)",
    "subway": r"\b(subway|metro|train)\b",
    "applause": r"\b(applau|clapping)",
    "cheering": r"\bcheer(s|ing)?\b",
    "chatter": r"\b(chatter|crowd (is )?(talk|chat|murmur)|people (are )?(talk|chat)ing)",
    "children": r"\b(children|kids)\b.*\b(play|shout|laugh|talk|speak|scream)",
    "alarm": r"\balarm( clock)?\b",
    "ringtone": r"\b(ringtone|(tele)?phone (is )?ring)",
    "honking": r"\bhonk|\bcar horn",
    "dog": r"\bdogs?\b.*\bbark|\bbarking",
    **{f"music/{mood}": rf"\b{mood}\b[^.,]*\bmusic" for mood in MOODS},
    "cough": r"\bcough",
    "sigh": r"\bsigh",
    "laugh": r"\blaugh",
    "titter": r"\b(giggl|titter|snicker)",
    "yawn": r"\byawn",
    "moan": r"\b(moan|groan)",
    "sob": r"\b(sob(s|bing)?|crying)\b",
    "pant": r"\bpanting",
    "gasp": r"\bgasp",
    "sniff": r"\bsniff",
}
PEOPLE = frozenset({"chatter", "children", "cheering"})  # scenes that may contain speech
_TALK = r"\b(speak|speech|talk|say|voice|narrat|sing)"
_CC = {"by": "BY", "by-nc": "BY-NC", "by-sa": "BY-SA", "by-nd": "BY-ND", "by-nc-sa": "BY-NC-SA", "by-nc-nd": "BY-NC-ND"}
_SOUND = frozenset({".wav", ".flac", ".ogg", ".mp3", ".opus"})
_MAX_TABLE = 200_000_000
_FADE = 0.25  # seconds over which a short recording's end fades into its beginning
_SCENE_DB, _EVENT_DB = -50.0, -35.0  # below the loudest moment: not part of the sound
_EVENT_SECONDS = (0.8, 2.5)  # an event is cut at its quietest moment between these

_SLUG_OF = {label: slug for slug, labels in LABELS.items() for label in labels.split()}
_PATTERNS = {slug: re.compile(pattern, re.I) for slug, pattern in CAPTIONS.items()}


class Library:
    """The sounds of one folder. `warnings` lists the chosen files that could not be used."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.layout, found = _found(folder)
        self.warnings: list[str] = []
        self._licences = {path: licence for _, path, licence in found}
        files: dict[str, set[Path]] = defaultdict(set)
        for slug, path, _ in found:
            files[slug].add(path)
        self._files = {slug: sorted(paths) for slug, paths in files.items()}

    def scene(self, slug: str, n: int, rate: int, rng: Rng, manner: str = "") -> tuple[Sound, Path] | None:
        """Return `n` samples at root mean square 1 and their file; None if the folder has no such scene."""
        name = f"music/{manner or next(iter(MOODS))}" if slug == "music" else slug
        for path, samples in self._drawn(name, rate, rng, _SCENE_DB):
            return unit(stretch(samples, n, rate, rng).astype(np.float64)), path
        return None

    def event(self, name: str, rate: int, rng: Rng) -> tuple[Sound, Path] | None:
        """Return a vocal event (at most 2.5 s, root mean square 1) and its file; None if the event is missing."""
        for path, samples in self._drawn(name, rate, rng, _EVENT_DB):
            cut = _first_event(samples, rate)
            return unit(cut * ramp(cut.size, rate, 0.01, 0.08)), path
        return None

    def licence(self, path: Path) -> str:
        """Return the licence of one of the folder's sounds, as an SPDX identifier if the layout states it."""
        return self._licences.get(path, UNKNOWN)

    def counts(self) -> dict[str, int]:
        """Return the number of sounds for each scene and event that has any. The sounds of all moods count as music."""
        out: dict[str, int] = defaultdict(int)
        for slug, paths in self._files.items():
            out[slug.partition("/")[0]] += len(paths)
        return dict(sorted(out.items()))

    def missing(self) -> tuple[str, ...]:
        """Return the scenes that the folder lacks. These scenes are synthesised."""
        return tuple(slug for slug in SCENES if slug not in self.counts())

    def _drawn(self, name: str, rate: int, rng: Rng, silent_db: float) -> Iterator[tuple[Path, Samples]]:
        """Yield a random file first, then the following ones, skipping unusable files."""
        paths = self._files.get(name, [])
        first = int(rng.integers(len(paths))) if paths else 0
        for path in paths[first:] + paths[:first]:
            try:
                samples = trimmed(audio.read(path, rate=rate)[0], rate, silent_db)
            except AudioError as error:
                self._warn(f"{error}; left out")
                continue
            if samples.size < 0.1 * rate:
                self._warn(f"{shown(str(path))}: silent or shorter than a tenth of a second; left out")
                continue
            yield path, samples

    def _warn(self, text: str) -> None:
        if text not in self.warnings:
            self.warnings.append(text)


def stretch(samples: Samples, n: int, rate: int, rng: Rng) -> Samples:
    """Return `n` samples of a recording from a random position, without silent ends. A shorter recording is looped."""
    x = trimmed(samples, rate)
    if not x.size:
        raise AudioError("a silent recording has no stretch to take")
    if x.size > n:
        sums = np.concatenate([[0.0], np.cumsum(np.square(x, dtype=np.float64))])
        starts = rng.integers(0, x.size - n + 1, 4)  # the loudest of four: a dog must not be caught between two barks
        start = int(starts[np.argmax(sums[starts + n] - sums[starts])])
        return x[start : start + n]
    fade = min(int(_FADE * rate), x.size // 3)
    if not fade:
        return np.tile(x, -(-n // x.size))[:n]
    turn = np.sin(np.pi / 2 * (np.arange(fade, dtype=np.float32) + 0.5) / fade).astype(np.float32)
    lap = x[fade:].copy()
    lap[-fade:] = lap[-fade:] * turn[::-1] + x[:fade] * turn
    return np.concatenate([x[:fade], np.tile(lap, -(-n // lap.size))])[:n]


def trimmed(samples: Samples, rate: int, silent_db: float = _SCENE_DB) -> Samples:
    """Cut silence from both ends of a recording; return an empty array if all of it is silent."""
    power = _power(samples, rate)
    if not power.size or power.max() < 1e-9:
        return samples[:0]
    hop = int(0.02 * rate)
    loud = np.flatnonzero(power > power.max() * 10 ** (silent_db / 10))
    return samples[loud[0] * hop : (loud[-1] + 1) * hop]


def _power(samples: Samples, rate: int) -> Sound:
    """Return the power in each 20 ms of a recording."""
    hop = max(int(0.02 * rate), 1)
    count = samples.size // hop
    return np.asarray(np.square(samples[: count * hop].reshape(count, hop), dtype=np.float64).mean(1))


def _first_event(samples: Samples, rate: int) -> Sound:
    low, high = (int(seconds / 0.02) for seconds in _EVENT_SECONDS)
    power = _power(samples, rate)
    if power.size > high:
        samples = samples[: (low + int(np.argmin(power[low:high])) + 1) * int(0.02 * rate)]
    return samples.astype(np.float64)


# ── layouts ─────────────────────────────────────────────────────────────────────────────────────────────────────────

Sounds = list[tuple[str, Path, str]]  # scene or event, file, licence


def _found(folder: Path) -> tuple[str, Sounds]:
    if not folder.is_dir():
        raise DataError(f"{shown(str(folder))}: no such folder; give the folder that holds the sounds to --sounds")
    if not any(folder.iterdir()):
        raise DataError(f"{shown(str(folder))}: the folder is empty; {LAYOUTS}")
    truth = next((p for p in (folder / "FSD50K.ground_truth", folder / "ground_truth") if p.is_dir()), None)
    if (folder / "meta" / "esc50.csv").is_file():
        layout, sounds = "ESC-50", _labelled(folder, folder / "meta" / "esc50.csv", "audio/")
    elif truth is not None:
        layout, sounds = "FSD50K", _fsd50k(folder, truth)
    elif (folder / "labels.csv").is_file():
        layout, sounds = "labelled", _labelled(folder, folder / "labels.csv", "")
    elif tables := _captioned(folder):
        layout, sounds = "AudioCaps", _audiocaps(folder, tables)
    else:
        layout, sounds = "by cue", _by_cue(folder)
    if not sounds and layout == "by cue":
        raise DataError(f"{shown(str(folder))}: not a supported collection of sounds; {LAYOUTS}")
    if not sounds:
        raise DataError(f"{shown(str(folder))}: the layout is {layout}, but no usable sound exists; unpack it again")
    return layout, sounds


def _rows(table: Path) -> list[dict[str, str]]:
    text = read_plain(table, _MAX_TABLE).decode("utf-8-sig", "replace")
    return [{k: v or "" for k, v in row.items() if k is not None} for row in csv.DictReader(text.splitlines())]


def _slug(label: str) -> str:
    return _SLUG_OF.get(re.sub(r"[^a-z0-9]+", "_", label.strip().lower()).strip("_"), "")


def _labelled(folder: Path, table: Path, prefix: str) -> Sounds:
    """Read ESC-50 as released, or a table of files and categories."""
    rows = _rows(table)
    name = "filename" if rows and "filename" in rows[0] else "file"
    if not rows or name not in rows[0] or "category" not in rows[0]:
        raise DataError(f"{shown(str(table))}: it needs the columns file and category; {LAYOUTS}")
    out: Sounds = []
    for row in rows:
        path = inside(folder, prefix + row[name])
        if (slug := _slug(row["category"])) and path.is_file():
            licence = row.get("licence") or row.get("license") or ""
            if not licence and "esc10" in row:
                licence = "CC-BY-3.0" if row["esc10"].strip().lower() == "true" else "CC-BY-NC-3.0"
            out.append((slug, path, spdx(licence)))
    return out


def _fsd50k(folder: Path, truth: Path) -> Sounds:
    out: Sounds = []
    prefix = "FSD50K." if truth.name.startswith("FSD50K.") else ""
    for part in ("dev", "eval"):
        if not (truth / f"{part}.csv").is_file():
            continue
        info = folder / f"{prefix}metadata" / f"{part}_clips_info_FSD50K.json"
        try:
            said = msgspec.json.decode(read_plain(info, _MAX_TABLE)) if info.is_file() else {}
        except msgspec.DecodeError as error:
            raise DataError(f"{shown(str(info))}: not JSON ({error}); unpack FSD50K.metadata again") from error
        clips = said if isinstance(said, dict) else {}
        for row in _rows(truth / f"{part}.csv"):
            labels = row.get("labels", "").split(",")
            slug = _only(labels)
            path = inside(folder, f"{prefix}{part}_audio/{row.get('fname', '')}.wav")
            if slug and path.is_file():
                clip = clips.get(row.get("fname", ""), {})
                out.append((slug, path, spdx(str(clip.get("license", "")) if isinstance(clip, dict) else "")))
    return out


def _only(labels: list[str]) -> str:
    """Return the one scene or event that a clip's labels name; "" if they name several, or unwanted speech."""
    slugs = {slug for label in labels if (slug := _slug(label))}
    if slugs == {"chatter", "cheering"}:  # a cheering crowd is a crowd in that ontology
        slugs = {"cheering"}
    slug = slugs.pop() if len(slugs) == 1 else ""
    return "" if slug not in PEOPLE and any(label in ("Speech", "Singing") for label in labels) else slug


def _captioned(folder: Path) -> list[Path]:
    tables = sorted([*folder.glob("*.csv"), *(folder / "dataset").glob("*.csv")])
    return [table for table in tables if (rows := _rows(table)) and {"youtube_id", "caption"} <= rows[0].keys()]


def _audiocaps(folder: Path, tables: list[Path]) -> Sounds:
    files = {path.stem: path for path in sorted(folder.rglob("*")) if path.suffix.lower() in _SOUND}
    out: Sounds = []
    for row in (row for table in tables for row in _rows(table)):
        video = row["youtube_id"]
        names = (row.get("audiocap_id", ""), video, f"Y{video}", f"{video}_{row.get('start_time', '')}")
        path = next((files[name] for name in names if name in files), None)
        slug = captioned(row["caption"])
        if path is not None and slug:
            out.append((slug, path.resolve(), UNKNOWN))
    return out


def captioned(caption: str) -> str:
    """Return the one scene or event that a caption describes, or ""."""
    slugs = [slug for slug, pattern in _PATTERNS.items() if pattern.search(caption)]
    if len(slugs) != 1 or (slugs[0] not in PEOPLE and re.search(_TALK, caption, re.I)):
        return ""
    return slugs[0]


def _by_cue(folder: Path) -> Sounds:
    out: Sounds = []
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() in _SOUND and len(parts := path.relative_to(folder).parts) > 1:
            name = f"{parts[0]}_{parts[1]}" if parts[0] == "music" else parts[0]
            if slug := _slug(name):
                out.append((slug, path.resolve(), UNKNOWN))
    return out


def spdx(licence: str) -> str:
    """Return the SPDX identifier of a Creative Commons URL or of a licence's name."""
    text = licence.strip()
    found = re.search(r"creativecommons\.org/licenses/([a-z-]+)/([1-4]\.\d)", text)
    if found and found[1] in _CC:
        return f"CC-{_CC[found[1]]}-{found[2]}"
    if "creativecommons.org/publicdomain/zero" in text:
        return "CC0-1.0"
    return text if text and "://" not in text else UNKNOWN
