"""Write the datasheet and licence of a built set: its contents, its production, and its permitted uses."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from pathlib import Path

from msgspec import Struct, structs

from overtone.build.acceptance import GateReport
from overtone.build.licence import RESEARCH, Verdict
from overtone.build.manifest import Made, write
from overtone.build.questions import Question
from overtone.build.script import Collection, sets
from overtone.build.sound_plan import Options
from overtone.cues import CUES
from overtone.languages import DEFAULT
from overtone.schema import STYLES
from overtone.version import __version__

_TEXT = """# Datasheet: {name}

## Why it exists
{why}

## What it holds
{holds}
{voices}
{counts}## How it was made
Built by Overtone {version} with {options}. {chain}
`manifest.json` holds the voice, recipe, level, length and SHA-256 of each. {texts}

## What was checked
{gates}
{real}
## What it should be used for, and what not
For measuring models and finding where they fail. Not for judging people: a recipe for sadness is not sadness. A model
that does well here hears *these* cues; {instead}

## Licence
{licence}

{ingredients}
"""

_WHY = """
To measure whether a speech language model hears how something is said, by whom and where, reasons from it, and answers
to it: the same neutral words in several deliveries, in the design of EchoMind (with which this set is not affiliated).
""".strip()

_HOLDS = """
{scripts} scripts, {conflicts} conflict scripts (the voice against the words), {dialogues} two-turn dialogues;
{clips} clips ({minutes:.0f} minutes) and {replies} reference replies; {questions} questions. {languages}
""".strip()

_REAL = """
## Whether the cues are real
Validated (a classifier that has only heard real recordings recognises it, or listeners did): {validated}.
Not validated: {unvalidated}. Headline numbers should be over the validated ones; results on the others stand apart.
"""

_TAKES = """takes of people speaking the same scripts can be built in with
`--voice recordings:DIR`."""

_OURS = """The texts were written, revised and
reviewed by language models in separate sittings, in three rounds; no person has reviewed them yet."""

_CHAIN = "Every clip of a script, the neutral one too, went through the same chain;"


class About(Struct, frozen=True):
    """The parts of a datasheet that depend on the kind of set."""

    name: str
    why: str
    holds: str
    texts: str  # the authors of the texts
    chain: str  # how the sounds were made
    instead: str  # how to go beyond these cues; a sentence without its beginning
    counts: str = "\n"  # tables of clips and questions
    lines: tuple[str, ...] = ()  # the numbers of items, for the terminal


def about_scripts(part: Collection, left: Set[str], questions: Sequence[Question], clips: Sequence[Made]) -> About:
    """Describe a set of scripts for its datasheet. `left` has the ids of the scripts that are left out."""
    spoken = [m for m in clips if not m.reply]
    holds = _HOLDS.format(
        scripts=sum(s.id not in left for s in part.scripts),
        conflicts=sum(s.id not in left for s in part.conflicts),
        dialogues=sum(d.id not in left for d in part.dialogues),
        clips=len(spoken),
        minutes=sum(m.seconds for m in spoken) / 60,
        replies=len(clips) - len(spoken),
        questions=len(questions),
        languages="English." if part.languages == [DEFAULT] else f"Languages: {', '.join(part.languages)}.",
    )
    texts = _OURS if part.name in sets() else "The texts are those of whoever built it."
    return About(part.name, _WHY, holds, texts, _CHAIN, _TAKES, f"\n{counts_table(clips, questions)}\n\n")


def used_cues(status: dict[str, str], clips: Sequence[Made]) -> dict[str, str]:
    """Return the entries of `status` for cues that occur in the clips; {} if the clips are the user's recordings."""
    used = {cue for m in clips for cue in (m.cue, *m.also) if cue and not m.reply}
    return {} if _recorded(clips) else {slug: state for slug, state in status.items() if slug in used}


def write_datasheet(
    out: Path,
    about: About,
    checked: GateReport,
    clips: Sequence[Made],
    verdict: Verdict,
    status: dict[str, str],
    options: Options,
) -> None:
    """Write DATASHEET.md and LICENSE beside a set. `status` maps each cue to its validation status."""
    text = _TEXT.format(
        **structs.asdict(about),
        version=__version__,
        voices=_voices(clips, options),
        options=_settings(options),
        gates=_gates(checked),
        real=_real(status) if status else "\n",
        licence=_licence(verdict),
        ingredients=_ingredients(clips),
    )
    write(out / "DATASHEET.md", text.encode())
    write(out / "LICENSE", (_licence(verdict) + "\n").encode())


def _real(status: dict[str, str]) -> str:
    def cues(validated: bool) -> str:
        named = [cue for cue, state in sorted(status.items()) if (state == "validated") == validated]
        return textwrap.fill(", ".join(named) or "none", 120)

    return _REAL.format(validated=cues(True), unvalidated=cues(False))


def _voices(clips: Sequence[Made], options: Options) -> str:
    people = _recorded(clips) or any(voice.startswith("recordings") for voice in options.voices)
    kind = "Takes of people are among the voices" if people else "No person's data: the voices are synthetic"
    return textwrap.fill(f"{kind}: {', '.join(sorted({m.voice for m in clips}))}.", 120)


def _recorded(clips: Sequence[Made]) -> bool:
    return any(i.what == "takes" for m in clips for i in m.ingredients)


def counts_table(clips: Iterable[Made], questions: Iterable[Question]) -> str:
    """Return Markdown tables: clips by cue and style, then questions by kind and letter of the right answer."""
    by: Counter[tuple[str, str]] = Counter((m.cue or "(none)", m.style) for m in clips if not m.reply)
    styles = [s for s in (*STYLES, "changed", "steady", "plain") if any(key[1] == s for key in by)]
    lines = ["| cue | " + " | ".join(styles) + " |", "|---|" + "---:|" * len(styles)]
    order = [c.slug for c in CUES]
    for cue in sorted({key[0] for key in by}, key=lambda c: (order.index(c) if c in order else len(order), c)):
        lines.append(f"| {cue} | " + " | ".join(str(by[cue, s]) for s in styles) + " |")
    lines += ["", "| question | asked | right letters |", "|---|---:|---|"]
    kinds: dict[tuple[str, str], Counter[str]] = {}
    for q in questions:
        kinds.setdefault((q.part, q.category), Counter())[q.answer] += 1
    for (part, category), letters in kinds.items():
        name = f"{category} ({part})" if part and not category.startswith(part) else category
        shares = ", ".join(f"{letter} {n}" for letter, n in sorted(letters.items()))
        lines.append(f"| {name} | {letters.total()} | {shares} |")
    return "\n".join(lines)


def _settings(options: Options) -> str:
    sounds = "sounds from a folder where it has them" if options.sounds else "synthesised sounds"
    return (
        f"voices {', '.join(options.voices)}, strength {options.strength:g}, seed {options.seed}, "
        f"scenes {options.snr:g} dB below the voice, {sounds}" + (f", room {options.room}" if options.room else "")
    )


def _gates(checked: GateReport) -> str:
    if not checked.ran:
        return "Nothing: it was built without gates. Do not publish results on it."
    lines = ["| gate | checked | left out |", "|---|---:|---:|"]
    lines += [f"| {gate} | {total} | {failed} |" for gate, (total, failed) in checked.counts().items()]
    return "\n".join([*lines, "", "`gates.json` lists each with its reason, and the table of the leak test."])


def _licence(verdict: Verdict) -> str:
    if verdict.conflicts:
        reasons = "".join(f"\n- {reason}" for reason in verdict.conflicts)
        return f"This set may not be given away as a whole, because of what it was made from:{reasons}"
    if verdict.licence == RESEARCH:
        return f"This set is for {RESEARCH}, as its texts are. They may not be given away under another licence."
    return (
        f"This set is licensed {verdict.licence}: use it, share it and build on it, naming the Overtone authors"
        + (", not for commerce" if "NC" in verdict.licence else "")
        + (", under the same licence" if "SA" in verdict.licence else "")
        + "."
    )


def _ingredients(clips: Iterable[Made]) -> str:
    made: Counter[tuple[str, str, str]] = Counter((i.what, i.source, i.licence) for m in clips for i in m.ingredients)
    lines = ["| ingredient | licence | sounds |", "|---|---|---:|"]
    lines += [f"| {what} {source} | {licence} | {n} |" for (what, source, licence), n in sorted(made.items())]
    return "\n".join(lines)
