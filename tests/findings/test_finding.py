"""All findings of runs with judges, two prompts, both inputs and both sources: every number leads to its cases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from overtone.errors import UsageError
from overtone.findings.analysis import cases_behind, cases_by_key, compute_findings
from overtone.findings.finding import FindingResult, Settings
from overtone.findings.funnel import compute as funnel
from overtone.findings.funnel.funnel_stages import Stages
from overtone.findings.levels import compute as levels
from overtone.findings.lookup import known_findings
from overtone.findings.prompts import compute as prompts
from overtone.findings.sensitivity import compute as counterfactual
from overtone.findings.source import compute as source
from overtone.findings.text_only import compute as text_only
from overtone.findings.upper import compute as upper
from overtone.results.load import Reading, open_run
from overtone.results.measures import Estimate
from overtone.schema import Item, Option, Score
from tests.results.small import Maker, item

CUES = {"target": "sad", "alternative": "happy", "neutral": ""}
PROVENANCE = ("target", "alternative", "nothing")  # what the options A, B and C stand for
TALKS = ("zero/audio", "enhance/audio", "enhance/transcript", "oracle/audio", "oracle-false/audio")
JUDGED = ("cctxfit", "cspeechrel", "ves")


def make(folder: Path, seed: int, scripts: int = 6, label: str = "") -> Path:
    """Scripts by an engine and by people, three styles each; some replies never came, some scores are missing."""
    rng = np.random.default_rng(seed)
    run = Maker(folder)
    run.store.set_meta({"benchmark": "echomind", "model": f"openai:{label or folder.name}", "label": label})
    options = tuple(Option(letter, letter, told) for letter, told in zip("ABC", PROVENANCE, strict=True))

    def choose(one: Item, condition: str) -> None:
        fate = rng.random()
        if fate < 0.05:
            run.failed(one, condition=condition)
            return
        letter = "" if fate < 0.1 else str(rng.choice(list("ABC"))) if fate < 0.5 else one.gold
        detail: dict[str, float | int | str | None] = {"status": "parsed" if letter else "hedged", "answer": letter}
        run.answered(
            one, letter, Score("accuracy", "accuracy|v1", float(letter == one.gold), "", detail), condition=condition
        )

    for number in range(scripts):
        for voice in ("synthesis", "human") if number % 2 else ("synthesis",):
            status = "unvalidated" if number % 3 == 0 else "validated"
            for place, (style, cue) in enumerate(CUES.items()):
                group = f"{voice}/s{number}"
                where: dict[str, Any] = {
                    "case": f"{group}/{style}",
                    "group": group,
                    "style": style,
                    "cue": cue,
                    "source": voice,
                }
                where |= {"status": status, "options": options, "gold": "ABC"[place]}
                name = f"{group}/{style}"
                run.transcript(made(f"{name}/asr", "transcribe", category="asr", **where), int(rng.integers(0, 5)), 10)
                for condition in ("task/audio", "task/transcript"):
                    choose(made(f"{name}/v", "choose", **where), condition)
                    choose(made(f"{name}/r", "choose", level=2, category="why", **where), condition)
                choose(made(f"{name}/f", "choose", category="any", part="false-cue", **where), "task/audio")
                if style == "neutral":
                    again = where | {"style": "control", "case": f"{group}/control"}
                    choose(made(f"{name}/k", "choose", part="control", **again), "task/audio")
                talk = made(f"{name}/c", "converse", level=3, category="conversation", **where)
                for condition in TALKS:
                    if rng.random() < 0.05:
                        run.failed(talk, condition=condition)
                    else:
                        run.answered(talk, "well", *scores(rng, style), condition=condition)
    return run.done()


def made(name: str, task: str, **more: Any) -> Item:
    """An item whose options are given as they are."""
    options = more.pop("options", ())
    one = item(name, task, **more)
    return replace(one, options=options if task == "choose" else (), gold=one.gold if task == "choose" else "")


def scores(rng: np.random.Generator, style: str) -> Iterator[Score]:
    for key in JUDGED if style != "neutral" else JUDGED[:1]:
        for judge in ("one", "two"):
            value = None if rng.random() < 0.05 else float(rng.integers(1, 6))
            yield Score(f"{key}@{judge}", f"{key}@{judge}|v1", value, "" if value is not None else "unread")
    alike: dict[str, float | int | str | None] = {f"sim_{other}": float(rng.random()) for other in CUES}
    yield Score("style_margin", "style_margin|v1", float(rng.normal()), "", alike)
    yield Score("semsim", "semsim|v1", float(rng.random()))
    yield Score("utmos", "utmos|v1", float(rng.uniform(1, 5)))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    root = tmp_path_factory.mktemp("findings")
    return [make(root / name, seed) for seed, name in enumerate(("a", "b", "c"))]


@pytest.fixture(scope="module")
def readings(runs: list[Path]) -> list[Reading]:
    return [open_run(run, light=True) for run in runs]


def numbers(finding: FindingResult[Any]) -> Iterator[tuple[str, Estimate | None, bool]]:
    """Every key that a table of the finding may show, with its estimate and whether one case is one unit of it."""
    found = finding.data
    if isinstance(found, funnel.Funnel):
        for row in found.rows:
            yield row.key, row.reached, True
            yield f"{row.key}/through", row.through, True
            if row.step is not None:
                yield f"{row.key}/given", row.step.given, True
                yield f"{row.key}/otherwise", row.step.otherwise, True
                yield f"{row.key}/step", row.step.difference, True
        for gain in found.gains:
            yield gain.key, gain.difference, True
    elif isinstance(found, counterfactual.Counterfactual):
        for moved in found.sensitivity:
            yield moved.key, moved.sensitivity, False
        for still in found.specificity:
            yield still.key, still.stays, False
            yield f"{still.key}/excess", still.excess, False
        for cue in found.false_cues:
            yield cue.key, cue.detection.d_prime, True
            yield f"{cue.key}/hit", cue.detection.hit, True
            yield f"{cue.key}/false-alarm", cue.detection.false_alarm, True
        for reply in found.replies:
            yield reply.key, reply.style.sensitivity, False
    elif isinstance(found, text_only.TextOnly):
        for both in found.rows:
            yield both.key, both.difference, True
        for left in found.unsolved:
            yield left.key, left.accuracy, True
    elif isinstance(found, levels.Levels):
        for level in found.rows:
            yield level.key, level.pearson, False
    elif isinstance(found, prompts.Prompts):
        for prompted in found.rows:
            yield prompted.key, None, False
            for name, e in prompted.measures.items():
                yield f"{prompted.key}/{name}", e, True
        for choice in found.choices:
            yield choice.key, None, False
            for name, e in choice.fair.items():
                yield f"{choice.key}/{name}", e, True
        for failed in found.failures:
            yield failed.key, None, False
            for name, e in failed.kinds.items():
                yield f"{failed.key}/{name}", e, False
    elif isinstance(found, source.Sources):
        for voiced in found.rows:
            yield voiced.key, voiced.difference, False
            yield f"{voiced.key}/first", voiced.first, True
            yield f"{voiced.key}/second", voiced.second, True
    elif isinstance(found, upper.Upper):
        for told in found.rows:
            yield told.key, told.gain, True
    else:
        for entrant in found.entrants:
            if entrant.run is not None:
                yield entrant.key, None, False
                yield from ((f"{entrant.key}/{k}", c.estimate, True) for k, c in entrant.cells.items() if c.estimate)
        for board in found.boards:
            for place in board.places:
                if place.entrant.run is not None:
                    yield f"{place.entrant.key}/{board.key}", place.score, False


NEEDS_MORE = {"noise-floor", "people"}  # nothing is repeated here, and nobody labelled anything


@pytest.mark.parametrize("name", [name for name in known_findings() if name not in NEEDS_MORE])
def test_every_number_leads_to_the_cases_it_was_counted_over(readings: list[Reading], name: str) -> None:
    for finding in compute_findings(readings, [name]):
        told = list(cases_by_key(readings, finding))
        cases = dict(told)
        assert len(cases) == len(told), "a key is given once"
        known = list(numbers(finding))
        assert known and len({key for key, _, _ in known}) == len(known)
        held = {a.item.case for number in finding.runs for a in readings[number].answers}
        for key, estimate, one_to_one in known:
            found = cases[finding.prefix + key]
            assert len(set(found)) == len(found) and set(found) <= held
            if estimate is not None and one_to_one:
                assert len(found) == estimate.scored, key
            elif estimate is not None and estimate.value is not None and name not in ("levels", "prompts"):
                assert found, key
        for sentence in finding.sentences:
            missing = sentence.text.startswith("Not enough data")  # speaks of no number
            assert not sentence.key if missing else cases[finding.prefix + sentence.key], sentence.text


def test_every_finding_says_what_it_is_of_and_how_it_was_made(readings: list[Reading]) -> None:
    found = compute_findings(readings)
    assert list(dict.fromkeys(f.name for f in found)) == list(known_findings())
    assert [f.runs for f in found if f.name == "funnel"] == [(0,), (1,), (2,)]
    assert [f.prefix for f in found if f.name == "text-only"] == ["1:", "2:", "3:"]
    assert [(f.runs, f.prefix) for f in found if f.name == "levels"] == [((0, 1, 2), "")]
    assert all(f.data.signature.startswith(SIGNED.get(f.name, f.name)) for f in found)
    assert all(sentence.text.endswith(".") for f in found for sentence in f.sentences)
    assert all(note.endswith(".") for f in found for note in f.data.notes)


SIGNED = {"sensitivity": "counterfactual"}


def test_runs_of_one_model_are_told_of_together(runs: list[Path]) -> None:
    twice = [open_run(run, light=True) for run in runs[:2]]
    for reading in twice:
        reading.meta["model"] = "openai:same"
    (finding,) = compute_findings(twice, ["source"])
    assert (finding.runs, finding.prefix) == ((0, 1), "1:")
    key = finding.data.rows[0].key
    assert cases_behind(twice, f"1:{key}") == cases_behind(twice, f"2:{key}")


def four(folder: Path) -> Reading:
    """s1 passes all, s2 fails at the words, s3 has heard and not used, s4 has no rating."""
    run = Maker(folder)
    told = {"s1": (0, "A", 5.0), "s2": (3, "B", 2.0), "s3": (2, "A", 3.5), "s4": (1, "B", None)}
    for script, (errors, letter, c4) in told.items():
        run.transcript(item(f"t{script}", "transcribe", script=script), errors, 10)
        run.choice(item(f"v{script}", "choose", script=script), letter)
        score = Score("cspeechrel@j", "cspeechrel@j|v1", c4, "" if c4 else "unread")
        run.answered(item(f"c{script}", "converse", level=3, script=script), "x", score, condition="enhance/audio")
    return open_run(run.done(), light=True)


def test_the_sides_of_a_step_of_the_funnel_are_told_apart_by_hand(tmp_path: Path) -> None:
    reading = four(tmp_path)
    expected = {
        "words": "s1 s2 s3 s4", "words/passed": "s1 s3 s4", "words/failed": "s2", "words/missing": "",
        "cue/passed": "s1 s3", "cue/given": "s1 s3 s4", "cue/otherwise": "s2", "cue/through": "s1 s2 s3 s4",
        "used": "s1 s2 s3", "used/passed": "s1", "used/failed": "s2 s3", "used/missing": "s4",
        "used/given": "s1 s3", "used/otherwise": "s2", "used/step": "s1 s2 s3", "reasoned": "",
    }  # fmt: skip
    (finding,) = compute_findings([reading], ["funnel"])
    cases = dict(cases_by_key([reading], finding))
    for end, names in expected.items():
        found = [case.split("/")[1] for case in cases[f"1:funnel/enhance/audio/overall/{end}"]]
        assert " ".join(found) == names, end
    assert "1:funnel/enhance/audio/overall/words/given" not in cases, "nothing comes before the words"
    assert cases_behind([reading], "funnel-coarse/enhance/audio/overall/cue") == []
    strict = Settings({"funnel": Stages(words=0.0)})
    assert cases_behind([reading], "funnel/enhance/audio/overall/words/passed", strict) == ["synthesis/s1/target"]


def test_pairs_of_clips_are_told_apart_by_hand(tmp_path: Path) -> None:
    run = Maker(tmp_path)
    options = tuple(Option(letter, letter, told) for letter, told in zip("AB", ("target", "alternative"), strict=True))
    given = {"s1": "AB", "s2": "BA", "s3": "AA", "s4": "A?"}  # to the target clip (A is right), to the other (B is)
    for script, letters in given.items():
        for style, gold, letter in zip(("target", "alternative"), "AB", letters, strict=True):
            case: dict[str, Any] = {
                "case": f"synthesis/{script}/{style}",
                "style": style,
                "gold": gold,
                "options": options,
            }
            one = made(f"{script}/{style}", "choose", script=script, **case)
            if letter == "?":
                run.failed(one)
            else:
                run.choice(one, letter)
    reading = open_run(run.done(), light=True)
    key = "sensitivity/task/audio/understanding/overall/sensitivity"
    for end, names in {"": "s1 s2 s3", "/changed": "s1 s2", "/right": "s1", "/swapped": "s2"}.items():
        both = [f"synthesis/{script}/{style}" for script in names.split() for style in ("target", "alternative")]
        assert cases_behind([reading], key + end) == both


@pytest.mark.parametrize(
    ("key", "why"),
    [
        ("funnel/enhance/audio/overall/cue", "lacks the number of the run"),
        ("9:funnel/enhance/audio/overall/cue", "there is no such run"),
        ("0:funnel/enhance/audio/overall/cue", "is not the key of a finding"),
        ("1:funnel/nothing", "no number of these runs has the key"),
        ("1:tunnel/enhance", "is not the key of a finding"),
        ("", "is not the key of a finding"),
        ("leaderboard/published/GPT-4o-Audio/c4", "no number of these runs"),
    ],
)
def test_a_wrong_key_is_answered_with_what_is_wrong(readings: list[Reading], key: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        cases_behind(readings, key)


def test_an_unknown_finding_gets_the_nearest_name(readings: list[Reading]) -> None:
    with pytest.raises(UsageError, match="did you mean 'funnel'"):
        compute_findings(readings, ["funel"])


def test_a_light_reading_tells_the_same_as_a_full_one(runs: list[Path], readings: list[Reading]) -> None:
    full = [open_run(run) for run in runs]
    one, other = compute_findings(readings), compute_findings(full)
    assert one == other
    assert [list(cases_by_key(readings, f)) for f in one] == [list(cases_by_key(full, f)) for f in other]
