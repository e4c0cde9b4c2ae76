"""The datasheet of a built EChat set, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from overtone.version import __version__

_TEXT = """# Datasheet: echat

## Why it exists
To train spoken dialogue models that answer to how something is said, by whom and where, in the shape of EChat-200K
(with which this set is not affiliated): a query, its labels, a thought, a reply with speech tokens.

## What it holds
{parts}

Labels by part:

{labels}

## How it was made
Built by Overtone {version} with seed {seed}; speech tokens: {tokens}. Questions, replies and reasons are composed from
hand-written frames and strategies; texts were written by language models, and no person has reviewed them yet. Voices
are synthetic, and so are the sounds. Every query went through the builder's one chain, with a small change of pitch,
throat, pace and level for each, in a room or a little noise now and then. `manifest.json` has the bands of strength.

Train, dev and test share nothing: no speaker, no query, no sound. The part `recipe` has strengths and kinds of cues
that train has not; the part `engine` a voice engine that train has not. In the test parts every query is said in two
ways, by one speaker but where the label is the speaker. The parts `words` and `aloud` have no exchanges:
sentences to be written down, out of WordNet's examples; and what train and they say, sentence by sentence, as text and
speech tokens, for a voice to learn from.

## What was checked
{gates}

## What it should be used for, and what not
For training and for experiments. Not for judging people: a recipe for sadness is not sadness. A single-label record
says one thing of its query; what else is true of it stands in `extra.heard`.

## Licence
{licence}
"""


def sheet(
    counts: Mapping[str, Mapping[str, Any]], gates: Mapping[str, Any], licence: str, seed: int, tokens: str
) -> str:
    """The text of DATASHEET.md."""
    rows = ["| part | records | two turns | queries | replies | speakers |", "|---|---:|---:|---:|---:|---:|"]
    told = []
    for part, c in counts.items():
        rows.append(
            f"| {part} | {c['records']} | {c['two_turns']} | {c['queries']} | {c['replies']} | {len(c['speakers'])} |"
        )
        for dimension, found in c["labels"].items():
            told.append(f"- {part}, {dimension}: {', '.join(f'{name} {n}' for name, n in found.items())}")
    return _TEXT.format(
        parts="\n".join(rows),
        labels="\n".join(told) or "none",
        version=__version__,
        seed=seed,
        tokens=tokens or "none",
        gates=_gates(gates),
        licence=licence,
    )


def _gates(gates: Mapping[str, Any]) -> str:
    leak = gates["evaluation sets"]
    lines = [
        f"Texts against the evaluation sets: {leak['dropped']} dropped"
        + ("." if leak["by meaning"] else "; compared by words only, not by meaning.")
    ]
    if not gates["ran"]:
        return "\n".join([*lines, "Sounds: nothing; it was built without gates."])
    lines += ["", "| gate | queries checked | failed |", "|---|---:|---:|"]
    lines += [f"| {name} | {row['checked']} | {row['failed']} |" for name, row in gates["gates"].items()]
    return "\n".join([*lines, "", f"{gates['left_out']} queries were left out; `gates.json` says why."])
