"""Ask a trained model all that a test knows (echat), count and score what it said, or take out its replies."""

from __future__ import annotations

import argparse
from pathlib import Path

from overtone.errors import EXIT_OK, MissingExtra, UsageError
from overtone.paths import shown, user_path


def add(parser: argparse.ArgumentParser) -> None:
    """What is evaluated, and the flags."""
    parser.add_argument("what", metavar="WHAT", choices=("echat", "counts", "scores", "replies"),
                        help="echat, counts, scores or replies")  # fmt: skip
    parser.add_argument("paths", metavar="PATH", type=Path, nargs="+",
                        help="of echat: a checkpoint or a run; else what echat or counts wrote")  # fmt: skip
    parser.add_argument("--out", metavar="FILE", type=Path, required=True,
                        help="of echat: FILE.jsonl.gz; of counts: DIR; scores: .json; replies: .jsonl")  # fmt: skip
    echat = parser.add_argument_group("of echat")
    echat.add_argument("--data", metavar="PACK", type=Path, action="append", default=[], help="a pack of test records")
    echat.add_argument("--parts", metavar="NAME,…", default="", help="of the packs (all that are not learnt from)")
    echat.add_argument("--modes", metavar="NAME,…", default="", help="what to ask (all that the model was taught)")
    echat.add_argument("--limit", metavar="N", type=int, default=0, help="records of each part at most")
    echat.add_argument("--spoken", metavar="N", type=int, default=48, help="replies that are spoken too (48)")
    echat.add_argument("--arm", metavar="NAME", default="", help="what the model is called in tables")
    echat.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    scores = parser.add_argument_group("of counts and scores")
    scores.add_argument("--draws", metavar="N", type=int, default=1000, help="of the scores' bootstrap (1000)")
    scores.add_argument("--listen", action="store_true", help="speak the spoken replies and count their words")
    replies = parser.add_argument_group("of replies")
    replies.add_argument("--part", metavar="NAME", default="", help="of these records (all)")
    replies.add_argument("--mode", metavar="NAME", default="", help="such as deaf (what the model was trained to give)")


def main(args: argparse.Namespace) -> int:
    """Ask, score or take out; progress on stdout."""
    return {"echat": _echat, "counts": _counts, "scores": _scores, "replies": _replies}[args.what](args)


def _echat(args: argparse.Namespace) -> int:
    if not args.data:
        raise UsageError("say what to ask it: --data PACK")
    if len(args.paths) != 1:
        raise UsageError("one checkpoint at a time")
    if args.limit < 0 or args.spoken < 0:
        raise UsageError("--limit and --spoken must not be below 0")
    if not args.out.name.endswith((".jsonl", ".jsonl.gz")):
        raise UsageError("--out ends in .jsonl or .jsonl.gz")
    try:
        import torch  # noqa: F401
    except ModuleNotFoundError:
        raise MissingExtra("torch is not installed; run \"pip install 'overtone[train]'\"") from None
    from overtone.echat.exam import predictions
    from overtone.echat.exam.evaluate import Wanted, evaluate
    from overtone.models.echat import checkpoint_folder

    wanted = Wanted(_names(args.parts), _names(args.modes), args.limit, args.spoken)
    folder = checkpoint_folder(user_path(args.paths[0]))
    head, rows = evaluate(folder, args.data, wanted, device=args.device, arm=args.arm, say=_say)
    predictions.write(args.out, head, rows)
    _say(f"{len(rows)} records in {head.seconds:.0f} s: {args.out}")
    return EXIT_OK


def _counts(args: argparse.Namespace) -> int:
    from overtone.echat.exam import counts, predictions

    names = [path.name.removesuffix(".gz").removesuffix(".jsonl") for path in args.paths]
    if len(set(names)) < len(names):
        raise UsageError("two files have the same name, and one would overwrite the other; count them into two folders")
    args.out.mkdir(parents=True, exist_ok=True)
    for path, name in zip(args.paths, names, strict=True):  # one after the other: what is counted is kept
        [found] = counts.count([predictions.read(path)], listen=args.listen, say=_say)
        counts.write(args.out / f"{name}.json.gz", found)
        _say(f"{len(found.sums)} measures: {args.out / name}.json.gz")
    return EXIT_OK


def _scores(args: argparse.Namespace) -> int:
    import msgspec

    from overtone.echat.exam import counts, predictions, scores
    from overtone.paths import write_whole

    if not 2 <= args.draws <= 100_000:
        raise UsageError("--draws must be between 2 and 100000")
    kept = [path for path in args.paths if path.name.endswith((".json", ".json.gz"))]
    said = [predictions.read(path) for path in args.paths if path not in kept]
    runs = [*map(counts.read, kept), *(counts.count(said, listen=args.listen, say=_say) if said else ())]
    found = scores.score(runs, draws=args.draws, say=_say)
    text = msgspec.json.encode(found).decode()
    write_whole(args.out, text.replace('},{"', '},\n{"').encode() + b"\n")  # a score a line
    _say(f"{len(found.rows)} scores of {len(runs)} runs: {args.out}")
    return EXIT_OK


def _replies(args: argparse.Namespace) -> int:
    from overtone.echat.exam import predictions, tallies
    from overtone.paths import write_whole
    from overtone.runs.export import json_line

    if len(args.paths) != 1:
        raise UsageError("the replies of one file at a time")
    head, rows = predictions.read(args.paths[0])
    mode = args.mode or tallies.own(head.modes)
    said = [row for row in rows if mode in row.said and args.part in ("", row.part)]
    if not said:
        modes, parts = {name for row in rows for name in row.said}, {row.part for row in rows}
        raise UsageError(
            f"{args.paths[0]}: no reply of mode {mode!r}{f' in the part {args.part!r}' if args.part else ''}; "
            f"it has the modes {', '.join(sorted(modes))} and the parts {', '.join(sorted(parts))}"
        )
    lines = [json_line({"id": row.key, "text": tallies.said(row, mode).reply}) for row in said]
    write_whole(args.out, b"".join(lines))
    _say(f"{len(lines)} replies, {mode}: overtone run BENCHMARK --model predictions:{args.out}")
    return EXIT_OK


def _names(text: str) -> tuple[str, ...]:
    return tuple(filter(None, (name.strip() for name in text.split(","))))


def _say(line: str) -> None:
    print(shown(line), flush=True)
