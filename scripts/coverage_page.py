"""Write docs/benchmarks/index.md: the coverage table, from what each benchmark's file says of itself.

python -m scripts.coverage_page
"""

from __future__ import annotations

from pathlib import Path

from overtone import registry
from overtone.suite import Facts, find_suite

FOLDER = Path(__file__).parent.parent / "docs" / "benchmarks"
HEADS = ("cues", "tasks", "input", "output", "turns", "metrics", "data", "licence", "runs offline")
BEFORE = """# Benchmarks

The table lists what each benchmark covers. `python -m scripts.coverage_page` writes this page from the benchmarks' own
files. You can add your own benchmark in [one file](../extending.md).

"""


def page() -> str:
    """The page as it should be."""
    lines = ["| benchmark | " + " | ".join(HEADS) + " |", "|" + "---|" * (len(HEADS) + 1)]
    for name in sorted(registry.builtins("benchmarks")):
        suite = find_suite(name)
        if suite is not None:
            lines.append("| " + " | ".join(map(_cell, (_linked(name, suite.facts), *_facts(suite.facts)))) + " |")
    return BEFORE + "\n".join(lines) + "\n"


def _linked(name: str, facts: Facts) -> str:
    for place in (f"{name}.md", f"../{name}.md"):
        if (FOLDER / place).is_file():
            return f"[{facts.title}]({place})"
    return facts.title


def _facts(f: Facts) -> tuple[str, ...]:
    return f.cues, f.tasks, f.hears, f.answers, f.turns, f.metrics, f.data, f.licence, f.offline


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    (FOLDER / "index.md").write_text(page(), encoding="utf-8")
