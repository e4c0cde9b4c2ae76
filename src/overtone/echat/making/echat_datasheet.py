"""The text of DATASHEET.md for a built EChat set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from overtone.version import __version__

_TEXT = """# Datasheet: echat

## Purpose
This set trains spoken dialogue models whose answers depend on how something is said, by whom and where. It has the
format of EChat-200K (with which it is not affiliated): a query, its labels, a thought, a reply with speech tokens.

## Contents
{parts}

Labels by part:

{labels}

## How it was made
Overtone {version} built it with seed {seed}; speech tokens: {tokens}. Questions, replies and reasons are composed from
frames and strategies. Language models wrote these texts, and no person has reviewed them yet. Voices and sounds are
synthetic. Every query was processed in the same way, with small random changes of pitch, vocal tract, pace and level,
and occasionally a room or a little noise. `manifest.json` has the ranges of strength.

Train, dev and test share no speaker, query or sound. The part `recipe` has strengths and kinds of cues that are not in
train. The part `engine` has a voice engine that is not in train. In the test parts every query is spoken in two
deliveries, by one speaker unless the label is the speaker. The parts `words` and `aloud` have no exchanges. `words` has
example sentences from WordNet to transcribe. `aloud` has the sentences of train and `words` as text and speech tokens.

## Checks
{gates}

## Intended use
Use it for training and experiments. Do not use it to judge people: a recipe for sadness is not sadness. A single-label
record gives one label of its query; `extra.heard` has all others.

## Licence
{licence}
"""


def datasheet_text(
    counts: Mapping[str, Mapping[str, Any]], gates: Mapping[str, Any], licence: str, seed: int, tokens: str
) -> str:
    """Return the text of DATASHEET.md."""
    rows = ["| part | records | two turns | queries | replies | speakers |", "|---|---:|---:|---:|---:|---:|"]
    labels = []
    for part, c in counts.items():
        rows.append(
            f"| {part} | {c['records']} | {c['two_turns']} | {c['queries']} | {c['replies']} | {len(c['speakers'])} |"
        )
        for dimension, count in c["labels"].items():
            labels.append(f"- {part}, {dimension}: {', '.join(f'{name} {n}' for name, n in count.items())}")
    return _TEXT.format(
        parts="\n".join(rows),
        labels="\n".join(labels) or "none",
        version=__version__,
        seed=seed,
        tokens=tokens or "none",
        gates=_gates(gates),
        licence=licence,
    )


def _gates(gates: Mapping[str, Any]) -> str:
    leak = gates["evaluation sets"]
    lines = [
        f"Texts that overlap with the evaluation sets: {leak['dropped']} dropped"
        + ("." if leak["by meaning"] else "; compared by words only, not by meaning.")
    ]
    if not gates["ran"]:
        return "\n".join([*lines, "Audio: not checked; the set was built without gates."])
    lines += ["", "| gate | queries checked | failed |", "|---|---:|---:|"]
    lines += [f"| {name} | {row['checked']} | {row['failed']} |" for name, row in gates["gates"].items()]
    return "\n".join([*lines, "", f"{gates['left_out']} queries were left out; `gates.json` has the reasons."])
