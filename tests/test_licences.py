"""The licence table is complete, and nothing under a GPL or a non-commercial licence is part of the core."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from email.message import Message
from importlib.metadata import Distribution, distributions
from pathlib import Path
from types import SimpleNamespace

import pytest

from overtone.build.licence import Ingredient, derive
from scripts.lock_core import closure, plain

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "overtone"


def _table() -> dict[str, tuple[str, str]]:
    pages = [ROOT / "docs" / "reference" / name for name in ("licences.md", "licences-indirect.md")]
    text = "".join(page.read_text("utf-8") for page in pages)
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", text, re.M)
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


FAMILIES = {  # how metadata without an expression names a licence, and what the table then holds
    "Apache": "Apache-2.0",
    "BSD": "BSD",
    "MIT": "MIT",
    "MPL": "MPL-2.0",
    "Mozilla": "MPL-2.0",
    "ISC": "ISC",
    "PSF": "PSF",
    "Python Software Foundation": "PSF",
    "GNU General Public License v3": "GPL-3.0",
    "GPL": "GPL",
}


def _stated(package: Distribution) -> list[str]:
    """What a package's metadata says of its licence, as words that the table must hold; [] where it says nothing."""
    if expression := package.metadata.get("License-Expression"):
        return re.findall(r"[\w.+-]+-[\w.+-]+|MIT|Zlib|0BSD|ISC", expression)
    text = package.metadata.get("License") or ""
    classifiers = package.metadata.get_all("Classifier") or []
    texts = [c.split("::")[-1] for c in classifiers if c.startswith("License ::") and "approved" not in c]
    if not texts and len(text) < 60:
        texts = [text]
    return [word for text in texts for name, word in FAMILIES.items() if re.search(rf"\b{name}\b", text)][:1]


def _missing(names: Iterable[str], installed: dict[str, Distribution]) -> list[str]:
    """Rows that the table lacks or has wrong."""
    table = {plain(name): licence for name, (licence, _) in _table().items()}
    out = []
    for name in sorted(closure(names, installed)):
        words = _stated(installed[name]) if name in installed else []
        if name not in table or not all(word.lower() in table[name].lower() for word in words):
            out.append(f"{name}: {table.get(name, 'missing')}, stated {words}")
    return out


def test_all_that_the_core_its_extras_and_the_tests_install_is_in_the_table() -> None:
    installed = {plain(one.name): one for one in distributions()}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = _names(project["dependencies"])
    for extra in ("docs", "export", "fetch", "figures", "studio", "dev"):
        wanted |= _names(project["optional-dependencies"][extra])
    assert not _missing(wanted, installed)
    assert not _missing(_names(_lines(SOURCE / "embedded/local.lock")), {})  # installed without their dependencies


@pytest.mark.worker
def test_all_that_training_and_measuring_install_is_in_the_table() -> None:
    (folder,) = (ROOT / ".venv-worker").glob("lib/*/site-packages")
    installed = {plain(one.name): one for one in distributions(path=[str(folder)])}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert not _missing(_names(project["optional-dependencies"]["train"]), installed)
    assert not _missing(_names(_lines(SOURCE / "workers/measures.lock")), {})


def test_what_metadata_says_is_understood() -> None:
    for fields, words in (
        ({"License-Expression": "Apache-2.0 AND CNRI-Python"}, ["Apache-2.0", "CNRI-Python"]),
        ({"License-Expression": "MIT OR Apache-2.0"}, ["MIT", "Apache-2.0"]),
        ({"License": "BSD 3-Clause License"}, ["BSD"]),
        ({"Classifier": "License :: OSI Approved :: GNU General Public License v3 (GPLv3)"}, ["GPL-3.0"]),
    ):
        assert _stated(SimpleNamespace(metadata=_metadata(fields))) == words  # type: ignore[arg-type]


def _metadata(fields: dict[str, str]) -> Message:
    message = Message()
    for name, value in fields.items():
        message[name] = value
    return message


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
