"""Put the numbers into the worked example and docs/reference/findings/levels.md.

They are what the findings say of made-up runs of known models, and of the paper's own table.

python -m scripts.worked_example
"""

from __future__ import annotations

import functools
import re
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from bench.findings_items import make_items
from bench.findings_minds import Mind, minds
from bench.findings_runs import make_runs
from overtone.findings.analysis import cases_behind, compute_findings
from overtone.findings.finding import FindingResult
from overtone.findings.funnel.compute import LABELS, Funnel, StageRow
from overtone.findings.levels import compute as levels
from overtone.results.load import Reading, open_run
from overtone.results.measures import Estimate
from overtone.text import points, rate

ROOT = Path(__file__).parent.parent
EXPLANATION = ROOT / "docs" / "explanation"
PAGE, SECOND = EXPLANATION / "worked-example.md", EXPLANATION / "worked-example-conditions.md"
LEVELS = ROOT / "docs" / "reference" / "findings" / "levels.md"
ON_SECOND = ("upper", "prompts", "source", "levels", "behind")  # blocks of the second page
RUNS, SCRIPTS, SEED = 3, 312, 3
SHOWN = 3  # cases
PAPER = {  # pairs of the paper's table on the page
    "Voice accuracy – reasoning accuracy": ("voice_accuracy", "reasoning_accuracy"),
    "Voice accuracy – C4": ("voice_accuracy", "cspeechrel"),
    "Reasoning accuracy – C4": ("reasoning_accuracy", "cspeechrel"),
    "Voice accuracy – VES": ("voice_accuracy", "ves"),
    "Reasoning accuracy – VES": ("reasoning_accuracy", "ves"),
    "C4 – VES": ("cspeechrel", "ves"),
    "C1 – C4": ("cctxfit", "cspeechrel"),
    "EmoAlign – VES": ("emoalign_reference", "ves"),
}


@functools.cache
def worked() -> dict[str, str]:
    """Return the blocks of the worked example, by name."""
    with tempfile.TemporaryDirectory() as folder:
        made = make_runs(Path(folder), runs=RUNS, scripts=SCRIPTS, seed=SEED)
        readings = [open_run(run, light=True) for run in made]
    found = _Found(readings)
    return {
        "runs": _runs(readings),
        "built": _built(minds(RUNS, SEED)),
        "moves": found.say("sensitivity", "sensitivity/task/audio/understanding/overall/sensitivity"),
        "stays": found.say("sensitivity", "sensitivity/task/audio/understanding/overall/specificity/repeat"),
        "sound": found.say("text-only", "text-only/task/voice_accuracy/overall"),
        "funnel": found.funnel(),
        "steps": found.steps(),
        "upper": found.say("upper", "upper/all/overall/overall/cspeechrel"),
        "prompts": found.say("prompts", "prompts/all/best/cspeechrel+ves"),
        "source": found.say("source", "source/all/task/audio/overall/overall/synthesis~human/voice_accuracy"),
        "levels": found.say(
            "levels",
            "levels/all/case/within/voice_accuracy~reasoning_accuracy",
            "levels/all/case/within/voice_accuracy~cspeechrel",
            "levels/all/case/within/cctxfit~cspeechrel",
        ),
        "behind": found.behind("1:funnel/enhance/audio/overall/used/failed"),
    }


class _Found:
    def __init__(self, readings: list[Reading]) -> None:
        self.readings = readings
        self.found = compute_findings(readings)

    def of(self, name: str) -> list[FindingResult[Any]]:
        return [finding for finding in self.found if finding.name == name]

    def say(self, name: str, *keys: str) -> str:
        """The first sentence under each key, of every run or of all together."""
        lines = []
        for finding in self.of(name):
            who = "" if finding.finding.takes == "all" else f"**{self.readings[finding.runs[0]].name}**: "
            for key in keys:
                lines.append(f"- {who}{next(s.text for s in finding.sentences if s.key == key)}")
        return "\n".join(lines)

    def funnel(self) -> str:
        rows: dict[str, list[str]] = {stage: [] for stage in LABELS}
        for funnel in self._funnels():
            for row in _headline(funnel):
                raw = rate(row.reached)
                corrected = f"; corrected for guessing {rate(row.corrected)}" if row.corrected else ""
                rows[row.stage].append(raw + corrected)
        head = ["stage", *(reading.name for reading in self.readings)]
        return _table(head, ([LABELS[stage], *cells] for stage, cells in rows.items()))

    def steps(self) -> str:
        rows = []
        for reading, funnel in zip(self.readings, self._funnels(), strict=True):
            for row in _headline(funnel):
                if row.step is not None and row.stage in ("reasoned", "used"):
                    each = (rate(row.step.given), rate(row.step.otherwise))
                    step = f"{LABELS[row.step.after]} → {LABELS[row.stage]}"
                    rows.append([reading.name, step, *each, points(row.step.difference)])
        return _table(["run", "step", "after passing", "otherwise", "difference"], rows)

    def behind(self, key: str) -> str:
        cases = cases_behind(self.readings, key)
        runs = " ".join(f"runs/{reading.name}" for reading in self.readings)
        return (
            f"```console\n$ overtone analyze {runs} --behind {key} | head -{SHOWN}\n"
            + "\n".join(cases[:SHOWN])
            + f"\n```\n\n{len(cases)} cases in all."
        )

    def _funnels(self) -> list[Funnel]:
        return [result.data for result in self.of("funnel")]


def _headline(funnel: Funnel) -> list[StageRow]:
    return [row for row in funnel.rows if (row.by, row.condition) == ("overall", "enhance/audio")]


def _runs(readings: Sequence[Reading]) -> str:
    items = len(list(make_items(SCRIPTS, SEED)))
    return (
        f"```sh\npython -m bench.findings make runs --runs {RUNS} --scripts {SCRIPTS} --seed {SEED}\n```\n\n"
        f"{SCRIPTS} scripts, {items:,} items, {len(readings[0].answers):,} requests per run."
    )


def _built(known: Sequence[Mind]) -> str:
    head = ["run", "hears", "reasons", "uses", "sounds", "judges reward the mention of a wrong cue"]
    return _table(
        head, ([m.name, *(f"{x:g}" for x in (m.hears, m.reasons, m.uses, m.sounds, m.mention))] for m in known)
    )


def published() -> dict[str, str]:
    """The coefficients of the paper's table, over its 14 rows and over one row for each of its 12 models."""
    both = [levels.published_levels(variants=variants) for variants in (True, False)]
    rows = []
    for name, (first, second) in PAPER.items():
        cells = []
        for found in both:
            row = found.row("model", "between", first, second)
            assert row is not None, (first, second)
            cells += [f"{_plain(row.pearson)} / {_plain(row.spearman)}", str(row.models)]
        rows.append([name, *cells])
    head = ["pair", "all rows: r / ρ", "rows", "one row per model: r / ρ", "rows"]
    return {"published": _table(head, rows)}


def _plain(e: Estimate) -> str:
    assert e.value is not None
    return f"{round(e.value, 3) + 0.0:.3f}".replace("-", "−")


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}", *(f"| {' | '.join(row)} |" for row in rows)]
    return "\n".join(lines)


def filled(page: str, blocks: dict[str, str]) -> str:
    """The page with its blocks put between their marks."""
    for name, block in blocks.items():
        mark = f"<!-- {name}: scripts/worked_example.py -->"
        pattern = re.compile(re.escape(mark) + r"\n.*?<!-- end -->", re.S)
        assert len(pattern.findall(page)) == 1, f"the page has no place for {name}"
        page = pattern.sub(lambda _, new=f"{mark}\n{block}\n<!-- end -->": new, page)  # type: ignore[misc]
    return page


def first_page() -> dict[str, str]:
    """Return the blocks of the first page of the worked example."""
    return {name: block for name, block in worked().items() if name not in ON_SECOND}


def second_page() -> dict[str, str]:
    """Return the blocks of the second page of the worked example."""
    return {name: worked()[name] for name in ON_SECOND}


PAGES: dict[Path, Callable[[], dict[str, str]]] = {PAGE: first_page, SECOND: second_page, LEVELS: published}

if __name__ == "__main__":
    for path, made in PAGES.items():
        path.write_text(filled(path.read_text(encoding="utf-8"), made()), encoding="utf-8")
