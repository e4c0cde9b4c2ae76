"""Every table of runs by name: result tables, findings, and published results."""

from __future__ import annotations

from overtone.display.table_data import PartTable
from overtone.errors import UsageError
from overtone.findings.finding import Settings
from overtone.findings.finding_tables import joined, tables_of
from overtone.findings.lookup import known_findings
from overtone.report import findings_text
from overtone.report.model_tables import model_tables
from overtone.report.score_tables import RESULTS, result_tables
from overtone.results.headline_condition import of_source
from overtone.results.load import Reading
from overtone.results.timings import NO_TIMINGS
from overtone.spec import suggest


def table_names() -> dict[str, str]:
    """Return name → one-line description for every table."""
    names = {name: f"{finding.title}: {finding.question}" for name, finding in known_findings().items()}
    return names | {name: made.about for name, made in RESULTS.items()}


def needs_runs(name: str) -> bool:
    """Return whether a table needs runs. The other tables can be shown without a run."""
    findings = known_findings()
    return findings[name].needs_runs if name in findings else RESULTS[name].needs_runs


def named_tables(
    name: str,
    readings: list[Reading],
    by: str = "overall",
    settings: Settings | None = None,
    shown: int | None = None,
) -> list[PartTable]:
    """Return the tables with this name for the first `shown` runs (default: all). Some findings read the other runs
    as well.

    Raises UsageError for an unknown name, and if these runs have no data for the table.
    """
    settings = settings or Settings()
    known = table_names()
    if name not in known:
        raise UsageError(f"no table is called {name!r}{suggest(name, known)}; known: {', '.join(known)}")
    if name in known_findings():
        return _of_finding(name, readings, by, settings, shown)
    own = [of_source(reading, settings.source) for reading in readings[:shown]]
    tables = result_tables(name, own)
    if name == "headline":
        tables += model_tables(readings[:shown], settings)
    if tables:
        return tables
    advice = NO_TIMINGS if name == "timings" else "'overtone score RUN' shows what they have"
    raise UsageError(f"these runs have no data for the table {name}; {advice}")


def _of_finding(name: str, readings: list[Reading], by: str, settings: Settings, shown: int | None) -> list[PartTable]:
    analysis = findings_text.analyze(readings, [name], settings, shown)
    tables = joined(table for result in analysis.results for table in tables_of(result, by, settings))
    if tables:
        return tables
    missing = dict.fromkeys(note.rstrip(".") for result in analysis.results for note in result.notes)
    raise UsageError(f"these runs have no data for the table {name}: {'; '.join(missing)}")
