"""Catalogues from the registries: tables for the places that pages mark by `<!-- generated: NAME -->`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from overtone import registry
from overtone.findings.lookup import known_findings
from overtone.judges import rubric
from overtone.scores import ScoreInfo, declared_by, own_metrics
from overtone.suite import find_suite
from scripts.docs_site.markdown import code, plain, table

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
TAKES = {"run": "each run", "model": "the runs of each model", "all": "all runs together"}
FACTS = {  # heading → field of a benchmark's Facts
    "cues": "cues", "tasks": "tasks", "input": "hears", "output": "answers", "turns": "turns", "metrics": "metrics",
    "data": "data", "licence": "licence", "runs offline": "offline",
}  # fmt: skip


def benchmarks() -> str:
    """Return what each benchmark's file says of itself."""
    rows = []
    for name in sorted(registry.builtins("benchmarks")):
        suite = find_suite(name)
        if suite is not None:
            facts = [plain(getattr(suite.facts, field)) for field in FACTS.values()]
            rows.append([f"[{suite.facts.title}]({name}.md)", *facts])
    return table(["benchmark", *FACTS], rows)


def metrics() -> str:
    """Return every score of the metrics and of the benchmarks' protocols, as its metric declares it."""
    rows = [
        [_linked(score, name), plain(info.label), _scale(info), info.better, ", ".join(info.tasks), when]
        for name, score, info, when in _declared()
    ]
    return table(["score", "label", "scale", "better", "tasks", "computed"], rows)


def _declared() -> Iterator[tuple[str, str, ScoreInfo, str]]:
    for name in registry.builtins("metrics"):
        module = registry.find("metrics", name)
        when = f"`--metric {name}`" if getattr(module, "ON_REQUEST", False) else "always"
        for score, info in declared_by(module, name).items():
            yield name, score, info, when
    for benchmark in registry.builtins("benchmarks"):
        for name, module in own_metrics(benchmark).items():
            for score, info in declared_by(module, name).items():
                yield name, score, info, f"for `{benchmark}`"


def _scale(info: ScoreInfo) -> str:
    low = "open" if info.low is None else f"{info.low:g}"
    high = "open" if info.high is None else f"{info.high:g}"
    return f"{low} to {high}" + (" (× 100)" if info.scale == "percent" else "")


def _linked(score: str, name: str) -> str:
    """Return the score's name, linked to the page of its metric or to the first page that describes it."""
    for folder in ("metrics", "benchmarks"):
        named = REFERENCE / folder / f"{name}.md"
        others = (page for page in sorted((REFERENCE / folder).glob("*.md")) if page.name != "index.md")
        found = named if named.is_file() else next((p for p in others if f"`{score}`" in p.read_text("utf-8")), None)
        if found is not None:
            return f"[`{score}`](../{folder}/{found.name})"
    raise SystemExit(f"no page describes the score `{score}` of {name}; add it to a page in docs/reference/metrics")


def rubrics() -> str:
    """Return every rubric with its questions."""
    rows = []
    for name in registry.builtins("rubrics"):
        one = rubric.load(name)
        scores = [f"`{d.key}` ({_menu(d)}{', lower is better' if d.better == 'lower' else ''})" for d in one.dimensions]
        judge = "hears" if one.hears else "reads"
        rows.append([f"[{name}]({name}.md)", plain(one.title), one.subject, judge, ", ".join(scores)])
    return table(["rubric", "asks", "subject", "judge", "scores"], rows)


def _menu(dimension: rubric.Dimension) -> str:
    return f"{dimension.scale[0]}–{dimension.scale[1]}" if dimension.scale else " or ".join(dimension.choices)


def findings() -> str:
    """Return the question of every finding."""
    built_in = registry.builtins("findings")
    rows = (
        [f"[{name}]({name}.md)", plain(finding.question), TAKES[finding.takes]]
        for name, finding in known_findings().items()
        if name in built_in
    )
    return table(["finding", "question", "per"], rows)


def _listing(room: str) -> Callable[[], str]:
    def listing() -> str:
        return table([room[:-1], "what it is"], ([code(n), plain(s)] for n, s in registry.builtins(room).items()))

    return listing


CATALOGUES: dict[str, Callable[[], str]] = {
    "benchmarks": benchmarks,
    "metrics": metrics,
    "rubrics": rubrics,
    "findings": findings,
    "models": _listing("models"),
    "voices": _listing("voices"),
    "figures": _listing("figures"),
    "designs": _listing("designs"),
}
