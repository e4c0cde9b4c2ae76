"""The clips of a benchmark's folder or of a run, for studies in which people say what they hear in the user's
speech."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from overtone import registry
from overtone.audio import manifest_hashes
from overtone.audio._manifest import LEFT_OUT
from overtone.benchmarks import Selection, layouts
from overtone.errors import DataError
from overtone.judges.reply_texts import style
from overtone.paths import inside, sha256, shown
from overtone.runs.store import Store
from overtone.schema import Item
from overtone.studio.replies import RunReplies, Sound, UserClip


def is_set(folder: Path) -> bool:
    """Return whether a folder has the files of a built-in benchmark, and not those of a run."""
    return folder.is_dir() and not (folder / "run.db").exists() and bool(layouts.benchmark_of(folder))


def read(folder: Path, name: str = "") -> RunReplies:
    """Read the clips of a benchmark's folder, each once. Raises DataError if its benchmark is not recognised."""
    kind = layouts.benchmark_of(folder)
    if not kind:
        raise DataError(
            f"{shown(str(folder))}: has neither a run nor the files of a benchmark; name a run, or a set that "
            "'overtone build' made"
        )
    benchmark = registry.find("benchmarks", kind).load(folder)
    hashes = manifest_hashes(benchmark.root)
    if lost := [
        path for path in hashes if not path.startswith(LEFT_OUT) and not inside(benchmark.root, path).is_file()
    ]:
        raise DataError(f"{shown(str(folder))}: has lost {shown(lost[0])}; restore it, or build the set again")
    items = _conversations(benchmark.items(Selection()))
    return RunReplies(
        name or folder.resolve().name, folder, (), 0, kind, "set", clips_of(items, benchmark.root, hashes)
    )


def of_run(folder: Path, name: str = "") -> RunReplies:
    """Read the clips of a run's conversations, each once. Raises DataError if clips are missing."""
    with Store.read(folder) as store:
        meta = store.meta()
        hashes = {path: known[0] for path, known in store.clips().items()}
        items = _conversations(store.items())
    if not (root := meta.get("root", "")):
        raise DataError(f"{shown(str(folder))}: does not say where its clips are; name the set with --from instead")
    called = name or meta.get("label") or folder.resolve().name
    return RunReplies(called, folder, (), 0, meta.get("benchmark", ""), "run", clips_of(items, Path(root), hashes))


def _conversations(items: Iterable[Item]) -> list[Item]:
    """Return the conversations, whose labels then belong to replies; all items if there is no conversation."""
    every = list(items)
    return [item for item in every if item.task == "converse"] or every


def clips_of(items: Iterable[Item], root: Path, hashes: Mapping[str, str] | None = None) -> tuple[UserClip, ...]:
    """Return the clips of the items whose last turn has a sound, each file once. Raises DataError for a missing
    file."""
    clips: dict[str, UserClip] = {}
    for item in items:
        turn = item.turns[-1]
        if turn.clip is None or turn.clip.path in clips:
            continue
        path = inside(root, turn.clip.path)
        if not path.is_file():
            raise DataError(f"{shown(str(path))}: does not exist; restore the set, or build it again")
        sound = Sound(str(path), (hashes or {}).get(turn.clip.path) or turn.clip.sha256 or sha256(path))
        cue = turn.cue if len(item.turns) > 1 else item.cue
        group = item.group or item.case
        clips[turn.clip.path] = UserClip(
            item.id, group, style(item), cue, turn.words, item.language, turn.clip.path, sound
        )
    return tuple(clips.values())
