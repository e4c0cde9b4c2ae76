"""Measure how far a judge can be trusted: against people's labels, and on recordings whose answer is known."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from overtone.cli._options import add_insecure_flag
from overtone.errors import EXIT_OK, UsageError

if TYPE_CHECKING:
    from overtone.judges.panel import Judgement, Outcome
    from overtone.judges.policy import Judge
    from overtone.judges.rubric import Rubric
    from overtone.judges.subject import Subject
    from overtone.labels import Labels


def add(parser: argparse.ArgumentParser) -> None:
    """The sub-commands and their flags."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    validate = actions.add_parser("validate", help="agreement with people's labels, and what a judge gets wrong")
    questions = actions.add_parser("questions", help="three steps or five? sound or a description of it?")
    validate.add_argument(
        "judges", metavar="JUDGE", nargs="+", help="a judge's SPEC or recorded:FILE; of several, how far they agree"
    )
    questions.add_argument("judge", metavar="JUDGE", help="a judge's SPEC")
    for action in (validate, questions):
        action.add_argument("--labels", metavar="FILE", type=Path, required=True, help="CSV, JSON Lines or JSON")
        action.add_argument("--rubric", metavar="NAME", help="a rubric's name or .toml file")
        action.add_argument(
            "--dimension", metavar="OURS=THEIRS", action="append", default=[],
            help="a dimension of the rubric and what the label file calls it; repeatable",
        )  # fmt: skip
    hear = actions.add_parser("hear", help="known answers: which recording is angry, which is stronger")
    hear.add_argument("judges", metavar="JUDGE", nargs="+", help="one judge, or two to be compared")
    hear.add_argument("--data", metavar="DIR", type=Path, required=True, help="a folder in RAVDESS's layout")
    hear.add_argument("--compare", action="store_true", help="the same judge by ear and by a measured description")
    reader = actions.add_parser("reader", help="a reader of multiple-choice replies, on replies of known meaning")
    reader.add_argument("reader", metavar="SPEC", help="a reader's SPEC, as --reader takes it")
    reader.add_argument("--out", metavar="DIR", type=Path, help="verdicts (judges/LABEL)")
    add_insecure_flag(reader)
    for action in (validate, questions, hear):
        action.add_argument("--repeats", metavar="N", type=int, help="ask everything N times")
        action.add_argument(
            "--limit", metavar="N", type=int, help="about N units, drawn by group; N pairs of each part"
        )
        action.add_argument("--out", metavar="DIR", type=Path, help="verdicts and results (judges/LABEL)")
        action.add_argument("--seed", metavar="N", type=int, default=0, help="of what is drawn (0)")
        add_insecure_flag(action)
    actions.add_parser("list", help="the rubrics, and which judges are validated for them")
    show = actions.add_parser("show", help="what a judge is told by a rubric")
    show.add_argument("rubric", metavar="RUBRIC", help="a rubric's name or .toml file")


def main(args: argparse.Namespace) -> int:
    """Run the chosen sub-command."""
    if args.action in ("validate", "questions", "hear"):
        for name in ("limit", "repeats"):
            if getattr(args, name) is not None and getattr(args, name) < 1:
                raise UsageError(f"--{name} must be at least 1")
    actions = {"validate": _validate, "questions": _questions, "hear": _hear, "reader": _reader}
    return {**actions, "list": _list, "show": _show}[args.action](args)


def _validate(args: argparse.Namespace) -> int:
    if len(args.judges) == 1:
        return _validate_one(args, args.judges[0]).code
    import msgspec

    from overtone.cli._judge import print_consistency
    from overtone.judges.consistency import LINE, consistency
    from overtone.paths import write_whole

    measured = {}
    for text in args.judges:
        one = _validate_one(args, text, several=True)
        if one.name in measured:
            raise UsageError(f"two judges are called {one.name!r}; give one of them label=NAME in its SPEC")
        measured[one.name] = one
    found = {name: one.judgements for name, one in measured.items()}
    rubric, labels, dimensions = one.rubric, one.labels, one.dimensions
    told = consistency(found, rubric, labels, dimensions, seed=args.seed)
    out = args.out or Path("judges")
    written = {"line": LINE, "judges": list(found), "labels": labels.path.name, "dimensions": told, "seed": args.seed}
    write_whole(out / "consistency.json", msgspec.json.format(msgspec.json.encode(written)))
    print_consistency(told)
    print(f"Written: {out / 'consistency.json'}")
    return max(one.code for one in measured.values())


class _Measured(NamedTuple):
    """One judge that was measured: how it went, and what it said by which rubric on which labels."""

    code: int
    name: str
    judgements: list[Judgement]
    rubric: Rubric
    labels: Labels
    dimensions: dict[str, str]


def _validate_one(args: argparse.Namespace, text: str, *, several: bool = False) -> _Measured:
    """Measure one judge against people; of several, each has a folder of its own."""
    import msgspec

    from overtone.cli._judge import finish, print_validation, remember
    from overtone.judges import labelled, page, record, recorded
    from overtone.judges.panel import Outcome
    from overtone.judges.validate import validate
    from overtone.paths import write_whole

    outcome = Outcome()
    base = args.out if several else None
    file = recorded.path_of(text)
    if file is not None:
        labels, verdicts, rubric = _recorded(args, file)
        dimensions = labelled.matched(rubric, labels, _named(args))
        units = labelled.chosen(labels, list(dimensions.values()), args.limit, args.seed)
        judgements = recorded.judgements(verdicts, labels, rubric, units)
        name, identity = f"recorded:{file.name}", f"recorded:{file.stem}"
        out = base / file.stem if base else args.out or Path("judges") / file.stem
    else:
        judge = _judge(text, args.repeats)
        labels, rubric = _labels(args, judge)
        dimensions = labelled.matched(rubric, labels, _named(args))
        units = labelled.chosen(labels, list(dimensions.values()), args.limit, args.seed)
        subjects = labelled.subjects(rubric, labels, units, judge.policy.hears)
        out = base / judge.label if base else args.out or Path("judges") / judge.label
        judgements, outcome = _ask(judge, rubric, subjects, out)
        name, identity = judge.label, record.identity(judge, rubric)
    found = validate(judgements, rubric, labels, dimensions, judge=name, identity=identity, seed=args.seed)
    found.asked = {key: value for key, value in msgspec.to_builtins(outcome).items() if value}
    out.mkdir(parents=True, exist_ok=True)
    write_whole(out / "validation.json", msgspec.json.format(msgspec.json.encode(found)))
    page.write(found, out / "validation.html")
    print_validation(found)
    if file is None:
        remember(found, rubric, identity)
    code = finish(outcome, out / "validation.html")
    return _Measured(code, name, judgements, rubric, labels, dimensions)


def _recorded(args: argparse.Namespace, file: Path) -> tuple[Labels, Labels, Rubric]:
    from overtone import labels as people
    from overtone.judges import recorded
    from overtone.judges import rubric as rubrics

    labels = people.read(args.labels)
    verdicts = people.read(file, labels.dimensions, repeated=True)
    if args.rubric:
        return labels, verdicts, rubrics.load(args.rubric)
    shared = [name for name in verdicts.dimensions if name in labels.dimensions]
    if not shared:
        raise UsageError(
            f"{file.name} judges {', '.join(verdicts.dimensions)} and {args.labels.name} labels "
            f"{', '.join(labels.dimensions)}: no dimension is in both"
        )
    return labels, verdicts, recorded.rubric_of(labels, verdicts, shared)


def _labels(args: argparse.Namespace, judge: Judge) -> tuple[Labels, Rubric]:
    """The labels, and the rubric that was named, is made for their layout, or is the judge's only one."""
    from overtone import labels as people
    from overtone.judges import rubric as rubrics
    from overtone.judges.policy import STANDARD

    if args.rubric:
        rubric = rubrics.load(args.rubric)
        named = [*_named(args).values(), *(d.key for d in rubric.dimensions)]
        return people.read(args.labels, named), rubric
    labels = people.read(args.labels)
    own = judge.rubrics if judge.rubrics != STANDARD else ()
    names = [labels.rubric] if labels.rubric else list(own)
    if not names:  # the standard rubrics, as far as people labelled what they ask
        known = {name: rubrics.load(name) for name in STANDARD}
        names = [n for n, r in known.items() if any(d.key in labels.dimensions for d in r.dimensions)]
    if len(names) != 1:
        raise UsageError(f"say which rubric the labels are for: --rubric {' or '.join(names) or 'NAME'}")
    rubric = rubrics.load(names[0])
    return people.read(args.labels, [*_named(args).values(), *(d.key for d in rubric.dimensions)]), rubric


def _named(args: argparse.Namespace) -> dict[str, str]:
    found = {}
    for text in args.dimension:
        ours, equals, theirs = text.partition("=")
        if not equals or not ours or not theirs:
            raise UsageError(f"--dimension {text!r} is not OURS=THEIRS")
        found[ours] = theirs
    return found


def _judge(text: str, repeats: int | None, hears: str | None = None) -> Judge:
    import msgspec

    from overtone.judges.policy import parse_judge

    judge = parse_judge(text)
    policy = judge.policy
    if repeats is not None:
        policy = msgspec.structs.replace(policy, repeats=repeats)
    if hears is not None:
        policy = msgspec.structs.replace(policy, hears=hears)
        judge = msgspec.structs.replace(judge, label=f"{judge.label.removesuffix('.description')}.{hears}")
    return msgspec.structs.replace(judge, policy=policy)


def _ask(judge: Judge, rubric: Rubric, subjects: list[Subject], out: Path) -> tuple[list[Judgement], Outcome]:
    """Every verdict, asked once and kept in OUT/verdicts.db."""
    import asyncio

    from overtone.cli._judge import Counter
    from overtone.judges.panel import ask

    found: dict[str, Judgement] = {}
    with Counter(f"{judge.label} · {rubric.name}", len(subjects)) as counter:

        def take(judgement: Judgement) -> None:
            found[judgement.subject.id] = judgement
            counter.update(len(found))

        outcome = asyncio.run(ask(judge, rubric, subjects, out / "verdicts.db", on_judgement=take))
    return [found[subject.id] for subject in subjects], outcome


def _hear(args: argparse.Namespace) -> int:
    import msgspec

    from overtone.cli._judge import add_up, finish, print_heard
    from overtone.judges import known, record
    from overtone.judges import rubric as rubrics
    from overtone.judges.panel import Outcome
    from overtone.paths import write_whole

    if len(args.judges) > 2 or (args.compare and len(args.judges) > 1):
        raise UsageError("name one judge, two judges, or one judge with --compare")
    if args.compare:
        judges = [_judge(args.judges[0], args.repeats, hears) for hears in ("audio", "description")]
    else:
        judges = [_judge(text, args.repeats) for text in args.judges]
    if any(judge.policy.hears == "nothing" for judge in judges):
        raise UsageError("hears=nothing: a judge that is given no sound cannot be tested on it")
    found = known.clips(args.data)
    parts = {part: rubrics.load(name) for part, name in known.PARTS.items()}
    out = args.out or Path("judges") / judges[0].label
    total = Outcome()
    tests: list[known.Test] = []
    taken = []
    for judge in judges:

        def asked(rubric: Rubric, subjects: object, judge: Judge = judge) -> list[Judgement]:
            judgements, outcome = _ask(judge, rubric, list(subjects), out)  # type: ignore[call-overload]
            add_up(total, outcome)
            return judgements

        answers = known.take(asked, parts, found, limit=args.limit or known.LIMIT, seed=args.seed)
        heard = [known.heard(part, parts[part], *answers[part]) for part in parts]
        identity = record.identity(judge, parts["emotion"]).partition("|calls:")[0]
        test = known.Test(judge.label, identity, heard)
        tests.append(test)
        taken.append(answers)
        if test.passed:
            record.write(identity, None, (), known.sentence(test), how=record.HEARING)
        else:
            record.forget(identity, None, how=record.HEARING)
    gaps = {}
    if len(taken) == 2:
        gaps = {p: known.apart(r, taken[0][p][0], taken[0][p][1], taken[1][p][1]) for p, r in parts.items()}
    out.mkdir(parents=True, exist_ok=True)
    result = {"tests": tests, "passed": [t.passed for t in tests], "differences": gaps, "chance": known.CHANCE}
    write_whole(out / "hearing.json", msgspec.json.format(msgspec.json.encode({**result, "seed": args.seed})))
    print_heard(tests, gaps)
    return finish(total, out / "hearing.json")


def _questions(args: argparse.Namespace) -> int:
    import msgspec

    from overtone.cli._judge import add_up, finish, print_answers
    from overtone.judges import labelled, questions
    from overtone.judges.panel import Outcome
    from overtone.paths import write_whole

    judge = _judge(args.judge, args.repeats)
    labels, rubric = _labels(args, judge)
    dimensions = labelled.matched(rubric, labels, _named(args))
    units = labelled.chosen(labels, list(dimensions.values()), args.limit, args.seed)
    subjects = labelled.subjects(rubric, labels, units, judge.policy.hears)
    out = args.out or Path("judges") / judge.label
    total = Outcome()

    def asked(judge: Judge, rubric: Rubric) -> list[Judgement]:
        judgements, outcome = _ask(judge, rubric, subjects, out)
        add_up(total, outcome)
        return judgements

    found: list[questions.Answered] = []
    skipped = []
    fine = asked(judge, rubric)
    if any(d.scale == (1, 5) for d in rubric.dimensions):
        rough = asked(judge, questions.coarse(rubric))
        found += questions.coarse_against_fine(fine, rough, rubric, labels, dimensions, seed=args.seed)
    else:
        skipped.append("coarse against fine: the rubric has no scale from 1 to 5")
    if rubric.hears and judge.policy.hears != "nothing":
        told = {judge.policy.hears: fine}
        for hears in ("audio", "description"):
            if hears not in told:
                told[hears] = asked(_judge(args.judge, args.repeats, hears), rubric)
        both = told["audio"], told["description"]
        found += questions.audio_against_description(*both, rubric, labels, dimensions, seed=args.seed)
    else:
        skipped.append("audio against description: the rubric puts no sound before the judge")
    out.mkdir(parents=True, exist_ok=True)
    write_whole(out / "questions.json", msgspec.json.format(msgspec.json.encode(found)))
    print_answers(found, skipped)
    return finish(total, out / "questions.json")


def _reader(args: argparse.Namespace) -> int:
    """Have a reader read the known replies, as `--reader` does before it is first used."""
    import asyncio

    from overtone.cli._judge import finish
    from overtone.errors import EXIT_FAILURES
    from overtone.judges.cache import Verdicts
    from overtone.judges.panel import Sitting
    from overtone.judges.reader import PRECISION, RECALL, Checked, check
    from overtone.paths import shown
    from overtone.scoring import check_reader
    from overtone.spec import parse_spec

    reader = check_reader(parse_spec(args.reader))
    assert reader is not None
    out = args.out or Path("judges") / reader.label

    async def ask() -> tuple[Checked | None, Outcome]:
        with Verdicts(out / "verdicts.db") as verdicts:
            sitting = Sitting(reader, verdicts)
            try:
                return await check(sitting), sitting.outcome
            finally:
                await sitting.close()

    checked, outcome = asyncio.run(ask())
    if checked is not None:
        verdict = "can be used" if checked.passed else f"not used below {PRECISION:.2f} and {RECALL:.2f}"
        print(f"{shown(reader.label)}: {checked.sentence}; {verdict}")
    return finish(outcome, out / "verdicts.db") or (EXIT_OK if checked and checked.passed else EXIT_FAILURES)


def _list(args: argparse.Namespace) -> int:
    from overtone.judges import record
    from overtone.judges import rubric as rubrics
    from overtone.paths import shown

    proofs = record.records()
    rows = rubrics.listing()
    width = max(map(len, rows))
    for name, title in rows.items():
        print(f"{name:<{width}}  {title}")
        rubric = rubrics.load(name)
        for proof in proofs:
            if proof.how == record.HEARING and rubric.hears and not name.startswith("hears-"):
                print(f"{'':<{width}}  · {shown(proof.identity)} hears: {shown(proof.sentence)}")
            elif proof.rubric == name and proof.sha256 == rubric.sha256:
                keys = ", ".join(proof.dimensions)
                print(f"{'':<{width}}  · {shown(proof.identity)} {proof.how} on {shown(keys)}: {shown(proof.sentence)}")
    if not proofs:
        print("\nNo judge is validated; 'overtone judge validate' and 'overtone judge hear' do that.")
    return EXIT_OK


def _show(args: argparse.Namespace) -> int:
    from overtone.cli._judge import print_rubric
    from overtone.judges import rubric as rubrics

    print_rubric(rubrics.load(args.rubric))
    return EXIT_OK
