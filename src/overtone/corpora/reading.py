"""Read a corpus by the name of its adapter, or find out which adapter fits a folder."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from overtone import registry
from overtone.corpora import table
from overtone.corpora.corpus_files import Corpus, Note
from overtone.corpora.recording import AGE_GROUPS, SEXES, Recording, age_group, sentence
from overtone.errors import DataError, UsageError
from overtone.paths import inside, shown, user_path

if TYPE_CHECKING:
    from overtone.audio import Samples

SHOWN = 8  # warnings per corpus that are kept in full; the rest are counted
DEPTH = 3  # folders below the given one that are searched for corpora


class Reading(Struct, frozen=True):
    """The usable recordings of a corpus, and a bounded number of sentences about what was left out and why."""

    kind: str
    folder: Path
    recordings: list[Recording]
    warnings: list[str]
    left_out: int = 0


def kinds() -> dict[str, Corpus]:
    """Return every adapter by name, those of plug-ins too."""
    return {name: adapter(name) for name in registry.listing("corpora")}


def adapter(kind: str) -> Corpus:
    """Return an adapter. Raises UsageError with the nearest known name for an unknown one."""
    corpus = registry.find("corpora", kind).CORPUS
    if not isinstance(corpus, Corpus):
        raise UsageError(f"the CORPUS of the plug-in {kind!r} is not an overtone.corpora.Corpus")
    return corpus


def parse(text: str) -> tuple[str, Path]:
    """Return the adapter's name and the folder of `kind:DIR`; the name is "" for a folder alone.

    Raises UsageError for an unknown name, with the nearest known one."""
    kind, colon, folder = text.partition(":")
    is_drive = len(kind) == 1 and folder[:1] in ("/", "\\")  # C:\corpora
    if not colon or is_drive or "/" in kind or Path(text).is_dir():
        return "", user_path(text)
    if not folder:
        raise UsageError(f"{text}: no folder; write {kind}:DIR")
    return registry.check_name("corpora", kind), user_path(folder)


def detect(folder: Path) -> list[str]:
    """Return the names of the adapters whose layout the folder has. `table` comes last: others are more specific."""
    if not folder.is_dir():
        return []
    fitting = [name for name, corpus in kinds().items() if name != "table" and corpus.recognise(folder)]
    return fitting + ["table"] * table.is_table(folder)


def read(kind: str, folder: Path) -> Reading:
    """Read a corpus. With kind "", the layout decides.

    Every adapter also reads a folder with a labels.csv in the form of `table`, such as a selection in another format,
    and adds the corpus' name and licence, unless the folder has the layout of another corpus. Raises UsageError for a
    missing folder or another layout.
    """
    if not folder.is_dir():
        raise UsageError(f"{shown(str(folder))}: no such folder; give the folder of the corpus")
    if not kind:
        fitting = detect(folder)
        if not fitting:
            raise UsageError(
                f"{shown(str(folder))}: not the layout of a known corpus ({', '.join(kinds())}). For your own "
                "recordings, write a labels.csv in UTF-8 with the column file"
            )
        kind = fitting[0]
    kind = registry.check_name("corpora", kind)
    corpus = adapter(kind)
    if corpus.recognise(folder):
        rows = corpus.rows(folder)
    else:
        like = detect(folder)
        if like != ["table"]:
            hint = f"it looks like {like[0]}; write {like[0]}:{folder}" if like else f"expected {corpus.layout}"
            raise UsageError(f"{shown(str(folder))} does not have the layout of {corpus.title}: {shown(hint)}")
        rows = table.table_rows(folder)
    return _complete(kind, corpus, folder, rows)


def find(data: Path, depth: int = DEPTH) -> list[tuple[str, Path]]:
    """Return the name of the adapter and the folder of every corpus in a folder, or below it.

    A folder that fits is read as a whole, unless it contains folders of other corpora. If a corpus' folder is all that
    `data` contains, its names are relative to that folder, as if it had been given.
    """
    own = detect(data)[:1]
    try:
        inner = sorted(path for path in data.iterdir() if path.is_dir() and path.name[0] != ".") if depth else []
    except OSError as error:
        raise UsageError(f"{shown(str(data))}: cannot be read: {error.strerror}") from None
    if own and depth == DEPTH and inner == list(data.iterdir()) and len(inner) == 1 and detect(inner[0])[:1] == own:
        return [(own[0], inner[0])]
    if own and all(detect(path)[:1] in ([], own, ["table"]) for path in inner):
        return [(own[0], data)]
    return [one for path in inner for one in find(path, depth - 1)]


def sound(recording: Recording, rate: int) -> Samples:
    """Return the recording's sound in mono at this rate. Raises AudioError."""
    from overtone import audio

    if recording.end is None and recording.channel is None:
        return audio.read(recording.path, rate=rate)[0]
    span = recording.start, recording.end
    return audio.resample(*audio.read_part(recording.path, *span, channel=recording.channel), rate)


def _complete(kind: str, corpus: Corpus, folder: Path, rows: Iterable[Recording | str]) -> Reading:
    """Return the usable rows, with what the corpus says of all of them, in the order of their names."""
    usable: dict[str, Recording] = {}
    problems: list[str] = []
    notes: list[str] = []
    try:
        for row in rows:
            done = row if isinstance(row, str) else _usable(kind, row, corpus, folder, usable)
            if isinstance(done, str):
                (notes if isinstance(done, Note) else problems).append(done)
            else:
                usable[done.name] = done
    except DataError as error:
        problems.append(str(error))
    warnings = [shown(problem) for several in (notes, problems) for problem in several[:SHOWN]]
    if len(notes) > SHOWN:
        warnings.append(f"{shown(str(folder))}: {len(notes) - SHOWN} more notes like these")
    if problems:
        warnings.append(f"{shown(str(folder))}: left out {len(problems)} of {len(problems) + len(usable)} as {kind}")
    return Reading(kind, folder, [usable[name] for name in sorted(usable)], warnings, len(problems))


def _usable(
    kind: str, row: Recording, corpus: Corpus, folder: Path, others: Mapping[str, Recording]
) -> Recording | str:
    """Return the row with its file, or why it is left out."""
    if row.name in others:
        return f"{folder / row.name}: a second row of the same name"
    try:
        path = inside(folder, row.name if row.end is None else row.name.rpartition("#")[0])
    except DataError as error:
        return str(error)
    if not os.path.isfile(path):  # noqa: PTH113 - Path.is_file raises for a name that is too long
        return f"{path}: the file is missing"
    if row.sex not in ("", *SEXES) or row.age_group not in ("", *AGE_GROUPS):
        raise ValueError(f"the adapter {kind} returned {row}")  # a fault of the adapter
    return replace(
        row,
        corpus=row.corpus or kind,
        path=str(path),
        age_group=row.age_group or ("" if row.age is None else age_group(row.age)),
        words=sentence(row.words),
        language=row.language or corpus.language,
        licence=row.licence or corpus.licence,
    )
