"""All findings by name: built-in, installed, or loaded from a plug-in file."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from overtone import registry
from overtone.errors import UsageError
from overtone.findings.finding import Finding
from overtone.spec import suggest


def known_findings() -> dict[str, Finding[Any]]:
    """Return name → finding for all findings, in display order."""
    declared = {name: find(name) for name in registry.listing("findings")}
    return dict(sorted(declared.items(), key=lambda entry: (entry[1].order, entry[0])))


def find(name: str) -> Finding[Any]:
    """Return a finding by name. Raises UsageError for an unknown name and suggests the nearest known name."""
    declared = registry.find("findings", name).FINDING
    if not isinstance(declared, Finding):
        raise UsageError(f"the finding {name!r}: FINDING must be an overtone.findings.finding.Finding")
    return declared


def check_names(names: Iterable[str]) -> list[str]:
    """Return the given names in display order; without names, the names of all findings."""
    given, known = list(names), known_findings()
    for name in given:
        if name not in known:
            raise UsageError(f"unknown finding {name!r}{suggest(name, known)}; known: {', '.join(known)}")
    return [name for name in known if not given or name in given]
