"""Rubrics, read from TOML: what a judge is told, what it is shown, what it hears, and on which scales it answers."""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Collection
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from overtone import registry
from overtone.errors import UsageError
from overtone.paths import read_plain
from overtone.schema import Item
from overtone.spec import suggest

_KEY = re.compile(r"[a-z][a-z0-9_]*")
_MOST_BYTES = 100_000
TASKS = ("converse", "choose", "transcribe")


class Dimension(Struct, frozen=True, forbid_unknown_fields=True):
    """One thing that is judged: on a scale of whole numbers, or by choosing one of a few words."""

    key: str
    label: str
    question: str
    scale: tuple[int, int] | None = None
    choices: tuple[str, ...] = ()
    values: dict[str, float] = {}  # what each choice counts
    better: Literal["higher", "lower", "neither"] = "higher"
    styles: tuple[str, ...] = ()  # clips it is asked about; empty: all
    only: dict[str, tuple[str, ...]] = {}  # field of an item → the values of items it is asked about; empty: all
    anchors: dict[str, str] = {}

    @property
    def menu(self) -> tuple[int | str, ...]:
        """Every answer that is allowed."""
        return tuple(range(self.scale[0], self.scale[1] + 1)) if self.scale else self.choices

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the greatest number an answer can count."""
        counted = [self.number(answer) for answer in self.menu]
        return min(counted), max(counted)

    @property
    def ordered(self) -> bool:
        """Whether its answers are steps: a scale, or three choices and more that count different whole numbers, such
        as Poor, Fair and Good. A, tie and B are none."""
        counted = {value for value in self.values.values() if value == int(value)}
        return self.scale is not None or len(counted) == len(self.choices) > 2

    def number(self, answer: int | str) -> float:
        """What an answer from the menu counts."""
        return float(answer) if self.scale else self.values[str(answer)]

    def asked(self, style: str, item: Item | None = None) -> bool:
        """Whether it is asked about this item's clip of this style; a subject without either is asked everything."""
        if item is not None and not all(getattr(item, field) in allowed for field, allowed in self.only.items()):
            return False
        return not style or not self.styles or style in self.styles


class Rubric(Struct, frozen=True):
    """One rubric. `sha256` changes when anything the judge is told does."""

    name: str
    version: int
    title: str
    measures: str
    cannot_see: str
    source: str
    subject: Literal["reply", "pair", "group"]
    shows: tuple[str, ...]
    hears: tuple[str, ...]
    system: str
    headings: dict[str, str]
    dimensions: tuple[Dimension, ...]
    tasks: tuple[str, ...] = ("converse",)  # of a run: the replies to which tasks it judges
    against: Literal["", "reference"] = ""  # of a run: what a pair's B is; its A is the model's reply
    transcribes: bool = False  # of a run: a reply with audio is judged by what a recogniser hears in it
    wordless: float | None = None  # of a run: what a reply without a word counts, for which no judge is asked
    control: Literal["", "shuffled"] = ""  # of a group: it is judged once more, each variant with another's reply

    @property
    def controls(self) -> tuple[Dimension, ...]:
        """What the answers of the control are stored as, one for each dimension."""
        if not self.control:
            return ()
        note, rename = ", replies shuffled", msgspec.structs.replace
        return tuple(
            rename(d, key=f"{d.key}_{self.control}", label=d.label + note, better="neither") for d in self.dimensions
        )

    @property
    def sha256(self) -> str:
        dimensions = [{k: v for k, v in msgspec.to_builtins(d).items() if k != "only"} for d in self.dimensions]
        told = (self.subject, self.shows, self.hears, self.system, self.headings, dimensions)
        return hashlib.sha256(msgspec.json.encode(told, order="sorted")).hexdigest()

    @property
    def identity(self) -> str:
        """Name, version and the beginning of the hash, for signatures."""
        return f"{self.name}.{self.version}.{self.sha256[:8]}"

    def only(self, keys: Collection[str]) -> Rubric:
        """The same rubric with these dimensions alone."""
        return msgspec.structs.replace(self, dimensions=tuple(d for d in self.dimensions if d.key in keys))

    def heading(self, key: str) -> str:
        return self.headings.get(key) or key.replace("_", " ").capitalize()


class _File(Struct, forbid_unknown_fields=True):
    version: int
    title: str
    measures: str
    cannot_see: str
    source: str
    system: str
    dimension: list[Dimension]
    subject: Literal["reply", "pair", "group"] = "reply"
    shows: tuple[str, ...] = ()
    hears: tuple[str, ...] = ()
    headings: dict[str, str] = {}
    tasks: tuple[str, ...] = ("converse",)
    against: Literal["", "reference"] = ""
    transcribes: bool = False
    wordless: float | None = None
    control: Literal["", "shuffled"] = ""


def load(name: str) -> Rubric:
    """Read a rubric by its name, or by the path of its TOML file. Raise UsageError that says what is wrong with it."""
    path = Path(name) if name.endswith(".toml") else registry.find_rubric(name)
    if not path.is_file():
        raise UsageError(f"rubric {path} does not exist")
    try:
        tree: dict[str, Any] = tomllib.loads(read_plain(path, _MOST_BYTES).decode("utf-8"))
        file = msgspec.convert(tree, _File)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise UsageError(f"rubric {path.name}: {error}") from None
    fields = {field: getattr(file, field) for field in Rubric.__struct_fields__ if field not in ("name", "dimensions")}
    rubric = Rubric(name=path.stem, dimensions=tuple(file.dimension), **fields)
    _check(rubric, path.name)
    return rubric


def twin(key: str) -> str:
    """The key of the same question about the other of a pair; "" where a question is about both."""
    ends = {"_a": "_b", "_b": "_a"}
    return key[:-2] + ends[key[-2:]] if key[-2:] in ends else ""


def _fits_pair(d: Dimension, dimensions: tuple[Dimension, ...]) -> bool:
    if d.scale is None:
        return set(d.choices) >= {"A", "B"}
    return any(other.key == twin(d.key) and other.scale == d.scale for other in dimensions)


def _check(rubric: Rubric, where: str) -> None:
    def wrong(what: str) -> UsageError:
        return UsageError(f"rubric {where}: {what}")

    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", rubric.name):
        raise wrong("its file's name becomes part of signatures: letters, digits, '.', '_' and '-' only")
    if not rubric.dimensions:
        raise wrong("it has no [[dimension]]")
    keys = [d.key for d in rubric.dimensions]
    for d in rubric.dimensions:
        if not _KEY.fullmatch(d.key) or d.key.endswith("_reason"):
            raise wrong(f"a dimension's key is letters, digits and _ and does not end in _reason, not {d.key!r}")
        if keys.count(d.key) > 1:
            raise wrong(f"two dimensions are called {d.key!r}")
        if (d.scale is None) == (not d.choices):
            raise wrong(f'dimension {d.key!r} needs either scale = [1, 5] or choices = ["yes", "no"]')
        if d.scale and not d.scale[0] < d.scale[1] <= d.scale[0] + 1000:
            raise wrong(f"dimension {d.key!r}: its scale goes from a smaller to a greater whole number")
        if d.choices and (set(d.values) != set(d.choices) or len(set(d.choices)) != len(d.choices)):
            raise wrong(f"dimension {d.key!r}: values must say what each of its different choices counts")
        if strange := d.only.keys() - set(Item.__struct_fields__):
            raise wrong(f"dimension {d.key!r}: only names {', '.join(sorted(strange))}, which no item has")
        if strange := d.anchors.keys() - {str(answer) for answer in d.menu}:
            raise wrong(f"dimension {d.key!r} has anchors for answers it does not allow: {', '.join(sorted(strange))}")
    if rubric.subject == "pair" and not all(_fits_pair(d, rubric.dimensions) for d in rubric.dimensions):
        raise wrong(
            "of a pair one is chosen, or both are rated: a dimension needs the choices A and B, or a scale and a key "
            "that ends in _a or _b with its twin beside it"
        )
    if rubric.against and rubric.subject != "pair":
        raise wrong('against names what the reply is paired with: it needs subject = "pair"')
    if rubric.subject == "group" and ("reply" not in rubric.shows or rubric.hears or rubric.wordless is not None):
        raise wrong("of a group the words are judged: shows must name reply, hears nothing, and wordless is not for it")
    if rubric.control and rubric.subject != "group":
        raise wrong('control exchanges the replies of a group: it needs subject = "group"')
    if unknown := [task for task in rubric.tasks if task not in TASKS]:
        raise wrong(f"there is no task {unknown[0]!r}{suggest(unknown[0], TASKS)}; known: {', '.join(TASKS)}")
    both = {"reply_a", "reply_b"} <= set(rubric.shows) or {"a", "b"} <= set(rubric.hears)
    if rubric.subject == "pair" and not both:
        raise wrong("of a pair both are put before the judge: shows reply_a and reply_b, or hears a and b")
    if not (rubric.shows or rubric.hears):
        raise wrong("it puts nothing before the judge: name something in shows or hears")
