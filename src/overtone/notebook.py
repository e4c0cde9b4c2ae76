"""Tables, findings and comparisons as objects of the Python API.

They print like the command line's output, and a notebook shows them as HTML. All text of models and data is escaped.
"""

from __future__ import annotations

import base64
import io
import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from overtone.display.grid import Words, grid
from overtone.display.table_data import PartTable
from overtone.errors import MissingExtra, OvertoneError
from overtone.paths import inside
from overtone.report import latex_tables, table_formats
from overtone.report.page import run_labels

if TYPE_CHECKING:
    from overtone.findings.finding import FindingResult
    from overtone.report.findings_text import Analysis
    from overtone.results.comparison import Comparison
    from overtone.results.load import Reading
    from overtone.runs.store import Ask, Store

WIDTH = 110  # columns of a table that is printed as text
PLAYERS = 3  # clips with players in a run's HTML
SEARCHED = 2000  # replies that are searched for these clips
MOST_TEXT = 500  # maximum characters of a reply next to a player
_MOST_BYTES = 2 * 2**20  # maximum size of a sound in the HTML
SHOWN_LINES = 40  # of a run, a comparison or findings that print themselves
_STYLE = "style='border-collapse:collapse;margin:.6em 0'"
_CELL = "style='text-align:left;padding:.15em .7em;vertical-align:top'"


def one_screen(text: str, rest: str) -> str:
    """Cut a text after SHOWN_LINES lines. `rest` is the call that prints the rest."""
    lines = text.splitlines()
    more = len(lines) - SHOWN_LINES
    return "\n".join([*lines[:SHOWN_LINES], *([f"… {more} more lines: {rest}"] if more > 0 else [])])


class Tables(Sequence[PartTable]):
    """One or more tables of runs. They print as text, show as HTML in a notebook, and convert to other formats."""

    def __init__(self, tables: Sequence[PartTable], labels: Sequence[str]) -> None:
        self._tables, self._labels = list(tables), list(labels)

    def __len__(self) -> int:
        return len(self._tables)

    def __getitem__(self, index: Any) -> Any:
        return self._tables[index]

    def __iter__(self) -> Iterator[PartTable]:
        return iter(self._tables)

    def __repr__(self) -> str:
        page = io.StringIO()
        table_formats.to_terminal(table_formats.make_console(page, WIDTH), self._tables, self._labels, hints=True)
        return page.getvalue().strip("\n")

    def _repr_html_(self) -> str:
        return Markup("").join(_table(table, self._labels) for table in self._tables)

    def markdown(self) -> str:
        """Return the tables as Markdown."""
        return table_formats.markdown(self._tables, self._labels)

    def latex(self) -> str:
        """Return the tables as LaTeX."""
        return latex_tables.latex(self._tables, self._labels)

    def csv(self) -> str:
        """Return one CSV row for each number, with its interval and its counts."""
        return table_formats.csv_text(self._tables, self._labels)

    def to_pandas(self) -> Any:
        """Return one DataFrame row for each number, with its interval and its counts. Needs pandas."""
        return pandas().read_csv(io.StringIO(self.csv()))


class Findings:
    """The findings of runs. Iterate over them, or print them: sentences, what is missing, and tables."""

    def __init__(self, analysis: Analysis) -> None:
        self._analysis = analysis

    def __iter__(self) -> Iterator[FindingResult[Any]]:
        return iter(self._analysis.results)

    def __len__(self) -> int:
        return len(self._analysis.results)

    @property
    def sentences(self) -> list[str]:
        """Every sentence of every finding."""
        return [sentence.text for finding in self for sentence in finding.sentences]

    def markdown(self) -> str:
        """Return the findings as Markdown."""
        from overtone.report.findings_text import to_markdown

        return to_markdown(self._analysis)

    def __repr__(self) -> str:
        from overtone.report.findings_text import print_findings

        page = io.StringIO()
        print_findings(self._analysis, file=page)
        return one_screen(page.getvalue().strip("\n"), "print(findings.markdown())")

    def _repr_html_(self) -> str:
        from overtone.report.findings_text import sections

        made = Markup("")
        for section in sections(self._analysis):
            texts = [text for _, sentences in section.answers for text in sentences]
            lines = Markup("").join(Markup("<li>{}</li>").format(text) for text in texts)
            made += Markup("<h4>{}</h4><ul>{}</ul>").format(section.finding.title, lines)
            made += Markup("").join(_table(table, self._analysis.labels) for table in section.tables)
        return made


class Compared:
    """Two runs compared on the items that both were asked. `result` holds every number."""

    def __init__(self, result: Comparison) -> None:
        self.result = result

    @property
    def sentences(self) -> list[str]:
        """The result of the comparison, one sentence per headline measure."""
        from overtone.results.comparison_text import sentences

        return [sentence.text for sentence in sentences(self.result)]

    @property
    def tables(self) -> Tables:
        """The differences, overall and by cue."""
        from overtone.report.comparison_tables import tables

        return Tables(tables(self.result), [self.result.second])

    def __repr__(self) -> str:
        from overtone.report.comparison_tables import print_comparison

        page = io.StringIO()
        print_comparison(self.result, page, width=WIDTH)
        return one_screen(page.getvalue().strip("\n"), "print(comparison.tables)")

    def _repr_html_(self) -> str:
        lines = Markup("").join(Markup("<li>{}</li>").format(text) for text in self.sentences)
        return Markup("<ul>{}</ul>").format(lines) + Markup(self.tables[:1] and _table(self.tables[0], []))


def run_tables(readings: list[Reading], name: str) -> Tables:
    """Return the tables that have this name: those of results, or those of a finding.

    Raises UsageError if the name is unknown or the tables are empty.
    """
    from overtone.report.named_tables import named_tables

    return Tables(named_tables(name, readings), run_labels(readings))


def run_html(store: Store, tables: Tables, facts: str) -> str:
    """Return a run as HTML: its facts, its headline table, and a few cases with players."""
    made = Markup("<p>{}</p>").format(facts) + Markup(tables._repr_html_())
    root = store.meta().get("root", "")
    rows = Markup("").join(_case(ask, Path(root) if root else None) for ask in _heard(store))
    return made + (Markup("<table {}>{}</table>").format(Markup(_STYLE), rows) if rows else "")


def _heard(store: Store) -> list[Ask]:
    """Return a few answered items whose last turn has a clip: the first conversations, or other items if there are
    none."""
    conversations: list[Ask] = []
    others: list[Ask] = []
    for ask in itertools.islice(store.answered(), SEARCHED):
        if ask.item.turns[-1].clip and not ask.repeat:
            (conversations if ask.item.task == "converse" else others).append(ask)
    return (conversations or others)[:PLAYERS]


def _case(ask: Ask, root: Path | None) -> Markup:
    turn = ask.item.turns[-1]
    clip = inside(root, turn.clip.path) if root and turn.clip else None
    cells = (Markup("{}<br>{}").format(ask.item.case, _player(clip)), f"“{turn.words}”", ask.reply.text[:MOST_TEXT])
    return _row(cells)


def _player(path: Path | None) -> Markup:
    """Return a player that embeds the sound, or nothing if the file is missing, too large or not a sound."""
    from overtone.audio import media_type

    try:
        if path is None or not path.is_file() or path.stat().st_size > _MOST_BYTES:
            return Markup("")
        with path.open("rb") as file:
            kind = media_type(file)
        data = base64.b64encode(path.read_bytes()).decode() if kind else ""
    except (OSError, OvertoneError):
        return Markup("")
    player = Markup('<audio controls preload="none" src="data:{};base64,{}"></audio>')
    return player.format(kind, data) if data else Markup("")


def _table(table: PartTable, labels: Sequence[str]) -> Markup:
    made = grid(table, labels)
    heads = Markup("").join(Markup("<th {}>{}</th>").format(Markup(_CELL), head) for head in (*made.left, *made.heads))
    rows = Markup("").join(_row((*names, *map(_words, cells))) for names, cells in made.rows)
    notes = Markup("").join(Markup("<br>{} {}").format(number, note) for number, note in enumerate(made.notes, 1))
    return Markup("<table {}><caption>{}</caption><tr>{}</tr>{}</table><small>{}{}</small>").format(
        Markup(_STYLE), made.title, heads, rows, made.hint, notes
    )


def _row(cells: Iterable[object]) -> Markup:
    made = Markup("").join(Markup("<td {}>{}</td>").format(Markup(_CELL), cell) for cell in cells)
    return Markup("<tr>{}</tr>").format(made)


def _words(words: Words) -> Markup:
    small = Markup(" <small>{}</small>").format(", ".join(filter(None, (words.between, *words.below))))
    return escape(words.value + words.mark) + small


def pandas() -> Any:
    """Import and return pandas. Raises MissingExtra with the command that installs it."""
    try:
        import pandas as module
    except ImportError:
        raise MissingExtra("a DataFrame needs pandas: pip install pandas") from None
    return module
