"""Put the numbers and pictures of the perspectives study into its pages.

The numbers are those of experiments/perspectives/results/analysis.json, which `overtone study report` writes, and of
experiments/perspectives/cost.json.

python -m scripts.perspectives_page
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from overtone.display.drawing import Drawing, svg
from overtone.studies.perspectives import pictures
from overtone.studies.perspectives import study_analysis as analyses
from overtone.studies.perspectives.design import Study
from overtone.studies.perspectives.report_tables import (
    Grid,
    answer,
    block_grid,
    contrast_grid,
    power_grid,
    primary_grid,
    ranged,
    state,
    testable_grid,
)
from overtone.studies.perspectives.study_analysis import Analysis, Contrast
from overtone.studies.perspectives.study_report import write_report
from overtone.text import number, percent

ROOT = Path(__file__).parent.parent
DOCS, EXPERIMENT = ROOT / "docs", ROOT / "experiments" / "perspectives"
PAGE, NUMBERS, VERDICTS = (DOCS / "explanation" / f"perspectives{end}.md" for end in ("", "-results", "-verdicts"))
IMAGES, REPORT = DOCS / "images", DOCS / "sample" / "perspectives.html"
MARK = "<!-- {}: scripts/perspectives_page.py -->"
GB = 1e9
_JOBS = {
    "genre": "a left-out genre",
    "document": "left-out documents, all outcomes",
    "official": "the official split, all outcomes",
    "document tuned": "the tuning on DREAM",
    "open-control": "the positive control of Overtone-Open",
}


def drawings(found: Analysis) -> dict[str, Drawing]:
    """Return the pictures by file name."""
    return {
        "perspectives-primary.svg": pictures.primary(found),
        "perspectives-genre.svg": pictures.arms(found, "genre"),
        "perspectives-documents.svg": pictures.arms(found, "document"),
        "perspectives-costs.svg": pictures.contrasts(found),
    }


def first_page(found: Analysis, cost: dict[str, Any]) -> dict[str, str]:
    """Return the blocks of the page with the answer."""
    return {
        "answer": f"**{answer(found)}**",
        "state": state(found),
        "primary": markdown(primary_grid(found)),
        "findings": findings(found),
        "power": power(found),
        "large": large(cost),
    }


def second_page(found: Analysis) -> dict[str, str]:
    """Return the blocks of the page with numbers."""
    return {
        **{name: outcomes(found, name) for name in CHOSEN},
        "jobs": markdown(block_grid(found)),
        "hashes": f"SHA-256: study file `{found.study[:16]}…`, data `{found.data[:16]}…`, "
        f"results `{found.results[:16]}…`.",
    }


def third_page(found: Analysis) -> dict[str, str]:
    """Return the blocks of the page about the verdicts."""
    return {
        "testable": markdown(testable_grid(found, [*CHOSEN["open"][0], *CHOSEN["words"][0]])),
        "power": markdown(power_grid(found)),
    }


def outcomes(found: Analysis, name: str) -> str:
    """Return the table of some chosen outcomes."""
    wanted, arms = CHOSEN[name]
    grid = contrast_grid([found.table(one) for one in wanted], arms)
    return markdown(Grid(grid.head, [(_SPLIT.sub("", row[0]), *row[1:]) for row in grid.rows]))


_RATED = tuple(f"{d}{of}" for d, kinds in (("V", ("", " gap")), ("A", ("",)), ("D", ("", " gap"))) for of in kinds)
_SPLIT = re.compile(", (left-out (genre|documents)|official test rows)$")  # stands in the heading
_TWO = ("merged", "shuffled", "pseudo")
CHOSEN: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {  # table → outcomes, arms; the report has all
    "genre": (tuple(f"genre {one}" for one in _RATED), _TWO),
    "document": (tuple(f"document {one}" for one in _RATED), (*_TWO, "matched", "reader", "writer")),
    "official": (tuple(f"official {one}" for one in _RATED), _TWO),
    "open": (("open told", "open words", "open heard", "open level 1 told"), (*_TWO, "permuted", "base")),
    "words": (("dream sum", "dream mean", "dream less", "nats per token"), (*_TWO, "permuted", "base")),
}


def findings(found: Analysis) -> str:
    """Return what the finished jobs show beside the primary tests, as a list."""

    def value(name: str, arm: str) -> str:
        one = found.table(name).arm(arm)
        assert one is not None
        return ranged(one.number)

    def less(name: str, arm: str) -> str:
        return ranged(_contrast(found, name, arm).number, 4, sign=True)

    return FINDINGS.format(
        gap_both=value("genre V gap", "both"), gap_shuffled=value("genre V gap", "shuffled"),
        gap_pseudo=value("genre V gap", "pseudo"), gap_dominance=value("genre D gap", "both"),
        valence=less("genre V", "merged"), arousal=less("genre A", "merged"), dominance=less("genre D", "merged"),
        pseudo=less("genre D", "pseudo"), shuffled=less("genre D", "shuffled"),
        reader=less("document V", "reader"), writer=less("document V", "writer"),
        matched=less("document V", "matched"), merged=less("document V", "merged"),
        told_base=value("open told", "base"), told_both=value("open told", "both"), told=less("open told", "base"),
        nats_base=value("nats per token", "base"), nats_both=value("nats per token", "both"),
        dream_base=value("dream mean", "base"), dream_both=value("dream mean", "both"),
    )  # fmt: skip


FINDINGS = """
- **The two perspectives can be learnt.** In genres that were not learnt, *both* predicts the difference between
  readers and writers in valence with r = {gap_both}; *shuffled* reaches {gap_shuffled} and *pseudo* {gap_pseudo}.
  The raters' own noise limits this r to about .24–.29. For dominance *both* reaches {gap_dominance}.
- **The distinction does not help the ratings.** In left-out genres, *both* − *merged* is {valence} for
  valence, {arousal} for arousal and {dominance} for dominance: worse in the latter two.
- **Noisier labels are the likely cause.** *pseudo* and *shuffled* also learn two label sets of about five ratings
  each, without perspectives, and lose as much. For dominance, *both* − *pseudo* is {pseudo} and *both* − *shuffled*
  {shuffled}. *merged* learns the mean of about ten ratings.
- **More ratings help, the perspective does not.** On left-out documents and for valence, *both* − *reader* is
  {reader} and *both* − *writer* {writer}. But *both* − *matched* is {matched}: *matched* has a mixture of as many
  ratings as one perspective. With all ratings, *both* − *merged* is {merged}.
- **Tuning on ratings costs reasoning about speech.** When the prompt names the cue, the untuned model answers
  {told_base} of Overtone-Open's questions of level 2 right, and *both* {told_both}: a difference of {told}. All
  tuned arms are below the untuned model.
- **It costs plain language too.** DREAM's dialogues as text have {nats_base} nats per token for the untuned model
  and {nats_both} for *both*, although a quarter of the training is the base model's own replies. In DREAM,
  scored per token, base answers {dream_base} of the questions right and *both* {dream_both}.
""".strip()


def power(found: Analysis) -> str:
    """Return the least power of the primary tests with this study's seeds."""
    seeds = len(found.seeds)
    return POWER.format(
        seeds=seeds, equivalent=_least(test.equivalent[seeds] for test in found.power),
        detected=_least(test.detected[seeds] for test in found.power),
    )  # fmt: skip


def _least(shares: Iterable[float]) -> str:
    least = min(shares)
    return "more than 99 %" if least > 0.99 else f"at least {percent(least)}"


POWER = """
With {seeds} seeds and the spread of these results, simulated studies show equivalence in {equivalent} of
cases if there is no difference, and detect a difference as large as the margin in {detected}.
""".strip()


def large(cost: dict[str, Any]) -> str:
    """Return what a run with openPangu-Embedded-7B needs."""
    minutes, measured = cost["large"]["minutes"], cost["small"]["measured"]["document"]
    rows = [
        (
            _JOBS[name], f"{tokens['learnt'] / 1e6:.1f}", f"{tokens['outcomes'] / 1e6:.1f}",
            _between(minutes[name]),
        )
        for name, tokens in cost["tokens"].items()
    ]  # fmt: skip
    return LARGE.format(
        hours=_between(cost["large"]["hours"]), primary=_between(cost["large"]["hours_primary"]),
        total=f"{sum(cost['memory'].values()) / GB:.0f}",
        memory="; ".join(f"{name}: {size / GB:.1f} GB" for name, size in cost["memory"].items()),
        table=markdown(Grid(("one job", "million tokens learnt", "million tokens of outcomes", "minutes"), rows)),
        gpu_seconds=measured["gpu_seconds"], seconds=measured["seconds"],
        rate=f"{cost['rates']['measured'] / 1e12:.0f}", share=percent(cost["share_of_peak"]["measured"]),
        common=percent(cost["share_of_peak"]["common"]),
    )  # fmt: skip


def _between(ends: dict[str, float]) -> str:
    return f"{ends['common']:.0f} to {ends['measured']:.0f}"


LARGE = """
The whole study takes about **{hours} hours on one H200**, and the jobs behind the primary tests (genres,
documents, positive control) {primary}. Training needs about **{total} GB** of GPU memory ({memory}).

{table}

These are estimates from the measured runs. A job of SmolLM2 on left-out documents took {gpu_seconds} s of GPU
time (four at once, {seconds} s each), which is {rate} · 10¹² operations per second, {share} of the GPU's peak.
The longer times assume that rate. The shorter ones assume {common} of the peak, which is common for large models
but was not measured here. The tokens are counted with SmolLM2's tokenizer; memory is computed from the model's
sizes. Loading the weights for each job is not included. `python -m experiments.perspectives.cost` repeats the
estimate.
""".strip()


def _contrast(found: Analysis, name: str, arm: str) -> Contrast:
    one = found.table(name).arm(arm)
    assert one is not None and one.contrast is not None, f"{name} has no contrast with {arm}"
    return one.contrast


def markdown(grid: Grid) -> str:
    """Return a table in Markdown."""
    lines = [_row(grid.head), f"|{'---|' * len(grid.head)}", *map(_row, grid.rows)]
    return "\n".join(lines)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(_cell, cells))} |"


def _cell(text: str) -> str:
    """Return the text of a cell, an interval in a line below its number."""
    if found := re.fullmatch(r"(\S+) \[(\S+), (\S+)\]( \S)?", text):
        return f"{found[1]}{found[4] or ''}<br>[{found[2]},\u00a0{found[3]}]"
    return text.replace("|", " ")


def filled(page: str, blocks: dict[str, str]) -> str:
    """Return a page with its blocks between their marks. Raises ValueError if it has no place for one."""
    for name, block in blocks.items():
        mark = MARK.format(name)
        pattern = re.compile(re.escape(mark) + r"\n.*?<!-- end -->", re.S)
        if len(pattern.findall(page)) != 1:
            raise ValueError(f"the page has no place, or several, for {name}")
        page = pattern.sub(lambda _, new=f"{mark}\n{block}\n<!-- end -->": new, page)  # type: ignore[misc]
    return page


def made() -> tuple[Analysis, dict[Path, dict[str, str]]]:
    """Return the analysis of the published results, and the blocks of each page."""
    found = analyses.read(EXPERIMENT / "results", Study.read())
    cost = json.loads((EXPERIMENT / "cost.json").read_text(encoding="utf-8"))
    return found, {PAGE: first_page(found, cost), NUMBERS: second_page(found), VERDICTS: third_page(found)}


def main() -> None:
    found, pages = made()
    for path, blocks in pages.items():
        path.write_text(filled(path.read_text(encoding="utf-8"), blocks), encoding="utf-8")
    write_report(found, REPORT)
    for name, drawing in drawings(found).items():
        (IMAGES / name).write_text(svg(drawing), encoding="utf-8")
    print(f"{len(found.tables)} outcomes, {number(found.done, 0)} jobs")


if __name__ == "__main__":
    main()
