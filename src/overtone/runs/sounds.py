"""The clips a run sends: read once, kept while they are in use, and the same bytes every time the run goes on."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path

from overtone.audio import load_sound, silence
from overtone.errors import DataError, ModelFailure, StoreError
from overtone.paths import inside
from overtone.runs.store import Store
from overtone.schema import Clip, Sound

CACHE_BYTES = 32_000_000


class Sounds:
    """Clip → Sound, through a cache bounded in bytes; every clip's hash is kept in the store and compared."""

    def __init__(self, root: Path, store: Store) -> None:
        self.root = root
        self.store = store
        self._known = store.clips()
        self._cache: OrderedDict[str, Sound] = OrderedDict()
        self._bytes = 0

    def get(self, clip: Clip) -> Sound:
        """The clip's sound. A clip that cannot be decoded is a failure of its item, not of the run."""
        cached = self._cache.get(clip.path)
        if cached is not None:
            self._cache.move_to_end(clip.path)
            return cached
        try:
            path = inside(self.root, clip.path)
            sound = load_sound(path, name=clip.path)
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
        """A silence as long as the clip."""
        return silence(self.get(clip).seconds)

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
        """Compare every clip the run has used with what lies there now; only files that look touched are read."""
        for path, (_, size, mtime_ns, _) in list(self._known.items()):
            try:
                stat = inside(self.root, path).stat()
            except (DataError, OSError):
                continue  # a clip that is gone matters only if it is asked again, and then fails by itself
            if (stat.st_size, stat.st_mtime_ns) != (size, mtime_ns):
                self._check(path, load_sound(inside(self.root, path), name=path), stat.st_size, stat.st_mtime_ns)
