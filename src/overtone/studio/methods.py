"""The paragraph on methods for a paper, written from the study file and its answers."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence

from overtone.judges import rubric as rubrics
from overtone.studio import designs
from overtone.studio.designs import Unit
from overtone.studio.labels.given import Given, sessions
from overtone.studio.study import Study
from overtone.studio.study_results import QuestionRow, StudyResults, study_results
from overtone.text import count, number
from overtone.version import __version__

RULES = {
    "trap": "missed a trapping question",
    "gold": "missed a gold question",
    "skipped": "skipped every trapping or every gold question",
    "played": "did not play every sound to the end",
    "variance": "rated with almost no variance",
    "fast": "answered faster than the sounds last",
    "sessions": "came after the person’s sixtieth session",
    "design": "failed the design’s own criterion",
}
SOURCES = {
    "invite": "invited by link", "public": "by a public link", "prolific": "from Prolific", "mturk": "from MTurk",
    "label-studio": "imported from Label Studio",
}  # fmt: skip


def methods(
    study: Study, given: Sequence[Given], *, units: Sequence[Unit] | None = None, found: StudyResults | None = None
) -> str:
    """Return the paragraph in plain English. Numbers that the data do not have are left out.

    `units` are all units of the study; None: those with answers.
    """
    every = [*({one.unit.id: one.unit for one in given}.values() if units is None else units)]
    result = found or study_results(study, given, judges=False)
    sentences = [
        *_design(study, every), *_people(given), *_session(study), *_exclusions(given, result), *_sound(study, given),
        *_assignment(study, every, given), *_agreement(result), *_analysis(study, result),
    ]  # fmt: skip
    return " ".join(sentences) + "\n"


def _design(study: Study, units: Sequence[Unit]) -> list[str]:
    design = designs.find(study.design)
    systems = ", ".join(source.name for source in study.sources)
    groups = {unit.group for unit in units}
    asked = [rubrics.load(name) for name in study.rubrics]
    by = f" with the rubric {' and '.join(f'{one.name} (version {one.version})' for one in asked)}" if asked else ""
    keys = [field.label for field in design.fields(asked, study)]
    named = f" ({', '.join(keys)})" if 1 < len(keys) <= 8 else ""
    what = {
        "acr": "Each reply was rated on its own (absolute category rating)",
        "ab": "Two systems’ replies to the same clip were compared; the answers were A, B, both good, both bad and "
        "cannot tell",
        "cmos": "Two systems’ replies to the same clip were compared on a scale from −3 to 3 (CMOS)",
        "mushra": "All systems were rated from 0 to 100 beside an open reference, with a hidden reference"
        f"{' and a 3.5 kHz anchor' if study.mushra.anchor else ''} (MUSHRA)",
        "label": "Raters marked the cues that they heard",
        "transcribe": "Raters typed what they heard",
    }.get(study.design, f"The design was {study.design}")
    shown = f"Raters saw {', '.join(study.shows)}" if study.shows else "Raters saw no text"
    clip = " and heard what the user said" if study.play_clip and study.design in ("acr", "ab", "cmos") else ""
    return [
        f"{what}{by}{named}.",
        f"The study has {count(len(units), 'unit')} of {count(len(groups), 'script')} from {systems}.",
        f"{shown}{clip}.",
    ]


def _people(given: Sequence[Given]) -> list[str]:
    source = {one.rater: one.source for one in given}
    if not source:
        return ["Nobody has answered yet."]
    per = Counter(one.rater for one in given if one.kind == "real")
    by = Counter(source.values())
    came = ", ".join(f"{n} {SOURCES.get(name, name)}" for name, n in by.most_common())
    days = sorted({one.date for one in given if one.date})
    when = f" between {days[0]} and {days[-1]}" if len(days) > 1 else f" on {days[0]}" if days else ""
    seconds = [one.ms / 1000 for one in given if one.ms]
    time = f" A screen took {statistics.median(seconds):.0f} s (median)." if seconds else ""
    answers = sum(per.values())
    return [
        f"{count(len(source), 'person', 'people')} took part{when} ({came}) "
        f"and gave {count(answers, 'answer')} ({statistics.median(per.values()):g} per person, median).{time}"
    ]


def _session(study: Study) -> list[str]:
    checks = study.checks
    parts = [f"{count(study.session, 'rated screen')}"]
    extra = (
        (checks.training, "training screen"),
        (checks.traps, "trapping question"),
        (checks.gold, "gold question"),
        (checks.repeats, "repeated screen"),
    )
    for n, what in extra:
        if n:
            parts.append(count(n, what))
    listed = ", ".join(parts[:-1]) + f" and {parts[-1]}" if len(parts) > 1 else parts[0]
    gold = " The gold question has one reply played backwards." if checks.gold else ""
    return [f"A session had {listed}.{gold}"]


def _exclusions(given: Sequence[Given], found: StudyResults) -> list[str]:
    failed = {(one.rater, one.session): one.failed for one in given}
    usable = sessions(given)
    left = [key for key, good in usable.items() if not good]
    if not usable:
        return []
    if not left:
        return ["The one session was usable." if len(usable) == 1 else f"All {len(usable):,} sessions were usable."]
    why = Counter(rule for key in left for rule in failed[key] if rule in RULES)  # one can be unfinished and usable
    listed = "; ".join(f"{n} {RULES[rule]}" for rule, n in why.most_common())
    reasons = f" ({listed}; a session can fail several rules)" if listed else ""
    verb = "was" if len(left) == 1 else "were"
    return [
        f"{len(left)} of {count(len(usable), 'session')} {verb} left out of the results by rules fixed in advance"
        f"{reasons}; nothing was deleted, and results with these sessions are reported too."
    ]


def _sound(study: Study, given: Sequence[Given]) -> list[str]:
    per = {
        "system": "One gain was applied to all replies of a system, so that level differences within it remain",
        "set": "One gain was applied to all sounds of the study, so that level differences remain",
        "clip": "Every clip was brought to the same level",
    }[study.loudness.per]
    lines = [
        f"{per}; sounds were lowered if 0.4 s of them exceeded {number(study.loudness.cap_db, 0)} dB of full scale."
    ]
    tested = {one.rater: one.headphones for one in given if one.headphones is not None}
    if study.checks.headphones and tested:
        passed = sum(tested.values())
        use = "a requirement" if study.checks.require_headphones else "recorded as a covariate, not a requirement"
        lines.append(f"{passed} of {count(len(tested), 'person', 'people')} passed a headphone test, which was {use}.")
    elif not study.checks.headphones:
        lines.append("Headphones were not tested.")
    return lines


def _assignment(study: Study, units: Sequence[Unit], given: Sequence[Given]) -> list[str]:
    layout = designs.find(study.design).layout
    systems = {unit.system for unit in units}
    orders = []
    if layout == "pair":
        orders.append("The order of the two replies was balanced.")
    elif layout == "mushra":
        orders.append("The order of the sounds on a screen was random.")
    elif len(systems) > 1 and study.of == "replies":
        orders.append("The order of systems within a person followed a Williams square.")
    if study.adaptive:
        orders.append("Pairs of systems whose order was least certain were asked about more often.")
    if study.one_question_per_person:
        orders.append("Each person answered only one of the questions.")
    once = "A person met a script at most once" + (", except in repeated screens." if study.checks.repeats else ".")
    return [" ".join([once, *orders]), *_answers_per_unit(units, given)]


def _answers_per_unit(units: Sequence[Unit], given: Sequence[Given]) -> list[str]:
    """Return how many people rated the same units, and the mean number of usable answers over all units."""
    real = [one for one in given if one.kind == "real"]
    if not real or not units:
        return []
    people = {one.rater for one in real}
    raters = Counter(unit for unit, _ in {(one.unit.id, one.rater) for one in real})
    lines = []
    if len(people) > 1:
        several, shared = (sum(n >= least for n in raters.values()) for least in (2, len(people)))
        verb = "was" if several == 1 else "were"
        by = "both people" if len(people) == 2 else f"two people or more, and {shared:,} by all {len(people):,}"
        lines.append(f"{several:,} of {count(len(units), 'unit')} {verb} rated by {by}.")
    usable = sum(one.usable for one in real)
    share = f"{usable / len(units):.1f} per unit on average"
    return [*lines, f"Usable sessions gave {count(usable, 'answer')} to {count(len(units), 'unit')} ({share})."]


def _agreement(found: StudyResults) -> list[str]:
    lines = []
    for row in found.questions:
        if row.alpha.value is not None and row.raters > 1 and not row.key.startswith("heard_"):
            lines.append(_one(row))
    return lines


def _one(row: QuestionRow) -> str:
    ends = f", 95 % interval {number(row.alpha.low)} to {number(row.alpha.high)}" if row.alpha.low is not None else ""
    kappa = f"; one person against the others: κ {number(row.ceiling.kappa)}" if row.ceiling.kappa is not None else ""
    return (
        f"Agreement on {row.label}: Krippendorff’s α {number(row.alpha.value)} ({row.level}{ends}, "
        f"{count(row.units, 'unit')} by {row.raters} raters){kappa}."
    )


def _analysis(study: Study, found: StudyResults) -> list[str]:
    if not found.questions:
        return []
    return [
        "Means and differences are generalised least squares with crossed effects of raters and scripts; their 95 % "
        "intervals are clustered by rater and by script. Intervals of agreement are bootstraps over scripts. "
        f"The study was run with Overtone {__version__} (study {study.id})."
    ]
