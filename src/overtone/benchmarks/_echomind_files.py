"""Where EchoMind's files lie: its folders, and a look-up of sounds that opens none of them."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from msgspec import Struct

from overtone.errors import DataError
from overtone.paths import inside, read_plain, shown

_INSTRUCTIONS = {
    "basic_prompt.txt": "basic.system",
    "enhance_speaker_prompt.txt": "enhance.speaker.system",
    "enhance_paralinguistic_prompt.txt": "enhance.paralinguistic.system",
    "enhance_environment_prompt.txt": "enhance.environment.system",
}
_PROMPT_BYTES = 16_384


KINDS = {"understanding": 1, "reasoning": 2}  # files of questions → the level they belong to


class Source(Struct, frozen=True):
    """One folder of scripts, questions and clips: `name` is synthesis, human, or whatever follows `data_`."""

    name: str
    folder: Path
    prefix: str  # the folder relative to the root, with a final "/"; "" where it is the root
    scripts: Path | None
    questions: tuple[tuple[str, int, Path], ...]  # kind (understanding, reasoning, …), level, file


def find_sources(data: Path, kinds: Mapping[str, int] = KINDS) -> tuple[Path, list[Source]]:
    """The root and its sources. `data` may be the root, the folder above it, or one source's folder. `kinds` are the
    files of questions to look for, with their levels."""
    if not data.is_dir():
        raise DataError(
            f"{shown(str(data))}: no such folder; give the folder that holds data_synthesis/ or data_human/"
        )
    data = data.resolve()
    for root in (data, data / "dataset", data / "EchoMind" / "dataset", data / "EchoMind"):
        folders = [f for f in sorted(root.glob("data_*")) if _is_source(f)] if root.is_dir() else []
        if folders:
            known = {"data_synthesis": 0, "data_human": 1}
            folders.sort(key=lambda f: (known.get(f.name, 2), f.name))
            return root, [_source(root, f, f"{f.name}/", kinds) for f in folders]
    if _is_source(data):
        if data.name.startswith("data_"):
            return data.parent, [_source(data.parent, data, f"{data.name}/", kinds)]
        return data, [_source(data, data, "", kinds)]
    raise DataError(
        f"{shown(str(data))}: holds neither data_synthesis/ nor data_human/ with a script_info_*.json or MCQ/ folder; "
        "give the dataset folder of the benchmark"
    )


def _is_source(folder: Path) -> bool:
    return folder.is_dir() and (any(folder.glob("script_info*.json")) or (folder / "MCQ").is_dir())


def _source(root: Path, folder: Path, prefix: str, kinds: Mapping[str, int]) -> Source:
    scripts = sorted(folder.glob("script_info*.json"))
    if len(scripts) > 1:
        named = ", ".join(shown(f.name) for f in scripts)
        raise DataError(f"{shown(str(folder))}: several script files ({named}); keep one")
    if not _is_utf8(folder.name):
        raise DataError(f"{shown(str(folder))}: the folder's name is not written in UTF-8; rename it")
    name = folder.name.removeprefix("data_")
    if not prefix and scripts:
        name = scripts[0].stem.removeprefix("script_info").strip("_") or name
    questions = tuple(
        (kind, level, file)
        for kind, level in kinds.items()
        for file in sorted((folder / "MCQ").glob(f"*{kind}*.json"))[:1]
    )
    for path in (*scripts, *(file for _, _, file in questions)):
        inside(root, path.relative_to(root).as_posix())  # a link that leads out is refused before it is read
    return Source(name, folder, prefix, scripts[0] if scripts else None, questions)


class Sounds:
    """Finds sound files under a root by path, and by name where the path is stale, without opening them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._listed: dict[str, dict[str, list[str]]] = {}  # folder → file name → paths relative to the root
        self._files: set[str] = set()
        self._found: dict[tuple[str, tuple[str, ...]], str | None] = {}

    def find(self, named: str, folders: tuple[str, ...]) -> str | None:
        """Where the file `named` lies, relative to the root: in one of `folders` ("" or ending in "/"), else by its
        bare name anywhere in the first. None when it is absent; DataError when it leads outside the root."""
        key = (named, folders)
        if key not in self._found:
            self._found[key] = self._find(named, folders)
        return self._found[key]

    def _find(self, named: str, folders: tuple[str, ...]) -> str | None:
        names = self._list(folders[0])
        path = named.replace("\\", "/").strip().removeprefix("./")
        pure = PurePosixPath(path)
        plain = not pure.is_absolute() and ".." not in pure.parts
        if plain and folders[0] + path in self._files:
            return folders[0] + path
        for folder in folders:
            # No plain file of the first folder: elsewhere, behind a link, absent, or an attempt to leave the root.
            real = inside(self.root, folder + path if not pure.is_absolute() else path)
            if _is_file(real):
                return folder + path if plain else real.relative_to(self.root.resolve()).as_posix()
        same = names.get(pure.name, [])
        return same[0] if len(same) == 1 else None

    def _list(self, folder: str) -> dict[str, list[str]]:
        """A folder's plain files by name, listed once. Links are left to `inside`."""
        if folder in self._listed:
            return self._listed[folder]
        names: dict[str, list[str]] = defaultdict(list)
        stack = [folder]
        while stack:
            here = stack.pop()
            try:
                with os.scandir(inside(self.root, here.rstrip("/")) if here else self.root) as listing:
                    for thing in listing:
                        if not _is_utf8(thing.name):  # no JSON file can name it, and no item could hold it
                            continue
                        if thing.is_dir(follow_symlinks=False):
                            stack.append(f"{here}{thing.name}/")
                        elif thing.is_file(follow_symlinks=False):
                            self._files.add(here + thing.name)
                            names[thing.name].append(here + thing.name)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                raise DataError(f"{shown(str(self.root / here))}: cannot be listed: {error.strerror}") from None
        self._listed[folder] = names
        return names


def _is_utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name longer than the file system takes cannot exist
        return False


def read_prompts(root: Path) -> dict[str, str]:
    """The prompt texts that lie beside the data, by the key of the text each replaces."""
    found: dict[str, str] = {}
    folder = "instruction/generate_audio_response"
    for name, key in _INSTRUCTIONS.items():
        path = inside(root, f"{folder}/{name}")
        if not path.is_file():
            continue
        data = read_plain(path, _PROMPT_BYTES)
        try:
            words = data.decode("utf-8-sig").strip()
        except UnicodeDecodeError as error:
            raise DataError(f"{shown(str(path))}: not UTF-8 text (byte {error.start}); save it as UTF-8") from None
        if words:
            found[key] = words
    return found


class Warnings:
    """Counts what was met while loading, by kind, and names the first few of each."""

    NAMED = 3

    def __init__(self) -> None:
        self._kinds: dict[str, list[str]] = {}
        self._counts: dict[str, int] = defaultdict(int)
        self._seen: set[tuple[str, str]] = set()

    def add(self, kind: str, which: str) -> None:
        """`kind` is a sentence that holds for any number of them: "clips that do not exist are left out"."""
        if (kind, which) in self._seen:  # twenty questions on one missing clip are one missing clip
            return
        self._seen.add((kind, which))
        self._counts[kind] += 1
        named = self._kinds.setdefault(kind, [])
        if len(named) < self.NAMED:
            named.append(shown(which))

    def lines(self) -> list[str]:
        out = []
        for kind, named in self._kinds.items():
            more = ", …" if self._counts[kind] > len(named) else ""
            out.append(f"{kind} ({self._counts[kind]}: {', '.join(named)}{more})")
        return out
