"""What to run so that a finding can tell what it cannot tell now."""

from __future__ import annotations

from overtone.analysis.counterfactual import Counterfactual
from overtone.analysis.findings import Finding
from overtone.analysis.funnel import LABELS, Funnel
from overtone.analysis.leaderboard import Leaderboard
from overtone.analysis.levels import Levels
from overtone.analysis.prompts import Prompts
from overtone.analysis.source import Sources
from overtone.analysis.text_only import TextOnly
from overtone.analysis.upper import RIGHT, WRONG, Upper

JUDGE = "overtone score RUN --judge SPEC"
STAGES = {
    "words": "run with --levels 1, which asks for transcripts",
    "cue": "run with --levels 1, which asks about the cue",
    "reasoned": "run with --levels 2",
    "used": f"run with --levels 3, and have the replies judged: {JUDGE}",
    "sounded": f"have spoken replies judged by a model that hears: {JUDGE}",
}


def advice(finding: Finding) -> list[str]:
    """Lines like `to tell whether answers stay: run with --repeats 2`; none where nothing is missing."""
    found = finding.found
    if finding.failed:
        return [
            f"no reply came: all {finding.failed:,} requests failed; 'overtone report RUN' lists why, and the run's "
            "`overtone run` command asks for what failed once more"
        ]
    if isinstance(found, Funnel):
        return _funnel(found)
    if isinstance(found, Counterfactual):
        return _sensitivity(found)
    if isinstance(found, TextOnly):
        return _text_only(found)
    if isinstance(found, Levels):
        return _levels(found)
    if isinstance(found, Prompts):
        return _prompts(found)
    if isinstance(found, Sources):
        return [] if found.rows else ["to tell: run the same model on clips of two sources, e.g. synthesis and human"]
    if isinstance(found, Upper):
        return _upper(found)
    return _leaderboard(found)


def _funnel(found: Funnel) -> list[str]:
    told = {row.stage for row in found.rows if row.by == "overall" and row.reached.scored}
    return [f"to tell who {LABELS[stage]}: {how}" for stage, how in STAGES.items() if stage not in told]


def _sensitivity(found: Counterfactual) -> list[str]:
    lines = []
    if not any(row.sensitivity.scored for row in found.sensitivity):
        lines.append("to tell whether answers move: run --levels 1,2 with all styles")
    if not any(row.stays.scored for row in found.specificity):
        lines.append("to tell whether answers stay: run with --repeats 2, or with a benchmark’s control clips")
    if not any(row.detection.hit.scored for row in found.false_cues):
        lines.append("to tell cues from none: run a benchmark with false-cue questions (--parts false-cue)")
    if not any(row.style.squares for row in found.replies):
        lines.append("to tell whether replies follow the voice: run --levels 3 with all styles")
    return lines


def _text_only(found: TextOnly) -> list[str]:
    if found.unsolved:
        return []
    return ["to tell which questions the words give away: give a run that reads them, or one that is deaf (--deaf RUN)"]


def _levels(found: Levels) -> list[str]:
    models = {row.models for row in found.rows if row.level == "model"}
    lines = []
    if max(models, default=0) < 3:
        lines.append("to tell between models: give runs of at least three models (eight for an interval)")
    if not any(measure in found.measures for measure in ("cspeechrel", "ves")):
        lines.append(f"to tell of replies: have them judged: {JUDGE}")
    return lines


def _prompts(found: Prompts) -> list[str]:
    if len({row.prompt for row in found.rows}) < 2:
        return ["to tell: run with --prompt zero,basic,enhance"]
    return [] if found.choices else [f"to choose a best prompt: have the replies judged: {JUDGE}"]


def _upper(found: Upper) -> list[str]:
    if not found.rows:
        return [f"to tell: run with --prompt enhance,{RIGHT},{WRONG}"]
    if all(row.wrong is None for row in found.rows):
        return [f"to tell gain from mention: run with --prompt enhance,{RIGHT},{WRONG}"]
    return []


def _leaderboard(found: Leaderboard) -> list[str]:
    lines = []
    runs = any(entrant.run is not None for entrant in found.entrants)
    for board in found.boards if runs else ():
        if all(place.entrant.run is None for place in board.places):
            how = f"have the replies judged: {JUDGE}" if board.key != "lb1" else "run with --levels 1,2"
            lines.append(f"to stand on the board “{board.title}”: {how}")
    return lines
