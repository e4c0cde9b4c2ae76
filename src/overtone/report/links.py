"""Turn numbers, sentences and figures into links to the cases behind them, and make untrusted text harmless.

A page requests its links while it is written. The sets of cases that the links open are stored at the end of the page.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from urllib.parse import quote

import msgspec
from markupsafe import Markup

from overtone.display.drawing import Drawing, svg
from overtone.html_page import visible
from overtone.judge_trust.calibration import Calibrated
from overtone.report.case_data import to_json
from overtone.report.case_links import CaseFinder, read
from overtone.report.case_sets import Sets
from overtone.results.load import Reading
from overtone.text import NONE, count

_NAMESPACE = ' xmlns="http://www.w3.org/2000/svg"'  # a page knows it, and names no address


class Links:
    """The targets of a report's links: `#where=…` of the plain tables, `#behind=KEY` of findings and comparisons."""

    def __init__(self, readings: Sequence[Reading], ids: Sequence[str], corrected: Sequence[list[Calibrated]]) -> None:
        self.sets = Sets(ids, readings)
        people = [{(row.metric, row.condition): row.cases for row in rows} for rows in corrected]
        self._finders = [CaseFinder(r, people[n] if people else None) for n, r in enumerate(readings)]

    def take(self, keyed: Iterable[tuple[str, list[str]]], wanted: Collection[str], runs: Sequence[int]) -> None:
        """Store the cases behind those keys that are in `wanted`."""
        for key, cases in keyed:
            if key in wanted and (numbers := self.sets.place(cases, runs)):
                self.sets.behind[key] = self.sets.add(numbers)

    def number(self, key: str) -> int | None:
        """Return the number of the set of cases behind a key, or None if the key has no cases."""
        if not key.startswith("where="):
            return self.sets.behind.get(key)
        run = int(read(key)["run"]) - 1
        return self.sets.once(key, lambda: self.sets.place(self._finders[run].cases(key), [run]))

    def linked(self, text: str, key: str, tag: str = "v") -> Markup:
        """Return a number as a link if there are cases behind it, otherwise as text. `tag` is its style: v(alue),
        s(mall), b(old), i(nline)."""
        number = self.number(key) if key and text != NONE else None
        if number is None:
            return Markup('<span class="{0}">{1}</span>').format(tag, visible(text))
        if key.startswith("where="):
            return Markup('<a class="{0}" href="#{1}" data-s="{2}">{3}</a>').format(tag, key, number, visible(text))
        return Markup('<a class="{0}" href="#behind={1}">{2}</a>').format(tag, quote(key), visible(text))

    def cases(self, key: str) -> Markup:
        """Return a link such as `26 cases` to the cases behind a key; empty if the key has no cases."""
        number = self.number(key) if key else None
        if number is None:
            return Markup("")
        size = count(self.sets.sizes[number], "case")
        return Markup(' <a class="cases" href="#behind={0}">{1}</a>').format(quote(key), size)

    def picture(self, drawing: Drawing) -> Markup:
        """Return a drawing inline, with links from its marks to the cases behind them."""
        marks = [m if self.number(m.key) is not None else msgspec.structs.replace(m, key="") for m in drawing.marks]
        text = svg(msgspec.structs.replace(drawing, marks=marks), inline=True)
        return Markup(visible(text.replace(_NAMESPACE, "", 1)))

    def json(self) -> Markup:
        """Return the sets of cases, and the keys of findings and comparisons, as JSON."""
        return Markup(to_json(self.sets.json()))
