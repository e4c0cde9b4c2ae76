"""The reference of the Python interface, from the signatures and docstrings of `overtone.__all__`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import msgspec

import overtone
from scripts.docs_site.markdown import block, code, plain, table

FOLDER = "reference/python"
TITLES = {  # page → title, and what it is about
    "runs": (
        "Runs and plug-ins",
        "Functions that ask a model, score and read stored runs, and register Python objects.",
    ),
    "texts": ("Metrics of texts", "Functions that score pairs of texts without a run."),
    "records": ("Records", "What is asked, what comes back, what it scored. Records are immutable msgspec Structs."),
    "errors": ("Errors and the version", "The base class of all errors that a call can raise, and the version."),
}
WIDTH = 84  # of a code block on the site
# A field of a record: name, type, default and the comment behind it.
_FIELD = re.compile(r"^    (\w+): ([^=#]+?)(?: = (.+?))?(?:\s+# (.*))?$", re.M)


def pages() -> dict[str, str]:
    """Return the pages by path."""
    names: dict[str, list[str]] = {page: [] for page in TITLES}
    for name in sorted(overtone.__all__, key=str.lower):
        names[_page_of(name)].append(name)
    made = {f"{FOLDER}/{page}.md": _page(page, found) for page, found in names.items() if found}
    rows = [
        [f"[`overtone.{name}`]({page}.md#{_anchor(name)})", plain(_first_line(getattr(overtone, name)))]
        for page, found in names.items()
        for name in found
    ]
    index = (
        "# Python interface\n\n"
        "These pages are generated from the signatures and docstrings of `overtone.__all__`. [Python and\n"
        "notebooks](../../how-to/python.md) shows how the parts work together.\n\n"
        + table(["name", "what it is"], rows)
    )
    return {f"{FOLDER}/index.md": index} | made


def _page_of(name: str) -> str:
    target = getattr(overtone, name)
    home = getattr(target, "__module__", "")
    if home == "overtone.text_scores":
        return "texts"
    if inspect.isclass(target) and issubclass(target, msgspec.Struct):
        return "records"
    if name == "__version__" or (inspect.isclass(target) and issubclass(target, Exception)):
        return "errors"
    return "runs"


def _anchor(name: str) -> str:
    return f"overtone{name}".lower()


def _first_line(target: Any) -> str:
    if isinstance(target, str):
        return "The version, as a string."
    return (inspect.getdoc(target) or "").partition("\n\n")[0]


def _page(page: str, names: list[str]) -> str:
    title, about = TITLES[page]
    return f"# {title}\n\n{about}\n\n" + "\n".join(part for name in names for part in _entry(name))


def _entry(name: str) -> Iterator[str]:
    target = getattr(overtone, name)
    yield f"## `overtone.{name}`\n"
    if isinstance(target, str):
        yield "The version of the installed package, as a string.\n"
    elif inspect.isclass(target):
        yield from _class(name, target)
    else:
        yield from _function(name, target)


def _function(name: str, target: Any) -> Iterator[str]:
    yield block(_signature(f"overtone.{name}", target), "python")
    yield _doc(target)


def _class(name: str, target: type) -> Iterator[str]:
    yield _doc(target)
    if issubclass(target, msgspec.Struct):
        yield table(["field", "type", "default", "meaning"], _fields(target))
    for key, member in vars(target).items():
        if key.startswith("_"):
            continue
        if isinstance(member, property):
            yield f"### `{name}.{key}`\n"
            yield _doc(member)
        elif inspect.isfunction(member) or isinstance(member, classmethod | staticmethod):
            yield f"### `{name}.{key}()`\n"
            yield block(_signature(key, getattr(target, key)), "python")
            yield _doc(member)


def _fields(target: type[msgspec.Struct]) -> Iterator[list[str]]:
    for name, kind, default, meaning in _FIELD.findall(inspect.getsource(target)):
        if name in target.__struct_fields__:
            yield [code(name), code(kind), code(default) if default else "required", plain(meaning)]


def _signature(name: str, target: Any) -> str:
    """Return a call's signature: on one line if it fits, otherwise one parameter per line."""
    signature = inspect.signature(target)
    shown: list[str] = []
    for parameter in signature.parameters.values():
        if parameter.name in ("self", "cls"):
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not any(text.startswith("*") for text in shown):
            shown.append("*")
        shown.append(_parameter(parameter))
    returns = "" if signature.return_annotation is signature.empty else f" -> {_type(signature.return_annotation)}"
    whole = f"{name}({', '.join(shown)}){returns}"
    if len(whole) <= WIDTH:
        return whole
    return "\n".join([f"{name}(", *(f"    {text}," for text in shown), f"){returns}"])


def _parameter(parameter: inspect.Parameter) -> str:
    stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    text = stars + parameter.name
    if parameter.annotation is not parameter.empty:
        text += f": {_type(parameter.annotation)}"
    return text if parameter.default is parameter.empty else f"{text} = {parameter.default!r}"


def _type(annotation: Any) -> str:
    """Return an annotation as it is written, without the quotes of names that are imported for types only."""
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return text.replace("'", "").replace('"', "") if "Literal" not in text else text


def _doc(target: Any) -> str:
    """Return a docstring as Markdown. Indented lines are examples and become code."""
    parts = (inspect.getdoc(target) or "").split("\n\n")
    return (
        "\n\n".join(block(inspect.cleandoc(part)) if part.startswith("    ") else plain(part) for part in parts) + "\n"
    )
