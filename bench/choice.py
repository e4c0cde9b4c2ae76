"""Measure the readers of multiple-choice replies on files of replies with the choice that a person read in them.

    python -m bench.choice [--strict] [--errors] FILE…

Each line of a FILE is a JSON object with `text`, `options`, `gold` (a letter, or null where the reply makes no choice)
and `kind` (how the reply names its option; `none` where it makes no choice). Precision is the share of the letters
given that are right, recall the share of the choices that are read. Intervals are 95 % Wilson intervals clustered by
question.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from overtone.schema import Option
from overtone.stats.cluster import Interval, proportion
from overtone.tasks.answers.extract import LENIENT, STRICT, Extracted, lenient, strict

# The rows of the table. A row with `none` counts a letter given for a reply without a choice as an error of precision.
ROWS: dict[str, tuple[str, ...]] = {
    "letter": ("letter",),
    "words": ("words",),
    "variant of the words": ("variant",),
    "paraphrase": ("paraphrase",),
    "ordinal": ("ordinal",),
    "exclusion": ("exclusion",),
    "other language": ("language",),
    "spoken": ("spoken",),
    "no choice": ("none",),
    "**letter or words**": ("letter", "words"),
    "**letter or words, and no choice**": ("letter", "words", "none"),
    "letter, words or variant, and no choice": ("letter", "words", "variant", "none"),
    "all": ("letter", "words", "variant", "paraphrase", "ordinal", "exclusion", "language", "spoken", "none"),
}
Reader = Callable[[str, Sequence[Option]], Extracted]


class Reply(Struct, frozen=True):
    """One reply with its options and the letter a person read in it, or None."""

    text: str
    options: tuple[str, ...]
    gold: str | None
    kind: str
    question: str = ""
    note: str = ""


class Reading(Struct, frozen=True):
    """A reply with the letter the reader gave."""

    reply: Reply
    letter: str | None

    @property
    def right(self) -> bool:
        return self.letter == self.reply.gold

    @property
    def cluster(self) -> tuple[str, ...]:
        return (self.reply.question, *self.reply.options)


def load(path: Path) -> list[Reply]:
    return [msgspec.json.decode(line, type=Reply) for line in path.read_bytes().splitlines() if line.strip()]


def read_all(replies: Iterable[Reply], reader: Reader) -> list[Reading]:
    return [
        Reading(r, reader(r.text, [Option("ABCDEFGH"[i], text) for i, text in enumerate(r.options)]).letter)
        for r in replies
    ]


def precision(readings: Iterable[Reading]) -> Interval:
    """The share of the letters given that are right."""
    given = [r for r in readings if r.letter is not None]
    return proportion([float(r.right) for r in given], [r.cluster for r in given])


def recall(readings: Iterable[Reading]) -> Interval:
    """The share of the replies with a choice whose choice is read."""
    choices = [r for r in readings if r.reply.gold is not None]
    return proportion([float(r.right) for r in choices], [r.cluster for r in choices])


def table(readings: Sequence[Reading]) -> str:
    """The readings as a Markdown table, one row per kind of reply."""
    lines = [
        "| replies | count | precision | 95 % interval | recall | 95 % interval |",
        "|---|---:|---:|---|---:|---|",
    ]
    for name, kinds in ROWS.items():
        rows = [r for r in readings if r.reply.kind in kinds]
        if rows:
            cells = [cell for interval in (precision(rows), recall(rows)) for cell in _cells(interval)]
            lines.append(f"| {name} | {len(rows)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cells(interval: Interval) -> tuple[str, str]:
    if not interval.rows:
        return "–", "–"
    return (
        f"{interval.value:.3f} ({round(interval.value * interval.rows)} of {interval.rows})",
        f"{interval.low:.3f} to {interval.high:.3f}" if interval.clusters > 1 else "–",
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.choice", description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--strict", action="store_true", help="measure the strict reader (default: the lenient one)")
    parser.add_argument("--errors", action="store_true", help="list the replies that are read wrongly")
    chosen = parser.parse_args(arguments)
    reader, name = (strict, STRICT) if chosen.strict else (lenient, LENIENT)
    for path in chosen.files:
        readings = read_all(load(path), reader)
        questions = len({r.cluster for r in readings})
        print(f"{path.name}: {len(readings)} replies to {questions} questions, reader {name}\n\n{table(readings)}\n")
        if chosen.errors:
            for r in readings:
                if not r.right:
                    print(f"{r.reply.kind}: read {r.letter}, gold {r.reply.gold}: {r.reply.text!r} {r.reply.options}")


if __name__ == "__main__":
    main()
