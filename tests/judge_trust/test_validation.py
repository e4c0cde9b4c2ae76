"""Verdicts beside labels: what several people or draws come to, which units count, and what the audits are given."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from overtone.errors import DataError, UsageError
from overtone.judge_trust import labelled_subjects, labels
from overtone.judge_trust.unit_facts import family
from overtone.judge_trust.validation import Validation, validate
from overtone.judges import rubric, trust_record
from overtone.judges.judge_input import Subject
from overtone.judges.judgement import Draw, Judgement
from overtone.judges.rubric import Dimension
from tests.servers import tone

CHOICE = rubric.load("pair").dimensions[0]
YES = rubric.load("false-cue").dimensions[0]
SCALE = rubric.load("ves").dimensions[0]


@pytest.mark.parametrize(
    ("dimension", "given", "value"),
    [
        (SCALE, [4, 5, 5], 14 / 3),
        (CHOICE, [1, 1, 0], 1.0),
        (CHOICE, [1, 0], 0.5),  # A and B: a tie
        (CHOICE, [1, 0.5], 0.5),  # A and tie: the one in the middle
        (CHOICE, [1, 0.5, 0], 0.5),
        (YES, [1, 0], math.nan),
        (YES, [1, 0, 1], 1.0),
        (SCALE, [], math.nan),
    ],
)
def test_several_values_settle_on_one_or_on_none(dimension: Dimension, given: list[float], value: float) -> None:
    assert labelled_subjects.settled(np.array(given, dtype=float), dimension) == pytest.approx(value, nan_ok=True)


def _judgement(unit: labels.Unit, key: str, *values: int | str, problem: str = "") -> Judgement:
    subject = Subject(unit.id, unit.group, unit.texts, unit.sounds)
    draws = [Draw(n, False, {key: value}, {}) for n, value in enumerate(values)]
    if problem:
        draws.append(Draw(len(draws), False, {}, {}, problem))
    return Judgement(subject, "r", "j", tuple(draws))


def _validated(found: labels.Labels, name: str, key: str, judgements: list[Judgement]) -> Validation:
    identity = "openai:gpt-4o|hears:audio|calls:together"
    return validate(judgements, rubric.load(name), found, {key: key}, judge="j", identity=identity, seed=0, draws=50)


@pytest.fixture
def spoken(tmp_path: Path) -> labels.Labels:
    """Ten replies, each said in two voices; people hear the difference."""
    lines = ["id,group,cue,reply,reply_sound,system,ves"]
    for number in range(10):
        for voice in range(2):
            (tmp_path / f"{number}{voice}.wav").write_bytes(tone(number * 2 + voice, 0.2))
            system = "gpt-4o-audio" if voice else "qwen2-audio"
            lines.append(
                f"{number}{voice},g{number},sad,Same {number},{number}{voice}.wav,{system},{voice * 3 + 1 + number % 2}"
            )
    (tmp_path / "labels.csv").write_text("\n".join(lines))
    return labels.read(tmp_path / "labels.csv")


def test_a_judge_that_scores_the_words_is_told_that_it_does_not_hear(spoken: labels.Labels) -> None:
    deaf = [_judgement(unit, "ves", int(unit.id[0]) % 3 + 2) for unit in spoken.units.values()]
    (finding,) = [f for f in _validated(spoken, "ves", "ves", deaf).findings if f.audit == "lexical shortcut"]
    assert "depend on the words alone" in finding.sentence
    assert (finding.rows, finding.parts["moves, people"]) == (10, 3.0)
    ears = [_judgement(unit, "ves", int(unit.id[1]) * 3 + 1) for unit in spoken.units.values()]
    (finding,) = [f for f in _validated(spoken, "ves", "ves", ears).findings if f.audit == "lexical shortcut"]
    assert finding.value == 0 and finding.parts["same score, judge"] == 0


def test_the_judges_own_family_is_found_by_name(spoken: labels.Labels) -> None:
    rows = spoken.of("ves")
    kind = [_judgement(u, "ves", min(5, int(float(rows[n]["1"].value)) + int(n[1]))) for n, u in spoken.units.items()]
    (finding,) = [f for f in _validated(spoken, "ves", "ves", kind).findings if f.audit == "self-preference"]
    assert finding.value is not None and finding.value > 0.4 and "(gpt)" in finding.sentence
    names = ("openai/gpt-4o", "o3-mini", "chatgpt-4o-latest", "Qwen/Qwen2.5-Omni-7B", "meta-llama/Llama-3", "")
    assert [family(name) for name in names] == ["gpt", "gpt", "gpt", "qwen", "llama", ""]


def test_units_without_a_verdict_are_counted_and_left_out(spoken: labels.Labels) -> None:
    units = list(spoken.units.values())
    judgements = [_judgement(unit, "ves", 3, 4, 4) for unit in units[:15]]
    judgements += [_judgement(unit, "ves", problem="off the menu") for unit in units[15:]]
    (dimension,) = _validated(spoken, "ves", "ves", judgements).dimensions
    assert (dimension.units, dimension.unjudged, dimension.undecided) == (15, 5, 0)
    assert dimension.judge_mean == pytest.approx(11 / 3)
    with pytest.raises(DataError, match=r"no verdict on 'ves' for any of 5 labelled units; .*off the menu"):
        _validated(spoken, "ves", "ves", judgements[15:])


def test_agreement_on_the_few_that_could_be_read_is_no_proof(spoken: labels.Labels) -> None:
    rows = spoken.of("ves")
    right = [_judgement(u, "ves", int(float(rows[n]["1"].value))) for n, u in spoken.units.items()]
    assert _validated(spoken, "ves", "ves", right).passed == {"ves": True}
    units = list(spoken.units.values())
    unread = [_judgement(unit, "ves", problem="off the menu") for unit in units[16:]]
    found = _validated(spoken, "ves", "ves", right[:16] + unread)
    assert found.dimensions[0].agreement["alpha"].value == 1.0
    assert found.passed == {"ves": False}


def test_a_label_that_the_rubric_does_not_allow_is_named_with_its_line(spoken: labels.Labels) -> None:
    path = spoken.path
    path.write_text(path.read_text() + "\n99,g9,sad,Same,00.wav,,7\n")
    found = labels.read(path)
    with pytest.raises(DataError, match=r"labels.csv, line 22: ves is '7.0'; the rubric's ves is a number from 1 to 5"):
        _validated(found, "ves", "ves", [_judgement(unit, "ves", 3) for unit in found.units.values()])


def test_a_limit_takes_whole_groups_by_chance_and_the_same_ones_again(spoken: labels.Labels) -> None:
    first, again, other = (labelled_subjects.chosen(spoken, ["ves"], 8, seed) for seed in (1, 1, 2))
    assert first == again != other
    assert len(first) == 8 and len({name[0] for name in first}) == 4
    assert len(labelled_subjects.chosen(spoken, ["ves"], None, 0)) == 20


def test_what_the_rubric_shows_must_be_in_the_file_but_for_what_may_be_left_out(spoken: labels.Labels) -> None:
    with pytest.raises(UsageError, match="needs words, and"):
        labelled_subjects.subjects(rubric.load("echomind"), spoken, list(spoken.units), "nothing")
    assert len(labelled_subjects.subjects(rubric.load("ves"), spoken, list(spoken.units), "audio")) == 20


def test_proofs_lie_in_the_users_data_folder_and_a_damaged_one_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OVERTONE_JUDGES", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    ves = rubric.load("ves")
    path = trust_record.write("openai:x|hears:audio|calls:together", ves, ("ves",), "said", how=trust_record.PEOPLE)
    assert path.parent == tmp_path / "overtone" / "judges"
    assert trust_record.validated("openai:x|hears:audio|calls:together", ves) is not None
    assert trust_record.validated("openai:y|hears:audio|calls:together", ves) is None
    path.write_text(path.read_text().replace('"version": 1', '"version": 2'))
    assert trust_record.validated("openai:x|hears:audio|calls:together", ves) is None, "of another Overtone"
    path.write_text("{")
    with pytest.raises(DataError, match="is not a record of a judge"):
        trust_record.validated("openai:x|hears:audio|calls:together", ves)


def test_a_judge_that_says_the_opposite_of_people_is_asked_whether_a_and_b_are_exchanged(tmp_path: Path) -> None:
    lines = ["id,words,reply_a,reply_b,preference"]
    lines += [f"{number},Hi,one {number},two {number},{'AB'[number % 2]}" for number in range(30)]
    (tmp_path / "pairs.csv").write_text("\n".join(lines))
    pairs = labels.read(tmp_path / "pairs.csv")
    opposite = [_judgement(unit, "preference", "BA"[int(unit.id) % 2]) for unit in pairs.units.values()]
    guessing = [_judgement(unit, "preference", "AABB"[int(unit.id) % 4]) for unit in pairs.units.values()]
    told = _validated(pairs, "pair", "preference", opposite).notes
    assert [note for note in told if note.startswith("warning: ") and note.endswith("are A and B exchanged?")]
    assert not [note for note in _validated(pairs, "pair", "preference", guessing).notes if "exchanged" in note]


def test_a_judge_whose_scale_runs_the_other_way_is_asked_so(spoken: labels.Labels) -> None:
    rows = spoken.of("ves")
    turned = [_judgement(u, "ves", 6 - int(float(rows[n]["1"].value))) for n, u in spoken.units.items()]
    (note,) = [n for n in _validated(spoken, "ves", "ves", turned).notes if n.startswith("warning: ")]
    assert note.endswith("does one of the two scales run the other way?")
