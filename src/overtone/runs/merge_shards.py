"""Join the shards of a run into one run, which is then like a run that was never split.

The merged run is written beside its place and renamed when it is complete, so a merge that is killed leaves no half of
a run. The shards are only read.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from overtone import locks
from overtone.errors import RunLocked, StoreError, UsageError
from overtone.paths import shown, write_whole
from overtone.runs import audio_probe
from overtone.runs.database import clear_errors
from overtone.runs.folder_safety import Finite, reading, select
from overtone.runs.marks import STATEMENT
from overtone.runs.measurement_choice import ASKED, History, read_history, record
from overtone.runs.run_shards import META, PLAN, PlanDigest, Plans, Shard, parse_shard, read_plans
from overtone.runs.store import Store
from overtone.text import count

MERGED = "merged"  # key in the meta table: the shards that a run was made of
_IDENTITY = ("benchmark", "model", "answers", "seed", "prompts", "clips", "order", STATEMENT)
_OWN = (META, PLAN, "open", "label", "created", "command", "settings", "versions", ASKED, audio_probe.META)
_BY_JUDGE = ("rubrics", "readers")  # entries of the meta table that hold one JSON object per judge or reader
_PLANNED = ("data", "levels", "prompt", "styles", "parts", "input", "asr", "repeats", "limit")
_VERDICT_ORDER = ("undecided", "heard", "dropped")  # of the audio probe: a shard that dropped the audio is shown
_NAMED = 3  # shards or items that an error names

# Tables whose first column is an ask: (name, types of the other columns).
_BY_ASK: tuple[tuple[str, Any], ...] = (
    ("replies", tuple[int, int, str, str, str, int, str, bytes, bytes, bytes, Finite, int, Finite]),
    ("failures", tuple[int, int, str, str, int, Finite]),
    ("likelihoods", tuple[int, int, bytes]),
    ("timings", tuple[int, int, bytes]),
    ("sessions", tuple[int, int, str, bytes]),
    ("labels", tuple[int, str, str, str, str, bytes, int, str, bytes]),
)


class Merged(Struct, frozen=True):
    """The result of a merge: the run's folder, its shards, and its numbers of items and of asks by state."""

    folder: Path
    shards: int
    items: int
    answered: int
    failed: int
    pending: int


class _Part(Struct):
    """A shard that is open for reading. `items` and `asks` map its row numbers to those of the merged run."""

    store: Store
    shard: Shard
    meta: dict[str, str]
    plans: Plans
    items: dict[int, int] = {}
    asks: dict[int, int] = {}

    @property
    def name(self) -> str:
        return f"shard {self.shard} ({shown(str(self.store.folder))})"

    def item(self, seq: int) -> int:
        """Return the merged number of an item. Raises ValueError if the shard has no such item."""
        return _number_of(self.items, seq, "item")

    def ask(self, ask: int) -> int:
        """Return the merged number of an ask. Raises ValueError if the shard has no such ask."""
        return _number_of(self.asks, ask, "ask")


def _number_of(numbers: Mapping[int, int], number: int, kind: str) -> int:
    if number not in numbers:
        raise ValueError(f"a row of {kind} {number}, which is missing")
    return numbers[number]


def merge(
    shards: Sequence[Path],
    out: Path,
    *,
    partial: bool = False,
    also: Callable[[Path, Path], None] | None = None,
    finish: Callable[[Path], None] | None = None,
) -> Merged:
    """Join shards into the run folder `out`, which must be new or empty. Raises UsageError or StoreError.

    With `partial`, shards and replies may be missing. Before the run gets its name, `also(shard, folder)` copies files
    that this room does not know, and `finish(folder)` works on the joined run.
    """
    if not out.name.strip("."):
        raise UsageError(f"--out: {shown(str(out))} is not the name of a new folder")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise StoreError(f"{shown(str(out))} exists and is not an empty folder; choose another --out, or remove it")
    with ExitStack() as stack:
        parts = sorted((_opened(folder, stack) for folder in shards), key=lambda part: part.shard)
        _check_alike(parts, partial)
        building = out.with_name(f"{out.name}.merging")
        _clear(building)
        with Store.create(building) as store:
            store.set_meta({MERGED: ", ".join(str(part.shard) for part in parts)})
            _join(store, parts)
            counts = _check_complete(store, parts, partial)
            items = store.item_count()
            _copy_sounds(store, parts)
            _write_meta(store, parts, out)
        for part in parts:
            _copy_log(part.store.folder, building)
            if also is not None:
                also(part.store.folder, building)
        if finish is not None:
            finish(building)
    with clear_errors(out):
        building.replace(out)
    return Merged(out, len(parts), items, **counts)


def _opened(folder: Path, stack: ExitStack) -> _Part:
    if _is_written(folder):
        raise RunLocked(f"{shown(str(folder))} is being written by another process; wait for it, or stop it")
    store = stack.enter_context(Store.read(folder))
    meta = store.meta()
    if META not in meta:
        raise UsageError(
            f"{shown(str(folder))} is not a shard: it was made without --shard. 'overtone merge' joins the folders "
            "that 'overtone run … --shard I/N' writes"
        )
    part = _Part(store, parse_shard(meta[META]), meta, read_plans(meta))
    if part.plans.last is None:
        raise StoreError(f"{part.name} was stopped before its first request; give its command again")
    return part


def _is_written(folder: Path) -> bool:
    """Return whether another process has locked a run."""
    try:
        with (folder / "lock").open("r+") as file:
            return not locks.lock(file)
    except OSError:  # there is no lock, or the folder is read-only
        return False


def _clear(building: Path) -> None:
    """Remove what a killed merge left. Raises StoreError if the folder is anything else."""
    if not building.exists():
        return
    with Store.create(building) as store:  # raises if it is not a run, or if another merge writes it
        meta = store.meta()
    if "created" in meta and MERGED not in meta:
        raise StoreError(f"{shown(str(building))} is a run that no merge has begun; rename it")
    with clear_errors(building):
        shutil.rmtree(building)


# ── checks ──────────────────────────────────────────────────────────────────────────────────────────────────────────
def _check_alike(parts: Sequence[_Part], partial: bool) -> None:
    """Raise UsageError or StoreError unless these are different shards of one run, all of them if not `partial`."""
    first = parts[0]
    for part in parts[1:]:
        if part.shard.of != first.shard.of:
            raise UsageError(f"{first.name} and {part.name} are parts of different splits; name shards of one split")
        different = [
            f"{key}: {_short(first.meta.get(key))} → {_short(part.meta.get(key))}"
            for key in _IDENTITY
            if first.meta.get(key) != part.meta.get(key)
        ]
        if different:
            raise StoreError(f"{part.name} is a part of another run than {first.name} ({'; '.join(different)})")
        if part.plans.current != first.plans.current:
            raise StoreError(
                f"{first.name} and {part.name} were asked for different items ({_why(first, part)}); give every shard "
                "the same flags except --shard, and run each again"
            )
    for shard, number in Counter(part.shard for part in parts).items():
        if number > 1:
            twice = " and ".join(shown(str(part.store.folder)) for part in parts if part.shard == shard)
            raise UsageError(f"shard {shard} is named {number} times: {twice}; name each shard once")
    if partial:
        return
    for part in parts:
        if pending := part.store.counts(wanted_only=True)["pending"]:
            raise StoreError(
                f"{part.name} has {count(pending, 'request')} that {'was' if pending == 1 else 'were'} not sent; give "
                "its command again, or add --partial: the merged run can be resumed"
            )


def _why(one: _Part, other: _Part) -> str:
    """Return the settings that make two plans differ."""
    settings = [_planned(part) for part in (one, other)]
    changed = [f"{key}: {a!r} → {b!r}" for (key, a), b in zip(settings[0].items(), settings[1].values(), strict=True)
               if a != b and key != "data"]  # fmt: skip
    if changed:
        return "; ".join(changed)
    return f"the flags are the same, so the benchmark's files differ: {settings[0]['data']}, {settings[1]['data']}"


def _planned(part: _Part) -> dict[str, Any]:
    try:
        tree = tomllib.loads(part.meta.get("settings", ""))
        table = {**tree["run"], **tree["benchmark"][0]}
    except (tomllib.TOMLDecodeError, KeyError, IndexError, TypeError):
        table = {}
    return {key: table.get(key) for key in _PLANNED}


def _check_complete(store: Store, parts: Sequence[_Part], partial: bool) -> dict[str, int]:
    """Return the numbers of asks by state. Raises StoreError if asks of the plan are missing and not `partial`."""
    digest = PlanDigest()
    sql = "SELECT i.body, a.condition, a.repeat FROM asks a JOIN items i ON i.seq = a.item WHERE a.wanted"
    with reading(store.folder):
        for body, condition, repeat in select(store.db, tuple[bytes, str, int], sql):
            digest.add(body, condition, repeat)
    plan = parts[0].plans.last
    if plan is not None and plan.digest != str(digest) and not partial:
        of, present = parts[0].shard.of, {part.shard.number for part in parts}
        missing = [str(Shard(number, of)) for number in range(1, of + 1) if number not in present]
        lacks = f"{plan.asks - digest.asks:,} of {plan.asks:,} requests of the run are missing"
        if not missing:
            raise StoreError(
                f"{lacks}, although all {of} shards are named: the benchmark's files changed between the shards. Run "
                "the shards again with another --out"
            )
        named = ", ".join(missing[:_NAMED]) + (f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else "")
        raise StoreError(
            f"{lacks}: name also the {'folder' if len(missing) == 1 else 'folders'} of {named}, or add --partial: the "
            "merged run can be resumed"
        )
    return store.counts()


# ── rows ────────────────────────────────────────────────────────────────────────────────────────────────────────────
def _join(store: Store, parts: Sequence[_Part]) -> None:
    """Copy the rows of all shards in one transaction, in the order of a run that was not split."""
    with reading(store.folder):
        store.db.execute("BEGIN IMMEDIATE")
        _number(store, parts)
        signatures: dict[str, int] = {}
        for part in parts:
            _copy_by_ask(store, part)
            _copy_scores(store, part, signatures)
            _copy_heard(store, part)
            _copy_clips(store, part)
            _copy_once(store, part)
        _copy_events(store, parts)
        store.commit()


def _rows(part: _Part, kind: Any, sql: str) -> Iterator[Any]:
    with reading(part.store.folder):
        yield from select(part.store.db, kind, sql)


def _number(store: Store, parts: Sequence[_Part]) -> None:
    """Copy items and asks, numbered from 1 in the order of the whole plan."""
    kind = tuple[int, str, int, str, str, str, str, str, str, bytes]
    items = [(row[0], at, row[1:]) for at, part in enumerate(parts) for row in _rows(part, kind, "SELECT * FROM items")]
    items.sort(key=lambda row: row[:2])
    seen: dict[str, _Part] = {}
    for number, (seq, at, row) in enumerate(items, 1):
        if row[0] in seen:
            raise StoreError(
                f"item {row[0]} is in {seen[row[0]].name} and in {parts[at].name}: the benchmark's files changed "
                "between the shards. Run the shards again with another --out"
            )
        seen[row[0]] = parts[at]
        parts[at].items[seq] = number
    sql = "INSERT INTO items VALUES (?,?,?,?,?,?,?,?,?,?)"
    store.db.executemany(sql, ((number, *row) for number, (_, _, row) in enumerate(items, 1)))
    columns = "id, item, condition, repeat, state, wanted"
    asks = [
        (row[0], at, row[1:])
        for at, part in enumerate(parts)
        for row in _rows(part, tuple[int, int, str, int, int, int], f"SELECT {columns} FROM asks")
    ]
    asks.sort(key=lambda row: row[:2])
    for number, (ask, at, _) in enumerate(asks, 1):
        parts[at].asks[ask] = number
    store.db.executemany(
        f"INSERT INTO asks ({columns}) VALUES (?,?,?,?,?,?)",
        ((number, parts[at].item(item), *row) for number, (_, at, (item, *row)) in enumerate(asks, 1)),
    )


def _copy_by_ask(store: Store, part: _Part) -> None:
    for table, kind in _BY_ASK:
        marks = ",".join("?" * len(kind.__args__))
        with reading(part.store.folder):
            store.db.executemany(
                f"INSERT INTO {table} VALUES ({marks})",
                ((part.ask(row[0]), *row[1:]) for row in _rows(part, kind, f"SELECT * FROM {table}")),
            )


def _copy_scores(store: Store, part: _Part, signatures: dict[str, int]) -> None:
    texts = dict(_rows(part, tuple[int, str], "SELECT id, text FROM signatures ORDER BY id"))
    for text in texts.values():
        signatures.setdefault(text, len(signatures) + 1)
    store.db.executemany(
        "INSERT OR IGNORE INTO signatures VALUES (?, ?)", [(n, text) for text, n in signatures.items()]
    )
    kind = tuple[str, int, str, int, Finite | None, str, bytes]
    with reading(part.store.folder):
        store.db.executemany(
            "INSERT INTO scores VALUES (?,?,?,?,?,?,?)",
            (
                (row[0], part.ask(row[1]), row[2], signatures[texts[row[3]]], *row[4:])
                for row in _rows(part, kind, "SELECT * FROM scores")
            ),
        )


def _copy_heard(store: Store, part: _Part) -> None:
    rows = _rows(part, tuple[int, str, str], "SELECT item, mark, origin FROM heard")
    with reading(part.store.folder):
        store.db.executemany("INSERT INTO heard VALUES (?,?,?)", ((part.item(item), *row) for item, *row in rows))


def _copy_clips(store: Store, part: _Part) -> None:
    """Copy the clips that were sent. Raises StoreError if two shards sent different files by one name."""
    known = store.clips()
    for path, (sha256, *rest) in part.store.clips().items():
        if path not in known:
            store.db.execute("INSERT INTO clips VALUES (?,?,?,?,?)", (path, sha256, *rest))
        elif known[path][0] != sha256:
            raise StoreError(
                f"{part.name} was asked with another clip {path} than the shards before it (SHA-256 "
                f"{known[path][0][:12]}… → {sha256[:12]}…); run this shard again on the same files with another --out"
            )


def _copy_once(store: Store, part: _Part) -> None:
    """Copy rows that all shards share: what scores, studies and the benchmark say of themselves."""
    for table in ("declarations", "studies", "suite"):
        rows = list(_rows(part, tuple[str, bytes], f"SELECT * FROM {table}"))
        store.db.executemany(f"INSERT OR IGNORE INTO {table} VALUES (?,?)", rows)


def _copy_events(store: Store, parts: Sequence[_Part]) -> None:
    """Copy what happened, in the order of time; the same warning of several shards once."""
    events = sorted(event for part in parts for event in part.store.events())
    warned: set[str] = set()
    for at, kind, detail in events:
        if kind == "warning":
            if detail in warned:
                continue
            warned.add(detail)
        store.db.execute("INSERT INTO events VALUES (?,?,?)", (at, kind, detail))
    versions = list(dict.fromkeys(_version(part) for part in parts))
    if len(versions) > 1:
        store.add_event("warning", f"The shards of this run were made with different versions: {', '.join(versions)}.")


def _version(part: _Part) -> str:
    try:
        return f"Overtone {msgspec.json.decode(part.meta.get('versions', ''), type=dict[str, str])['overtone']}"
    except (msgspec.MsgspecError, KeyError):
        return "an unknown version"


# ── files and the meta table ────────────────────────────────────────────────────────────────────────────────────────
def _copy_sounds(store: Store, parts: Sequence[_Part]) -> None:
    """Copy the spoken replies. Raises StoreError if one is missing or damaged."""
    for part in parts:
        for name in sorted(part.store.sounds()):
            path = part.store.audio_path(name)
            with clear_errors(part.store.folder):
                data = path.read_bytes() if path.is_file() else b""
            if not data or store.put_audio(data) != name:
                raise StoreError(
                    f"{part.name}: the sound {path.name} of a reply is {'damaged' if data else 'missing'}; restore the "
                    "shard from a copy ('overtone verify' checks it), or run it again with another --out"
                )


def _copy_log(shard: Path, building: Path) -> None:
    source = shard / "run.log"
    if source.is_file() and not source.is_symlink():
        with clear_errors(building), source.open("rb") as read, (building / "run.log").open("ab") as write:
            shutil.copyfileobj(read, write)


def _write_meta(store: Store, parts: Sequence[_Part], out: Path) -> None:
    """Write the meta table and config.toml of a run that is not a shard."""
    first = parts[0].meta
    settings = _whole_settings(first.get("settings", ""), out)
    history: History = {}
    for part in parts:
        for metric, asked in read_history(part.meta).items():
            for signature, named in asked:
                record(history, metric, signature, named)
    values = {key: value for key, value in first.items() if key not in _OWN} | {
        "created": min(part.meta.get("created", "") for part in parts),
        "label": out.resolve().name,
        "command": shlex.join(["overtone", *sys.argv[1:]]),
        "settings": settings,
        "versions": first.get("versions", "{}"),
        ASKED: msgspec.json.encode(history).decode(),
    }
    for key in _BY_JUDGE:
        if objects := [part.meta[key] for part in parts if key in part.meta]:
            with reading(store.folder):
                decoded = [msgspec.json.decode(text, type=dict[str, Any]) for text in objects]
            values[key] = msgspec.json.encode({name: about for one in decoded for name, about in one.items()}).decode()
    if probes := list(filter(None, (audio_probe.read(part.meta.get(audio_probe.META)) for part in parts))):
        worst = max(probes, key=lambda one: _VERDICT_ORDER.index(one.verdict))
        values[audio_probe.META] = msgspec.json.encode(worst).decode()
    store.set_meta(values)
    with clear_errors(store.folder):
        write_whole(store.folder / "config.toml", settings.encode())


def _whole_settings(text: str, out: Path) -> str:
    """Return the settings of a shard as those of the whole run, written to `out`."""
    lines = [line for line in text.splitlines() if not re.match(r"shard = ", line)]
    written = f"out = {json.dumps(str(out.absolute()), ensure_ascii=False)}"
    return "\n".join(written if re.match(r"out = ", line) else line for line in lines) + "\n"


def _short(value: str | None) -> str:
    text = value if value is not None else "none"
    return shown(text if len(text) <= 80 else f"{text[:80]}…")
