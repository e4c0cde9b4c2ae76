"""Compute findings: group the runs, compute a result for each group, and list the cases behind each number."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from overtone.errors import UsageError
from overtone.findings.finding import Finding, FindingResult, Inputs, Settings
from overtone.findings.lookup import check_names, find, known_findings
from overtone.results.case_names import KeyedCases
from overtone.results.headline_condition import over_headline
from overtone.results.load import Reading, uncollected
from overtone.results.wording import Sentence
from overtone.stats.minimums import LARGER_SET, MORE_SCRIPTS


def compute_findings(
    readings: Sequence[Reading], names: Iterable[str] = (), settings: Settings | None = None, shown: int | None = None
) -> list[FindingResult[Any]]:
    """Compute the named findings, or all, for the first `shown` runs (default: all runs). Light readings suffice.

    The remaining runs serve only findings with `reads_other_runs`, which look there for questions that can be answered
    from the words alone.
    """
    settings = settings or Settings()
    shown = len(readings) if shown is None else shown
    results = []
    with uncollected():
        for name in check_names(names):
            finding = find(name)
            for runs, inputs in _inputs(finding, name, readings, settings, shown):
                data = finding.compute(inputs)
                own = [readings[run] for run in runs]
                sentences = with_supply(finding.sentences(data), own)
                results.append(FindingResult(name, finding, runs, data, sentences, _all_failed(own)))
    return results


def cases_by_key(
    readings: Sequence[Reading], result: FindingResult[Any], settings: Settings | None = None, shown: int | None = None
) -> Iterator[KeyedCases]:
    """Yield the full key of every number in a result, with the cases that the number counts."""
    settings = settings or Settings()
    shown = len(readings) if shown is None else shown
    for runs, inputs in _inputs(result.finding, result.name, readings, settings, shown):
        if runs == result.runs:
            for key, cases in result.finding.cases(inputs):
                yield result.prefix + key, cases


def cases_behind(
    readings: Sequence[Reading], key: str, settings: Settings | None = None, shown: int | None = None
) -> list[str]:
    """Return the cases behind one number. With a single run, the key may omit the leading run number."""
    settings = settings or Settings()
    shown = len(readings) if shown is None else shown
    before, colon, bare = key.partition(":")
    number = int(before) if colon and before.isascii() and before.isdigit() else 0
    if not number:
        number, bare = (1 if shown == 1 else 0), key
    name, implied = _named_by(bare.partition("/")[0], key)
    finding = find(name)
    if implied:
        options = replace(_options(finding, name, settings), **implied)
        settings = replace(settings, options={**settings.options, name: options})
    if finding.takes != "all" and not 1 <= number <= shown:
        problem = "there is no such run" if number else "the key lacks the number of the run"
        raise UsageError(f"{key!r}: {problem}; write 1:{bare} for the first of the {shown}")
    for runs, inputs in _inputs(finding, name, readings, settings, shown):
        if finding.takes == "all" or number - 1 in runs:
            for other, cases in finding.cases(inputs):
                if other == bare:
                    return cases
    raise UsageError(f"no number of these runs has the key {key!r}; the rows of --format json hold theirs")


def _named_by(head: str, key: str) -> tuple[str, dict[str, Any]]:
    """Return the finding that the first part of a key, `head`, belongs to, and the options that this part implies."""
    for name, finding in known_findings().items():
        if head == name or head in finding.keys:
            return name, dict(finding.keys.get(head, {}))
    raise UsageError(f"{key!r} is not the key of a finding; the rows of --format json hold theirs, e.g. 1:funnel/…")


# ── which runs ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _inputs(
    finding: Finding[Any], name: str, readings: Sequence[Reading], settings: Settings, shown: int
) -> Iterator[tuple[tuple[int, ...], Inputs]]:
    """Yield, for each result of a finding, the positions of its runs and the inputs of the computation."""
    read = readings if finding.reads_other_runs else readings[:shown]
    narrowed = _narrowed(finding, read, settings)
    for runs in _together(finding, narrowed):
        if finding.takes != "all" and runs[0] >= shown:
            continue
        others, deaf = _others(narrowed, runs[0], settings) if finding.reads_other_runs else ([], [])
        options = _options(finding, name, settings)
        yield runs, Inputs([narrowed[n] for n in runs], settings, options, others, deaf)


def _options(finding: Finding[Any], name: str, settings: Settings) -> Any:
    return settings.options.get(name, finding.options)


def _narrowed(finding: Finding[Any], readings: Sequence[Reading], settings: Settings) -> Sequence[Reading]:
    """Restrict the runs to the clips that the finding uses."""
    if finding.clips == "all":
        return readings
    if finding.clips == "own":
        return [narrowed for reading in readings for narrowed in over_headline([reading], settings.source)]
    return over_headline(readings, settings.source)


def _together(finding: Finding[Any], readings: Sequence[Reading]) -> list[tuple[int, ...]]:
    """Group the positions of the runs as the finding asks: each run alone, by model and benchmark, or all together."""
    positions = range(len(readings))
    if finding.takes == "all":
        return [tuple(positions)]
    if finding.takes == "run":
        return [(n,) for n in positions]
    models: dict[tuple[str, str], list[int]] = {}
    for n in positions:
        reading = readings[n]
        models.setdefault((reading.meta.get("model", "") or f"#{n}", reading.benchmark), []).append(n)
    return [tuple(group) for group in models.values()]


def _others(readings: Sequence[Reading], mine: int, settings: Settings) -> tuple[list[Reading], list[Reading]]:
    """Return the other runs of the same benchmark in two lists: runs that may hear the voice, and deaf runs."""
    same = [n for n in range(len(readings)) if n != mine and readings[n].benchmark == readings[mine].benchmark]
    hearing = [readings[n] for n in same if n not in settings.deaf]
    return hearing, [readings[n] for n in same if n in settings.deaf]


# ── what happened to the runs ───────────────────────────────────────────────────────────────────────────────────────


def _all_failed(readings: Sequence[Reading]) -> int:
    """Return the number of failed requests if no request was answered, else 0."""
    answers = [answer for reading in readings for answer in reading.answers]
    return 0 if any(answer.answered for answer in answers) else sum(answer.failed for answer in answers)


def with_supply(sentences: Iterable[Sentence], readings: Sequence[Reading]) -> tuple[Sentence, ...]:
    """Change the advice in sentences about too few scripts to "use a larger set" if no run used a `--limit`."""
    if any(_had_limit(reading) for reading in readings):
        return tuple(sentences)
    return tuple(replace(s, text=s.text.replace(MORE_SCRIPTS, LARGER_SET)) for s in sentences)


def _had_limit(reading: Reading) -> bool:
    """Return whether --limit made the run leave out scripts; True if the run did not store its settings."""
    try:
        return "limit" in tomllib.loads(reading.meta.get("settings", "")).get("run", {"limit": None})
    except (tomllib.TOMLDecodeError, AttributeError, RecursionError, TypeError):
        return True
