"""The false-cue task: the same question on a clip with a cue and on its neutral twin, where "nothing special" is right.

A model that always reports a cue is right on cued clips by luck. Only the pair shows whether the model hears it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from overtone.build.distractors import BY_DEGREE, Fair, Orders, Question, true_of
from overtone.build.script import Script
from overtone.build.tract import random_of
from overtone.cues import BY_SLUG, CUES, EXTENSION_STEMS, NOTHING_SPECIAL, Cue
from overtone.schema import Style

PART = "false-cue"
_READINGS = ("target", "alternative", "", "nothing")
_SIDES: tuple[Style, Style] = ("target", "alternative")


def false_cue(scripts: Sequence[Script], seed: int) -> list[Question]:
    """Return two questions for each script with a cued and a neutral clip: the same question on either clip.

    Only cues of voice or surroundings are used. Half of a cue's scripts use the target clip and half the alternative
    clip, so that the words do not reveal the cue.
    """
    cued = _cued(scripts, seed)
    right = [s.cue if cued[s.id] == "target" else s.alternative for s in scripts if s.id in cued]
    fair, orders = Fair(right), Orders(seed)
    out: list[Question] = []
    for script in (s for s in scripts if s.id in cued):
        style = cued[script.id]
        cues = _cues(script, style, fair, seed)
        order = orders.next(PART, _READINGS, (style, "nothing"))
        options = tuple(cues[reading].option if reading in cues else NOTHING_SPECIAL for reading in order)
        # If both clips have kinds of one cue, a further wrong answer takes the place of the other reading.
        same = script.cue == script.alternative
        provenance = tuple("" if same and reading in _SIDES and reading != style else reading for reading in order)
        asked: tuple[tuple[Style, str], ...] = ((style, style), ("neutral", "nothing"))
        out += [
            Question(
                f"{script.id}_{on}_{PART}", script, on, PART, EXTENSION_STEMS[PART], options, provenance,
                order.index(gold), PART,
            )
            for on, gold in asked
        ]  # fmt: skip
    return out


def _cued(scripts: Sequence[Script], seed: int) -> dict[str, Style]:
    """Choose the cued clip of each script. A clip of which the script's other cue may also be true is never chosen."""
    by_cue: dict[str, list[Script]] = defaultdict(list)
    for s in scripts:
        if not s.says and "neutral" in s.styles and BY_SLUG[s.cue].dimension != "speaker":
            by_cue[s.cue].append(s)
    chosen: dict[str, Style] = {}
    extra = 0  # surplus of targets over alternatives so far, so that odd numbers even out over the cues
    for cue, mine in by_cue.items():
        free: list[Script] = []
        used = {"target": 0, "alternative": 0}
        for s in mine:
            same = s.cue == s.alternative
            fits = [
                side for side, other in zip(_SIDES, (s.alternative, s.cue), strict=True)
                if same or other not in true_of(s, side)
            ]  # fmt: skip
            if len(fits) == 2:
                free.append(s)
            elif fits:
                chosen[s.id] = fits[0]
                used[fits[0]] += 1
        for i in random_of(seed, PART, cue).permutation(len(free)):
            ahead = used["target"] - used["alternative"] or extra
            side = _SIDES[1] if ahead > 0 else _SIDES[0]
            chosen[free[i].id] = side
            used[side] += 1
        extra += used["target"] - used["alternative"]
    return chosen


def _cues(script: Script, style: Style, fair: Fair, seed: int) -> dict[str, Cue]:
    """Return the three offered cues by reading. Added cues are not true of any clip of the script."""
    cues = {"target": BY_SLUG[script.cue], "alternative": BY_SLUG[script.alternative]}
    rng = random_of(seed, PART, script.id)
    taken = true_of(script, "target") | true_of(script, "alternative") | true_of(script, "neutral")
    wanted = [""]
    if script.cue == script.alternative:
        wanted.append(next(side for side in _SIDES if side != style))
        del cues[wanted[-1]]
    for reading in wanted:
        held = {c.slug for c in cues.values()}
        pool = [
            c for c in CUES
            if c.dimension == BY_SLUG[script.cue].dimension and c.category not in BY_DEGREE
            and c.slug not in taken | held
        ]  # fmt: skip
        cues[reading] = fair.pick([cues[style]], pool, list(cues.values()), rng)
    fair.count([cues[style]], [c for reading, c in cues.items() if reading != style])
    return cues
