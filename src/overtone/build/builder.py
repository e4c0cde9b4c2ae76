"""Build scripts into a benchmark folder in EchoMind's layout, with gates and a manifest.

A clip's bytes depend on its script, its recipe, the seed and this room's code, never on the number of jobs or on
earlier builds. So a second build keeps existing clips, and a killed build resumes where it stopped.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from overtone.build import acceptance
from overtone.build.datasheet import write_datasheet
from overtone.build.licence import Verdict, derive
from overtone.build.manifest import open_folder
from overtone.build.pool import Tell
from overtone.build.questions import Question
from overtone.build.script import Collection, Script, read_collection
from overtone.build.set_texts import write_texts
from overtone.build.sound_plan import Group, Options, plan
from overtone.build.speak_set import Said, Source, Work, ready, speak, sweep
from overtone.build.voices import DEFAULT as DEFAULT_VOICES
from overtone.build.voices import cast, espeak
from overtone.errors import UsageError
from overtone.languages import DEFAULT
from overtone.paths import shown
from overtone.spec import suggest
from overtone.version import __version__


class Built(Said, frozen=True, kw_only=True):
    """The result of a build of scripts."""

    scripts: int
    questions: tuple[Question, ...]


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
    progress: Tell | None = None,
) -> Built:
    """Build a script set, or a user's file of scripts, into `out`. Existing unchanged sounds are kept. `only` selects
    cues, and `per_cue` the first scripts of each. `licence` applies to a user's own texts."""
    options = options or Options()
    tell: Tell = progress or (lambda *_: None)
    whole = read_collection(named, licence)
    collection = _chosen(whole, only, per_cue)
    if release and (only or per_cue or not gates):
        raise UsageError("a release is the whole set with all its gates: leave --only, --per-cue and --no-gates out")
    foreign = [language for language in collection.languages if language != DEFAULT]
    if gates and foreign:
        raise UsageError(
            f"the gates read and hear English, and there are texts in {', '.join(foreign)}: add --no-gates, choose "
            "voices that speak the language, and review the clips by ear"
        )
    options = _with_voices(options, collection.languages)
    ready(options)
    before = open_folder(out, whole.name)
    sweep(out)
    source = Source(whole.name, whole.licence, frozenset(one.id for one in whole.everything))
    work = Work(out, source, options, before)
    checked = acceptance.texts(collection, reviews, options.seed) if gates else acceptance.Sifted()
    groups, checked = speak(
        work, lambda takes: plan(collection, options, takes), checked, gates, jobs or os.cpu_count() or 1, tell
    )
    checked = _without_unspoken(checked, collection, groups)
    work.put_aside(groups, checked)
    questions = write_texts(out, whole, collection, checked, options.seed)
    if gates:
        checked = acceptance.questions(checked, whole, collection, questions, solvers, options.seed, tell)
    acceptance.write_report(out, checked)
    verdict = derive(work.ingredients())
    if release:
        _check_release(checked, verdict)
    known = work.statuses(ratings)
    clips = work.finish(groups, verdict, known, release)
    write_datasheet(out, collection, checked, questions, clips, verdict, known, options, __version__)
    said = work.said(clips, checked, verdict)
    return Built(**msgspec.structs.asdict(said), scripts=len(groups), questions=tuple(questions))


def _with_voices(options: Options, languages: Sequence[str]) -> Options:
    """Choose espeak-ng's voices of the texts' language if no voices were named. Raises UsageError if a synthesiser is
    known not to speak the language of a text."""
    if options.voices == DEFAULT_VOICES and len(languages) == 1 and languages[0] != DEFAULT:
        return msgspec.structs.replace(options, voices=(espeak.spec_for(languages[0]),))
    for spec, engine in cast(options.voices).engines.items():
        spoken = getattr(engine, "languages", None)  # recordings and other people's engines do not say
        if spoken is not None and (unspoken := sorted(set(languages) - spoken)):
            raise UsageError(
                f"--voice {spec} speaks {', '.join(sorted(spoken))}, and texts are in {', '.join(unspoken)}: build "
                "each language by itself, with voices that speak it, e.g. --voice 'espeak?male=de+m3&female=de+f2'"
            )
    return options


def _without_unspoken(checked: acceptance.Sifted, part: Collection, groups: Sequence[Group]) -> acceptance.Sifted:
    """Leave out clips that were not spoken, so that no text names them. With one voice per sex there is no second
    speaker for the control, and a folder of recordings may lack it."""
    spoken = {(group.id, job.style) for group in groups for job in group.jobs}
    there = {group.id for group in groups}
    scripts = [s for s in part.scripts if s.id in there]
    silent = {(s.id, style) for s in scripts for style in (*s.styles, "control")} - spoken
    return msgspec.structs.replace(checked, clips=checked.clips | silent)


def _chosen(collection: Collection, only: Sequence[str], per_cue: int | None) -> Collection:
    """Select the requested part. Conflicts and dialogues belong to the whole set, or to a share of each cue."""
    cues = list(dict.fromkeys(s.cue for s in (*collection.scripts, *collection.conflicts)))
    for slug in only:
        if slug not in cues:
            raise UsageError(f"no script for the cue {slug!r}{suggest(slug, cues)}; there are: {', '.join(cues)}")

    def part(scripts: tuple[Script, ...]) -> tuple[Script, ...]:
        wanted = [s for s in scripts if not only or s.cue in only]
        seen: dict[str, int] = {}
        out = []
        for script in wanted:
            seen[script.cue] = seen.get(script.cue, 0) + 1
            if per_cue is None or seen[script.cue] <= per_cue:
                out.append(script)
        return tuple(out)

    dialogues = () if only else collection.dialogues[: None if per_cue is None else 3 * per_cue]
    return msgspec.structs.replace(
        collection, scripts=part(collection.scripts), conflicts=part(collection.conflicts), dialogues=dialogues
    )


def _check_release(checked: acceptance.Sifted, verdict: Verdict) -> None:
    reasons = [*verdict.conflicts, *checked.blocks]
    if reasons:
        told = "\n".join(f"  {shown(reason)}" for reason in reasons[:20])
        raise UsageError(f"no release:\n{told}\nthe set stays built; see gates.json beside it")
