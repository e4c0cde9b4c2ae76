"""Build scripts into a benchmark folder in EchoMind's layout, with gates and a manifest.

A clip's bytes depend on its script, its recipe, the seed and this package's code, never on the number of jobs or on
earlier builds. So a second build keeps existing clips, and a killed build resumes where it stopped.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from overtone.build import acceptance
from overtone.build.acceptance import GateReport
from overtone.build.dataset_card import write_card
from overtone.build.datasheet import about_scripts, write_datasheet
from overtone.build.licence import Verdict, derive
from overtone.build.script import Collection, Script, first_of_each, read_collection
from overtone.build.set_texts import write_texts
from overtone.build.sound_plan import Group, Options, home, plan
from overtone.build.speak_set import Built, Source, Work, speak
from overtone.build.voices import DEFAULT as DEFAULT_VOICES
from overtone.build.voices import cast, espeak
from overtone.errors import UsageError
from overtone.languages import DEFAULT
from overtone.paths import shown
from overtone.pool import Progress, no_progress
from overtone.spec import suggest


def build(
    named: str,
    out: Path,
    *,
    options: Options | None = None,
    only: Sequence[str] = (),
    per_cue: int | None = None,
    jobs: int | None = None,
    gates: bool = True,
    release: bool = False,
    licence: str = "unknown",
    solvers: Sequence[tuple[str, acceptance.Solver]] = (),
    ratings: Path | None = None,
    reviews: Path | None = None,
    progress: Progress = no_progress,
) -> Built:
    """Build a script set, or a user's file of scripts, into `out`. Existing unchanged sounds are kept. `only` selects
    cues; `per_cue` is the maximum number of scripts per cue. `licence` applies to a user's own texts."""
    options = options or Options()
    whole = read_collection(named, licence)
    collection = _chosen(whole, only, per_cue)
    if release and (only or per_cue or not gates):
        raise UsageError("a release is the whole set with all its gates: leave --only, --per-cue and --no-gates out")
    foreign = [language for language in collection.languages if language != DEFAULT]
    if gates and foreign:
        raise UsageError(
            f"the gates support only English, and there are texts in {', '.join(foreign)}: add --no-gates, choose "
            "voices that speak the language, and review the clips by ear"
        )
    options = _with_voices(options, collection.languages)
    collection = _recorded(collection, options)
    work = Work(out, Source(whole.name, whole.licence, frozenset(one.id for one in whole.everything)), options)
    checked = acceptance.texts(collection, reviews, options.seed) if gates else GateReport()
    groups, checked = speak(work, lambda takes: plan(collection, options, takes), checked, gates, jobs, progress)
    checked = _without_unspoken(checked, collection, groups)
    work.put_aside(groups, checked)
    questions = write_texts(out, whole, collection, checked, options.seed, home(options))
    if gates:
        checked = acceptance.questions(checked, whole, collection, questions, solvers, options.seed, progress)
    acceptance.write_report(out, checked)
    verdict = derive(work.ingredients())
    if release:
        _check_release(checked, verdict)
    status = work.statuses(ratings)
    clips = work.finish(groups, verdict, status, release)
    about = about_scripts(collection, checked.scripts, questions, clips)
    write_datasheet(out, about, checked, clips, verdict, status, options)
    write_card(out, whole.name, clips, groups, verdict, status, collection.languages)
    return work.result(clips, checked, verdict, scripts=len(groups), questions=tuple(questions))


def _with_voices(options: Options, languages: Sequence[str]) -> Options:
    """If no voices were named, choose espeak-ng's voices for the language of the texts. Raises UsageError if a
    synthesiser is known not to speak the language of a text."""
    if options.voices == DEFAULT_VOICES and len(languages) == 1 and languages[0] != DEFAULT:
        return msgspec.structs.replace(options, voices=(espeak.spec_for(languages[0]),))
    for spec, engine in cast(options.voices).engines.items():
        spoken = getattr(engine, "languages", None)  # recordings and plug-ins need not have it
        if spoken is not None and (unspoken := sorted(set(languages) - spoken)):
            raise UsageError(
                f"--voice {spec} speaks {', '.join(sorted(spoken))}, and texts are in {', '.join(unspoken)}: build "
                "each language by itself, with voices that speak it, e.g. --voice 'espeak?male=de+m3&female=de+f2'"
            )
    return options


def _recorded(collection: Collection, options: Options) -> Collection:
    """Leave out the scripts that were not recorded completely, if all voices are recordings that say which ones were.

    Raises UsageError if that leaves none.
    """
    known = [getattr(engine, "recorded", None) for engine in cast(options.voices).engines.values()]
    if any(recorded is None for recorded in known):
        return collection
    ids = frozenset().union(*(recorded() for recorded in known if recorded is not None))
    scripts, conflicts = ([s for s in part if s.id in ids] for part in (collection.scripts, collection.conflicts))
    if not scripts:
        raise UsageError(
            f"no script of {collection.name} has been recorded in all its styles by one speaker whose consent allows "
            "this; 'overtone studio status STUDY.toml' shows what is missing"
        )
    dialogues = tuple(d for d in collection.dialogues if d.id in ids)
    return msgspec.structs.replace(
        collection, scripts=tuple(scripts), conflicts=tuple(conflicts), dialogues=dialogues
    )  # fmt: skip


def _without_unspoken(checked: GateReport, part: Collection, groups: Sequence[Group]) -> GateReport:
    """Leave out clips that were not spoken, so that no text file refers to them. A control clip is missing if there is
    only one voice per sex, and may be missing in a folder of recordings."""
    spoken = {(group.id, job.style) for group in groups for job in group.jobs}
    planned = {group.id for group in groups}
    wanted = {(s.id, style) for s in part.scripts if s.id in planned for style in (*s.styles, "control")}
    return msgspec.structs.replace(checked, clips=checked.clips | wanted - spoken)


def _chosen(collection: Collection, only: Sequence[str], per_cue: int | None) -> Collection:
    """Select scripts and conflicts. Dialogues are included only if `only` is empty: at most 3 × `per_cue` of them."""
    cues = list(dict.fromkeys(s.cue for s in (*collection.scripts, *collection.conflicts)))
    for slug in only:
        if slug not in cues:
            raise UsageError(f"no script for the cue {slug!r}{suggest(slug, cues)}; known: {', '.join(cues)}")

    def part(scripts: tuple[Script, ...]) -> tuple[Script, ...]:
        return tuple(first_of_each([s for s in scripts if not only or s.cue in only], lambda s: s.cue, per_cue))

    dialogues = () if only else collection.dialogues[: None if per_cue is None else 3 * per_cue]
    return msgspec.structs.replace(
        collection, scripts=part(collection.scripts), conflicts=part(collection.conflicts), dialogues=dialogues
    )


def _check_release(checked: GateReport, verdict: Verdict) -> None:
    reasons = [*verdict.conflicts, *checked.blocks]
    if reasons:
        listed = "\n".join(f"  {shown(reason)}" for reason in reasons[:20])
        raise UsageError(f"the set cannot be released:\n{listed}\nthe set stays built; see its gates.json")
