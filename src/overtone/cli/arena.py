"""Rank runs by pairwise votes: draw pairs of replies, collect votes of judges and people, fit a ranking."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from overtone.cli._findings import add_source
from overtone.cli._run_flags import add_insecure_flag
from overtone.errors import EXIT_FAILURES, EXIT_OK, UsageError

if TYPE_CHECKING:
    from overtone.arena.contestants import Field
    from overtone.arena.pairing import Pair
    from overtone.arena.standings import Standings
    from overtone.arena.study_votes import StudyVotes
    from overtone.arena.vote_store import Table, Vote
    from overtone.judges.judgement import Outcome
    from overtone.judges.policy import Judge
    from overtone.judges.rubric import Rubric

PAIRS = 200  # number of pairs for judges and exports if --pairs is not given
EXAMPLES = (
    "overtone arena runs/monday runs/friday --judge openai:gpt-4o --pairs 300",
    "overtone arena runs/monday runs/friday --studio study.toml",
    "overtone arena runs/monday runs/friday --export pairs.csv",
)


def add(parser: argparse.ArgumentParser) -> None:
    flag = parser.add_argument
    flag("runs", metavar="RUN", nargs="*", type=Path, help="folder of a run, two or more; none to rank existing votes")
    flag = parser.add_argument_group("votes").add_argument
    flag(
        "--judge", metavar="SPEC", action="append", default=[],
        help="model that votes, in both orders, e.g. openai:NAME; or recorded:FILE with its votes; repeatable",
    )  # fmt: skip
    flag(
        "--votes", metavar="FILE", type=Path, action="append", default=[],
        help="people's votes (.csv or .jsonl) with pair (or case, a, b), winner and rater; repeatable",
    )  # fmt: skip
    flag(
        "--studio",
        metavar="STUDY.toml",
        type=Path,
        help="study whose synced answers about pairs are votes (default runs: those of the study)",
    )
    flag(
        "--pairs",
        metavar="N",
        type=int,
        help=f"total number of pairs; a larger N keeps the earlier pairs (default: {PAIRS})",
    )
    flag("--seed", metavar="N", type=int, default=0, help="random seed of the pairs (default: 0)")
    flag("--rubric", metavar="NAME", default="pair", help="rubric: pair (text) or pair-voice (audio) (default: pair)")
    add_source(parser)
    flag(
        "--prior",
        metavar="X",
        type=float,
        default=0.0,
        help="virtual wins and losses added to each run, to keep ratings finite (default: 0)",
    )
    flag = parser.add_argument_group("output").add_argument
    flag(
        "--out",
        metavar="DIR",
        type=Path,
        default=Path("arena"),
        help="folder for pairs, votes and results (default: arena)",
    )
    flag("--export", metavar="FILE", type=Path, help="write the pairs for blind voting by people (.csv or .jsonl)")
    flag("--export-votes", metavar="FILE", type=Path, help="write all votes (.csv or .jsonl)")
    flag("--behind", metavar="KEY", help="list the cases behind a number; standings.json has the keys")
    add_insecure_flag(parser)


def main(args: argparse.Namespace) -> int:
    from overtone.arena import ballots, contestants, pair_files, standings, study_votes
    from overtone.arena.electorates import behind
    from overtone.arena.vote_store import Table
    from overtone.judge_trust import recorded_judge
    from overtone.judges import rubric
    from overtone.judges.policy import parse_judge
    from overtone.paths import shown

    studied = _studied(args)
    _check(args)
    one = rubric.load(args.rubric)
    contestants.check_suits(one)
    files_of_judges = [path for text in args.judge if (path := recorded_judge.path_of(text)) is not None]
    judges = [parse_judge(text) for text in args.judge if recorded_judge.path_of(text) is None]
    if not args.runs and (judges or args.pairs or args.export or args.source):
        raise UsageError("judges, --pairs, --export and --source need runs; name at least two")
    here = contestants.read(args.runs, spoken=bool(one.hears), source=args.source) if args.runs else None
    with Table(args.out) as table:
        for path, kind in [*((p, "person") for p in args.votes), *((p, "judge") for p in files_of_judges)]:
            known = {pair.id: pair for pair in table.pairs()}
            ballot = ballots.read(path, here, known, kind="judge" if kind == "judge" else "person")
            table.import_file(str(path.resolve()), ballot.pairs, ballot.votes)
        outcomes = _play(args, here, table, judges, one)
        pairs, votes, notes = _current(here, table, one)
        more = study_votes.read(studied, args.runs, here, pairs, args.studio) if studied and here else None
        if more is not None:
            pairs, votes, notes = {**pairs, **more.pairs}, [*votes, *more.votes], [*notes, *more.notes]
        if args.behind:
            return _behind(behind(votes, pairs, args.behind), args.behind)
        if args.export and here is not None:
            wanted = [pair for pair in pairs.values() if pair.drawn][: args.pairs or PAIRS]
            count = pair_files.blind(here, wanted, one, args.export, args.out / pair_files.KEY)
            print(
                f"{count} pairs → {shown(str(args.export))}; key to the runs → {shown(str(args.out / pair_files.KEY))}"
            )
        if args.export_votes:
            print(f"{pair_files.votes(votes, pairs, args.export_votes)} votes → {shown(str(args.export_votes))}")
    result = standings.standings(
        votes, pairs, runs=here.players if here else (), prior=args.prior, seed=args.seed, notes=notes
    )
    with_all = _with_unusable(args, more, votes, pairs, here.players) if more is not None and here else []
    return _show(args, result, outcomes, [*with_all, *_trust(judges, one)])


def _studied(args: argparse.Namespace) -> str:
    """Return the id of the study whose answers are votes, or "". Without runs, its runs take part."""
    from overtone.cli import _labels

    if args.studio is None:
        return ""
    study = _labels.read_study(args.studio)
    args.runs = args.runs or [study.folder(source) for source in study.sources if source.kind == "run"]
    return study.id


def _with_unusable(
    args: argparse.Namespace, more: StudyVotes, votes: list[Vote], pairs: dict[str, Pair], runs: tuple[str, ...]
) -> list[str]:
    """Return a note with people's ratings if the answers of unusable sessions counted too."""
    from overtone.arena.standings import standings
    from overtone.text import count

    if not more.unusable:
        return []
    found = standings([*votes, *more.unusable], pairs, runs=runs, prior=args.prior, seed=args.seed)
    people = next(one for one in found.electorates if one.key == "people")
    rated = ", ".join(f"{p.run} {p.rating.value:.0f}" for p in people.places if p.rating and p.rating.value is not None)
    verb, them = ("is", "it") if len(more.unusable) == 1 else ("are", "them")
    return [
        f"{count(len(more.unusable), 'vote')} of unusable sessions {verb} left out; with {them}, people's ratings are "
        f"{rated or 'not possible'}"
    ]


def _check(args: argparse.Namespace) -> None:
    from overtone.arena import pair_files

    if args.pairs is not None and args.pairs < 1:
        raise UsageError("--pairs must be at least 1")
    if not 0 <= args.prior < 1e6:
        raise UsageError("--prior must be a number of 0 or more, e.g. 0.5")
    if not args.runs and not args.votes and not args.judge and not args.out.is_dir():
        raise UsageError("name at least two runs, or votes to rank with --votes FILE")
    for path in filter(None, (args.export, args.export_votes)):
        pair_files.check(path)


def _play(
    args: argparse.Namespace, here: Field | None, table: Table, judges: list[Judge], rubric: Rubric
) -> dict[str, Outcome]:
    from overtone.arena.rounds import play
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
    """Return the pairs and votes that count for these runs, and notes on those left out."""
    from overtone.arena.rounds import current

    pairs = {pair.id: pair for pair in (current(here, table) if here else table.pairs())}
    cast = table.votes()
    votes = [vote for vote in cast if vote.pair in pairs and vote.rubric in ("", rubric.identity)]
    notes = list(here.notes) if here else []
    if len(votes) < len(cast):
        notes.append(
            f"{len(cast) - len(votes)} votes of this arena are left out: they concern other runs, clips of another "
            "source or replies that have changed since, or use another rubric"
        )
    return pairs, votes, notes


def _behind(cases: list[str], key: str) -> int:
    if not cases:
        raise UsageError(f"no votes for the key {key!r}; standings.json lists the keys, e.g. people/run/NAME")
    print("\n".join(cases))
    return EXIT_OK


def _trust(judges: list[Judge], rubric: Rubric) -> list[str]:
    from overtone.arena.rounds import trust

    return trust(judges, rubric)


def _show(args: argparse.Namespace, result: Standings, outcomes: dict[str, Outcome], notes: list[str]) -> int:
    import msgspec

    from overtone.cli._judge import add_up, finish, write_json
    from overtone.judges.judgement import Outcome
    from overtone.report.arena_tables import print_standings

    result = msgspec.structs.replace(result, notes=(*result.notes, *notes))
    written = args.out / "standings.json"
    write_json(written, result)
    print_standings(result)
    total = Outcome()
    for outcome in outcomes.values():
        add_up(total, outcome)
    code = finish(total, written)
    unranked = result.electorates and all(standing.problem for standing in result.electorates)
    silent = any(outcome.asked and outcome.empty for outcome in outcomes.values())
    return code or (EXIT_FAILURES if unranked or silent else EXIT_OK)
