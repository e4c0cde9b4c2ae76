"""The least data that each kind of sentence needs, with the reason.

Tables show every number. A sentence draws a conclusion, so with less data than its minimum it names the missing data.
`docs/reference/findings/minimums.md` shows this table.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

MORE_SCRIPTS = (
    "To add scripts, repeat the run's `overtone run` command with a larger --limit, or without one: it extends the run "
    "and asks only what is new"
)
LARGER_SET = (
    "The run asked every script of its set, so more scripts need a larger set: build one with a larger --per-cue "
    "(`overtone build open --per-cue N`), or add data"
)
STUDY_SUPPLY = (
    "Invite more people with `overtone studio invite STUDY.toml --people N`, and sync the study; if it is closed or "
    "all its scripts have votes, write a new study of more scripts with `overtone studio new`"
)
SHOWN = 4  # the most subjects that one sentence names


class Minimum(Struct, frozen=True):
    """The data that one kind of sentence needs: at least `least` of `unit`, because of `reason`. `supply` says how to
    get more data.
    """

    kind: str
    least: int
    unit: str
    reason: str
    supply: str = MORE_SCRIPTS


RATE = Minimum(
    "a rate or a mean, and a place among other rates by it",
    10,
    "scripts",
    "with fewer, one script alone moves a rate by more than 10 points",
)
DIFFERENCE = Minimum(
    "a difference on the same scripts",
    6,
    "scripts",
    "with five, even a difference of the same sign on every script has p = 0.06 in a sign-flip test (2 of 32 patterns)",
)
LARGEST_LOSS = Minimum(
    "the stage of the funnel that loses most",
    20,
    "scripts that came through all stages before, at each stage compared",
    "with 19, the 95 % interval of a share can be 44 points wide, wider than stages usually differ",
)
BEST_PROMPT = Minimum(
    "the best prompt, chosen on one half of the scripts and shown on the other",
    20,
    "scripts",
    "each half needs the 10 scripts of a rate",
)
CORRELATION = Minimum(
    "whether two measures rise together",
    8,
    "scripts, or models where models are compared",
    "a bootstrap of fewer than eight has too few different samples for an interval (10 of three, 6,435 of eight)",
    "Ask more scripts, or give runs of more models to `overtone analyze`",
)
NOISE = Minimum(
    "the spread between repeats of a run",
    10,
    "scripts that were asked at least twice",
    "with five, the 95 % interval of the spread is wider than the spread itself",
    "Ask every item again with `overtone run … --repeats 3`, into the same --out",
)
SAME_ORDER = Minimum(
    "whether two rankings of runs agree",
    5,
    "runs in both rankings",
    "two unrelated rankings of four runs are equal or opposite in 2 of 24 cases, which is more than 5 %",
    "Give more runs to `overtone arena`, and collect votes on them",
)
VOTES = Minimum(
    "the best run of an arena, and what its votes lean towards",
    10,
    "scripts with votes",
    "with fewer, one script alone moves a share of votes by more than 10 points",
    "Draw more pairs with `overtone arena RUN... --pairs N`, and collect votes on them",
)
JUDGE_FAULT = Minimum(
    "a fault of a judge that an audit looks for",
    10,
    "scripts or groups of labelled replies",
    "with fewer, one of them alone moves a share by more than 10 points",
    "Label replies of more scripts, and repeat the `overtone judge validate` command",
)
PEOPLE = Minimum(
    "what people say of replies, and how a judge agrees with them",
    5,
    "raters",
    "with fewer, one severe rater alone moves a mean by more than a fifth of the severity",
    "If the study is open, invite more people with `overtone studio invite STUDY.toml --people N`, and sync it; a "
    "closed study needs a new one with more people (`overtone studio new`)",
)
MINIMUMS = (RATE, DIFFERENCE, LARGEST_LOSS, BEST_PROMPT, CORRELATION, NOISE, SAME_ORDER, VOTES, JUDGE_FAULT, PEOPLE)


def shortfall(minimum: Minimum, lacking: Iterable[tuple[str, int]]) -> str:
    """Return a sentence that names the subjects with too little data, the data that each has, the minimum, and how to
    get more data.

    Return "" if there are no such subjects.
    """
    too_few = list(dict.fromkeys(lacking))
    if not too_few:
        return ""
    named = [f"{subject} ({have:,} of {minimum.least})" for subject, have in too_few[:SHOWN]]
    if len(too_few) > SHOWN:
        named.append(f"{len(too_few) - SHOWN} more")
    return (
        f"Not enough data for a sentence on: {'; '.join(named)}. It needs at least {minimum.least} {minimum.unit}: "
        f"{minimum.reason}. {minimum.supply}."
    )
