"""Scripts as a study uses them: from a set, a file, or a run, with the deliveries that one speaker can speak."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from overtone.build.script import Collection, Script, read_collection, sets
from overtone.build.voices.instructions import instructions
from overtone.cues import BY_SLUG
from overtone.errors import DataError, UsageError
from overtone.paths import shown
from overtone.runs.store import Store
from overtone.schema import STYLES
from overtone.studio.study import Source, Study

PLAIN = "plain"  # key of the delivery without a cue of the voice


class Part(Struct, frozen=True):
    """One delivery of a script. Its take serves all styles with this delivery; scenes are mixed in later."""

    key: str
    label: str
    instruction: str
    styles: tuple[str, ...]
    cue: str = ""
    manner: str = ""


class Spoken(Struct, frozen=True):
    """The words of a script, and the deliveries that a speaker records, the plain one first."""

    id: str
    words: str
    language: str
    topic: str
    parts: tuple[Part, ...]


def source_of(text: str, study: Path) -> Source:
    """Return the entry of a study file for a set's name, a file of scripts, or the folder of a run."""
    from overtone.studio.creation import relative

    if text in sets():
        return Source(kind="scripts", name=text, path=text)
    path = Path(text).expanduser()
    if not path.exists():
        raise UsageError(
            f"{shown(text)}: no such file, run or set; --scripts takes {', '.join(sets())}, a .jsonl or .toml file of "
            "scripts, or the folder of a run"
        )
    return Source(kind="scripts", name=path.resolve().stem, path=relative(path, study))


def collection_of(study: Study, source: Source) -> Collection | None:
    """Return the scripts of a set or file; None if the source is a run."""
    if source.path in sets():
        return read_collection(source.path)
    path = study.folder(source)
    if path.is_dir():
        return None
    if not path.is_file():
        raise DataError(f"{shown(str(path))}: does not exist; restore the scripts, or correct source.path")
    return read_collection(str(path))


def spoken(study: Study) -> tuple[list[Spoken], list[str]]:
    """Return the scripts that one speaker can record, and the ids of the others, whose cue is the speaker's sex or
    age."""
    found: dict[str, Spoken] = {}
    others: list[str] = []
    for source in study.sources:
        collection = collection_of(study, source)
        read = _of_run(study.folder(source)) if collection is None else _of_scripts(collection)
        for one in read:
            if one.id in found:
                raise DataError(f"two sources have a script {shown(one.id)}; a study needs different ids")
            if any(part.cue and BY_SLUG[part.cue].dimension == "speaker" for part in one.parts):
                others.append(one.id)
            else:
                found[one.id] = one
    return list(found.values()), others


def _of_scripts(collection: Collection) -> Iterable[Spoken]:
    for script in (*collection.scripts, *collection.conflicts):
        yield Spoken(script.id, script.words, script.language, script.topic, parts(_cues(script)))


def _cues(script: Script) -> dict[str, tuple[str, str]]:
    found: dict[str, tuple[str, str]] = {}
    for style in script.styles:
        cue = script.cue_in(style)
        found[style] = (cue.slug, script.manner_in(style)) if cue else ("", "")
    return found


def _of_run(folder: Path) -> Iterable[Spoken]:
    """Yield the scripts of a run's items with one turn, from the cues of their styles."""
    words: dict[str, tuple[str, str, str]] = {}
    cues: dict[str, dict[str, tuple[str, str]]] = {}
    with Store.read(folder) as store:
        for item in store.items():
            if item.part or len(item.turns) != 1 or item.style not in STYLES or not item.turns[0].words:
                continue
            script = (item.group or item.case).removeprefix(f"{item.source}/")
            words[script] = (item.turns[0].words, item.language, item.topic)
            cue = "" if item.style == "neutral" else item.turns[0].cue or item.cue
            cues.setdefault(script, {})[item.style] = (cue if cue in BY_SLUG else "", "")
    if not words:
        raise DataError(f"{shown(str(folder))}: the run has no scripts with words in the styles {', '.join(STYLES)}")
    for script, (text, language, topic) in words.items():
        yield Spoken(script, text, language, topic, parts(cues[script]))


def parts(cues: dict[str, tuple[str, str]]) -> tuple[Part, ...]:
    """Return the deliveries of a script from the cue and manner of each style. Styles with the same delivery share one.

    A cue of the environment is a scene that the builder mixes in, so its take is the plain one.
    """
    styles: dict[tuple[str, str], list[str]] = {}
    for style, (cue, manner) in cues.items():
        scene = bool(cue) and BY_SLUG[cue].dimension == "environment"
        styles.setdefault(("", "") if scene else (cue, manner), []).append(style)
    made = [_part(cue, manner, tuple(served)) for (cue, manner), served in styles.items()]
    return tuple(sorted(made, key=lambda part: part.key != PLAIN))


def _part(cue: str, manner: str, styles: tuple[str, ...]) -> Part:
    key = "-".join(filter(None, (cue, manner))) or PLAIN
    label = f"{manner} {cue}".strip() if cue else "ordinary"
    return Part(key, label, instructions(cue, manner), styles, cue, manner)
