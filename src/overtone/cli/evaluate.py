"""Evaluate a trained checkpoint (echat), count and score its answers, or extract its replies."""

from __future__ import annotations

import argparse
from pathlib import Path

from overtone.errors import EXIT_OK, MissingExtra, UsageError, install_line
from overtone.paths import shown, user_path

EXAMPLES = (
    "overtone evaluate echat runs/mini --data packs/test --out answers.jsonl.gz",
    "overtone evaluate scores answers.jsonl.gz --out scores.json",
)


def add(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    flag = parser.add_argument
    flag("what", metavar="WHAT", choices=("echat", "counts", "scores", "replies"),
                        help="echat: ask a checkpoint; counts, scores: count and score its answers; "
                             "replies: extract its replies")  # fmt: skip
    flag("paths", metavar="PATH", type=Path, nargs="+",
                        help="a checkpoint or training run (echat); else files that echat or counts wrote")  # fmt: skip
    flag("--out", metavar="FILE", type=Path, required=True,
                        help="output; for echat: FILE.jsonl.gz, for counts: a folder, for scores: FILE.json, "
                             "for replies: FILE.jsonl")  # fmt: skip
    echat = parser.add_argument_group("only for echat")
    echat.add_argument(
        "--data", metavar="PACK", type=Path, action="append", default=[], help="pack of test records; repeatable"
    )
    echat.add_argument(
        "--parts", metavar="NAME,…", default="", help="parts of the packs (default: all but the training part)"
    )
    echat.add_argument(
        "--modes", metavar="NAME,…", default="", help="modes to ask (default: all that the model was trained in)"
    )
    echat.add_argument(
        "--limit", metavar="N", type=int, default=0, help="maximum number of records per part (default: all)"
    )
    echat.add_argument(
        "--spoken", metavar="N", type=int, default=48, help="number of replies that are also spoken (default: 48)"
    )
    echat.add_argument("--arm", metavar="NAME", default="", help="name of the model in tables")
    echat.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto", help="(default: auto)")
    scores = parser.add_argument_group("only for counts and scores")
    scores.add_argument(
        "--draws", metavar="N", type=int, default=1000, help="number of bootstrap draws (default: 1000)"
    )
    scores.add_argument(
        "--listen", action="store_true", help="synthesise the spoken replies and count the words recognised in them"
    )
    scores.add_argument(
        "--heard",
        metavar="LEVEL",
        default="",
        help="count records in the headline although the model heard their corpus in training; speaker: also their "
        "speaker; clip: all (default: count none of them)",
    )
    replies = parser.add_argument_group("only for replies")
    replies.add_argument("--part", metavar="NAME", default="", help="part of the records (default: all)")
    replies.add_argument(
        "--mode",
        metavar="NAME",
        default="",
        help="mode of the replies, e.g. deaf (default: the one that the model was trained for)",
    )


def main(args: argparse.Namespace) -> int:
    """Run the chosen action and print its progress to stdout."""
    return {"echat": _echat, "counts": _counts, "scores": _scores, "replies": _replies}[args.what](args)


def _echat(args: argparse.Namespace) -> int:
    if not args.data:
        raise UsageError("--data is missing; name the test records with --data PACK")
    if len(args.paths) != 1:
        raise UsageError("echat takes one checkpoint; run it once per checkpoint")
    if args.limit < 0 or args.spoken < 0:
        raise UsageError("--limit and --spoken must be 0 or more")
    if not args.out.name.endswith((".jsonl", ".jsonl.gz")):
        raise UsageError("--out must end in .jsonl or .jsonl.gz")
    try:
        import torch  # noqa: F401
    except ModuleNotFoundError:
        raise MissingExtra(f"torch is not installed; run: {install_line('train')}") from None
    from overtone.echat.exam import answer_file
    from overtone.echat.exam.ask_checkpoint import Wanted, evaluate
    from overtone.models.echat import checkpoint_folder

    wanted = Wanted(_names(args.parts), _names(args.modes), args.limit, args.spoken)
    folder = checkpoint_folder(user_path(args.paths[0]))
    head, rows = evaluate(folder, args.data, wanted, device=args.device, arm=args.arm, say=_say)
    answer_file.write(args.out, head, rows)
    marked = sum(bool(row.mark) for row in rows)
    note = f", {marked} of which the model heard in training" if head.states else ""
    _say(f"{len(rows)} records{note}, in {head.seconds:.0f} s: {args.out}")
    return EXIT_OK


def _counts(args: argparse.Namespace) -> int:
    from overtone.echat.exam import answer_file, counts

    names = [path.name.removesuffix(".gz").removesuffix(".jsonl") for path in args.paths]
    if len(set(names)) < len(names):
        raise UsageError("two files have the same name, and one would overwrite the other; count them into two folders")
    args.out.mkdir(parents=True, exist_ok=True)
    for path, name in zip(args.paths, names, strict=True):  # one at a time, so that finished counts are saved
        [counted] = counts.count([answer_file.read(path)], listen=args.listen, heard=args.heard, say=_say)
        counts.write(args.out / f"{name}.json.gz", counted)
        _say(f"{len(counted.sums)} measures: {args.out / name}.json.gz")
    return EXIT_OK


def _scores(args: argparse.Namespace) -> int:
    import msgspec

    from overtone.echat.exam import answer_file, counts, exam_scores
    from overtone.paths import write_whole

    if not 2 <= args.draws <= 100_000:
        raise UsageError("--draws must be between 2 and 100000")
    kept = [path for path in args.paths if path.name.endswith((".json", ".json.gz"))]
    if kept and args.heard:
        raise UsageError(f"--heard: {kept[0]} is already counted; give --heard to 'overtone evaluate counts'")
    said = [answer_file.read(path) for path in args.paths if path not in kept]
    runs = [
        *map(counts.read, kept),
        *(counts.count(said, listen=args.listen, heard=args.heard, say=_say) if said else ()),
    ]
    scored = exam_scores.score(runs, draws=args.draws, say=_say)
    text = msgspec.json.encode(scored).decode()
    write_whole(args.out, text.replace('},{"', '},\n{"').encode() + b"\n")  # one score per line
    _say(f"{len(scored.rows)} scores of {len(runs)} runs: {args.out}")
    return EXIT_OK


def _replies(args: argparse.Namespace) -> int:
    from overtone.echat.exam import answer_file, tallies
    from overtone.paths import write_whole
    from overtone.runs.export_rows import json_line

    if len(args.paths) != 1:
        raise UsageError("replies takes one file; run it once per file")
    head, rows = answer_file.read(args.paths[0])
    mode = args.mode or tallies.own_mode(head.modes)
    said = [row for row in rows if mode in row.said and args.part in ("", row.part)]
    if not said:
        modes, parts = {name for row in rows for name in row.said}, {row.part for row in rows}
        raise UsageError(
            f"{args.paths[0]}: no reply of mode {mode!r}{f' in the part {args.part!r}' if args.part else ''}; "
            f"it has the modes {', '.join(sorted(modes))} and the parts {', '.join(sorted(parts))}"
        )
    lines = [json_line({"id": row.key, "text": tallies.parsed(row, mode).reply}) for row in said]
    write_whole(args.out, b"".join(lines))
    _say(f"{len(lines)} replies, {mode}: overtone run BENCHMARK --model predictions:{args.out}")
    return EXIT_OK


def _names(text: str) -> tuple[str, ...]:
    return tuple(filter(None, (name.strip() for name in text.split(","))))


def _say(line: str) -> None:
    print(shown(line), flush=True)
