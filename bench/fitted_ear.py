"""Put the reports of `overtone fit hearing` into docs/how-to/fit-hearing.md, or print them as Markdown.

    overtone fit hearing --corpus ravdess:DIR … --out all.npz
    overtone fit hearing --corpus ravdess:DIR --out ravdess.npz
    python -m bench.fitted_ear all.json ravdess.json [--write]

The second report adds one row: the same test within RAVDESS alone.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parent.parent / "docs" / "how-to" / "fit-hearing.md"


def cell(found: dict[str, Any]) -> str:
    edges = "" if found["low"] is None else f" [{found['low']:.2f}, {found['high']:.2f}]"
    return f"{found['recall']:.2f}{edges}"


def row(name: str, found: dict[str, Any], chance: float) -> str:
    return f"| {name} | {found['clips']} | {found['speakers']} | {cell(found)} | {chance:.2f} |"


def tables(report: dict[str, Any], alone: dict[str, Any] | None) -> str:
    lines = ["| heard | clips | speakers | mean recall, speakers left out | chance |", "|---|---|---|---|---|"]
    for head in report["heads"]:
        lines.append(row(f"**{head['name']}**", head["report"]["whole"], head["report"]["chance"]))
        if head["name"] != "sex":
            lines += [row(one["name"], one, head["report"]["chance"]) for one in head["report"]["classes"]]
    emotion = next(head["report"] for head in report["heads"] if head["name"] == "emotion")
    left = {one["name"]: one for one in emotion["without_corpus"]}
    lines += [
        "",
        "| emotion in | clips | speakers | its speakers left out | the corpus left out |",
        "|---|---|---|---|---|",
    ]
    for one in emotion["by_corpus"]:
        away = cell(left[one["name"]]) if one["name"] in left else "—"
        lines.append(f"| {one['name']} | {one['clips']} | {one['speakers']} | {cell(one)} | {away} |")
    if alone:
        own = next(head["report"] for head in alone["heads"] if head["name"] == "emotion")["whole"]
        lines.append(f"| RAVDESS, fitted to RAVDESS alone | {own['clips']} | {own['speakers']} | {cell(own)} | — |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reports", type=Path, nargs="+")
    parser.add_argument("--write", action="store_true", help="put the tables into the page")
    args = parser.parse_args()
    report, *others = (json.loads(path.read_text("utf-8")) for path in args.reports)
    text = tables(report, others[0] if others else None)
    print(text)
    if args.write:
        marks = r"(?<=<!-- bench.fitted_ear -->\n)[\s\S]*(?=<!-- end -->)"
        PAGE.write_text(re.sub(marks, lambda _: f"{text}\n", PAGE.read_text("utf-8"), count=1), "utf-8")


if __name__ == "__main__":
    main()
