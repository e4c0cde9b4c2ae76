"""Load the clips that a run sends, with a cache, and check that they have not changed since the run started."""

from __future__ import annotations

import hashlib
import logging
import re
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path

from overtone.audio import load_sound, manifest_hashes, read_bytes, silence
from overtone.errors import DataError, ModelFailure, StoreError
from overtone.paths import inside, shown
from overtone.runs.store import Store
from overtone.schema import Clip, Sound
from overtone.spec import Spec

log = logging.getLogger("overtone")
CACHE_BYTES = 32_000_000
OWN_RATE = "sent at their own rate"
EARLIER_LIMIT = 24_000  # Hz; runs that do not store how their clips were sent resampled clips above this rate to it
EARLIER = f"resampled to {EARLIER_LIMIT} Hz where their own rate is higher, as when this run was started"


def sent_how(spec: Spec, meta: Mapping[str, str], declared: int | None = None) -> str:
    """Describe how a run's clips are sent. `meta` is the run's meta table, empty for a new run.

    `declared` is the rate to which the model itself resamples, as a worker does.
    """
    if "created" in meta and meta.get("clips", EARLIER) == EARLIER:
        return EARLIER
    if (rate := spec.typed_audio_rate()) is not None:
        return f"resampled to {rate} Hz (audio_rate of the model's SPEC)"
    return f"resampled to {declared} Hz (declared by the model)" if declared else OWN_RATE


def sent_rates(meta: Mapping[str, str]) -> tuple[int | None, int | None]:
    """Return the rate to which all clips of a run were resampled and the maximum rate of its clips, each or None.

    The clips of a model that resamples itself are stored as it got them.
    """
    how = meta.get("clips", EARLIER)
    rate = re.match(r"resampled to (\d{1,6}) Hz \(audio_rate", how)
    return (int(rate[1]) if rate else None), (EARLIER_LIMIT if how == EARLIER else None)


class Sounds:
    """Loads clips through a cache of limited size, and compares each clip's hash with the one in the store.

    If there is a manifest next to the clips, each file is also compared with its SHA-256 there, and the first
    difference gives a warning. Clips keep their rate unless `rate` is given, or an older version of Overtone started
    the run with clips limited to EARLIER_LIMIT.
    """

    def __init__(self, root: Path, store: Store, rate: int | None = None) -> None:
        self.root = root
        self.store = store
        self.rate = rate
        self.max_rate = EARLIER_LIMIT if store.meta().get("clips") == EARLIER else None
        self._known = store.clips()
        self._listed = manifest_hashes(root)
        self._cache: OrderedDict[str, Sound] = OrderedDict()
        self._bytes = 0

    def get(self, clip: Clip) -> Sound:
        """Return the clip's sound. Raises ModelFailure `bad_clip`, which fails only this item, if it is unreadable."""
        cached = self._cache.get(clip.path)
        if cached is not None:
            self._cache.move_to_end(clip.path)
            return cached
        try:
            path = inside(self.root, clip.path)
            sound = self._load(path, clip.path)
            stat = path.stat()
        except (DataError, OSError) as error:
            raise ModelFailure("bad_clip", str(error)) from None
        self._check(clip.path, sound, stat.st_size, stat.st_mtime_ns)
        self._cache[clip.path] = sound
        self._bytes += len(sound.wav)
        while self._bytes > CACHE_BYTES and len(self._cache) > 1:
            self._bytes -= len(self._cache.popitem(last=False)[1].wav)
        return sound

    def silent(self, clip: Clip) -> Sound:
        """Return a silence of the clip's length."""
        seconds = self.get(clip).seconds
        return silence(seconds, self.rate) if self.rate else silence(seconds)

    def _load(self, path: Path, name: str) -> Sound:
        data = read_bytes(path, name=name)
        sound = load_sound(data, rate=self.rate, max_rate=self.max_rate, name=name)
        wanted = self._listed.get(name)
        if wanted and wanted != (sound.sha256 if sound.wav is data else hashlib.sha256(data).hexdigest()):
            self._listed = {}  # one warning is enough, because `overtone data check` lists all files
            warning = (
                f"The clip {name} is not the file that the set's manifest.json lists (its SHA-256 differs), and others "
                f"may differ too. Their labels may be wrong. Run: overtone data check {self.root}"
            )
            log.warning(shown(warning))
            self.store.add_event("warning", warning)
        return sound

    def _check(self, path: str, sound: Sound, size: int, mtime_ns: int) -> None:
        known = self._known.get(path)
        if known is not None and known[0] != sound.sha256:
            raise StoreError(
                f"{self.store.folder}: clip {path} has changed since it was asked "
                f"(SHA-256 {known[0][:12]}… → {sound.sha256[:12]}…); restore it, or choose another --out"
            )
        if known != (sound.sha256, size, mtime_ns, sound.seconds):
            self._known[path] = (sound.sha256, size, mtime_ns, sound.seconds)
            self.store.add_clip(path, sound.sha256, size, mtime_ns, sound.seconds)

    def check_unchanged(self) -> None:
        """Compare every clip that the run has used with the current file, if its size or modification time changed."""
        for path, (_, size, mtime_ns, _) in list(self._known.items()):
            try:
                stat = inside(self.root, path).stat()
            except (DataError, OSError):
                continue  # a missing clip matters only if it is needed again; then its item fails
            if (stat.st_size, stat.st_mtime_ns) != (size, mtime_ns):
                self._check(path, self._load(inside(self.root, path), path), stat.st_size, stat.st_mtime_ns)
