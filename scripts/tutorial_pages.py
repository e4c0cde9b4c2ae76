"""Run the tutorials' commands with the embedded models, and put their output and pictures into docs/tutorial.

This takes about five minutes on two cores. It needs `overtone setup local` and Chromium.

    python -m scripts.tutorial_pages
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

DOCS = Path(__file__).parent.parent / "docs"
TUTORIAL, IMAGES = DOCS / "tutorial", DOCS / "images"
CUES = "happy,sad,angry,surprise,child,fast,slow,cough,laughter,sobbing,rain,thunder,waves,dog,alarm,car"
ASK = "run open --data clips --parts core --levels 1 --styles target,alternative"
CASE = "synthesis/id_2601/target"
WIDTH = "100"  # columns of the terminal


class Step(NamedTuple):
    """A command of a tutorial: the mark of its block, its words, and which lines of its output the page shows."""

    page: str
    name: str
    command: str
    first: int = 0  # lines from the start; 0: all
    last: int = 0  # lines from the end


STEPS = (
    Step("first-finding", "build", f"build open --only {CUES} --per-cue 1 --no-gates --out clips", last=3),
    Step("first-finding", "run", f"{ASK} --model 'cascade?max_tokens=32' --out runs/first"),
    Step("first-finding", "finding", "analyze runs/first --finding sensitivity", first=6),
    Step("first-finding", "case", f"case runs/first {CASE}"),
    Step("first-finding", "hears", f"{ASK} --model 'cascade?hear=acoustic' --out runs/hears", last=2),
    Step("first-finding", "finding again", "analyze runs/hears --finding sensitivity", first=6),
    Step("first-finding", "report", "report runs/first runs/hears -o report.html"),
    Step("ci", "fails", 'check runs/first --baseline runs/hears --require "voice_accuracy >= 60%"'),
    Step("ci", "holds", 'check runs/hears --require "voice_accuracy >= 60%" --require "failures <= 1%"'),
)


def blocks(folder: Path) -> dict[tuple[str, str], str]:
    """Run every step in a folder. Return the block of each page and mark."""
    return {(step.page, step.name): _block(step, folder) for step in STEPS}


def _block(step: Step, folder: Path) -> str:
    words = [sys.executable, "-m", "overtone", *shlex.split(step.command)]
    around = {**os.environ, "COLUMNS": WIDTH}
    done = subprocess.run(words, cwd=folder, env=around, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f"overtone {step.command} ended with exit code {done.returncode}")
    lines = [line.rstrip() for line in done.stdout.strip().splitlines()]
    if step.last:
        lines = [line for line in lines if line][-step.last :]
    elif step.first:
        lines = lines[: step.first]
    cut = f" | head -{step.first}" if step.first else f" | tail -{step.last}" if step.last else ""
    asked = _wrapped(f"overtone {step.command}{cut}")
    if step.page == "ci":
        asked, lines = [*asked, 'echo "exit code $?"'], [*lines, f"exit code {done.returncode}"]
    return "\n".join(["```sh", *asked, "```", "", "```text", *lines, "```"])


def _wrapped(command: str) -> list[str]:
    """Return a long command in lines that end with a backslash, broken before a flag."""
    lines = [""]
    for part in re.split(r" (?=--|\| )", command):
        if lines[-1] and len(lines[-1]) + len(part) > int(WIDTH) - 3:
            lines[-1] += " \\"
            lines.append("   ")
        lines[-1] += f" {part}" if lines[-1] else part
    return lines


def filled(page: str, made: dict[str, str]) -> str:
    """Return a page with its blocks put between their marks."""
    for name, block in made.items():
        mark = f"<!-- {name}: scripts/tutorial_pages.py -->"
        pattern = re.compile(re.escape(mark) + r"\n.*?<!-- end -->", re.S)
        if len(pattern.findall(page)) != 1:
            raise SystemExit(f"the page has no place for {name}")
        page = pattern.sub(lambda _, new=f"{mark}\n{block}\n<!-- end -->": new, page)  # type: ignore[misc]
    return page


def pictures(report: Path) -> None:
    """Take the pictures of the report: the finding, and one case."""
    from urllib.parse import quote

    from playwright.sync_api import sync_playwright

    shots = {
        "finding": ("finding-sensitivity", "finding-sensitivity"),
        "case": (f"case={quote(CASE, safe='')}", "case"),
    }
    with sync_playwright() as playwright:
        flags = ["--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=flags)
        for name, (anchor, element) in shots.items():
            page = browser.new_page(viewport={"width": 1000, "height": 1400}, reduced_motion="reduce")
            page.goto(f"{report.as_uri()}#{anchor}")
            page.locator(f"#{element}").screenshot(path=IMAGES / f"tutorial-{name}.png")
        browser.close()


def main() -> None:
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        made = blocks(folder)
        for page in sorted({step.page for step in STEPS}):
            path = TUTORIAL / f"{page}.md"
            own = {name: block for (of, name), block in made.items() if of == page}
            path.write_text(filled(path.read_text(encoding="utf-8"), own), encoding="utf-8")
        pictures(folder / "report.html")


if __name__ == "__main__":
    main()
