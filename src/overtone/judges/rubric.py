"""Rubrics, read from TOML: the judge's instructions, the texts and sounds it gets, and the scales it answers on."""

from __future__ import annotations

import hashlib
import re
import tomllib
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
    """One question of a rubric, answered on a scale of whole numbers or by choosing one of a few words."""

    key: str
    label: str
    question: str
    scale: tuple[int, int] | None = None
    choices: tuple[str, ...] = ()
    values: dict[str, float] = {}  # choice → number
    better: Literal["higher", "lower", "neither"] = "higher"
    styles: tuple[str, ...] = ()  # only clips of these styles are asked about; empty: all
    only: dict[str, tuple[str, ...]] = {}  # field of an item → its values that are asked about; empty: all
    anchors: dict[str, str] = {}

    @property
    def menu(self) -> tuple[int | str, ...]:
        """All allowed answers."""
        return tuple(range(self.scale[0], self.scale[1] + 1)) if self.scale else self.choices

    @property
    def ends(self) -> tuple[float, float]:
        """The smallest and the largest number that an answer can have."""
        numbers = [self.number(answer) for answer in self.menu]
        return min(numbers), max(numbers)

    @property
    def ordered(self) -> bool:
        """Whether the answers are ordered steps: a scale, or at least three choices with different whole numbers, such
        as Poor, Fair and Good, but not A, tie and B."""
        steps = {value for value in self.values.values() if value == int(value)}
        return self.scale is not None or len(steps) == len(self.choices) > 2

    def number(self, answer: int | str) -> float:
        """Return the number of an allowed answer."""
        return float(answer) if self.scale else self.values[str(answer)]

    def asked(self, style: str, item: Item | None = None) -> bool:
        """Return whether a judge is asked this question about a clip of this style; True if neither is given."""
        if item is not None and not all(getattr(item, field) in allowed for field, allowed in self.only.items()):
            return False
        return not style or not self.styles or style in self.styles


class Rubric(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename={"dimensions": "dimension"}):
    """One rubric. `sha256` changes if anything that the judge sees changes."""

    name: str
    version: int
    title: str
    measures: str
    cannot_see: str
    source: str
    system: str
    subject: Literal["reply", "pair", "group"] = "reply"
    shows: tuple[str, ...] = ()
    hears: tuple[str, ...] = ()
    headings: dict[str, str] = {}
    dimensions: tuple[Dimension, ...]
    tasks: tuple[str, ...] = ("converse",)  # in a run: judges the replies to these tasks
    against: Literal["", "reference"] = ""  # in a run: B of a pair; A is the model's reply
    transcribes: bool = False  # in a run: a reply with audio is judged by its transcript
    wordless: float | None = None  # in a run: the score of a reply without words; the judge is not asked
    control: Literal["", "shuffled"] = ""  # for a group: judge it again with replies exchanged

    @property
    def controls(self) -> tuple[Dimension, ...]:
        """The dimensions of the control. Each is a copy of a dimension with another key, under which its answers are
        stored."""
        if not self.control:
            return ()
        note, rename = ", replies shuffled", msgspec.structs.replace
        return tuple(
            rename(d, key=f"{d.key}_{self.control}", label=d.label + note, better="neither") for d in self.dimensions
        )

    @property
    def sha256(self) -> str:
        dimensions = [{k: v for k, v in msgspec.to_builtins(d).items() if k != "only"} for d in self.dimensions]
        content = (self.subject, self.shows, self.hears, self.system, self.headings, dimensions)
        return hashlib.sha256(msgspec.json.encode(content, order="sorted")).hexdigest()

    @property
    def identity(self) -> str:
        """Name, version and the beginning of the hash, for signatures."""
        return f"{self.name}.{self.version}.{self.sha256[:8]}"

    def heading(self, key: str) -> str:
        return self.headings.get(key) or key.replace("_", " ").capitalize()


def load(name: str) -> Rubric:
    """Read a rubric by its name or by the path of its TOML file. Raises UsageError that says what is wrong."""
    path = Path(name) if name.endswith(".toml") else registry.find_rubric(name)
    if not path.is_file():
        raise UsageError(f"rubric {path} does not exist")
    try:
        tree: dict[str, Any] = tomllib.loads(read_plain(path, _MOST_BYTES).decode("utf-8"))
        if "name" in tree:
            raise UsageError(f"rubric {path.name}: its file name is its name; remove the key name")
        rubric = msgspec.convert({**tree, "name": path.stem}, Rubric)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise UsageError(f"rubric {path.name}: {error}") from None
    _check(rubric, path.name)
    return rubric


def twin(key: str) -> str:
    """Return the key of the same question about the other reply of a pair, or "" for a question about both replies."""
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
        raise wrong("the file name becomes part of signatures: use only letters, digits, '.', '_' and '-'")
    if not rubric.dimensions:
        raise wrong("it has no [[dimension]]")
    keys = [d.key for d in rubric.dimensions]
    for d in rubric.dimensions:
        if not _KEY.fullmatch(d.key) or d.key.endswith("_reason"):
            raise wrong(f"the key {d.key!r} must have only small letters, digits and _, and not end in _reason")
        if keys.count(d.key) > 1:
            raise wrong(f"two dimensions have the key {d.key!r}")
        if (d.scale is None) == (not d.choices):
            raise wrong(f'dimension {d.key!r} needs either scale = [1, 5] or choices = ["yes", "no"]')
        if d.scale and not d.scale[0] < d.scale[1] <= d.scale[0] + 1000:
            raise wrong(f"dimension {d.key!r}: its scale must go from a smaller to a larger whole number")
        if d.choices and (set(d.values) != set(d.choices) or len(set(d.choices)) != len(d.choices)):
            raise wrong(f"dimension {d.key!r}: choices must differ, and values must give the number of each")
        if strange := d.only.keys() - set(Item.__struct_fields__):
            raise wrong(f"dimension {d.key!r}: only has unknown fields of items: {', '.join(sorted(strange))}")
        if strange := d.anchors.keys() - {str(answer) for answer in d.menu}:
            raise wrong(
                f"dimension {d.key!r} has anchors for answers that are not allowed: {', '.join(sorted(strange))}"
            )
    if rubric.subject == "pair" and not all(_fits_pair(d, rubric.dimensions) for d in rubric.dimensions):
        raise wrong(
            "in a pair, one is chosen or both are rated: a dimension needs the choices A and B, or a scale and a key "
            "that ends in _a or _b with a second dimension for the other one"
        )
    if rubric.against and rubric.subject != "pair":
        raise wrong('against says what the reply is compared with: it needs subject = "pair"')
    if rubric.subject == "group" and ("reply" not in rubric.shows or rubric.hears or rubric.wordless is not None):
        raise wrong("a group is judged by its words: shows must have reply, and hears and wordless must be missing")
    if rubric.control and rubric.subject != "group":
        raise wrong('control exchanges the replies of a group: it needs subject = "group"')
    if unknown := [task for task in rubric.tasks if task not in TASKS]:
        raise wrong(f"there is no task {unknown[0]!r}{suggest(unknown[0], TASKS)}; known: {', '.join(TASKS)}")
    both = {"reply_a", "reply_b"} <= set(rubric.shows) or {"a", "b"} <= set(rubric.hears)
    if rubric.subject == "pair" and not both:
        raise wrong("the judge needs both of a pair: shows reply_a and reply_b, or hears a and b")
    if not (rubric.shows or rubric.hears):
        raise wrong("the judge gets nothing to judge: name something in shows or hears")
