"""What the pages show is there: links lead somewhere, code is the files', commands parse."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import yaml

import overtone
from overtone.cli._main import command_parser
from overtone.cluster.placement import Placement
from overtone.errors import ModelFailure
from overtone.runs.export_rows import rows
from overtone.runs.settings import Settings, read_run_file
from overtone.runs.store import Store
from tests.conftest import REPOSITORY
from tests.docs.conftest import EXAMPLES
from tests.docs.markdown import Block, anchors, blocks, links, spans
from tests.metrics.refresh import SIGNATURES

DOCS = sorted((REPOSITORY / "docs").rglob("*.md"))
PAGES = [*DOCS, *(REPOSITORY / name for name in ("README.md", "CHANGELOG.md", "SECURITY.md", "CONTRIBUTING.md"))]
SHOWN = [EXAMPLES / "clips.csv", *sorted(EXAMPLES.glob("my_*.*"))]


def named(path: Path) -> str:
    return str(path.relative_to(REPOSITORY))


def test_links_of_the_front_pages_lead_to_committed_files() -> None:
    """Links between pages of docs/ are checked on the built site, which also has generated pages."""
    for page in PAGES[len(DOCS) :]:
        for link in links(page):
            target, _, heading = link.partition("#")
            if re.match(r"[a-z]+:", link) or not target:
                continue
            path = (page.parent / target).resolve()
            assert path.is_file() and path.is_relative_to(REPOSITORY), f"{named(page)} links to {link}"
            if heading and path.suffix == ".md":
                assert heading in anchors(path), f"{named(page)}: {named(path)} has no heading #{heading}"


def test_the_page_of_a_metric_shows_the_signatures_its_scores_carry() -> None:
    texts = " ".join(page.read_text("utf-8") for page in DOCS if page.parent.name == "metrics")
    for metric in ("wer", "choice", "semsim", "bleu", "rouge", "meteor", "lengths", "bertscore", "consistency"):
        for signature in SIGNATURES[metric]:
            assert f"`{signature}" in texts, signature


# ── code ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def quoted() -> Iterator[tuple[Path, Path, str]]:
    """Page, file and text of every block that says it is a file's."""
    for page in PAGES:
        for block in blocks(page):
            first, _, rest = block.text.partition("\n")
            if match := re.fullmatch(r"# (examples/[\w.]+)", first):
                yield page, REPOSITORY / match[1], rest
            elif block.language == "csv":
                yield page, EXAMPLES / "clips.csv", block.text


def test_code_on_a_page_is_the_file_it_names() -> None:
    found = list(quoted())
    for page, file, text in found:
        assert text.strip() in file.read_text(encoding="utf-8"), f"{named(page)} shows another {named(file)}"
    whole = {file for _, file, text in found if text.strip() == file.read_text(encoding="utf-8").strip()}
    assert set(SHOWN) <= whole, "every worked example is shown in full once"


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_python_json_and_yaml_blocks_are_well_formed(page: Path) -> None:
    for block in blocks(page):
        if block.language == "python":
            compile(block.text, named(page), "exec")
        elif block.language == "json":
            msgspec.json.decode(block.text)
        elif block.language == "yaml":
            assert yaml.safe_load(block.text)


# ── commands ────────────────────────────────────────────────────────────────────────────────────────────────────────


def commands(block: Block) -> Iterator[list[str]]:
    """The words after `overtone` of every command line in a block. A line with [-o …] is a synopsis, not a command."""
    for line in block.text.replace("\\\n", " ").splitlines():
        if re.search(r"\[-|…|\.\.\.", line):
            continue
        for part in re.split(r" (?:\||&&|;|>) ", re.sub(r"^\$ ", "", line.strip())):
            match = re.match(r"(?:\w+=\S* )*(?:\S*/)?overtone(?: |$)", part)
            if match:
                yield shlex.split(part[match.end() :], comments=True)


def flags_of(parser: argparse.ArgumentParser) -> set[str]:
    found = set(parser._option_string_actions)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            found |= {flag for sub in action.choices.values() for flag in flags_of(sub)}
    return found


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_command_line_parses(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for block in blocks(page):
        if block.language not in ("", "sh", "bash", "console"):
            continue
        for words in commands(block):
            if words and words[0] in ("--help", "--version"):
                continue
            try:
                command_parser(words[0]).parse_args(words[1:])
            except (SystemExit, argparse.ArgumentError) as error:
                if "--help" not in words:
                    pytest.fail(f"{named(page)}: overtone {shlex.join(words)}: {error} {capsys.readouterr().err}")


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_command_in_a_sentence_exists_with_its_flags(page: Path) -> None:
    for span in spans(page):
        if not span.startswith("overtone "):
            continue
        words = span.split()[1:]
        if words[0].startswith("-") or words[0] in ("COMMAND", "…"):
            continue
        known = flags_of(command_parser(words[0]))
        unknown = [word for word in words if re.match(r"--?[a-z]", word) and word not in known]
        assert not unknown, f"{named(page)}: `{span}` has {unknown}"


def test_a_command_that_does_not_exist_would_be_noticed() -> None:
    block = Block("sh", "$ OVERTONE_LIMIT=3 overtone run x.toml | head\nls\novertone report RUN -o f.html  # a file\n")
    assert list(commands(block)) == [["run", "x.toml"], ["report", "RUN", "-o", "f.html"]]
    with pytest.raises(SystemExit):
        command_parser("report").parse_args(["--emblazon", "RUN"])


# ── tables ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def first_cells(page: str, heading: str) -> list[str]:
    text = (REPOSITORY / "docs" / page).read_text(encoding="utf-8")
    section = text.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"^\| `(\w+)` \|", section, re.M)


def test_every_key_of_a_run_file_is_documented() -> None:
    known = set(Settings.__struct_fields__) - {"benchmark", "model", "judges", "ray"} | {"jobs", "report", "plugins"}
    assert sorted(first_cells("reference/run-files.md", "`[run]`")) == sorted(known)
    assert sorted(first_cells("how-to/ray.md", "GPUs and several models")) == sorted(Placement.__struct_fields__)


def test_every_reason_of_a_failure_is_documented() -> None:
    assert first_cells("reference/failures.md", "Failures are values") == list(ModelFailure.REASONS)


def test_every_table_of_the_store_is_documented() -> None:
    sql = (REPOSITORY / "src" / "overtone" / "runs" / "schema.sql").read_text()
    kept = set(re.findall(r"CREATE TABLE (\w+)", sql)) - set(re.findall(r"DROP TABLE (\w+)", sql))
    assert kept <= set(first_cells("reference/runs.md", "What a folder holds"))


def test_run_files_on_the_pages_are_run_files(tmp_path: Path) -> None:
    count = 0
    for page in PAGES:
        for block in blocks(page):
            if block.language == "toml" and "[[model]]" in block.text:
                (tmp_path / "run.toml").write_text(block.text)
                read_run_file(tmp_path / "run.toml")
                count += 1
    assert count >= 2


def test_every_column_of_an_export_is_documented(small: Path, tmp_path: Path) -> None:
    with overtone.run("open", data=small, model=lambda request: "A", out=tmp_path / "run", limit=1, progress=False):
        pass
    with Store.read(tmp_path / "run") as store:
        columns = list(next(iter(rows(store))))
    assert first_cells("reference/exports.md", "Columns") == columns


def test_the_glossary_has_every_noun_in_order() -> None:
    page = (REPOSITORY / "docs" / "reference" / "glossary.md").read_text(encoding="utf-8")
    words = re.findall(r"^\| \*\*(.+?)\*\* \|", page, re.M)
    assert words == sorted(words, key=str.lower)
    nouns = (
        "cue script clip item request reply model metric judge label run suite finding study case group style source"
    )
    assert set(nouns.split()) <= set(words)


def test_a_page_is_at_most_2000_words_long() -> None:
    long = {named(page): count for page in DOCS if (count := len(page.read_text(encoding="utf-8").split())) > 2000}
    assert not long, "split these pages"


def test_pictures_are_small() -> None:
    pictures = [path for path in (REPOSITORY / "docs").rglob("*") if path.suffix in (".png", ".jpg", ".svg")]
    assert pictures and not [named(path) for path in pictures if path.stat().st_size > 200_000]


def test_pages_that_the_code_mentions_exist() -> None:
    files = [path for room in ("src", "scripts", "bench", "experiments") for path in (REPOSITORY / room).rglob("*.py")]
    mentioned = {name for path in files for name in re.findall(r"\bdocs/[\w/-]+\.md\b", path.read_text("utf-8"))}
    assert mentioned and not [name for name in mentioned if not (REPOSITORY / name).is_file()]
