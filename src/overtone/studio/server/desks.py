"""Rules of the two desks: when a screen of record or review is finished, and which takes are deleted at the end."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from overtone.studio.designs.record import ScriptUnit
from overtone.studio.designs.review import NOTE, REVISED, VERDICT
from overtone.studio.fields import Value
from overtone.studio.server.open_study import Studio
from overtone.studio.store.store_records import Slot, Take


def script(studio: Studio, slot: Slot) -> ScriptUnit:
    """Return the script of a place in a recording session, as it was at the first start."""
    return msgspec.json.decode(studio.store.units()[slot.unit].content, type=ScriptUnit)


def kept(studio: Studio, slot: Slot) -> dict[str, Take]:
    """Return the takes of a place that the speaker keeps, by the delivery."""
    return {take.part: take for take in studio.store.takes.of_slot(slot.id) if take.kept}


def problem(studio: Studio, slot: Slot, values: Mapping[str, Value]) -> str:
    """Return a sentence about what a screen of a desk still lacks, or ""."""
    layout = studio.contents.design.layout
    if layout == "record":
        have = kept(studio, slot)
        missing = [part.label for part in script(studio, slot).parts if part.key not in have]
        return f"please record and keep: {', '.join(missing)}" if missing else ""
    if layout == "review":
        note = str(values.get(NOTE, "")).strip()
        rewritten = any(key.startswith(REVISED) and str(text).strip() for key, text in values.items())
        if values.get(VERDICT) == "reject" and not note:
            return "please say why it should be rejected"
        if values.get(VERDICT) == "revise" and not (note or rewritten):
            return "please say what should change, or write your version"
    return ""


def finish(studio: Studio, label: str) -> None:
    """Delete the takes that a speaker replaced, when the session has ended."""
    if studio.contents.design.layout != "record" or studio.store.sessions.step(label) != "done":
        return
    for take in studio.store.takes.all(kept=None):
        if take.person == label and not take.kept:
            studio.store.takes.delete(label, take.id)
