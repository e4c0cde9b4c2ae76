"""Rate audio files or folders with predictors of speech quality."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from overtone.errors import EXIT_FAILURES, EXIT_OK, OvertoneError, UsageError

if TYPE_CHECKING:
    from overtone.audio import Samples

PAGE = 64  # files held in memory at once
EXAMPLES = (
    "overtone measure reply.wav --metric dnsmos",
    "overtone measure recordings --metric nisqa --metric utmos -o ratings.csv",
)


class Hears(Protocol):
    """A metric that rates any audio, not only the replies of a run."""

    names: tuple[str, ...]

    def open(self) -> None: ...

    def close(self) -> None: ...

    def signature(self, name: str) -> str: ...

    def hear(self, sounds: Sequence[tuple[Samples, int]]) -> list[dict[str, float] | str]: ...


@dataclass
class Row:
    """The results of one file: its values by name, and for each metric without values the reason."""

    file: str
    seconds: float | None = None
    values: dict[str, float] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)

    def reason(self) -> str:
        texts = dict.fromkeys(self.reasons.values())
        if len(texts) <= 1:
            return next(iter(texts), "")
        return "; ".join(f"{name}: {why}" for name, why in self.reasons.items())


def add(parser: argparse.ArgumentParser) -> None:
    flag = parser.add_argument
    flag("paths", metavar="PATH", nargs="+", type=Path, help="audio file, or folder of audio files")
    flag(
        "--metric",
        metavar="NAME",
        action="append",
        required=True,
        help="predictor: nisqa, utmos, dnsmos or distillmos, with options as NAME?key=value; repeatable",
    )
    flag("-o", "--out", metavar="FILE", type=Path, help="write the rows to FILE.csv or FILE.jsonl")


def main(args: argparse.Namespace) -> int:
    if args.out and args.out.suffix not in (".csv", ".jsonl"):
        raise UsageError(f"-o {args.out}: the name must end in .csv or .jsonl")
    files = list(dict.fromkeys(path for given in args.paths for path in _sounds(given)))
    metrics = _metrics(args.metric)
    for metric in metrics.values():
        metric.open()  # a missing package is reported before any file is read
    rows: list[Row] = []
    try:
        for at in range(0, len(files), PAGE):
            rows += _rate(files[at : at + PAGE], metrics)
    finally:
        for metric in metrics.values():
            metric.close()
    names = list(dict.fromkeys(name for row in rows for name in row.values))
    signatures = {name: m.signature(name) for m in metrics.values() for name in m.names if name in names}
    _print(rows, names)
    for text in signatures.values():
        print(text)
    if args.out:
        _write(args.out, rows, names, signatures)
    return EXIT_FAILURES if any(row.reasons for row in rows) else EXIT_OK


def _sounds(path: Path) -> list[Path]:
    """Return the file itself, or all audio files in a folder and its subfolders, sorted by path."""
    if not path.exists():
        raise UsageError(f"{path}: no such file or folder")
    if not path.is_dir():
        return [path]
    import soundfile

    kinds = {f".{kind.lower()}" for kind in soundfile.available_formats()} - {".raw"} | {".opus", ".oga", ".aif"}
    files = sorted(p for p in path.rglob("*") if p.suffix.lower() in kinds and p.is_file())
    if not files:
        raise UsageError(f"{path}: no audio files in this folder")
    return files


def _metrics(asked: Sequence[str]) -> dict[str, Hears]:
    from overtone.scoring import load_metrics
    from overtone.spec import parse_spec

    every: dict[str, Any] = dict(load_metrics(asked))
    chosen = {name: every[name] for name in (parse_spec(text).kind.replace("_", "-") for text in asked)}
    for name, metric in chosen.items():
        if not hasattr(metric, "hear"):
            raise UsageError(
                f"--metric {name}: this metric scores replies, not audio files; use nisqa, utmos, dnsmos or distillmos"
            )
    return chosen


def _rate(files: Sequence[Path], metrics: dict[str, Hears]) -> Iterable[Row]:
    from overtone.audio import read

    rows = {path: Row(str(path)) for path in files}
    sounds: dict[Path, tuple[Samples, int]] = {}
    for path, row in rows.items():
        try:
            samples, rate = sounds[path] = read(path)
            row.seconds = len(samples) / rate
        except OvertoneError as error:
            row.reasons = dict.fromkeys(metrics, str(error).removeprefix(f"{path}: "))
    for name, metric in metrics.items():
        for path, heard in zip(sounds, metric.hear(list(sounds.values())), strict=True):
            if isinstance(heard, str):
                rows[path].reasons[name] = heard
            else:
                rows[path].values |= heard
    return rows.values()


def _print(rows: Sequence[Row], names: Sequence[str]) -> None:
    from overtone.paths import shown

    width = max(len(shown(row.file)) for row in rows)
    print(f"{'file':<{width}}  {'seconds':>7}  {'  '.join(names)}".rstrip())
    for row in rows:
        seconds = "" if row.seconds is None else f"{row.seconds:.2f}"
        cells = [f"{row.values[n]:.3f}" if n in row.values else "" for n in names]
        line = "  ".join(f"{cell:>{len(n)}}" for cell, n in zip(cells, names, strict=True))
        print(f"{shown(row.file):<{width}}  {seconds:>7}  {line}  {shown(row.reason())}".rstrip())


def _write(path: Path, rows: Sequence[Row], names: Sequence[str], signatures: dict[str, str]) -> None:
    import csv
    import io

    from overtone.paths import write_whole
    from overtone.runs.export_rows import cell, json_line

    if path.suffix == ".csv":
        page = io.StringIO()
        table = csv.writer(page)
        table.writerow(["file", "seconds", *names, "reason"])
        for row in rows:
            cells = [row.file, row.seconds, *(row.values.get(n) for n in names), row.reason()]
            table.writerow([cell(value) for value in cells])
        write_whole(path, page.getvalue().encode())
        return
    lines = []
    for row in rows:
        used = {name: signatures[name] for name in row.values}
        line = {"file": row.file, "seconds": row.seconds, "values": row.values, "reasons": row.reasons}
        lines.append(json_line({**line, "signatures": used}))
    write_whole(path, b"".join(lines))
