"""The files that strangers and their tools read first agree with the project."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest
import yaml

from overtone import __version__
from tests.needs import NEEDS, REPOSITORY

PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))


def parsed(path: str) -> Any:
    return yaml.safe_load((REPOSITORY / path).read_text("utf-8"))


def test_the_citation_names_this_version_and_licence() -> None:
    citation = parsed("CITATION.cff")
    assert (citation["version"], citation["license"]) == (__version__, PROJECT["project"]["license"])
    assert citation["cff-version"] == "1.2.0" and citation["title"] and citation["authors"] and citation["message"]


def test_the_checks_run_on_declared_versions_of_python() -> None:
    (job,) = parsed(".github/workflows/ci.yml")["jobs"].values()
    declared = [c.rpartition(" ")[2] for c in PROJECT["project"]["classifiers"] if re.search(r"Python :: 3\.\d", c)]
    assert job["strategy"]["matrix"]["python"] == [declared[0], declared[-1]]
    assert PROJECT["project"]["requires-python"] == f">={declared[0]}"
    assert job["steps"][-1] == {"run": ".ci/run"} and (REPOSITORY / ".ci/run").stat().st_mode & 0o111


def test_a_commit_is_checked_with_the_projects_own_tools() -> None:
    (local,) = parsed(".pre-commit-config.yaml")["repos"]
    assert local["repo"] == "local", "nothing is downloaded"
    makefile = (REPOSITORY / "Makefile").read_text()
    for hook in local["hooks"]:
        program, _, rest = hook["entry"].removeprefix(".venv/bin/").partition(" --")
        assert hook["entry"].startswith(".venv/bin/") and f"$(BIN)/{program}" in makefile, rest


@pytest.mark.parametrize("form", ["bug", "feature", "benchmark_or_metric"])
def test_an_issue_form_asks_for_what_is_needed(form: str) -> None:
    issue = parsed(f".github/ISSUE_TEMPLATE/{form}.yml")
    fields = [field for field in issue["body"] if field["type"] != "markdown"]
    assert issue["name"] and issue["description"]
    assert len({field["id"] for field in fields}) == len(fields) >= 3
    assert all(field["attributes"]["label"] for field in fields)
    assert any(field.get("validations", {}).get("required") for field in fields)


def test_contributors_read_of_every_marker_and_how_to_get_what_it_needs() -> None:
    text = (REPOSITORY / "CONTRIBUTING.md").read_text("utf-8")
    markers = {line.partition(":")[0] for line in PROJECT["tool"]["pytest"]["ini_options"]["markers"]}
    assert markers == {*NEEDS, "full"}
    assert not [marker for marker in markers if f"`{marker}`" not in text]
    for _, reason in NEEDS.values():
        line = re.search(r"run '(?:export )?(.+?)(?: pytest)?'", reason)
        assert line and line[1] in text, reason


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "CODE_OF_CONDUCT.md", "SECURITY.md"])
def test_links_between_these_pages_lead_somewhere(page: str) -> None:
    links = re.findall(r"\]\(([^)#]+)", (REPOSITORY / page).read_text("utf-8"))
    assert links and not [link for link in links if "://" not in link and not (REPOSITORY / link).exists()]
