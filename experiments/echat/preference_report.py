"""Did learning from preferences help? Measures that had no part in choosing the pairs, before and after, on scripts
that were not learnt from; and whether only the score that chose the pairs has risen.

    overtone evaluate echat START --data PACK --out before.jsonl.gz
    overtone evaluate echat PREFERRED --data PACK --out after.jsonl.gz
    python -m experiments.echat.preference_report before.jsonl.gz after.jsonl.gz --pairs pairs.jsonl \\
        --runs RUN_BEFORE RUN_AFTER
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from overtone.arena.preferences import Preference
from overtone.echat.exam import answer_file, counts, exam_scores
from overtone.echat.exam.answer_file import Head, Prediction
from overtone.errors import DataError, OvertoneError, UsageError
from overtone.paths import read_plain, shown, write_whole
from overtone.results.judge_scores import read_dimensions
from overtone.runs.measurement_choice import same_signature
from overtone.runs.store import Store
from overtone.scores import built_in
from overtone.stats import cluster

AFTER, BEFORE, PART = exam_scores.FULL, "before", "held-out"
MEASURES: dict[tuple[str, str], tuple[str, Literal["higher", "lower", "neither"]]] = {
    ("emotion.uar", "chosen"): ("emotion, unweighted recall", "higher"),
    ("age.uar", "chosen"): ("age, unweighted recall", "higher"),
    ("gender.uar", "chosen"): ("gender, unweighted recall", "higher"),
    ("event.uar", "chosen"): ("event, unweighted recall", "higher"),
    ("wer", "words"): ("word error rate", "lower"),
    ("false_cue", "chosen"): ("false cues", "lower"),
    ("false_cue", "thought"): ("false cues in thoughts", "lower"),
    ("false_reply", exam_scores.OWN): ("moved replies to plain voices", "lower"),
    ("direction", exam_scores.OWN): ("replies closer to their own delivery's references", "higher"),
    ("changed", exam_scores.OWN): ("replies that change with the delivery", "neither"),
    ("reply_words", exam_scores.OWN): ("words of a reply", "neither"),
    ("malformed", exam_scores.OWN): ("malformed thoughts", "lower"),
    ("cut", exam_scores.OWN): ("replies without an end", "lower"),
}
# All of these ask how near a reply is to the reference: where one chose the pairs, none of them is another's word.
LIKENESS = {"semsim", "bertscore", "bleu", "rouge_l", "rouge_l_stemmed", "meteor", "style_margin", "direction"}


class Change(Struct, frozen=True):
    """One measure before and after. `chose`: it, its judge or one of its kind had a part in choosing the pairs."""

    name: str
    better: str
    before: float | None
    after: float | None
    difference: float | None
    low: float | None
    high: float | None
    n: int
    scripts: int
    chose: bool = False

    @property
    def verdict(self) -> str:
        """better, worse, moved (where neither way is better), or open: the interval holds 0."""
        if self.low is None or self.high is None or self.difference is None or self.low <= 0 <= self.high:
            return "open"
        if self.better == "neither":
            return "moved"
        return "better" if (self.difference > 0) == (self.better == "higher") else "worse"

    @property
    def told(self) -> str:
        if self.difference is None or self.low is None or self.high is None:
            return f"{self.name} (not enough to say)"
        return f"{self.name} {self.difference:+.3g} [{self.low:+.3g}, {self.high:+.3g}]"


class Report(Struct, frozen=True):
    changes: list[Change]
    chose: list[str]  # who chose the pairs: kind and name
    left_out: dict[str, int]
    said: list[str]


class Pairs(Struct, frozen=True):
    """What is needed of the pairs that were learnt from."""

    groups: frozenset[str] = frozenset()
    words: frozenset[str] = frozenset()
    voters: frozenset[tuple[str, str]] = frozenset()

    def learnt(self, group: str, words: str) -> bool:
        return group in self.groups or plain(words) in self.words

    def chose(self, metric: str) -> bool:
        """Whether a score had a part in it: itself, another one of a judge that had, or one of the same kind."""
        judges = {name.partition("@")[2] or name for kind, name in self.voters if kind == "judge" or "@" in name}
        named = {name for kind, name in self.voters if kind == "score"}
        kin = metric in LIKENESS and bool(named & LIKENESS)
        return metric in named or kin or ("@" in metric and metric.partition("@")[2] in judges)


def plain(words: str) -> str:
    return " ".join("".join(c if c.isalnum() else " " for c in words.casefold()).split())


def read_pairs(path: Path) -> Pairs:
    try:
        rows = [msgspec.json.decode(line, type=Preference) for line in read_plain(path, 1 << 30).splitlines()]
    except msgspec.MsgspecError as error:
        raise DataError(f"{shown(str(path))}: not a file of preference pairs: {error}") from None
    return Pairs(
        frozenset(row.group for row in rows if row.group),
        frozenset(plain(row.words) for row in rows if plain(row.words)),
        frozenset((voter.kind, voter.name) for row in rows for voter in row.voters),
    )


def of_predictions(
    before: tuple[Head, list[Prediction]], after: tuple[Head, list[Prediction]], pairs: Pairs,
    parts: Sequence[str] = (), *, draws: int = 1000, embed: counts.Embed | None = None,
) -> tuple[list[Change], int]:  # fmt: skip
    """The measures of two files of predictions, and how many records were left out as learnt from."""
    runs, left = [], 0
    for arm, (head, rows) in ((AFTER, after), (BEFORE, before)):
        wanted = [row for row in rows if not parts or row.part in parts]
        kept = [replace(row, part=PART) for row in wanted if not pairs.learnt(row.group, row.question)]
        left = len(wanted) - len(kept)
        runs.append((replace(head, arm=arm, seed=0), kept))
    if not runs[0][1]:
        raise DataError("no record is left to measure: all were learnt from, or --parts names none that is there")
    found = exam_scores.score(counts.count(runs, embed=embed), draws=draws)
    known = {(row.arm, row.measure, row.source): row for row in found.rows}
    gaps = {(d.measure, d.a, d.b): d for d in found.differences}
    changes = []
    for (measure, source), (name, better) in MEASURES.items():
        old, new = known.get((BEFORE, measure, source)), known.get((AFTER, measure, source))
        gap = gaps.get((measure, f"{AFTER}/{source}", f"{BEFORE}/{source}"))
        if old and new and gap:
            values = old.value, new.value, gap.value, gap.low, gap.high
            changes.append(Change(name, better, *values, new.n, new.clusters, pairs.chose(measure)))
    return changes, left


def of_runs(before: Path, after: Path, pairs: Pairs) -> tuple[list[Change], int]:
    """The scores that replies to the same items have in both runs, each reply compared with its twin; and how many
    replies were left out as learnt from."""
    sides = []
    left = 0
    better: dict[str, str] = {}
    for folder in (before, after):
        with Store.read(folder) as store:
            asks, left = {}, 0
            for ask, _ in store.asks():
                if ask.item.task != "converse":
                    continue
                if pairs.learnt(ask.item.group, ask.item.turns[-1].words):
                    left += 1
                else:
                    asks[ask.id] = ask
            held: dict[str, dict[tuple[str, str, int], tuple[float, str, str]]] = {}
            for number, score in store.scores():
                if score.value is not None and number in asks:
                    ask = asks[number]
                    place = (ask.item.id, ask.condition, ask.repeat)
                    held.setdefault(score.metric, {})[place] = (score.value, score.signature, ask.item.group)
            sides.append(held)
            dimensions = read_dimensions(store.meta(), held)
            for metric in list(held):
                key, judged, _ = metric.partition("@")
                if metric in built_in() and built_in()[metric].corpus:
                    del held[metric]  # of many replies together: those of single ones are no measure
                elif judged:
                    better[metric] = dimensions[key].better
                else:
                    better[metric] = built_in()[metric].better if metric in built_in() else "neither"
    changes = []
    for metric in sorted(set(sides[0]) & set(sides[1])):
        old, new = sides[0][metric], sides[1][metric]
        both = [place for place in old if place in new and same_signature(old[place][1], new[place][1])]
        if not both:
            continue
        gaps = [new[place][0] - old[place][0] for place in both]
        found = cluster.mean(gaps, [new[place][2] for place in both])
        means = [_number(sum(side[place][0] for place in both) / len(both)) for side in (old, new)]
        gap, low, high = map(_number, (found.value, found.low, found.high))
        counts = len(both), found.clusters
        changes.append(Change(metric, better[metric], means[0], means[1], gap, low, high, *counts, pairs.chose(metric)))
    return changes, left


def _number(x: float) -> float | None:
    return None if math.isnan(x) else round(x, 4)


def sentences(changes: Sequence[Change], chose: Iterable[str]) -> list[str]:
    """What can be said, computed from the intervals."""
    by = {
        mine: {
            v: [c for c in changes if c.chose == mine and c.verdict == v] for v in ("better", "worse", "moved", "open")
        }
        for mine in (True, False)
    }
    own, others = by[True], by[False]

    def listed(some: Sequence[Change]) -> str:
        return "; ".join(change.told for change in some)

    out = []
    who = ", ".join(chose)
    if own["better"] and not others["better"]:
        out.append(
            f"Only what chose the pairs has risen: {listed(own['better'])}. No measure without a part in choosing them "
            "is better for certain: this shows that the score was learnt, not that the replies are better."
        )
    elif own["better"]:
        out.append(
            f"What chose the pairs has risen: {listed(own['better'])}; and so have measures without a part in it: "
            f"{listed(others['better'])}."
        )
    elif others["better"]:
        out.append(f"Better, by measures without a part in choosing the pairs: {listed(others['better'])}.")
    else:
        out.append("Nothing is better for certain.")
    if not any(change.chose for change in changes):
        out.append(f"What chose the pairs{f' ({who})' if who else ''} was not measured here.")
    elif own["open"] or own["worse"]:
        rest = [*own["open"], *own["worse"]]
        out.append(f"Of what chose the pairs, not risen for certain: {listed(rest)}.")
    if others["worse"]:
        out.append(f"Worse: {listed(others['worse'])}.")
    moved = [*own["moved"], *others["moved"]]
    if moved:
        out.append(f"Moved, for better or worse: {listed(moved)}.")
    count = sum(len(these) for these in others.values())
    out.append(
        f"{count} measures without a part in choosing the pairs were looked at; with 95 % intervals one of twenty that "
        "did not move looks as if it had."
    )
    return out


def report(changes: list[Change], pairs: Pairs, left: dict[str, int]) -> Report:
    chose = sorted(f"{kind} {name}" for kind, name in pairs.voters)
    return Report(changes, chose, left, sentences(changes, chose))


def table(changes: Sequence[Change]) -> list[str]:
    lines = ["| measure | before | after | difference, 95 % interval | | n (scripts) |", "|---|---|---|---|---|---|"]
    for change in changes:
        cells = ["–" if x is None else f"{x:.3f}" for x in (change.before, change.after)]
        gap = "–" if change.low is None else f"{change.difference:+.3f} [{change.low:+.3f}, {change.high:+.3f}]"
        mark = {"higher": " ↑", "lower": " ↓"}.get(change.better, "")
        mark += " (chose the pairs, or its kind)" if change.chose else ""
        lines.append(
            f"| {change.name}{mark} | {' | '.join(cells)} | {gap} | {change.verdict} | {change.n} ({change.scripts}) |"
        )
    return lines


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, help="predictions of the model that preferences started from")
    parser.add_argument("after", type=Path, help="and of the one that learnt them")
    parser.add_argument("--pairs", type=Path, help="the pairs that were learnt from (pairs.jsonl)")
    parser.add_argument("--runs", type=Path, nargs=2, metavar="RUN", help="stored runs of both, scored and judged")
    parser.add_argument("--parts", default="", metavar="NAME,…", help="of the predictions (all)")
    parser.add_argument("--draws", type=int, default=1000, help="of the bootstrap (1000)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="the numbers as well")
    args = parser.parse_args(words)
    try:
        if args.draws < 2:
            raise UsageError("--draws must be at least 2")
        pairs = read_pairs(args.pairs) if args.pairs else Pairs()
        files = answer_file.read(args.before), answer_file.read(args.after)
        parts = tuple(filter(None, args.parts.split(",")))
        changes, count = of_predictions(*files, pairs, parts, draws=args.draws)
        left = {"records": count}
        if args.runs:
            more, left["replies"] = of_runs(args.runs[0], args.runs[1], pairs)
            changes += more
        found = report(changes, pairs, left)
        if args.json:
            write_whole(args.json, msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    except OvertoneError as error:
        print(f"preference_report: {error}", file=sys.stderr)
        return error.exit_code
    print("\n".join([*table(found.changes), ""]))
    for what, number in left.items():
        if number:
            print(f"{number} {what} left out: their scripts were learnt from.")
    if not args.pairs:
        print("Without --pairs nothing is known of what was learnt from, or of who chose.")
    print("\n".join(shown(line) for line in found.said))
    return 0


if __name__ == "__main__":
    sys.exit(main())
