"""Questions about clips: true answers, false distractors, letters in balance, nothing to guess from the options."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass

import pytest
from msgspec.structs import replace

from overtone.build.distractors import FLAT, LEVEL_DB, PACE_RATIO, Orders, also_true, arguable
from overtone.build.questions import Question, fixed, reasoning, true_of, understanding
from overtone.build.script import TWO_WAY, Script, read_set
from overtone.cues import ALSO_TRUE, ALSO_TRUE_OF_KIND, BY_SLUG, CUES, REASONING, UNDERSTANDING, cue_of_option
from tests.build.question_counts import counts, positions


@pytest.fixture(scope="module")
def scripts() -> tuple[Script, ...]:
    return read_set("open")


@pytest.fixture(scope="module")
def heard(scripts: tuple[Script, ...]) -> list[Question]:
    return understanding(scripts, seed=0)


@pytest.fixture(scope="module")
def reasoned(scripts: tuple[Script, ...]) -> list[Question]:
    return reasoning(scripts, seed=0)


def wrong_cues(q: Question) -> set[str]:
    found = {cue_of_option(text) for i, text in enumerate(q.options) if i != q.gold}
    assert None not in found and len(found) == len(q.options) - 1, q.id
    return {c.slug for c in found if c}


def test_the_right_option_states_the_cue_of_the_clip(heard: list[Question]) -> None:
    for q in heard:
        assert cue_of_option(q.options[q.gold]) == q.script.cue_in(q.style), q.id
        assert q.provenance[q.gold] == q.style


def test_no_distractor_is_true_of_its_clip(heard: list[Question]) -> None:
    for q in heard:
        cue, wrong = q.script.cue_in(q.style), wrong_cues(q)
        assert cue is not None
        if q.category == "age":
            assert wrong == {"child", "elderly", "adult"} - {cue.slug}
            continue
        assert not wrong & {cue.slug, q.script.sex_in(q.style), "adult"}, q.id
        assert not wrong & also_true(cue.slug, q.script.manner_in(q.style)), q.id
        if cue.dimension != "paralinguistic":
            assert not wrong & FLAT, q.id


@pytest.mark.parametrize(
    ("cue", "other"),
    [("sobbing", "sad"), ("shout", "angry"), ("tired", "slow"), ("laughter", "happy"), ("thunder", "rain"),
     ("thunder", "wind"), ("rain", "applause"), ("applause", "rain"), ("wind", "waves"), ("sigh", "breath"),
     ("moan", "sobbing"), ("cheering", "applause"), ("cheering", "shout"), ("children", "child"),
     ("ringtone", "music"), ("honking", "car"), ("yawn", "tired"), ("basketball", "chatter"), ("laughter", "sobbing")],
)  # fmt: skip
def test_what_a_listener_may_also_say_is_never_a_distractor(cue: str, other: str, heard: list[Question]) -> None:
    asked = [q for q in heard if (c := q.script.cue_in(q.style)) and c.slug == cue]
    assert asked
    assert all(BY_SLUG[other].option not in q.options for q in asked)


def test_the_kind_of_a_cue_decides_what_else_is_true(scripts: tuple[Script, ...]) -> None:
    plain = next(s for s in scripts if s.cue == "laughter" and not s.manner)
    nervous = replace(plain, manner={"target": "nervous"})
    assert "fear" in true_of(nervous, "target") - true_of(plain, "target")
    music = next(s for s in scripts if s.cue == "music")
    assert "angry" in true_of(replace(music, manner={"target": "angry"}), "target")


def test_the_table_of_what_is_also_true_knows_only_cues_and_their_kinds() -> None:
    from overtone.build.script import MANNERS

    assert set(ALSO_TRUE) <= set(BY_SLUG)
    assert all(also <= set(BY_SLUG) - {cue} for cue, also in ALSO_TRUE.items())
    assert all(kind in MANNERS[cue] for cue, kind in ALSO_TRUE_OF_KIND)
    assert all(also <= set(BY_SLUG) for also in ALSO_TRUE_OF_KIND.values())


def test_every_target_and_alternative_clip_gets_its_fine_task_and_a_coarse_question(
    heard: list[Question], scripts: tuple[Script, ...]
) -> None:
    asked = {(q.script.id, q.style, q.category) for q in heard}
    wanted = set()
    for s in scripts:
        for style, slug in (("target", s.cue), ("alternative", s.alternative)):
            wanted |= {(s.id, style, "coarse"), (s.id, style, BY_SLUG[slug].task)}
    assert asked == wanted and len(heard) == len(wanted)
    assert {q.category for q in heard} == set(UNDERSTANDING)
    width = {"gender": 2, "pace": 2, "age": 3}
    assert all(len(q.options) == width.get(q.category, 4) for q in heard)


def test_coarse_options_span_all_dimensions(heard: list[Question]) -> None:
    for q in (q for q in heard if q.category == "coarse"):
        cues = [c for text in q.options if (c := cue_of_option(text))]
        assert len({c.dimension for c in cues}) == 3, q.id


def test_where_both_cues_are_asked_for_the_options_are_the_same_and_the_answer_moves(
    heard: list[Question], scripts: tuple[Script, ...]
) -> None:
    asked = {q.id: q for q in heard}
    shared = 0
    for s in scripts:
        one, other = BY_SLUG[s.cue], BY_SLUG[s.alternative]
        if s.cue in true_of(s, "alternative") or s.alternative in true_of(s, "target"):
            continue
        for task in {"coarse", one.task} if one.task == other.task else {"coarse"}:
            target, alternative = (asked[f"{s.id}_{style}_{task}"] for style in ("target", "alternative"))
            assert target.options == alternative.options and target.provenance == alternative.provenance
            assert target.gold != alternative.gold
            shared += 1
    assert shared > len(scripts)


def test_no_fine_answer_can_be_had_from_how_often_its_option_is_right(heard: list[Question]) -> None:
    """Guess what was right most often where it was offered, learnt on the other half of the scripts."""
    for task in ("style", "emotion", "nonverbal", "background"):
        mine = [q for q in heard if q.category == task]
        right, met = Counter[tuple[int, str]](), Counter[tuple[int, str]]()
        for q in mine:
            half = int(q.script.id[-1]) % 2
            met.update((half, option) for option in q.options)
            right[half, q.options[q.gold]] += 1
        hits = 0
        for q in mine:
            half = 1 - int(q.script.id[-1]) % 2
            rate = [right[half, option] / max(met[half, option], 1) for option in q.options]
            hits += rate.index(max(rate)) == q.gold
        assert hits / len(mine) < 0.4, (task, hits / len(mine))


@pytest.mark.parametrize("seed", [0, 1])
def test_right_letters_are_in_balance_within_every_category(scripts: tuple[Script, ...], seed: int) -> None:
    for asked in (understanding(scripts, seed), [q for q in reasoning(scripts, seed) if not q.part]):
        for category, letters in positions(asked).items():
            width = max(len(q.options) for q in asked if q.category == category)
            counted = [letters.get(chr(65 + i), 0) for i in range(width)]
            assert max(counted) - min(counted) <= (0 if category in TWO_WAY else 2), (category, counted)


def test_right_letters_of_each_style_are_in_balance_too(reasoned: list[Question]) -> None:
    by: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for q in reasoned:
        if q.category not in TWO_WAY:
            by[q.category, q.style][q.answer] += 1
    for key, letters in by.items():
        assert max(letters[x] for x in "ABCD") - min(letters[x] for x in "ABCD") <= 3, (key, letters)


def test_a_reasoning_question_has_the_same_options_on_every_clip_and_the_right_one_moves(
    reasoned: list[Question], scripts: tuple[Script, ...]
) -> None:
    groups: dict[tuple[str, str], dict[str, Question]] = {}
    for q in reasoned:
        groups.setdefault((q.script.id, q.category), {})[q.style] = q
    assert len(groups) == sum(len(s.reasoning) for s in scripts)
    for (_, category), on in groups.items():
        script = on["target"].script
        whole = category not in TWO_WAY and "neutral" in script.styles
        assert set(on) == {"target", "alternative"} | ({"neutral", "control"} if whole else set())
        assert len({(q.question, q.options, q.provenance) for q in on.values()}) == 1
        for style, q in on.items():
            assert q.provenance[q.gold] == {"neutral": "words", "control": "words"}.get(style, style)
            assert q.part == ("control" if style == "control" else "")


def test_who_reads_only_the_words_is_right_on_one_clip_of_a_question_at_most(reasoned: list[Question]) -> None:
    by: dict[tuple[str, str], list[int]] = defaultdict(list)
    for q in (q for q in reasoned if not q.part):
        by[q.script.id, q.category].append(q.gold)
    assert all(len(set(golds)) == len(golds) for golds in by.values())


def test_a_question_whose_answer_does_not_move_is_asked_once_and_kept_apart(scripts: tuple[Script, ...]) -> None:
    first = next(s for s in scripts if s.reasoning[0].category not in TWO_WAY)
    still = replace(first.reasoning[0], moves=False)
    script = replace(first, reasoning=(still, *first.reasoning[1:]))
    (only,) = fixed([script], seed=0)
    assert (only.part, only.style, only.options[only.gold]) == ("fixed", "target", still.target)
    assert still.category not in {q.category for q in reasoning([script], seed=0)}
    assert fixed([first], seed=0) == []


def test_letters_of_fixed_questions_are_in_balance(scripts: tuple[Script, ...]) -> None:
    still = [replace(s, reasoning=tuple(replace(r, moves=False) for r in s.reasoning)) for s in scripts[:60]]
    for category, letters in positions(fixed(still, 0)).items():
        if category not in TWO_WAY:
            assert max(letters.get(x, 0) for x in "ABCD") - min(letters.get(x, 0) for x in "ABCD") <= 1, category


def test_conflict_scripts_are_not_asked_as_others_are(scripts: tuple[Script, ...]) -> None:
    clash = replace(scripts[60], says=scripts[60].alternative)
    assert understanding([clash], 0) == reasoning([clash], 0) == fixed([clash], 0) == []


def test_ids_are_unique(heard: list[Question], reasoned: list[Question]) -> None:
    assert len({q.id for q in (*heard, *reasoned)}) == len(heard) + len(reasoned)


def test_the_seed_alone_decides_what_is_drawn(scripts: tuple[Script, ...], heard: list[Question]) -> None:
    assert understanding(scripts, seed=0) == heard
    assert [q.options for q in understanding(scripts, seed=1)] != [q.options for q in heard]


def test_orders_share_the_letters_even_when_questions_differ_in_how_many_answers_are_right() -> None:
    orders, letters = Orders(3), Counter[int]()
    for i in range(50):
        right = ("target", "alternative", "words")[: 2 + i % 2]
        order = orders.next("x", ("target", "alternative", "words", "harmful"), right)
        letters.update(order.index(r) for r in right)
    assert max(letters.values()) - min(letters.values()) <= 2


@dataclass
class Sound:
    rate_hz: float | None = 4.0
    rms_dbfs: float = -26.0
    voiced: float = 0.7


@pytest.mark.parametrize(
    ("sound", "heard_as"),
    [(Sound(), set()), (Sound(rate_hz=4 * PACE_RATIO + 0.1), {"fast"}), (Sound(rate_hz=4 / PACE_RATIO - 0.1), {"slow"}),
     (Sound(rms_dbfs=-26 + LEVEL_DB + 0.1), {"shout"}), (Sound(rms_dbfs=-40), set()),
     (Sound(voiced=0.3), {"whisper"}), (Sound(rate_hz=None), set()), (Sound(5.0, -20), {"fast", "shout"})],
)  # fmt: skip
def test_what_is_measured_makes_pace_and_level_arguable(
    sound: Sound, heard_as: set[str], scripts: tuple[Script, ...]
) -> None:
    script = next(s for s in scripts if s.cue == "surprise")
    measured = {script.file_name("neutral"): Sound(), script.file_name("target"): sound}
    assert arguable(script, "target", measured) == heard_as
    assert arguable(script, "target", {script.file_name("target"): sound}) == set()


def test_a_distractor_that_the_measures_make_arguable_gives_way_and_nothing_else_changes(
    scripts: tuple[Script, ...], heard: list[Question]
) -> None:
    loud = {s.file_name(style): Sound() for s in scripts for style in s.styles}
    loud |= {s.file_name("target"): Sound(5.0, -20) for s in scripts}
    before = {q.id: q for q in heard}
    after = understanding(scripts, 0, loud)
    for q in after:
        cue = q.script.cue_in(q.style)
        assert cue is not None
        if q.style == "target" and "neutral" in q.script.styles and cue.dimension != "environment":
            avoid = {"fast", "shout"} - ({"fast"} if cue.category == "speed" else set())
            assert not wrong_cues(q) & (avoid - ({"shout"} if cue.category == "volume" else set())), q.id
        if not {BY_SLUG["fast"].option, BY_SLUG["shout"].option} & set(before[q.id].options):
            assert q == before[q.id]
        assert q.gold == before[q.id].gold
        if q.category != "age":
            assert not wrong_cues(q) & true_of(q.script, q.style), q.id
    missing = [before[i] for i in before.keys() - {q.id for q in after}]
    assert missing
    for q in missing:  # only where a script's other cue is arguable, or the six cues of the style task are too few
        assert q.category == "style" or {q.script.cue, q.script.alternative} & {"fast", "shout"}, q.id


def test_the_measures_of_a_part_change_only_what_that_part_is_asked(
    scripts: tuple[Script, ...], heard: list[Question]
) -> None:
    part = [s for s in scripts if s.cue in ("sad", "moan")]
    loud = {s.file_name("neutral"): Sound() for s in scripts} | {s.file_name("target"): Sound(5.0, -20) for s in part}
    ids = {s.id for s in part}
    after = understanding(scripts, 0, loud)
    assert [q for q in after if q.script.id not in ids] == [q for q in heard if q.script.id not in ids]
    assert [q for q in after if q.script.id in ids] != [q for q in heard if q.script.id in ids]


def test_counts_tell_cue_category_style_and_position(heard: list[Question], reasoned: list[Question]) -> None:
    table = counts([*heard, *reasoned])
    assert table.style["coarse"] == {"target": 468, "alternative": 468}
    assert table.position["coarse"] == {"A": 234, "B": 234, "C": 234, "D": 234}
    assert set(table.style["intent (control)"]) == {"control"} and set(table.style["intent"]) >= {"neutral"}
    assert set(table.cue) == {c.slug for c in CUES} | {""}
    assert sum(n for row in table.cue.values() for n in row.values()) == len(heard) + len(reasoned)
    assert table.cue["yawn"]["nonverbal"] == sum(
        1 for q in heard if q.category == "nonverbal" and "yawns" in q.options[q.gold]
    )
    row = next(r for r in table.rows() if r["category"] == "coarse")
    assert (row["questions"], row["target"], row["A"]) == (936, 468, 234)
    assert set(table.style) >= set(UNDERSTANDING) | set(REASONING)
