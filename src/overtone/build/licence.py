"""Derive the licence of a built set from its ingredients, or the reasons why they cannot be combined."""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct

FREE = ("CC0-1.0", "CC-PDDC", "MIT", "BSD-2-Clause", "BSD-3-Clause", "Apache-2.0", "WTFPL", "Unlicense", "WordNet-3.0")
UNKNOWN = "unknown"
RESEARCH = "non-commercial research only"  # allows use, but no licence of its own for what is made from it

UNPUBLISHED = "not for publication"  # a speaker agreed to research only


class Ingredient(Struct, frozen=True, order=True):
    """Something a set was made from: texts, a voice, recipes, a recording."""

    what: str
    source: str
    licence: str


class Verdict(Struct, frozen=True):
    """The licence of the whole set. If there are conflicts, each names the ingredients that cannot be combined."""

    licence: str
    conflicts: tuple[str, ...] = ()


def derive(ingredients: Iterable[Ingredient]) -> Verdict:
    """Return the licence under which a set made from these ingredients may be published."""
    distinct = sorted(set(ingredients))
    conflicts = [f"{_name(p)}: its licence is not known; state it" for p in distinct if not _traits(p.licence)]
    kinds = {p: traits for p in distinct if (traits := _traits(p.licence))}
    conflicts += [f"{_name(p)} allows no changed version" for p, t in kinds.items() if "nd" in t]
    conflicts += [
        f"{_name(p)}: a speaker has not agreed to publication; leave such speakers out with ?consent=publication"
        for p, t in kinds.items()
        if "closed" in t
    ]
    commercial = [p for p, t in kinds.items() if t & {"gpl", "sa"} and "nc" not in t]
    restricted = [p for p, t in kinds.items() if "nc" in t]
    if commercial and restricted:
        conflicts.append(f"{_name(commercial[0])} must stay free for commerce, {_name(restricted[0])} must not be")
    databases = [p for p, t in kinds.items() if "odbl" in t]
    others = [p for p, t in kinds.items() if t & {"gpl", "sa", "nc"}]
    if databases and others:
        conflicts.append(f"{_name(databases[0])} asks for its own licence, {_name(others[0])} for another")
    old = [p for p, t in kinds.items() if "sa" in t and "gpl" not in t and not p.licence.endswith("4.0")]
    copyleft = [p for p, t in kinds.items() if "gpl" in t]
    if old and copyleft:
        conflicts.append(f"{_name(old[0])} cannot join {_name(copyleft[0])}")
    if conflicts:
        return Verdict("none", tuple(conflicts))
    if any(p.licence == RESEARCH for p in kinds):
        return Verdict(RESEARCH)
    if copyleft:
        return Verdict("GPL-3.0-or-later")
    if databases:
        return Verdict("ODbL-1.0")
    share_alike = any("sa" in t for t in kinds.values())
    return Verdict("CC-BY" + "-NC" * bool(restricted) + "-SA" * share_alike + "-4.0")


def _traits(licence: str) -> frozenset[str]:
    """Return the conditions of a licence, or an empty set if it is unknown. `by` only requires attribution."""
    if licence in FREE:
        return frozenset({"free"})
    if licence == RESEARCH:
        return frozenset({"nc"})
    if licence == UNPUBLISHED:
        return frozenset({"closed"})
    if re.fullmatch(r"GPL-[23]\.0(-only|-or-later|\+)?", licence):
        return frozenset({"gpl"})
    if licence == "ODbL-1.0":
        return frozenset({"odbl"})
    creative = re.fullmatch(r"CC-BY((?:-(?:NC|SA|ND))*)-[1-4]\.\d", licence)
    return frozenset({"by", *filter(None, creative[1].lower().split("-"))}) if creative else frozenset()


def _name(ingredient: Ingredient) -> str:
    return f"{ingredient.what} {ingredient.source} ({ingredient.licence})"
