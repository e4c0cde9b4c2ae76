"""Export replies and scores as a table, a data set, a log for other tools, predictions, or preferences."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from overtone.errors import EXIT_OK, UsageError

if TYPE_CHECKING:
    from overtone.arena.preferences import Found
    from overtone.runs.store import Store

FORMATS = ("jsonl", "csv", "parquet", "inspect", "hf", "scores", "predictions", "preferences")
ENDINGS = {".jsonl": "jsonl", ".csv": "csv", ".parquet": "parquet", ".eval": "inspect"}
DEFAULT = {"predictions": "predictions.json", "scores": "scores.json", "inspect": "replies.eval", "hf": "hf"}
WITH_SOUNDS = ("inspect", "hf")
EXAMPLES = (
    "overtone export runs/monday -o replies.csv",
    "overtone export runs/monday --format hf -o monday-dataset",
    "overtone export runs/monday runs/friday --format preferences --arena arena -o pairs.jsonl",
)


def add(parser: argparse.ArgumentParser) -> None:
    flag = parser.add_argument
    flag("runs", metavar="RUN", type=Path, nargs="+", help="folder of a run; several only for preferences")
    flag("--format", choices=FORMATS, help="output format (default: by the ending of FILE, else jsonl)")
    flag("-o", "--out", metavar="FILE", type=Path, help="file, or for hf the folder, to write (default: in RUN)")
    flag("--condition", metavar="NAME", help="condition to export, e.g. enhance/audio (default: all)")
    flag("--no-sounds", action="store_true", help="leave sounds out of an inspect or hf export")
    _add_pair_flags(parser)


def _add_pair_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of --format preferences. Their names and defaults are stored, so that other formats can reject
    them."""
    pairs = parser.add_argument_group("only for --format preferences")
    flag = pairs.add_argument
    flags = [
        flag("--arena", metavar="DIR", type=Path, help="folder of an `overtone arena` with votes of people and judges"),
        flag("--votes", metavar="FILE", type=Path, action="append", default=[],
             help="file of people's votes; repeatable"),
        flag("--by", metavar="METRIC", action="append", default=[],
             help="score that votes for the better reply, e.g. cctxfit@gpt-4o or semsim; repeatable"),
        flag("--margin", metavar="[METRIC=]X", action="append", default=[],
             help="minimum difference for a score to vote, in its units (default for judges: 1)"),
        flag("--rubric", metavar="NAME", default="pair",
             help="rubric of the judges' votes: pair or pair-voice (default: pair)"),
        flag("--only", choices=("people", "judges", "scores"), help="count only these voters (default: all)"),
        flag("--voters", metavar="N", type=int, default=2, help="minimum number of voters per pair (default: 2)"),
        flag("--agreement", metavar="SHARE", type=float, default=2 / 3,
             help="minimum share of voters who prefer the same reply; ties count against it (default: 0.67)"),
        flag("--per-item", metavar="N", type=int, default=1, help="maximum number of pairs per item (default: 1)"),
        flag("--hold-out", metavar="SHARE", type=float, default=0.0,
             help="share of the scripts to hold out, in a separate file (default: 0)"),
        flag("--source", metavar="NAME", default="all",
             help="source of the clips: synthesis, human, … (default: all)"),
        flag("--pack", metavar="DIR", type=Path,
             help="also write the pairs with their clips to this folder, for training"),
        flag("--licence", metavar="ID", default="unknown",
             help="licence that covers clips and replies, e.g. CC-BY-4.0 (default: unknown)"),
        flag("--seed", metavar="N", type=int, default=0, help="random seed of the held-out scripts (default: 0)"),
    ]  # fmt: skip
    parser.set_defaults(pair_flags=[(action.option_strings[0], action.dest, action.default) for action in flags])


def _format(args: argparse.Namespace) -> str:
    """Return the requested format. Raises UsageError if the file's ending belongs to another one."""
    by_ending = ENDINGS.get(args.out.suffix.lower()) if args.out else None
    form: str = args.format or by_ending or "jsonl"
    if args.out and not args.format and not by_ending:
        raise UsageError(f"{args.out}: name a file that ends in {', '.join(ENDINGS)}, or give --format")
    if args.no_sounds and form not in WITH_SOUNDS:
        raise UsageError(f"--no-sounds: only for --format {' or '.join(WITH_SOUNDS)}; {form} contains no sounds")
    if by_ending and form in ENDINGS.values() and by_ending != form:
        raise UsageError(f"{args.out}: the file name ends like {by_ending}, but --format is {form}; change one of them")
    return form


def main(args: argparse.Namespace) -> int:
    from overtone.errors import StoreError
    from overtone.paths import shown
    from overtone.runs.store import Store

    form = _format(args)
    if form == "preferences":
        return _preferences(args)
    if given := [flag for flag, name, default in args.pair_flags if getattr(args, name) != default]:
        raise UsageError(f"{', '.join(given)}: only for --format preferences, not for {form}")
    if len(args.runs) > 1:
        raise UsageError(f"--format {form} takes one run; only --format preferences takes several")
    run: Path = args.runs[0]
    if form == "scores" and args.condition:
        raise UsageError("--condition: what scores are does not depend on it; leave it out with --format scores")
    out = args.out or run / DEFAULT.get(form, f"replies.{form}")
    with Store.read(run) as store:
        try:
            count = _write(store, form, out, args)
        except OSError as error:
            raise StoreError(f"cannot write {out}: {error.strerror}") from None
        stated = {"readers", "heard"} & store.meta().keys()
    if stated:
        from overtone.results.heard_items import heard_note
        from overtone.results.load import open_run
        from overtone.results.reader_share import reader_shares, sentences

        reading = open_run(run, light=True)
        for sentence in filter(None, (*sentences(reader_shares(reading)), heard_note(reading))):
            print(shown(sentence))
    print(f"{count} rows → {shown(str(out))}")
    return EXIT_OK


def _write(store: Store, form: str, out: Path, args: argparse.Namespace) -> int:
    """Write one run in a format; return the number of rows."""
    from overtone.runs.export_rows import export, export_predictions, export_scores

    if form == "predictions":
        return export_predictions(store, out, args.condition)
    if form == "scores":
        return export_scores(store, out)
    if form == "inspect":
        from overtone.report.inspect_log import write_inspect_log

        return write_inspect_log(store, out, args.condition, sounds=not args.no_sounds)
    if form == "hf":
        from overtone.report.hf_dataset import write_hf_dataset

        return write_hf_dataset(store, out, args.condition, sounds=not args.no_sounds)
    return export(store, form, out, args.condition)


def _preferences(args: argparse.Namespace) -> int:
    from overtone.arena.preferences import Wanted, find, write
    from overtone.paths import shown

    out: Path = args.out or Path("preferences.jsonl")
    if out.suffix != ".jsonl":
        raise UsageError(f"{out}: name a .jsonl file")
    kinds = {"people": ("person",), "judges": ("judge",), "scores": ("score",), None: ("person", "judge", "score")}
    wanted = Wanted(
        by=tuple(dict.fromkeys(args.by)),
        margins=_margins(args.margin),
        votes=tuple(args.votes),
        arena=args.arena,
        rubric=args.rubric,
        kinds=kinds[args.only],
        voters=args.voters,
        agreement=args.agreement,
        per_item=args.per_item,
        hold_out=args.hold_out,
        condition=args.condition,
        seed=args.seed,
        source=args.source or "all",
    )
    preferences = find(args.runs, wanted)
    for line in _summary(preferences):
        print(shown(line))
    written = write(preferences, args.runs, wanted, out)
    for path in written:
        print(f"→ {shown(str(path))}")
    if args.pack:
        from overtone.echat.learn import pairs
        from overtone.echat.speech import open_tokens

        files = [path for path in written if path.suffix == ".jsonl" and path.stat().st_size]
        count = pairs.pack(files, args.pack, open_tokens("units2"))
        print(f"{count} pairs with their clips → {shown(str(args.pack))}")
    print(f"→ {shown(str(_write_manifest(args, preferences, written, out)))}")
    return EXIT_OK


def _write_manifest(args: argparse.Namespace, preferences: Found, written: list[Path], out: Path) -> Path:
    """Write the manifest that a release of a model trained on these pairs needs: their SHA-256 and their licence.

    A run does not record the licence of its clips and replies, so the user names it."""
    from overtone.build.manifest import write_json
    from overtone.paths import sha256
    from overtone.version import __version__

    files = {path.name: path for path in written if path.suffix == ".jsonl"}
    if args.pack:
        files["pack/records.jsonl"] = args.pack / "records.jsonl"
    manifest = {
        "name": "preferences",
        "version": __version__,
        "licence": args.licence,
        "seed": args.seed,
        "parts": {part: {"records": sum(p.part == part for p in preferences.pairs)} for part in ("train", "held-out")},
        "sha256": {name: sha256(path) for name, path in sorted(files.items())},
    }
    path = out.with_name(f"{out.stem}.manifest.json")
    write_json(path, manifest)
    return path


def _summary(preferences: Found) -> list[str]:
    parts = {part: [pair for pair in preferences.pairs if pair.part == part] for part in ("train", "held-out")}
    counts = ", ".join(
        f"{len(those)} {part} of {len({p.group for p in those})} scripts" for part, those in parts.items()
    )
    lines = [f"{len(preferences.pairs)} pairs of {preferences.considered} considered: {counts}"]
    lines += [f"  {count} pairs dropped: {why}" for why, count in sorted(preferences.dropped.items())]
    lines += [f"  {count} left out: {why}" for why, count in sorted(preferences.left.items())]
    return [*lines, *(f"  note: {note}" for note in preferences.notes)]


def _margins(given: list[str]) -> dict[str, float]:
    margins = {}
    for text in given:
        name, _, number = text.rpartition("=")
        try:
            margins[name] = float(number)
        except ValueError:
            raise UsageError(f"--margin {text!r}: write a number, or METRIC=NUMBER") from None
    return margins
