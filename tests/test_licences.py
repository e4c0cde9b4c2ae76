"""The licence table is complete, and nothing under a GPL or a non-commercial licence is part of the core."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from overtone.build.licence import Ingredient, derive

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "overtone"


def _table() -> dict[str, tuple[str, str]]:
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", (ROOT / "docs/licences.md").read_text("utf-8"), re.M)
    return {name: (licence, use) for names, licence, use in rows for name in names.split(", ")}


def _names(requirements: list[str]) -> set[str]:
    found = {re.split(r"[\s<>=!~\[;\\]", line, maxsplit=1)[0].lower() for line in requirements}
    return {name for name in found if re.match(r"[a-z]", name)} - {"overtone"}


def _lines(path: Path) -> list[str]:
    return [line for line in path.read_text("utf-8").splitlines() if line[:1].isalpha()]


def test_every_component_is_in_the_table_where_it_belongs() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    table = _table()
    wanted = dict.fromkeys(_names(project["dependencies"]), "core")
    for extra, requirements in project["optional-dependencies"].items():
        use = "tests" if extra == "dev" else f"extra `{extra}`"
        wanted |= {name: use for name in _names(requirements) if name not in wanted}
    wanted |= dict.fromkeys(_names(_lines(SOURCE / "embedded/local.lock")), "`overtone setup local`")
    for name in _names(_lines(SOURCE / "workers/requirements.txt")):
        wanted.setdefault(name, "worker environments")
    assert {name: table.get(name, ("", "missing"))[1].startswith(use) for name, use in wanted.items()} == dict.fromkeys(
        wanted, True
    )


def test_the_core_holds_nothing_viral_or_non_commercial() -> None:
    core = {name: licence for name, (licence, use) in _table().items() if use.startswith(("core", "extra"))}
    assert core and not {name for name, licence in core.items() if re.search(r"(?<!L)GPL|\bNC\b", licence)}


def _mixed(*licences: str) -> str:
    return derive(Ingredient("part", str(n), licence) for n, licence in enumerate(licences)).licence


@pytest.mark.parametrize(
    ("licences", "whole"),
    [
        (("CC-BY-4.0", "CC0-1.0", "MIT", "CC-BY-3.0"), "CC-BY-4.0"),
        (("CC-BY-4.0", "CC-BY-NC-3.0"), "CC-BY-NC-4.0"),
        (("CC-BY-4.0", "CC-BY-SA-3.0"), "CC-BY-SA-4.0"),
        (("CC-BY-NC-4.0", "CC-BY-NC-SA-4.0"), "CC-BY-NC-SA-4.0"),
        (("CC-BY-4.0", "GPL-2.0-or-later"), "GPL-3.0-or-later"),
        (("CC-BY-SA-4.0", "CC-BY-NC-4.0"), "none"),
        (("GPL-3.0-only", "CC-BY-NC-SA-4.0"), "none"),
        (("CC-BY-SA-3.0", "GPL-3.0-only"), "none"),
        (("CC-BY-4.0", "CC-BY-NC-ND-4.0"), "none"),
        (("CC-BY-4.0", "unknown"), "none"),
        (("CC-BY-4.0", "mine, all mine"), "none"),
    ],
)
def test_the_licence_of_the_whole_follows_from_its_parts(licences: tuple[str, ...], whole: str) -> None:
    assert _mixed(*licences) == whole


def test_a_conflict_names_the_two_that_do_not_go_together() -> None:
    verdict = derive([Ingredient("recording", "rain.wav", "CC-BY-NC-3.0"), Ingredient("voice", "x", "CC-BY-SA-4.0")])
    assert "rain.wav" in verdict.conflicts[0] and "voice x" in verdict.conflicts[0]
