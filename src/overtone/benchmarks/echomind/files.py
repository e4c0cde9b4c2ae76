"""Find EchoMind's files: its source folders with scripts and questions, and its prompt texts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from overtone.benchmarks._files import is_utf8
from overtone.errors import DataError
from overtone.paths import inside, read_plain, shown

_INSTRUCTIONS = {
    "basic_prompt.txt": "basic.system",
    "enhance_speaker_prompt.txt": "enhance.speaker.system",
    "enhance_paralinguistic_prompt.txt": "enhance.paralinguistic.system",
    "enhance_environment_prompt.txt": "enhance.environment.system",
}
_PROMPT_BYTES = 16_384


KINDS = {"understanding": 1, "reasoning": 2}  # kind of question file → level


class Source(Struct, frozen=True):
    """One folder of scripts, questions and clips: `name` is synthesis, human, or whatever follows `data_`."""

    name: str
    folder: Path
    prefix: str  # the folder relative to the root, with a final "/"; "" if it is the root
    scripts: Path | None
    questions: tuple[tuple[str, int, Path], ...]  # kind (understanding, reasoning, …), level, file


def find_sources(data: Path, kinds: Mapping[str, int] = KINDS) -> tuple[Path, list[Source]]:
    """Return the root and its sources.

    `data` may be the root, the folder above it, or the folder of one source. `kinds` names the question files to look
    for, with their levels.
    """
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
    if not is_utf8(folder.name):
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
        inside(root, path.relative_to(root).as_posix())  # refuses a link that leads out of the root
    return Source(name, folder, prefix, scripts[0] if scripts else None, questions)


def read_prompts(root: Path) -> dict[str, str]:
    """Read the prompt texts that come with the data, by the key of the text that each replaces."""
    prompts: dict[str, str] = {}
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
            prompts[key] = words
    return prompts
