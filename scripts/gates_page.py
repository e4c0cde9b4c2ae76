"""Write the gates' measurements of a built set into the two pages on gates in docs/reference.

It replaces four tables: the leak test, how recognisable each kind of option is, how far the words predict the cue, and
the word error rates.

    overtone build open --out open && python scripts/gates_page.py open
"""

from __future__ import annotations

import argparse
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import msgspec

from overtone.build.gates.survive import KIND
from overtone.cues import BY_SLUG

REFERENCE = Path(__file__).parent.parent / "docs" / "reference"
TEXT, AUDIO = REFERENCE / "gates.md", REFERENCE / "gates-audio.md"
KINDS = ("plain", "prosody", "haste", "timbre", "events", "scene", "babble")
Rows = list[dict[str, Any]]


def leak_test(rows: Rows) -> list[str]:
    best: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows:
        key = row["part"], row["category"]
        if key not in best or row["accuracy"] > best[key]["accuracy"]:
            best[key] = row
    return [
        f"| {part + ': ' if part else ''}{category} | {r['n']} | {r['solver']} | {r['accuracy']:.3f} "
        f"| {r['low']:.3f} to {r['high']:.3f} | {r['ceiling']:.3f} | {'yes' if r['passes'] else 'no'} |"
        for (part, category), r in best.items()
    ]


def option_kinds(rows: Rows) -> list[str]:
    by: dict[str, dict[str, str]] = defaultdict(dict)
    for r in rows:
        by[r["category"]][r["kind"]] = f"{r['accuracy']:.2f} ({r['low']:.2f} to {r['high']:.2f})"
    kinds = ("harmful", "words", "target", "alternative")
    return [f"| {category} | " + " | ".join(cells[k] for k in kinds) + " |" for category, cells in sorted(by.items())]


def predictability(rows: Rows) -> list[str]:
    names = {"among 39 cues": "which of 39 cues", "4 speaker": "which of the 4 speaker cues",
             "19 para": "which of the 19 paralinguistic cues", "16 env": "which of the 16 environment cues",
             "own two": "which of the script's own two cues"}  # fmt: skip
    return [
        f"| {name} | {r['accuracy']:.3f} | {r['low']:.3f} to {r['high']:.3f} | {r['chance']:.3f} |"
        for key, name in names.items()
        for r in rows
        if key in r["what"] and r["what"].endswith("ridge")
    ]


def word_error_rates(rows: Rows) -> list[str]:
    sums: dict[str, list[float]] = {kind: [0, 0, 0, 0] for kind in KINDS}
    for r in rows:
        scene = r["cue"] in BY_SLUG and BY_SLUG[r["cue"]].dimension == "environment"
        total = sums[KIND.get(r["cue"], "scene" if scene else "plain")]
        for i, key in enumerate(("clips", "failed", "errors", "words")):
            total[i] += r[key]
    return [f"| {kind} | {c:.0f} | {f:.0f} | {e / w:.2f} |" for kind, (c, f, e, w) in sums.items() if w]


def replace_rows(page: str, head: str, rows: list[str]) -> str:
    """Return the page with new rows under the table that has this head."""
    pattern = rf"({re.escape(head)}\n\|[-:| ]+\|\n)(?:\|.*\n)*"
    if not re.search(pattern, page):
        raise SystemExit(f"a page on gates has no table {head!r}")
    return re.sub(pattern, lambda m: m[1] + "".join(f"{row}\n" for row in rows), page, count=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set", type=Path)
    report = msgspec.json.decode((parser.parse_args().set / "gates.json").read_bytes())
    tables = (
        (
            TEXT,
            "| category | questions | best solver | accuracy | 95 % interval | ceiling | passes |",
            leak_test(report["leak_test"]),
        ),
        (
            TEXT,
            "| category | harmful | words alone | target | alternative |",
            option_kinds(report["options_tell_their_kind"]),
        ),
        (TEXT, "| question | accuracy | 95 % interval | chance |", predictability(report["words_tell_the_cue"])),
        (AUDIO, "| kind | clips | left out | WER |", word_error_rates(report["word_error_rates"])),
    )
    for page, head, rows in tables:
        page.write_text(replace_rows(page.read_text("utf-8"), head, rows), "utf-8")


if __name__ == "__main__":
    main()
