"""Compare runs two replies at a time: draw pairs, have judges and people vote, rank with intervals."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from overtone.cli._findings import add_source
from overtone.cli._options import add_insecure_flag
from overtone.errors import EXIT_FAILURES, EXIT_OK, UsageError

if TYPE_CHECKING:
    from overtone.arena.field import Field
    from overtone.arena.pairs import Pair
    from overtone.arena.standings import Standings
    from overtone.arena.table import Table, Vote
    from overtone.judges.panel import Outcome
    from overtone.judges.policy import Judge
    from overtone.judges.rubric import Rubric

PAIRS = 200  # drawn where a judge or an export wants some and no number is given


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", metavar="RUN", nargs="*", type=Path, help="runs' folders; none to rank votes alone")
    parser.add_argument(
        "--judge", metavar="SPEC", action="append", default=[],
        help="have a model vote, in both orders, e.g. openai:NAME; or recorded:FILE of its votes; repeatable",
    )  # fmt: skip
    parser.add_argument(
        "--votes", metavar="FILE", type=Path, action="append", default=[],
        help="people's votes, CSV or JSON Lines: pair (or case, a, b), winner, rater; repeatable",
    )  # fmt: skip
    parser.add_argument("--pairs", metavar="N", type=int, help=f"draw N pairs in all; the first stay ({PAIRS})")
    parser.add_argument("--seed", metavar="N", type=int, default=0, help="of what is drawn (0)")
    parser.add_argument("--rubric", metavar="NAME", default="pair", help="pair (words) or pair-voice (by ear) (pair)")
    add_source(parser)
    parser.add_argument("--prior", metavar="X", type=float, default=0.0, help="imagined wins and losses of all (0)")
    parser.add_argument("--out", metavar="DIR", type=Path, default=Path("arena"), help="pairs, votes, results (arena)")
    parser.add_argument("--export", metavar="FILE", type=Path, help="the pairs for people, blind: .csv or .jsonl")
    parser.add_argument("--export-votes", metavar="FILE", type=Path, help="all votes: .csv or .jsonl")
    parser.add_argument("--behind", metavar="KEY", help="list the cases under a number of standings.json")
    add_insecure_flag(parser)


def main(args: argparse.Namespace) -> int:
    from overtone.arena import ballots, field, files, standings
    from overtone.arena.electorates import behind
    from overtone.arena.table import Table
    from overtone.judges import recorded, rubric
    from overtone.judges.policy import parse_judge
    from overtone.paths import shown

    _check(args)
    one = rubric.load(args.rubric)
    field.check_suits(one)
    files_of_judges = [path for text in args.judge if (path := recorded.path_of(text)) is not None]
    judges = [parse_judge(text) for text in args.judge if recorded.path_of(text) is None]
    if not args.runs and (judges or args.pairs or args.export or args.source):
        raise UsageError("without runs there is nothing to show or draw; name at least two runs")
    here = field.read(args.runs, spoken=bool(one.hears), source=args.source) if args.runs else None
    with Table(args.out) as table:
        for path, kind in [*((p, "person") for p in args.votes), *((p, "judge") for p in files_of_judges)]:
            known = {pair.id: pair for pair in table.pairs()}
            found = ballots.read(path, here, known, kind="judge" if kind == "judge" else "person")
            table.take_in(str(path.resolve()), found.pairs, found.votes)
        outcomes = _play(args, here, table, judges, one)
        pairs, votes, notes = _current(here, table, one)
        if args.behind:
            return _behind(behind(votes, pairs, args.behind), args.behind)
        if args.export and here is not None:
            wanted = [pair for pair in pairs.values() if pair.drawn][: args.pairs or PAIRS]
            count = files.blind(here, wanted, one, args.export, args.out / files.KEY)
            print(f"{count} pairs → {shown(str(args.export))}; who is who → {shown(str(args.out / files.KEY))}")
        if args.export_votes:
            print(f"{files.votes(votes, pairs, args.export_votes)} votes → {shown(str(args.export_votes))}")
    result = standings.standings(
        votes, pairs, runs=here.players if here else (), prior=args.prior, seed=args.seed, notes=notes
    )
    return _show(args, result, outcomes, _trust(judges, one))


def _check(args: argparse.Namespace) -> None:
    from overtone.arena import files

    if args.pairs is not None and args.pairs < 1:
        raise UsageError("--pairs must be at least 1")
    if not 0 <= args.prior < 1e6:
        raise UsageError("--prior is a number from 0, e.g. 0.5")
    if not args.runs and not args.votes and not args.judge and not args.out.is_dir():
        raise UsageError("name at least two runs, or votes to rank with --votes FILE")
    for path in filter(None, (args.export, args.export_votes)):
        files.check(path)


def _play(
    args: argparse.Namespace, here: Field | None, table: Table, judges: list[Judge], rubric: Rubric
) -> dict[str, Outcome]:
    from overtone.arena.play import play
    from overtone.cli._judge import Counter

    count = args.pairs or (PAIRS if judges or args.export else 0)
    if here is None or not count:
        return {}
    if not judges:
        return play(here, table, judges, rubric, count, seed=args.seed)
    done = 0
    with Counter(f"{', '.join(j.label for j in judges)} · {rubric.name}", count * len(judges)) as counter:

        def tick(label: str, more: int) -> None:
            nonlocal done
            done += more
            counter.update(done)

        return play(here, table, judges, rubric, count, seed=args.seed, on_judged=tick)


def _current(here: Field | None, table: Table, rubric: Rubric) -> tuple[dict[str, Pair], list[Vote], list[str]]:
    """The pairs and votes that count here, and what is left out of the table."""
    from overtone.arena.play import current

    pairs = {pair.id: pair for pair in (current(here, table) if here else table.pairs())}
    cast = table.votes()
    votes = [vote for vote in cast if vote.pair in pairs and vote.rubric in ("", rubric.identity)]
    notes = list(here.notes) if here else []
    if len(votes) < len(cast):
        notes.append(
            f"{len(cast) - len(votes)} votes of this arena do not count here: on other runs, on clips of another "
            "source, on replies that have changed since, or by another rubric"
        )
    return pairs, votes, notes


def _behind(cases: list[str], key: str) -> int:
    if not cases:
        raise UsageError(f"no vote stands under {key!r}; keys are in standings.json, e.g. people/run/NAME")
    print("\n".join(cases))
    return EXIT_OK


def _trust(judges: list[Judge], rubric: Rubric) -> list[str]:
    from overtone.arena.play import trust

    return trust(judges, rubric)


def _show(args: argparse.Namespace, result: Standings, outcomes: dict[str, Outcome], notes: list[str]) -> int:
    import msgspec

    from overtone.cli._judge import add_up, finish
    from overtone.judges.panel import Outcome
    from overtone.paths import write_whole
    from overtone.report.arena import print_standings

    result = msgspec.structs.replace(result, notes=(*result.notes, *notes))
    written = args.out / "standings.json"
    write_whole(written, msgspec.json.format(msgspec.json.encode(result)))
    print_standings(result)
    total = Outcome()
    for outcome in outcomes.values():
        add_up(total, outcome)
    code = finish(total, written)
    unranked = result.electorates and all(standing.problem for standing in result.electorates)
    silent = any(outcome.asked and outcome.empty for outcome in outcomes.values())
    return code or (EXIT_FAILURES if unranked or silent else EXIT_OK)
