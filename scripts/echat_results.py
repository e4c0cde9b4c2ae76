"""Write docs/echat-results.md's tables from the scores of an ablation; the words around them stay as they are.

overtone evaluate counts out/ablation/*-[0-9].jsonl.gz --listen --out bench/echat_runs
overtone evaluate scores bench/echat_runs/*.json.gz --out bench/echat_scores.json
python -m scripts.echat_results bench/echat_scores.json
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec

from overtone.echat.exam.scores import FULL, OWN, Difference, Row, Scores
from overtone.echat.exam.tallies import CATEGORIES
from overtone.paths import write_whole

PAGE = Path(__file__).parent.parent / "docs" / "echat-results.md"
BLANK = Path(__file__).with_suffix(".md")  # the page before there are numbers
OURS = ("seen", "recipe", "engine", "echat-eval")  # spoken by our voices
PARTS = {
    "seen": "seen recipe",
    "recipe": "unseen recipe",
    "engine": "unseen engine",
    "echat-eval": "EChat-eval-Open",
    "ravdess": "RAVDESS",
    "nonverbal": "nonverbal",
    "speechocean": "speechocean",
}
ARMS = {
    "full": "full",
    "no-understanding": "− understanding",
    "no-think": "− think",
    "neither": "− both",
    "whole": "whole recipe",
}
PUBLISHED = {  # of EChat-eval's automatic scores: how many points an arm lies below the whole model
    "no-understanding": (4.6, 27.7, 21.7, 34.2, 8.9),
    "no-think": (3.5, 20.8, 1.4, 26.0, 15.6),
    "neither": (6.4, 22.8, 23.6, 76.7, 17.8),
}
DIMENSIONS = ("emotion", "age", "gender", "event")
OTHERWISE = {"plain": "no thought", "told": "thought given", "oracle": "oracle", "deaf": "deaf"}
HABITS = {  # measure, source → what a reader calls it
    ("changed", OWN): "reply changes with the delivery",
    ("reply_emotion.accuracy", OWN): "the reply's emotion is the reference's",
    ("malformed", OWN): "thought that cannot be read",
    ("false_cue", "named"): "a feeling named in an even voice",
    ("false_cue", "thought"): "a feeling or sound thought of that is not there",
    ("false_reply", OWN): "a reply with feeling where none is due",
    ("cut", OWN): "reply that does not end",
    ("reply_words", OWN): "words of a reply",
    ("speech_wer", "speech"): "word errors of what is spoken against its text",
}


class Found:
    """Scores, by what they are of."""

    def __init__(self, scores: Scores) -> None:
        self.scores = scores
        self.rows = {(r.arm, r.part, r.measure, r.source): r for r in scores.rows}
        self.differences = {(d.part, d.measure, d.a, d.b): d for d in scores.differences}
        self.arms = [arm for arm in ARMS if arm in scores.arms] + [arm for arm in scores.arms if arm not in ARMS]
        self.parts = [part for part in PARTS if part in scores.parts]
        self.ours = [part for part in OURS if part in scores.parts]

    def row(self, arm: str, part: str, measure: str, source: str) -> Row | None:
        return self.rows.get((arm, part, measure, source))


def cell(row: Row | None) -> str:
    """A score with its interval."""
    if row is None or row.value is None:
        return "–"
    digits = 1 if row.measure == "reply_words" else 2
    if row.low is None or row.high is None:
        return f"{row.value:.{digits}f}"
    return f"{row.value:.{digits}f} ({row.low:.{digits}f} to {row.high:.{digits}f})"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *rows)]


def setting(found: Found) -> list[str]:
    """How many runs and records there are."""
    seeds = ", ".join(f"{ARMS.get(arm, arm)} {len(found.scores.arms[arm])}" for arm in found.arms)
    parts = ", ".join(f"{PARTS.get(part, part)} {n}" for part, n in found.scores.parts.items())
    return [
        f"Runs (seeds of each arm): {seeds}. Records: {parts}. In brackets: 95 % intervals over seeds and scripts (of "
        f"recordings over seeds and speakers), {found.scores.draws} draws."
    ]


def hearing(found: Found) -> list[str]:
    """Unweighted average recall of each dimension, and word errors, on our own voices."""
    lines = []
    for dimension in DIMENSIONS:
        for part in found.ours:
            cells = [found.row(arm, part, f"{dimension}.uar", "named") for arm in found.arms]
            if any(cells):
                lines.append([dimension, PARTS[part], chance(cells), *map(cell, cells)])
    for part in found.ours:
        cells = [found.row(arm, part, "wer", "words") for arm in found.arms]
        if any(cells):
            lines.append(["word error rate", PARTS[part], "", *map(cell, cells)])
    return table(["", "part", "chance", *_names(found)], lines)


def people(found: Found) -> list[str]:
    """The same for recordings of people: as said, and as the likeliest of the corpus's own labels."""
    lines = []
    for part in (part for part in found.parts if part not in OURS):
        for dimension in DIMENSIONS:
            for source, how in (("named", "said"), ("chosen", "likeliest")):
                cells = [found.row(arm, part, f"{dimension}.uar", source) for arm in found.arms]
                if any(cells):
                    lines.append([PARTS.get(part, part), dimension, how, chance(cells), *map(cell, cells)])
        cells = [found.row(arm, part, "wer", "words") for arm in found.arms]
        if any(cells):
            lines.append([PARTS.get(part, part), "word error rate", "said", "", *map(cell, cells)])
    return table(["corpus", "", "", "chance", *_names(found)], lines)


def replies(found: Found) -> list[str]:
    """How often a reply is closer to the references of its own delivery than to those of another, by category."""
    lines = []
    for part in found.ours:
        for arm in found.arms:
            lines += _reply_line(found, part, arm, OWN, ARMS.get(arm, arm))
        for arm in (FULL, "whole"):
            for source, name in OTHERWISE.items():
                lines += _reply_line(found, part, arm, source, f"{ARMS[arm]}, {name}")
    return table(["part", "replies of", *CATEGORIES, "all"], lines)


def _reply_line(found: Found, part: str, arm: str, source: str, name: str) -> list[list[str]]:
    measures = [*(f"direction.{category}" for category in CATEGORIES), "direction"]
    cells = [found.row(arm, part, measure, source) for measure in measures]
    return [[PARTS[part], name, *map(cell, cells)]] if any(cells) else []


def habits(found: Found) -> list[str]:
    """What else replies are like, on the part of seen recipes."""
    lines = []
    for (measure, source), name in HABITS.items():
        cells = [found.row(arm, "seen", measure, source) for arm in found.arms]
        if any(cells):
            lines.append([name, *map(cell, cells)])
    return table(["seen recipe", *_names(found)], lines)


def claims(found: Found) -> list[str]:
    """The paper's differences beside ours, in points of a hundred, with what can be said of each."""
    parts = [part for part in ("seen", "echat-eval") if part in found.ours]
    lines = []
    for arm, published in PUBLISHED.items():
        for category, theirs in zip(CATEGORIES, published, strict=True):
            ours = [
                found.differences.get((part, f"direction.{category}", f"{FULL}/{OWN}", f"{arm}/{OWN}"))
                for part in parts
            ]
            if any(ours):
                told = [cell for d in ours for cell in (("–", "–") if d is None else (points(d), verdict(d)))]
                lines.append([ARMS[arm], category, f"{theirs:.1f}", *told])
    return table(["full against", "category", "published", *(c for p in parts for c in (PARTS[p], "verdict"))], lines)


def points(difference: Difference) -> str:
    if difference.value is None or difference.low is None or difference.high is None:
        return "–"
    return f"{100 * difference.value:+.1f} ({100 * difference.low:+.1f} to {100 * difference.high:+.1f})"


def verdict(difference: Difference) -> str:
    """What an interval says of the claim that the first is larger."""
    if difference.value is None or difference.low is None:
        return "not measured"
    if not difference.sure:
        return "cannot be told from none"
    return "held" if difference.value > 0 else "the other way round"


def differences(found: Found) -> list[str]:
    """Full against each other arm, the deaf cascade and the oracle, in points; what is sure is bold."""
    arms = [arm for arm in PUBLISHED if arm in found.arms]
    lines = []
    for part in found.ours:
        rows = [(dimension, f"{dimension}.uar", "named") for dimension in DIMENSIONS]
        for name, measure, source in [*rows, ("word error rate", "wer", "words"), ("replies", "direction", OWN)]:
            others = [f"{arm}/{source}" for arm in arms] + [f"{FULL}/{s}" for s in ("deaf", "oracle") if source == OWN]
            cells = [found.differences.get((part, measure, f"{FULL}/{source}", other)) for other in others]
            if any(cells):
                told = [marked(d) for d in cells] + [""] * (len(arms) + 2 - len(cells))
                lines.append([PARTS[part], name, *told])
    return table(["full against", "", *(ARMS[arm] for arm in arms), "deaf cascade", "oracle"], lines)


def marked(difference: Difference | None) -> str:
    if difference is None:
        return "–"
    return f"**{points(difference)}**" if difference.sure else points(difference)


def chance(cells: Sequence[Row | None]) -> str:
    found = next((row.chance for row in cells if row and row.chance is not None), None)
    return "" if found is None else f"{found:.2f}"


def _names(found: Found) -> list[str]:
    return [ARMS.get(arm, arm) for arm in found.arms]


BLOCKS: dict[str, Callable[[Found], list[str]]] = {
    "setting": setting,
    "hearing": hearing,
    "replies": replies,
    "habits": habits,
    "claims": claims,
    "people": people,
    "differences": differences,
}


def filled(page: str, scores: Scores) -> str:
    """The page with all tables written anew."""
    found = Found(scores)
    for name, make in BLOCKS.items():
        page = block(page, name, make(found))
    return page


def block(page: str, name: str, lines: Sequence[str]) -> str:
    """The page with what stands between `<!-- NAME -->` and `<!-- /NAME -->` written anew."""
    pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.S)
    if not pattern.search(page):
        raise ValueError(f"the page has no place for {name}: <!-- {name} --> … <!-- /{name} -->")
    text = "\n".join(lines)
    return pattern.sub(lambda match: f"{match[1]}\n{text}\n\n{match[2]}", page)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("scores", metavar="FILE", type=Path)
    parser.add_argument("--page", metavar="FILE", type=Path, default=PAGE)
    args = parser.parse_args(argv)
    scores = msgspec.json.decode(args.scores.read_bytes(), type=Scores)
    before = args.page if args.page.is_file() else BLANK
    write_whole(args.page, filled(before.read_text(), scores).encode())


if __name__ == "__main__":
    main()
