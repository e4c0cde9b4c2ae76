"""Compare two folders of outputs by the numbers in them: which changed, are missing, or are new.

Blocks and rows (`scripts/reference_reading.py`) are paired by their name, those without a partner by their numbers, the
rest in order. Rewording is counted, not reported. Exports must be equal byte by byte, but for what VOLATILE names.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from pathlib import Path
from typing import Protocol, TypeVar

from scripts.reference_reading import Block, Row, read, stable

EXPORTS = ("export", "preferences", "rescored", "arena-preferences")
MANY = 4_000  # more rows without a partner than this are counted, not paired


class Keyed(Protocol):
    key: str

    @property
    def numbers(self) -> tuple[str, ...]: ...


K = TypeVar("K", bound=Keyed)


def paired(before: Sequence[K], after: Sequence[K]) -> tuple[list[tuple[K, K]], list[K], list[K]]:
    """Pairs, and what is only in the one or the other: by unique name, then by equal numbers, then in order."""
    names = [Counter(one.key for one in side) for side in (before, after)]
    by_name = {one.key: one for one in after if names[1][one.key] == 1 == names[0][one.key]}
    pairs = [(one, by_name[one.key]) for one in before if one.key in by_name]
    left, right = ([one for one in side if one.key not in by_name] for side in (before, after))
    if max(len(left), len(right)) > MANY:
        return pairs, left, right
    only_before, only_after = [], []
    matcher = SequenceMatcher(None, [one.numbers for one in left], [one.numbers for one in right], autojunk=False)
    for _, a, b, c, d in matcher.get_opcodes():
        shared = min(b - a, d - c)
        pairs += zip(left[a : a + shared], right[c : c + shared], strict=True)
        only_before += left[a + shared : b]
        only_after += right[c + shared : d]
    return pairs, only_before, only_after


@dataclass
class Found:
    """What differs in one file: lines of text by kind."""

    failures: list[str] = field(default_factory=list)
    extra: list[str] = field(default_factory=list)
    reworded: int = 0
    drawing: int = 0


def compare_blocks(before: Sequence[Block], after: Sequence[Block]) -> Found:
    found = Found()
    pairs, only_before, only_after = paired(before, after)
    for a, b in pairs:
        found.reworded += a.key != b.key
        if a.key == b.key == "drawing":
            found.drawing += a.rows[0].key != b.rows[0].key
            continue
        _compare_rows(a, b, found)
    found.failures += [f"missing [{_short(one.key)}]: {len(one.rows)} rows" for one in only_before if one.numbers]
    found.extra += [f"[{_short(one.key)}]: {len(one.rows)} rows" for one in only_after if one.numbers]
    return found


def _compare_rows(a: Block, b: Block, found: Found) -> None:
    pairs, only_before, only_after = paired(a.rows, b.rows)
    for one, other in pairs:
        found.reworded += one.key != other.key or list(one.cells) != list(other.cells)
        _compare_numbers(f"[{_short(a.key)}] {_short(one.key)}", one, other, found)
    found.failures += [f"missing row [{_short(a.key)}] {_short(r.key)}: {_shown(r)}" for r in only_before if r.numbers]
    found.extra += [f"row [{_short(b.key)}] {_short(r.key)}: {_shown(r)}" for r in only_after if r.numbers]
    found.reworded += sum(not row.numbers for row in (*only_before, *only_after))


def _compare_numbers(where: str, one: Row, other: Row, found: Found) -> None:
    """Compare in order; in a sentence, whose order may be another now, only which numbers it holds."""
    old, new = one.numbers, other.numbers
    if one.prose:
        counts = Counter(old), Counter(new)
        old, new = (tuple((counts[n] - counts[1 - n]).elements()) for n in (0, 1))
    for kind, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "insert":
            found.extra.append(f"{where}: {' '.join(new[c:d])}")
        elif kind != "equal":
            found.failures.append(f"{where}: {' '.join(old[a:b])} → {' '.join(new[c:d]) or 'nothing'}")


def _short(text: str) -> str:
    return text if len(text) <= 90 else f"{text[:50]}…{text[-39:]}"


def _shown(row: Row) -> str:
    return _short(" ".join(row.numbers))


def compare_bytes(before: Path, after: Path) -> Found:
    """Lines of an export that are not equal."""
    if before.suffix == ".parquet":
        return Found(["differs"] if before.read_bytes() != after.read_bytes() else [])
    old, new = (stable(path.read_text(encoding="utf-8")).splitlines() for path in (before, after))
    found = Found([f"{len(old)} lines → {len(new)} lines"] if len(old) != len(new) else [])
    for number, (a, b) in enumerate(zip(old, new, strict=False), 1):
        if a != b:
            found.failures.append(f"line {number}: {_unlike(a, b)}")
    return found


def _unlike(a: str, b: str) -> str:
    place = next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    begin = max(0, place - 40)
    return f"…{a[begin : place + 40]}… → …{b[begin : place + 40]}…"


def compare_files(before: Path, after: Path) -> Found:
    if before.read_bytes() == after.read_bytes():
        return Found()
    if before.suffix == ".said":
        codes = [path.read_text().partition("\n")[0] for path in (before, after)]
        return Found([] if codes[0] == codes[1] else [f"{codes[0]} → {codes[1]}"], reworded=1)
    if before.name.startswith(EXPORTS) and before.suffix != ".json":
        return compare_bytes(before, after)
    return compare_blocks(read(before), read(after))


def compare_folders(before: Path, after: Path, every: bool = False) -> int:
    """Print what differs between two folders. Return 1 where a number, row, file, exit code or stored run differs."""
    old, new = (
        {p.relative_to(side) for p in side.rglob("*") if p.is_file() and p.parent != side} for side in (before, after)
    )
    about = json.loads((after / "about.json").read_text())
    missing = sorted(name for name in old - new if not about["quick"] or _called(after / name))
    total = Found(failures=[str(name) for name in missing])
    for name in missing:
        print(f"MISSING  {name}")
    for name in sorted(old & new):
        found = compare_files(before / name, after / name)
        _print("CHANGED", name, found.failures, every)
        _print("EXTRA  ", name, found.extra, every)
        total.failures += found.failures
        total.extra += found.extra
        total.reworded += found.reworded
        total.drawing += found.drawing
    changed = about["changed_runs"]
    _print("CHANGED BY READING", Path("runs"), changed, every)
    print(
        f"{len(old & new)} files compared, {len(new - old)} new. Changed or missing: {len(total.failures)}. "
        f"Extra: {len(total.extra)}. Reworded: {total.reworded}. Pictures drawn differently: {total.drawing}. "
        f"Files of stored runs changed by reading: {len(changed)}."
    )
    return 1 if total.failures or changed else 0


def _called(path: Path) -> bool:
    """Whether the command that would have written a file was called: then there is a note of what it printed."""
    parts = path.name.split(".")
    return any(path.with_name(".".join(parts[:n]) + ".said").exists() for n in range(2, len(parts) + 1))


def _print(kind: str, name: Path, lines: Sequence[str], every: bool) -> None:
    shown = lines if every else lines[:5]
    for line in shown:
        print(f"{kind}  {name}  {line}")
    if len(shown) < len(lines):
        print(f"{kind}  {name}  … and {len(lines) - len(shown)} more (--all)")
