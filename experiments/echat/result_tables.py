"""Write the tables of two pages in docs/explanation and of experiments/echat/ablation.md from the ablation's scores.

    overtone evaluate counts out/ablation/*-[0-9].jsonl.gz --listen --out experiments/echat/runs
    overtone evaluate scores experiments/echat/runs/*.json.gz --out experiments/echat/scores.json
    python -m experiments.echat.result_tables experiments/echat/scores.json

A table replaces the text between `<!-- NAME -->` and `<!-- /NAME -->`; the rest of a page stays as it is.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec

from overtone.echat.exam.exam_scores import FULL, OWN, Difference, Row, Scores
from overtone.echat.exam.tallies import CATEGORIES
from overtone.paths import write_whole

ROOT = Path(__file__).parents[2]
EXPLANATION = ROOT / "docs" / "explanation"
NOTES = ROOT / "experiments" / "echat" / "ablation.md"
PAGES = (EXPLANATION / "echat-results.md", EXPLANATION / "echat-scores.md", NOTES)
OURS = ("seen", "recipe", "engine", "echat-eval")  # synthetic voices
PARTS = {
    "seen": "seen recipe",
    "recipe": "unseen recipe",
    "engine": "unseen engine",
    "echat-eval": "EChat-eval-Open",
    "ravdess": "RAVDESS",
    "nonverbal": "nonverbal",
    "speechocean": "speechocean",
    "speechocean-test": "speechocean, test split",
    "librispeech": "LibriSpeech",
}
ARMS = {
    "full": "full",
    "no-understanding": "− understanding",
    "no-think": "− think",
    "neither": "− both",
    "no-people": "− people",
    "frozen": "frozen language model",
    "whole": "`mini`",
}
PUBLISHED = {  # points of EChat-eval's automatic score by which an arm is below the complete model
    "no-understanding": (4.6, 27.7, 21.7, 34.2, 8.9),
    "no-think": (3.5, 20.8, 1.4, 26.0, 15.6),
    "neither": (6.4, 22.8, 23.6, 76.7, 17.8),
}
ENOUGH = 5  # seeds; an arm with fewer is exploratory
DIMENSIONS = ("emotion", "age", "gender", "event")
OTHER_REPLIES = {"plain": "no thought", "told": "thought given", "oracle": "oracle", "deaf": "deaf"}
HABITS = {  # measure, source → label in the table
    ("changed", OWN): "reply changes with the delivery",
    ("reply_emotion.accuracy", OWN): "the reply's emotion equals the reference's",
    ("malformed", OWN): "unreadable thought",
    ("false_cue", "named"): "emotion named for a neutral voice",
    ("false_cue", "thought"): "absent emotion or sound in the thought",
    ("false_reply", OWN): "emotional reply where a neutral one is expected",
    ("cut", OWN): "reply without an end",
    ("reply_words", OWN): "words per reply",
    ("speech_wer", "speech"): "word error rate of spoken replies against their text",
}
LABELS = [(dimension, f"{dimension}.uar", "named") for dimension in DIMENSIONS]
MEASURES = [*LABELS, ("word error rate", "wer", "words"), ("replies", "direction", OWN)]


class Lookup:
    """Scores by arm, part, measure and source."""

    def __init__(self, scores: Scores) -> None:
        self.scores = scores
        self.rows = {(r.arm, r.part, r.measure, r.source): r for r in scores.rows}
        self.differences = {(d.part, d.measure, d.a, d.b): d for d in scores.differences}
        self.arms = [arm for arm in ARMS if arm in scores.arms] + [arm for arm in scores.arms if arm not in ARMS]
        self.parts = [part for part in PARTS if part in scores.parts]
        self.ours = [part for part in OURS if part in scores.parts]

    def name(self, arm: str) -> str:
        """Return an arm's name; it says so if the arm has too few seeds for more than a first impression."""
        few = arm != "whole" and len(self.scores.arms[arm]) < ENOUGH
        return f"{ARMS.get(arm, arm)} (exploratory)" if few else ARMS.get(arm, arm)

    @property
    def others(self) -> list[str]:
        """The arms that are compared with the full one."""
        return [arm for arm in ARMS if arm in self.scores.arms and arm not in (FULL, "whole")]

    def row(self, arm: str, part: str, measure: str, source: str) -> Row | None:
        return self.rows.get((arm, part, measure, source))


def cell(row: Row | None) -> str:
    """Return a score with its interval, as a table cell."""
    if row is None or row.value is None:
        return "–"
    digits = 1 if row.measure == "reply_words" else 2
    if row.low is None or row.high is None:
        return f"{row.value:.{digits}f}"
    return f"{row.value:.{digits}f} ({row.low:.{digits}f} to {row.high:.{digits}f})"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *rows)]


def setting(lookup: Lookup) -> list[str]:
    """Return the number of runs and records."""
    seeds = ", ".join(f"{ARMS.get(arm, arm)} {len(lookup.scores.arms[arm])}" for arm in lookup.arms)
    parts = ", ".join(f"{PARTS.get(part, part)} {n}" for part, n in lookup.scores.parts.items())
    return [
        f"Seeds per arm: {seeds}; an arm with fewer than {ENOUGH} is exploratory. Records: {parts}. Intervals are "
        f"95 %, from {lookup.scores.draws} bootstrap draws of seeds and scripts (for recordings of people, of seeds "
        "and speakers)."
    ]


def scores_by_part(lookup: Lookup) -> list[str]:
    """Return recall per label, word error rates and the share of fitting replies, on synthetic voices."""
    lines = []
    for name, measure, source in MEASURES:
        for part in lookup.ours:
            cells = [lookup.row(arm, part, measure, source) for arm in lookup.arms]
            if any(cells):
                base = "0.50" if measure == "direction" else chance(cells)
                lines.append([name, PARTS[part], base, *map(cell, cells)])
    return table(["", "test", "chance", *_names(lookup)], lines)


def people(lookup: Lookup) -> list[str]:
    """Return the scores on recordings of people: as answered, and as the most likely of the corpus's own labels."""
    lines = []
    for part in (part for part in lookup.parts if part not in OURS):
        for dimension in DIMENSIONS:
            for source, how in (("named", "answer"), ("chosen", "most likely")):
                cells = [lookup.row(arm, part, f"{dimension}.uar", source) for arm in lookup.arms]
                if any(cells):
                    lines.append([PARTS.get(part, part), dimension, how, chance(cells), *map(cell, cells)])
        cells = [lookup.row(arm, part, "wer", "words") for arm in lookup.arms]
        if any(cells):
            lines.append([PARTS.get(part, part), "word error rate", "answer", "", *map(cell, cells)])
    return table(["corpus", "", "", "chance", *_names(lookup)], lines)


def replies(lookup: Lookup) -> list[str]:
    """Return how often a reply is closer to the references of its own delivery than to another's, by category."""
    lines = []
    for part in lookup.ours:
        for arm in lookup.arms:
            lines += _reply_line(lookup, part, arm, OWN, ARMS.get(arm, arm))
        for arm in (FULL, "whole"):
            for source, name in OTHER_REPLIES.items():
                lines += _reply_line(lookup, part, arm, source, f"{ARMS[arm]}, {name}")
    return table(["test", "arm", *CATEGORIES, "all"], lines)


def _reply_line(lookup: Lookup, part: str, arm: str, source: str, name: str) -> list[list[str]]:
    measures = [*(f"direction.{category}" for category in CATEGORIES), "direction"]
    cells = [lookup.row(arm, part, measure, source) for measure in measures]
    return [[PARTS[part], name, *map(cell, cells)]] if any(cells) else []


def habits(lookup: Lookup) -> list[str]:
    """Return other properties of the replies, on seen recipes."""
    lines = []
    for (measure, source), name in HABITS.items():
        cells = [lookup.row(arm, "seen", measure, source) for arm in lookup.arms]
        if any(cells):
            lines.append([name, *map(cell, cells)])
    return table(["seen recipe", *_names(lookup)], lines)


def claims(lookup: Lookup) -> list[str]:
    """Return the paper's differences next to ours, in percentage points, with a verdict on each."""
    parts = [part for part in ("seen", "echat-eval") if part in lookup.ours]
    lines = []
    for arm, published in PUBLISHED.items():
        for category, theirs in zip(CATEGORIES, published, strict=True):
            ours = [
                lookup.differences.get((part, f"direction.{category}", f"{FULL}/{OWN}", f"{arm}/{OWN}"))
                for part in parts
            ]
            if any(ours):
                cells = [text for d in ours for text in (("–", "–") if d is None else (points(d), verdict(d)))]
                lines.append([ARMS[arm], category, f"{theirs:.1f}", *cells])
    return table(["full minus", "category", "published", *(c for p in parts for c in (PARTS[p], "verdict"))], lines)


def points(difference: Difference) -> str:
    """Return a difference with its interval in percentage points."""
    if difference.value is None or difference.low is None or difference.high is None:
        return "–"
    return f"{100 * difference.value:+.1f} ({100 * difference.low:+.1f} to {100 * difference.high:+.1f})"


def verdict(difference: Difference) -> str:
    """Say whether an interval supports the claim that the first arm scores higher."""
    if difference.value is None or difference.low is None:
        return "not measured"
    if not difference.sure:
        return "not significant"
    return "confirmed" if difference.value > 0 else "opposite direction"


def differences(lookup: Lookup) -> list[str]:
    """Return full minus every other arm, the deaf cascade and the oracle, for all tests and measures."""
    return _differences(lookup, [(part, *measure) for part in lookup.ours for measure in MEASURES])


def main_differences(lookup: Lookup) -> list[str]:
    """Return the same for all measures on seen recipes, and for replies on the other tests."""
    rows = [(part, *measure) for part in lookup.ours for measure in MEASURES]
    return _differences(lookup, [row for row in rows if row[0] == "seen" or row[2] == "direction"])


def _differences(lookup: Lookup, rows: Iterable[tuple[str, str, str, str]]) -> list[str]:
    arms = lookup.others
    lines = []
    for part, name, measure, source in rows:
        others = [f"{arm}/{source}" for arm in arms] + [f"{FULL}/{s}" for s in ("deaf", "oracle") if source == OWN]
        cells = [lookup.differences.get((part, measure, f"{FULL}/{source}", other)) for other in others]
        if any(cells):
            lines.append([PARTS[part], name, *map(marked, cells), *[""] * (len(arms) + 2 - len(cells))])
    return table(["full minus", "", *map(lookup.name, arms), "deaf cascade", "oracle"], lines)


def people_differences(lookup: Lookup) -> list[str]:
    """Return full minus every other arm on recordings of people."""
    lines = []
    for part, name, measure, source in _people_rows(lookup):
        cells = [
            lookup.differences.get((part, measure, f"{FULL}/{source}", f"{arm}/{source}")) for arm in lookup.others
        ]
        if any(cells):
            lines.append([PARTS.get(part, part), name, *map(marked, cells)])
    return table(["full minus", "", *map(lookup.name, lookup.others)], lines)


def _people_rows(lookup: Lookup) -> list[tuple[str, str, str, str]]:
    measures = [*LABELS, ("word error rate", "wer", "words")]
    return [(part, *measure) for part in lookup.parts if part not in OURS for measure in measures]


def holds(lookup: Lookup) -> list[str]:
    """Return, for every measure, on which voices an arm's difference to the full one is significant."""
    lines = []
    for name, measure, source in MEASURES:
        cells = []
        for arm in lookup.others:
            found: dict[bool, list[bool]] = {True: [], False: []}  # on people? → significant?
            for part in lookup.parts:
                difference = lookup.differences.get((part, measure, f"{FULL}/{source}", f"{arm}/{source}"))
                if difference is not None:
                    found[part not in OURS].append(difference.sure and better(difference, measure))
            cells.append(_where(found[True], found[False]))
        if any(cells):
            lines.append([name, *cells])
    return table(["full is better in", *map(lookup.name, lookup.others)], lines)


def better(difference: Difference, measure: str) -> bool:
    """Return whether the first arm is better; fewer word errors are."""
    return difference.value is not None and (difference.value < 0) == (measure == "wer")


def _where(people: Sequence[bool], synthetic: Sequence[bool]) -> str:
    if not people and not synthetic:
        return ""
    both = (("tests of people", people), ("synthetic tests", synthetic))
    return ", ".join(f"{sum(some)} of {len(some)} {name}" for name, some in both if some)


def marked(difference: Difference | None) -> str:
    """Return a difference in points, in bold if its interval excludes 0."""
    if difference is None:
        return "–"
    return f"**{points(difference)}**" if difference.sure else points(difference)


def chance(cells: Sequence[Row | None]) -> str:
    value = next((row.chance for row in cells if row and row.chance is not None), None)
    return "" if value is None else f"{value:.2f}"


def _names(lookup: Lookup) -> list[str]:
    return [lookup.name(arm) for arm in lookup.arms]


BLOCKS: dict[str, Callable[[Lookup], list[str]]] = {
    "setting": setting,
    "scores": scores_by_part,
    "main-differences": main_differences,
    "people": people,
    "people-differences": people_differences,
    "holds": holds,
    "claims": claims,
    "differences": differences,
    "replies": replies,
    "habits": habits,
}


def fill(page: str, scores: Scores) -> str:
    """Return the page with new tables. Raises ValueError if it has a place for none of them."""
    lookup = Lookup(scores)
    names = [name for name in BLOCKS if f"<!-- {name} -->" in page]
    if not names:
        raise ValueError(f"the page has no place for a table; mark one with <!-- {next(iter(BLOCKS))} -->")
    for name in names:
        page = replace_block(page, name, BLOCKS[name](lookup))
    return page


def replace_block(page: str, name: str, lines: Sequence[str]) -> str:
    """Return the page with new lines between `<!-- NAME -->` and `<!-- /NAME -->`."""
    pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.S)
    if not pattern.search(page):
        raise ValueError(f"the page has no place for {name}: <!-- {name} --> … <!-- /{name} -->")
    text = "\n".join(lines)
    return pattern.sub(lambda match: f"{match[1]}\n{text}\n\n{match[2]}", page)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("scores", metavar="FILE", type=Path, help="output of 'overtone evaluate scores'")
    parser.add_argument("--page", metavar="FILE", type=Path, action="append",
                        help="page to fill; repeatable (default: all three)")  # fmt: skip
    args = parser.parse_args(argv)
    scores = msgspec.json.decode(args.scores.read_bytes(), type=Scores)
    for page in args.page or PAGES:
        write_whole(page, fill(page.read_text(encoding="utf-8"), scores).encode())


if __name__ == "__main__":
    main()
