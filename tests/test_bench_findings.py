"""The findings recover what made-up models were built to be: who hears, who is told, who only mentions."""

from __future__ import annotations

import pytest

from bench.findings_items import make_items
from bench.findings_minds import GIVEN_AWAY, KEPT, SURE, ease, minds
from bench.findings_runs import make_runs
from overtone.cues import slugs
from overtone.findings.funnel.compute import Funnel, funnel
from overtone.findings.levels.compute import levels
from overtone.findings.prompts.compute import prompts
from overtone.findings.sensitivity.compute import Counterfactual, counterfactual
from overtone.findings.source.compute import source
from overtone.findings.text_only.compute import text_only
from overtone.findings.upper.compute import UpperRow, upper
from overtone.results.load import Reading, open_run
from overtone.results.measures import Estimate
from overtone.results.significance import excludes

SCRIPTS, SEED = 156, 3  # four scripts for each cue
EASE = sum(map(ease, slugs())) / len(slugs())


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Reading]:
    folder = tmp_path_factory.mktemp("minds")
    made = make_runs(folder, runs=5, scripts=SCRIPTS, seed=SEED)
    return {path.name: open_run(path, light=True) for path in made}


@pytest.fixture(scope="module")
def moved(runs: dict[str, Reading]) -> dict[str, Counterfactual]:
    return {name: counterfactual(reading) for name, reading in runs.items()}


@pytest.fixture(scope="module")
def funnels(runs: dict[str, Reading]) -> dict[str, Funnel]:
    return {name: funnel(reading) for name, reading in runs.items()}


def above(e: Estimate, null: float = 0.0) -> bool:
    return e.value is not None and e.value > null and excludes(e, null)


def below(e: Estimate, null: float = 0.0) -> bool:
    return e.value is not None and e.value < null and excludes(e, null)


def told(reading: Reading, measure: str = "cspeechrel") -> UpperRow:
    row = upper(reading).row(measure)
    assert row is not None
    return row


def test_items_are_linked_and_of_echominds_size() -> None:
    items = list(make_items(1_137))
    assert len(items) == len({item.id for item in items}) == 15_996
    assert len({item.group for item in items if item.source == "synthesis"}) == 1_137
    assert {item.cue for item in items if item.style == "target"} == {item.cue for item in items} - {""}


def test_only_who_hears_moves_with_the_voice(moved: dict[str, Counterfactual]) -> None:
    for name, found in moved.items():
        overall = [r for r in found.sensitivity if r.by == "overall" and r.condition == "task/audio"]
        assert {r.level for r in overall} == {"understanding", "reasoning"}
        for row in overall:
            hears = name != "deaf"
            assert above(row.direction) == hears, (name, row.level, row.direction)
        by_transcript = [r for r in found.sensitivity if r.by == "overall" and r.condition == "task/transcript"]
        assert by_transcript and not any(excludes(r.direction) for r in by_transcript), name
        [noticed] = found.false_cues
        assert above(noticed.detection.d_prime) == (name != "deaf")


def test_the_answer_stays_more_where_nothing_changed_if_the_voice_is_heard(moved: dict[str, Counterfactual]) -> None:
    def excess(name: str) -> list[Estimate]:
        rows = moved[name].specificity
        return [r.excess for r in rows if r.by == "overall" and r.condition == "task/audio"]

    assert len(excess("chain")) == 3, "repeats of both levels, and second renderings"
    assert all(above(e) for e in excess("chain"))
    assert not any(excludes(e) for e in excess("deaf"))


def test_the_sound_adds_only_to_who_hears(runs: dict[str, Reading]) -> None:
    for name, reading in runs.items():
        rows = [r for r in text_only(reading).rows if r.by == "overall" and r.measure.endswith("accuracy")]
        assert len(rows) == 2
        assert all(above(r.difference) for r in rows) == (name != "deaf")
        assert not any(below(r.difference) for r in rows)


def test_telling_the_cue_helps_whoever_can_use_it(runs: dict[str, Reading]) -> None:
    gains = {name: told(reading).gain for name, reading in runs.items()}
    assert all(above(gains[name]) for name in ("chain", "deaf", "parrot", "stubborn"))
    assert (gains["deaf"].value or 0) > (gains["chain"].value or 0), "who hears has less to gain"
    assert abs(gains["mute"].value or 0) < 0.2, "its replies know nothing of the cue, told or not"


def test_a_gain_survives_a_wrong_cue_only_where_mention_is_rewarded(runs: dict[str, Reading]) -> None:
    for name in ("chain", "deaf", "parrot", "stubborn"):
        row = told(runs[name])
        assert row.survives is not None and row.beyond is not None
        assert above(row.survives) == (name == "parrot"), name
        assert above(row.beyond) == (name != "parrot"), name


def test_the_best_prompt_chosen_in_sample_never_looks_worse(runs: dict[str, Reading]) -> None:
    for name, reading in runs.items():
        for choice in prompts(reading).choices:
            for measure in choice.by if len(choice.by) == 1 else ():
                gap = choice.optimism[measure].value
                assert gap is not None and gap >= -1e-12, (name, choice.by)
    assert {c.overall for c in prompts(runs["chain"]).choices} == {"enhance"}, "the prompt under which it attends most"


def test_people_are_harder_to_hear_for_who_was_built_so(runs: dict[str, Reading]) -> None:
    def gaps(name: str) -> list[float]:
        rows = [r for r in source(runs[name]).rows if r.by == "overall" and r.measure == "voice_accuracy"]
        return [r.difference.value or 0.0 for r in rows if r.condition == "task/audio"]

    together = [gap for name in ("chain", "parrot", "mute", "stubborn") for gap in gaps(name)]
    assert len(together) == 4 and sum(together) / 4 > 0.03


def test_levels_go_together_where_one_hearing_is_behind_both(runs: dict[str, Reading]) -> None:
    found = levels([runs["chain"], runs["stubborn"]])
    for one, other in (("voice_accuracy", "reasoning_accuracy"), ("voice_accuracy", "cspeechrel")):
        row = found.row("case", "within", one, other)
        assert row is not None and above(row.pearson), (one, other)
    for one, other in (("voice_accuracy", "cctxfit"), ("cctxfit", "cspeechrel"), ("ves", "emoalign_reference")):
        row = found.row("case", "within", one, other)
        assert row is not None and abs(row.pearson.value or 0) < 0.1 and not excludes(row.pearson), (one, other)
    alone = levels([runs["mute"]]).row("case", "within", "voice_accuracy", "cspeechrel")
    assert alone is not None and abs(alone.pearson.value or 0) < 0.2, "what it hears does not reach its replies"


def test_each_stage_of_the_funnel_matters_where_the_chain_was_built(funnels: dict[str, Funnel]) -> None:
    def steps(name: str) -> dict[str, Estimate]:
        rows = [r for r in funnels[name].rows if r.by == "overall" and r.condition == "enhance/audio"]
        return {r.stage: r.step.difference for r in rows if r.step is not None}

    chain = steps("chain")
    assert all(above(chain[stage]) for stage in ("reasoned", "used", "sounded"))
    assert not excludes(chain["cue"]), "words and cue are heard apart"
    assert not excludes(steps("deaf")["used"])


def test_rates_are_those_the_models_were_built_with(funnels: dict[str, Funnel]) -> None:
    known = {mind.name: mind for mind in minds(5, SEED)}
    for name, found in funnels.items():
        rows = [r for r in found.rows if (r.by, r.condition, r.stage) == ("overall", "enhance/audio", "cue")]
        corrected, mind = rows[0].corrected, known[name]
        heard = SURE * EASE * mind.hears * (1 - mind.human / 11)  # one case in eleven is in a human voice
        given_away = KEPT * (0.5 - 0.25) / (1 - 0.25) / GIVEN_AWAY  # right on the target clip, wrong on the other
        expected = heard + (1 - heard) * given_away
        assert corrected is not None and corrected.value is not None
        error = ((corrected.high or 0.0) - (corrected.low or 0.0)) / 3.92
        assert abs(corrected.value - expected) < 3 * error < 0.15, (name, corrected, expected)
