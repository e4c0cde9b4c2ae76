"""Measure how far a judge can be trusted: against human labels, and on recordings with known answers."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from overtone.cli import _labels as label_source
from overtone.cli._run_flags import add_insecure_flag
from overtone.errors import EXIT_OK, UsageError

if TYPE_CHECKING:
    from overtone.judge_trust.labels import Labels
    from overtone.judges.judge_input import Subject
    from overtone.judges.judgement import Judgement, Outcome
    from overtone.judges.policy import Judge
    from overtone.judges.rubric import Rubric

EXAMPLES = (
    "overtone judge validate openai:gpt-4o --labels labels.csv",
    "overtone judge questions openai:gpt-4o --labels labels.csv --limit 200",
    "overtone judge hear openai:gpt-4o-audio-preview --data ravdess --compare",
    "overtone judge reader openai:gpt-4o-mini",
    "overtone judge list",
    "overtone judge show pair",
)


def add(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands and their flags."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    validate = actions.add_parser("validate", help="measure agreement with human labels, and audit a judge's errors")
    questions = actions.add_parser(
        "questions", help="test whether three or five steps, and audio or a description, agree better with people"
    )
    validate.add_argument(
        "judges",
        metavar="JUDGE",
        nargs="+",
        help="SPEC of a judge, or recorded:FILE; several are also compared with each other",
    )
    questions.add_argument("judge", metavar="JUDGE", help="SPEC of a judge")
    for action in (validate, questions):
        flag = action.add_argument_group("labels").add_argument
        flag(
            "--labels",
            metavar="FILE",
            type=Path,
            required=True,
            help="people's labels (.csv, .jsonl, .json), or a study (.toml)",
        )
        flag("--rubric", metavar="NAME", help="name of a rubric, or its .toml file (default: by the labels)")
        flag(
            "--dimension", metavar="OURS=THEIRS", action="append", default=[],
            help="dimension of the rubric and its name in the label file; repeatable",
        )  # fmt: skip
    hear = actions.add_parser(
        "hear", help="test a judge on recordings with known answers: which one is angry, which one is stronger"
    )
    hear.add_argument("judges", metavar="JUDGE", nargs="+", help="SPEC of a judge; two are compared")
    hear.add_argument("--data", metavar="DIR", type=Path, required=True, help="folder in the layout of RAVDESS")
    hear.add_argument(
        "--compare",
        action="store_true",
        help="compare the judge on audio with the same judge on a measured description",
    )
    reader = actions.add_parser("reader", help="test a reader of multiple-choice replies on replies with known answers")
    reader.add_argument("reader", metavar="SPEC", help="SPEC of a reader, as for --reader")
    reader.add_argument("--out", metavar="DIR", type=Path, help="folder for verdicts (default: judges/LABEL)")
    add_insecure_flag(reader)
    for action in (validate, questions, hear):
        flag = action.add_argument_group("sample").add_argument
        flag("--repeats", metavar="N", type=int, help="number of repeats per question (default: as in the SPEC)")
        flag(
            "--limit", metavar="N", type=int, help="judge about N units, sampled by group; with hear: N pairs per part"
        )
        flag("--seed", metavar="N", type=int, default=0, help="random seed of the sample (default: 0)")
        flag = action.add_argument_group("output").add_argument
        flag("--out", metavar="DIR", type=Path, help="folder for verdicts and results (default: judges/LABEL)")
        add_insecure_flag(action)
    actions.add_parser("list", help="list the rubrics and the judges validated for them")
    show = actions.add_parser("show", help="print the messages that a judge receives with a rubric")
    show.add_argument("rubric", metavar="RUBRIC", help="name of a rubric, or its .toml file")


def main(args: argparse.Namespace) -> int:
    """Run the chosen subcommand."""
    if args.action in ("validate", "questions", "hear"):
        for name in ("limit", "repeats"):
            if getattr(args, name) is not None and getattr(args, name) < 1:
                raise UsageError(f"--{name} must be at least 1")
    actions = {"validate": _validate, "questions": _questions, "hear": _hear, "reader": _reader}
    return {**actions, "list": _list, "show": _show}[args.action](args)


def _validate(args: argparse.Namespace) -> int:
    if len(args.judges) == 1:
        return _validate_one(args, args.judges[0]).code
    from overtone.cli._judge import print_consistency, write_json
    from overtone.judge_trust.judge_consistency import LINE, consistency

    measured = {}
    for text in args.judges:
        one = _validate_one(args, text, several=True)
        if one.name in measured:
            raise UsageError(f"two judges have the label {one.name!r}; add label=NAME to one SPEC")
        measured[one.name] = one
    judgements = {name: one.judgements for name, one in measured.items()}
    rubric, labels, dimensions = one.rubric, one.labels, one.dimensions
    rows = consistency(judgements, rubric, labels, dimensions, seed=args.seed)
    out = args.out or Path("judges")
    content = {"line": LINE, "judges": list(judgements), "labels": labels.path.name}
    write_json(out / "consistency.json", {**content, "dimensions": rows, "seed": args.seed})
    print_consistency(rows)
    print(f"Written: {out / 'consistency.json'}")
    return max(one.code for one in measured.values())


class _Measured(NamedTuple):
    """A measured judge: its exit code, its judgements, and the rubric and labels behind them."""

    code: int
    name: str
    judgements: list[Judgement]
    rubric: Rubric
    labels: Labels
    dimensions: dict[str, str]


def _validate_one(args: argparse.Namespace, text: str, *, several: bool = False) -> _Measured:
    """Measure one judge against people. With `several`, the judge's files go to a folder of its own."""
    import msgspec

    from overtone.cli._judge import finish, print_validation, remember, write_json
    from overtone.judge_trust import labelled_subjects, recorded_judge
    from overtone.judge_trust.validation import validate
    from overtone.judges import trust_record
    from overtone.judges.judgement import Outcome
    from overtone.report.validation_page import write_validation

    outcome = Outcome()
    base = args.out if several else None
    file = recorded_judge.path_of(text)
    if file is not None:
        labels, verdicts, rubric = _recorded(args, file)
        dimensions = labelled_subjects.matched(rubric, labels, _named(args))
        units = labelled_subjects.chosen(labels, list(dimensions.values()), args.limit, args.seed)
        judgements = recorded_judge.judgements(verdicts, labels, rubric, units)
        name, identity = f"recorded:{file.name}", f"recorded:{file.stem}"
        out = base / file.stem if base else args.out or Path("judges") / file.stem
    else:
        judge = _judge(text, args.repeats)
        labels, rubric = _labels(args, judge)
        dimensions = labelled_subjects.matched(rubric, labels, _named(args))
        units = labelled_subjects.chosen(labels, list(dimensions.values()), args.limit, args.seed)
        subjects = labelled_subjects.subjects(rubric, labels, units, judge.policy.hears)
        out = base / judge.label if base else args.out or Path("judges") / judge.label
        judgements, outcome = _ask(judge, rubric, subjects, out)
        name, identity = judge.label, trust_record.identity(judge, rubric)
    validation = validate(judgements, rubric, labels, dimensions, judge=name, identity=identity, seed=args.seed)
    validation.asked = {key: value for key, value in msgspec.to_builtins(outcome).items() if value}
    write_json(out / "validation.json", validation)
    write_validation(validation, out / "validation.html")
    print_validation(validation)
    if file is None:
        remember(validation, rubric, identity)
    code = finish(outcome, out / "validation.html")
    return _Measured(code, name, judgements, rubric, labels, dimensions)


def _recorded(args: argparse.Namespace, file: Path) -> tuple[Labels, Labels, Rubric]:
    from overtone.judge_trust import labels as people
    from overtone.judge_trust import recorded_judge
    from overtone.judges import rubric as rubrics

    labels = label_source.read(args.labels)
    verdicts = people.read(file, labels.dimensions, repeated=True)
    if args.rubric:
        return labels, verdicts, rubrics.load(args.rubric)
    shared = [name for name in verdicts.dimensions if name in labels.dimensions]
    if not shared:
        raise UsageError(
            f"{file.name} judges {', '.join(verdicts.dimensions)} and {args.labels.name} labels "
            f"{', '.join(labels.dimensions)}: they share no dimension; name one with --rubric and --dimension"
        )
    return labels, verdicts, recorded_judge.rubric_of(labels, verdicts, shared)


def _labels(args: argparse.Namespace, judge: Judge) -> tuple[Labels, Rubric]:
    """Return the labels and their rubric: the one that the user names, the one of the labels' layout, or the judge's
    only one."""
    from overtone.judges import rubric as rubrics
    from overtone.judges.policy import STANDARD

    if args.rubric:
        rubric = rubrics.load(args.rubric)
        named = [*_named(args).values(), *(d.key for d in rubric.dimensions)]
        return label_source.read(args.labels, named), rubric
    labels = label_source.read(args.labels)
    own = judge.rubrics if judge.rubrics != STANDARD else ()
    names = [labels.rubric] if labels.rubric else list(own)
    if not names:  # the standard rubrics with a labelled dimension
        known = {name: rubrics.load(name) for name in STANDARD}
        names = [n for n, r in known.items() if any(d.key in labels.dimensions for d in r.dimensions)]
    if len(names) != 1:
        raise UsageError(f"cannot tell which rubric the labels belong to; add --rubric {' or '.join(names) or 'NAME'}")
    rubric = rubrics.load(names[0])
    return label_source.read(args.labels, [*_named(args).values(), *(d.key for d in rubric.dimensions)]), rubric


def _named(args: argparse.Namespace) -> dict[str, str]:
    names = {}
    for text in args.dimension:
        ours, equals, theirs = text.partition("=")
        if not equals or not ours or not theirs:
            raise UsageError(f"--dimension {text!r} is not OURS=THEIRS")
        names[ours] = theirs
    return names


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
    """Return every verdict. Verdicts are cached in OUT/verdicts.db, so each is asked for once."""
    from overtone.cli._judge import Counter
    from overtone.judges.panel import judge_all

    with Counter(f"{judge.label} · {rubric.name}", len(subjects)) as counter:
        return judge_all(judge, rubric, subjects, out / "verdicts.db", progress=counter.update)


def _hear(args: argparse.Namespace) -> int:
    from overtone.cli._judge import add_up, finish, print_heard, write_json
    from overtone.judge_trust import hearing_test
    from overtone.judges import rubric as rubrics
    from overtone.judges import trust_record
    from overtone.judges.judgement import Outcome

    if len(args.judges) > 2 or (args.compare and len(args.judges) > 1):
        raise UsageError("name one judge, two judges, or one judge with --compare")
    if args.compare:
        judges = [_judge(args.judges[0], args.repeats, hears) for hears in ("audio", "description")]
    else:
        judges = [_judge(text, args.repeats) for text in args.judges]
    if any(judge.policy.hears == "nothing" for judge in judges):
        raise UsageError("a judge with hears=nothing gets no audio and cannot take this test; remove hears=nothing")
    clips = hearing_test.clips(args.data)
    parts = {part: rubrics.load(name) for part, name in hearing_test.PARTS.items()}
    out = args.out or Path("judges") / judges[0].label
    total = Outcome()
    tests: list[hearing_test.Test] = []
    taken = []
    for judge in judges:

        def asked(rubric: Rubric, subjects: object, judge: Judge = judge) -> list[Judgement]:
            judgements, outcome = _ask(judge, rubric, list(subjects), out)  # type: ignore[call-overload]
            add_up(total, outcome)
            return judgements

        answers = hearing_test.take(asked, parts, clips, limit=args.limit or hearing_test.LIMIT, seed=args.seed)
        heard = [hearing_test.heard(part, parts[part], *answers[part]) for part in parts]
        identity = trust_record.identity(judge, parts["emotion"]).partition("|calls:")[0]
        test = hearing_test.Test(judge.label, identity, heard)
        tests.append(test)
        taken.append(answers)
        if test.passed:
            trust_record.write(identity, None, (), hearing_test.sentence(test), how=trust_record.HEARING)
        else:
            trust_record.forget(identity, None, how=trust_record.HEARING)
    gaps = {}
    if len(taken) == 2:
        gaps = {p: hearing_test.difference(r, taken[0][p][0], taken[0][p][1], taken[1][p][1]) for p, r in parts.items()}
    result = {"tests": tests, "passed": [t.passed for t in tests], "differences": gaps, "chance": hearing_test.CHANCE}
    write_json(out / "hearing.json", {**result, "seed": args.seed})
    print_heard(tests, gaps)
    return finish(total, out / "hearing.json")


def _questions(args: argparse.Namespace) -> int:
    from overtone.cli._judge import add_up, finish, print_answers, write_json
    from overtone.judge_trust import labelled_subjects, scale_questions
    from overtone.judges.judgement import Outcome

    judge = _judge(args.judge, args.repeats)
    labels, rubric = _labels(args, judge)
    dimensions = labelled_subjects.matched(rubric, labels, _named(args))
    units = labelled_subjects.chosen(labels, list(dimensions.values()), args.limit, args.seed)
    subjects = labelled_subjects.subjects(rubric, labels, units, judge.policy.hears)
    out = args.out or Path("judges") / judge.label
    total = Outcome()

    def asked(judge: Judge, rubric: Rubric) -> list[Judgement]:
        judgements, outcome = _ask(judge, rubric, subjects, out)
        add_up(total, outcome)
        return judgements

    answers: list[scale_questions.Contrast] = []
    skipped = []
    fine = asked(judge, rubric)
    if any(d.scale == (1, 5) for d in rubric.dimensions):
        rough = asked(judge, scale_questions.coarse(rubric))
        answers += scale_questions.coarse_against_fine(fine, rough, rubric, labels, dimensions, seed=args.seed)
    else:
        skipped.append("coarse against fine: the rubric has no scale from 1 to 5")
    if rubric.hears and judge.policy.hears != "nothing":
        verdicts = {judge.policy.hears: fine}
        for hears in ("audio", "description"):
            if hears not in verdicts:
                verdicts[hears] = asked(_judge(args.judge, args.repeats, hears), rubric)
        both = verdicts["audio"], verdicts["description"]
        answers += scale_questions.audio_against_description(*both, rubric, labels, dimensions, seed=args.seed)
    else:
        skipped.append("audio against description: the rubric plays the judge no audio")
    write_json(out / "questions.json", answers)
    print_answers(answers, skipped)
    return finish(total, out / "questions.json")


def _reader(args: argparse.Namespace) -> int:
    """Test a reader on the known replies, as `--reader` does before its first use."""
    import asyncio

    from overtone.cli._judge import finish
    from overtone.errors import EXIT_FAILURES
    from overtone.judges.choice_reader import PRECISION, RECALL, Checked, check
    from overtone.judges.panel import Sitting
    from overtone.judges.verdict_cache import Verdicts
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
    from overtone import registry
    from overtone.judges import rubric as rubrics
    from overtone.judges import trust_record
    from overtone.paths import shown

    proofs = trust_record.records()
    rows = registry.listing("rubrics")
    width = max(map(len, rows))
    for name, title in rows.items():
        print(f"{name:<{width}}  {title}")
        rubric = rubrics.load(name)
        for proof in proofs:
            if proof.how == trust_record.HEARING and rubric.hears and not name.startswith("hears-"):
                print(f"{'':<{width}}  · {shown(proof.identity)} hears: {shown(proof.sentence)}")
            elif proof.rubric == rubric.name and proof.sha256 == rubric.sha256:
                keys = ", ".join(proof.dimensions)
                print(f"{'':<{width}}  · {shown(proof.identity)} {proof.how} on {shown(keys)}: {shown(proof.sentence)}")
    if not proofs:
        print("\nNo judge is validated yet. Validate one with 'overtone judge validate' or 'overtone judge hear'.")
    return EXIT_OK


def _show(args: argparse.Namespace) -> int:
    from overtone.cli._judge import print_rubric
    from overtone.judges import rubric as rubrics

    print_rubric(rubrics.load(args.rubric))
    return EXIT_OK
