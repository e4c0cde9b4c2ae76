"""The prose lint: its rules' own examples, what it reads of pages and code, and its exit code."""

from __future__ import annotations

import ast

import pytest

from scripts import prose
from scripts.prose import KINDS, Hit, Passage, Rule, check, error_names, load_rules, markdown, python

Printed = pytest.CaptureFixture[str]
RULES, VERBS = load_rules()
CODE = '''
"""What a module holds."""
class Broken(UsageError):
    """A broken file."""
    @property
    def size(self):
        """The size in bytes."""
    def close(self):
        """The file is closed."""
def add(parser):
    """Add the flags.

    What is told here is not the first line.
    """
    parser.add_argument("--seed", help="of all randomness (0)")
    raise Broken(f"{parser} is no parser; use " "another")
def _private():
    """The private ones are free."""
'''


def names(text: str, kind: str = "doc", function: bool = False) -> set[str]:
    return {hit.rule for hit in check(Passage(kind, text, [1] * len(text), function), "x.md", RULES, VERBS)}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_marks_its_bad_examples_and_not_its_good_ones(rule: Rule) -> None:
    assert set(rule.kinds) <= set(KINDS)
    for kind in rule.kinds:
        assert [text for text in rule.bad if rule.name not in names(text, kind)] == []
        assert [text for text in rule.good if rule.name in names(text, kind)] == []


def test_only_prose_of_a_page_is_read() -> None:
    page = (
        "# What a run holds\n\nA run is\nno file: `is told`.\n\n```sh\n# It is told.\n```\n\n| of a | b |\n|---|---|\n"
    )
    hits = [hit for one in markdown(page) for hit in check(one, "x.md", RULES, VERBS)]
    assert [(hit.line, hit.rule) for hit in hits] == [(3, "is-no"), (10, "of-start")]


def test_docstrings_help_and_errors_are_read_from_code() -> None:
    tree = ast.parse(CODE)
    errors = error_names([tree], ast.parse("class UsageError(Exception): ..."))
    assert errors == {"UsageError", "Broken"}
    hits = [hit for one in python(tree, errors) for hit in check(one, "x.py", RULES, VERBS)]
    assert sorted((hit.line, hit.rule) for hit in hits) == [
        (2, "what-noun"),
        (9, "imperative"),
        (15, "bare-default"),
        (15, "help-of"),
        (15, "of-start"),
        (16, "is-no"),
    ]


@pytest.mark.parametrize("word", ["The", "What", "Whether", "Which", "How", "All", "A", "One", "Returns"])
def test_a_functions_docstring_begins_with_an_imperative(word: str) -> None:
    assert "imperative" in names(f"{word} rows of a table.", "docstring", function=True)
    assert "imperative" not in names(f"{word} rows of a table.", "docstring")
    assert "imperative" not in names("Return the rows of a table.", "docstring", function=True)


def test_titles_of_cited_works_are_not_checked() -> None:
    cited, emphasised = markdown("See *Not all laughs are alike*, Journal 12.\n\nThe laughs are *alike*.\n")
    assert names(cited.text) == set() and "likeness" in names(emphasised.text)


def test_the_command_fails_on_a_hit_and_shows_it(monkeypatch: pytest.MonkeyPatch, capsys: Printed) -> None:
    monkeypatch.setattr("sys.argv", ["prose.py"])
    hit = Hit("docs/a.md", 3, "told", "it is told", "is reported")
    for hits, code in (([], 0), ([hit], 1)):
        monkeypatch.setattr(prose, "scan", lambda hits=hits: (hits, 10))
        assert prose.main() == code
    assert "docs/a.md:3: told: it is told\n    is reported" in capsys.readouterr().out
