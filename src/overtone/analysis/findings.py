"""All findings of some runs, by name: what is asked, of which runs together, what was found, and the cases under it."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from overtone.analysis import counterfactual, funnel, leaderboard, levels, prompts, source, text_only, upper
from overtone.analysis.cases_under import Under
from overtone.analysis.funnel_stages import DEFAULT, NAMES, Stages
from overtone.analysis.reading import Reading, uncollected
from overtone.analysis.said import Sentence
from overtone.analysis.standing import over_headline
from overtone.errors import UsageError
from overtone.spec import suggest
from overtone.stats.minimums import LARGER_SET, MORE_SCRIPTS

Found = (
    funnel.Funnel
    | levels.Levels
    | counterfactual.Counterfactual
    | text_only.TextOnly
    | prompts.Prompts
    | source.Sources
    | upper.Upper
    | leaderboard.Leaderboard
)


class About(Struct, frozen=True):
    """What a finding is called, and the question it answers."""

    title: str
    question: str
    of: str  # of each run, of each model (its runs together), or of all runs


FINDINGS = {
    "funnel": About("The funnel", "Where between hearing and a fitting reply is the voice lost?", "run"),
    "sensitivity": About(
        "Same words, another voice", "Does the answer move with the voice, and stay when nothing changed?", "run"
    ),
    "text-only": About("The words alone", "What does the sound add to the words?", "run"),
    "levels": About("Levels together", "Does who hears better also reason and reply better?", "all"),
    "prompts": About("Prompts", "How much does the prompt matter?", "run"),
    "source": About("Sources", "Does a human voice make a difference?", "model"),
    "upper": About("Told the cue", "What would perfect hearing give?", "model"),
    "leaderboard": About("Among the published", "Where would this stand among the models of the paper?", "all"),
}


class Settings(Struct, frozen=True):
    """What can be chosen: the funnel's stages, and whose replies stand for a run."""

    stages: Stages = DEFAULT
    prompt: str = ""  # "": the first of enhance, basic and zero that the runs have in common
    input: str = "audio"
    deaf: tuple[int, ...] = ()  # positions of runs known to get no more than the words
    source: str = ""  # whose clips: a source's name, "all", or "" for those of the headline


class Finding(Struct, frozen=True):
    """One finding. Keys of `found` stand behind `prefix` where several runs are told of: "2:funnel/…"."""

    name: str
    runs: tuple[int, ...]  # positions of the readings it speaks of
    found: Found
    sentences: tuple[Sentence, ...]
    failed: int = 0  # asks that failed, where not one was answered

    @property
    def about(self) -> About:
        return FINDINGS[self.name]

    @property
    def prefix(self) -> str:
        return "" if self.about.of == "all" else f"{self.runs[0] + 1}:"

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(self.found.notes)


def findings(readings: Sequence[Reading], names: Iterable[str] = (), settings: Settings | None = None) -> list[Finding]:
    """Every finding of these runs, or those named. Light readings suffice."""
    settings = settings or Settings()
    wanted = check_names(names)
    found = []
    with uncollected():
        for name in wanted:
            narrowed = over_source(name, readings, settings)
            for runs in _together(name, narrowed):
                one, sentences = _find(name, narrowed, runs, settings)
                of = [readings[run] for run in runs]
                found.append(Finding(name, runs, one, _supplied(sentences, of), _all_failed(of)))
    return found


def _all_failed(readings: Sequence[Reading]) -> int:
    answers = [answer for reading in readings for answer in reading.answers]
    return 0 if any(answer.answered for answer in answers) else sum(answer.failed for answer in answers)


def _supplied(sentences: Iterable[Sentence], readings: Sequence[Reading]) -> tuple[Sentence, ...]:
    """The sentences; those on too few scripts ask for a larger set where no run had a limit to raise."""
    if any(_had_limit(reading) for reading in readings):
        return tuple(sentences)
    return tuple(replace(s, text=s.text.replace(MORE_SCRIPTS, LARGER_SET)) for s in sentences)


def _had_limit(reading: Reading) -> bool:
    """Whether the run left out scripts by --limit; one that does not store its settings may have."""
    try:
        return "limit" in tomllib.loads(reading.meta.get("settings", "")).get("run", {"limit": None})
    except (tomllib.TOMLDecodeError, AttributeError, RecursionError, TypeError):
        return True


def over_source(name: str, readings: Sequence[Reading], settings: Settings) -> Sequence[Reading]:
    """Narrow the runs to the clips a finding is over. `source` compares sources, so it reads them all. A run stands on
    its own headline among the published rows, which are of synthesised clips, and in findings of one run alone."""
    if name == "source":
        return readings
    if name == "leaderboard" or (FINDINGS[name].of == "run" and name != "text-only"):
        return [narrowed for reading in readings for narrowed in over_headline([reading], settings.source)]
    return over_headline(readings, settings.source)


def check_names(names: Iterable[str]) -> list[str]:
    """The findings named, in the order of the house; all where none is."""
    given = list(names)
    for name in given:
        if name not in FINDINGS:
            raise UsageError(f"no finding is called {name!r}{suggest(name, FINDINGS)}; known: {', '.join(FINDINGS)}")
    return [name for name in FINDINGS if not given or name in given]


def under(readings: Sequence[Reading], finding: Finding, settings: Settings | None = None) -> Iterator[Under]:
    """Every number of a finding by its key, with the cases it was made of."""
    settings = settings or Settings()
    narrowed = over_source(finding.name, readings, settings)
    for key, cases in _under(finding.name, narrowed, finding.runs, settings):
        yield finding.prefix + key, cases


def behind(readings: Sequence[Reading], key: str, settings: Settings | None = None) -> list[str]:
    """The cases under one number. Of a single run its key may be given without the run's number; whether a funnel is
    that of the coarse question its key says itself."""
    settings = settings or Settings()
    before, colon, bare = key.partition(":")
    number = int(before) if colon and before.isascii() and before.isdigit() else 0
    if not number:
        number, bare = (1 if len(readings) == 1 else 0), key
    head = bare.partition("/")[0]
    name = "funnel" if head in NAMES.values() else head
    if name not in FINDINGS:
        raise UsageError(f"{key!r} is no key of a finding; the rows of --format json name theirs, e.g. 1:funnel/…")
    if name == "funnel":
        cue: Literal["fine", "coarse"] = "coarse" if head == NAMES["coarse"] else "fine"
        settings = replace(settings, stages=replace(settings.stages, cue=cue))
    if FINDINGS[name].of != "all" and not 1 <= number <= len(readings):
        what = "there is no such run" if number else "it does not say of which run"
        raise UsageError(f"{key!r}: {what}; write 1:{bare} for the first of the {len(readings)}")
    readings = over_source(name, readings, settings)
    for runs in _together(name, readings):
        if FINDINGS[name].of == "all" or number - 1 in runs:
            for found, cases in _under(name, readings, runs, settings):
                if found == bare:
                    return cases
    if bare.startswith("leaderboard/published/"):
        raise UsageError(f"{key!r} is a number of the paper's: its cases are not here")
    raise UsageError(f"no number is called {key!r}; the rows of --format json name theirs")


def _together(name: str, readings: Sequence[Reading]) -> list[tuple[int, ...]]:
    """Which readings are told of together: each alone, those of one model, or all."""
    everybody = range(len(readings))
    if FINDINGS[name].of == "all":
        return [tuple(everybody)]
    if FINDINGS[name].of == "run":
        return [(n,) for n in everybody]
    models: dict[tuple[str, str], list[int]] = {}
    for n in everybody:
        one = readings[n]
        models.setdefault((one.meta.get("model", "") or f"#{n}", one.benchmark), []).append(n)
    return [tuple(group) for group in models.values()]


def _rest(readings: Sequence[Reading], mine: int, settings: Settings) -> tuple[list[Reading], list[Reading]]:
    """Runs beside one that tell what the words alone give: those of its benchmark, and among all the deaf ones."""
    same = [n for n in range(len(readings)) if n != mine and readings[n].benchmark == readings[mine].benchmark]
    others = [readings[n] for n in same if n not in settings.deaf]
    return others, [readings[n] for n in same if n in settings.deaf]


def _find(
    name: str, readings: Sequence[Reading], runs: tuple[int, ...], settings: Settings
) -> tuple[Found, list[Sentence]]:
    own = [readings[n] for n in runs]
    chosen = {"prompt": settings.prompt, "input": settings.input}
    if name == "funnel":
        tunnel = funnel.funnel(own[0], settings.stages)
        return tunnel, funnel.sentences(tunnel)
    if name == "sensitivity":
        moved = counterfactual.counterfactual(own[0])
        return moved, counterfactual.sentences(moved)
    if name == "text-only":
        others, deaf = _rest(readings, runs[0], settings)
        alone = text_only.text_only(own[0], others, deaf=deaf)
        return alone, text_only.sentences(alone)
    if name == "levels":
        both = levels.levels(own, **chosen)
        return both, levels.sentences(both)
    if name == "prompts":
        asked = prompts.prompts(own[0], input=settings.input)
        return asked, prompts.sentences(asked)
    if name == "source":
        voices = source.source(own)
        return voices, source.sentences(voices)
    if name == "upper":
        told = upper.upper(own, input=settings.input)
        return told, upper.sentences(told)
    board = leaderboard.leaderboard(own, **chosen)
    return board, leaderboard.sentences(board)


def _under(name: str, readings: Sequence[Reading], runs: tuple[int, ...], settings: Settings) -> Iterator[Under]:
    own = [readings[n] for n in runs]
    chosen = {"prompt": settings.prompt, "input": settings.input}
    if name == "funnel":
        return funnel.under(own[0], settings.stages)
    if name == "sensitivity":
        return counterfactual.under(own[0])
    if name == "text-only":
        others, deaf = _rest(readings, runs[0], settings)
        return text_only.under(own[0], others, deaf=deaf)
    if name == "levels":
        return levels.under(own, **chosen)
    if name == "prompts":
        return prompts.under(own[0], input=settings.input)
    if name == "source":
        return source.under(own)
    if name == "upper":
        return upper.under(own, input=settings.input)
    return leaderboard.under(own, **chosen)
