"""The gates on text: telling words, words that predict their cue, answers out of balance, things said twice."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from msgspec.structs import replace

from overtone.build.gates import balance, neutral_words
from overtone.build.gates._lexicon import tells, tones
from overtone.build.gates._reader_view import hashed
from overtone.build.questions import Question, reasoning, understanding
from overtone.build.script import Script, read_set
from overtone.cues import CUES

TELLING = {  # words that say it, for every cue: the lexicon or the taxonomy must notice each
    "male": "As a father I would rather take the evening slot.",
    "female": "My husband wants the same room as last year.",
    "child": "Mummy says I may stay until the end.",
    "elderly": "At my age the stairs are no joke.",
    "hoarse": "My throat has been like this since the match.",
    "breath": "I ran all the way up the stairs to tell you.",
    "tired": "I have not slept, I am completely exhausted.",
    "sobbing": "I can hardly see the page for tears.",
    "happy": "What a wonderful afternoon this was.",
    "sad": "It has been so lonely here since March.",
    "surprise": "I can't believe that they chose our street.",
    "angry": "This is unacceptable, and I am fed up with it.",
    "fear": "I am afraid somebody is at the back door.",
    "disgust": "It smells rotten in that fridge again.",
    "shout": "Watch out, the ladder is coming down!",
    "whisper": "Hush, the others must not overhear this.",
    "fast": "Hurry, there is no time left for that.",
    "slow": "No rush, let us take our time with it.",
    "cough": "I have had this cough for a week now.",
    "sigh": "Oh well, it is the same as usual.",
    "laughter": "That was the funniest thing he ever did.",
    "yawn": "I am so sleepy after that lunch.",
    "moan": "My back hurts when I sit like this.",
    "wind": "Hold on to your hat in these gusts.",
    "thunder": "Did you see that lightning over the hill?",
    "rain": "Bring an umbrella when you come over.",
    "waves": "We are down at the beach with the others.",
    "basketball": "He has another dunk to go before the break.",
    "car": "I am driving, so I will call you later.",
    "subway": "The next train leaves from platform two.",
    "applause": "The audience will not let them go.",
    "cheering": "The fans have waited years for this goal.",
    "chatter": "The pub is packed again tonight.",
    "children": "The playground is full this morning.",
    "alarm": "I always press snooze at least twice.",
    "ringtone": "Would you answer it, my phone is in the bag.",
    "honking": "We are stuck in a traffic jam again.",
    "dog": "The puppy wants to go out once more.",
    "music": "Turn the radio down for a moment, please.",
}


@pytest.fixture(scope="module")
def scripts() -> tuple[Script, ...]:
    return tuple(read_set("open"))


def other(slug: str) -> str:
    return {"male": "female", "female": "male", "child": "elderly", "elderly": "child"}.get(
        slug, "wind" if slug != "wind" else "dog"
    )


# ── words ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("slug", [c.slug for c in CUES])
def test_words_that_say_their_cue_are_found_for_every_cue(slug: str, scripts: tuple[Script, ...]) -> None:
    script = replace(scripts[0], cue=slug, alternative=other(slug), words=TELLING[slug], manner={})
    found = [f for f in neutral_words.check([script], embed=hashed) if "would tell a reader" in f.reason]
    assert [f.subject for f in found] == [script.id]
    assert found[0].gate == "words"


def test_the_lexicon_has_words_for_every_cue() -> None:
    assert set(tells()) == {c.slug for c in CUES}
    assert "harsh" in tones()


def test_plain_words_pass(scripts: tuple[Script, ...]) -> None:
    plain = [replace(s, words="The key is in the second drawer on the left.") for s in scripts[::12]]
    assert neutral_words.check(plain, embed=hashed) == []


def test_few_of_the_open_sets_words_say_their_cue(scripts: tuple[Script, ...]) -> None:
    found = {f.subject for f in neutral_words.check(scripts, embed=hashed) if f.subject != "set"}
    assert len(found) <= len(scripts) // 20, sorted(found)


def test_a_conflict_script_may_say_what_its_words_are_meant_to_say(scripts: tuple[Script, ...]) -> None:
    script = replace(
        scripts[0], cue="sad", alternative="happy", says="happy", words="I am so glad and so happy today.", manner={}
    )
    assert neutral_words.check([script], embed=hashed) == []


def test_without_the_embedder_the_gate_says_what_it_did_not_check(
    scripts: tuple[Script, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(neutral_words, "embedder", lambda: None)
    (finding,) = neutral_words.check([replace(scripts[0], words="The key is in the drawer.")])
    assert finding.subject == "set"
    assert "was not made" in finding.reason
    assert all("without sentence embeddings" in row.note for row in neutral_words.predictability(scripts[:40], 0))


@pytest.mark.local
def test_words_that_lie_nearest_to_their_cues_description_are_found(scripts: tuple[Script, ...]) -> None:
    telling = replace(
        scripts[-1], cue="rain", alternative="dog", manner={}, words="Water keeps falling from the clouds."
    )
    found = [f for f in neutral_words.check([*scripts[:60], telling]) if f.value is not None]
    assert telling.id in {f.subject for f in found}
    assert all(f.value > neutral_words.NEAR == f.bound for f in found if f.value is not None)


def test_a_set_whose_words_predict_the_cue_is_found_out_and_one_that_does_not_passes(
    scripts: tuple[Script, ...],
) -> None:
    rng = np.random.default_rng(0)
    mine = scripts[48:228]
    told = [replace(s, words=f"{s.words} Then there is the {s.cue}ish thing.") for s in mine]
    leaking = {r.what: r for r in neutral_words.predictability(told, 0, hashed)}
    shuffled = [replace(s, words=mine[int(i)].words) for s, i in zip(mine, rng.permutation(len(mine)), strict=True)]
    clean = {r.what: r for r in neutral_words.predictability(shuffled, 0, hashed)}
    pair = "the target of the script's own two cues, ridge"
    among = next(what for what in leaking if what.endswith("cues, ridge") and "among" in what)
    assert leaking[among].low > leaking[among].chance
    assert leaking[pair].low > 0.5
    assert clean[pair].low <= 0.5 <= clean[pair].high
    assert clean[among].low <= clean[among].chance


def test_the_open_sets_words_do_not_tell_target_from_alternative(scripts: tuple[Script, ...]) -> None:
    pair = neutral_words.predictability(scripts, 0, hashed)[-1]
    assert pair.chance == 0.5
    assert pair.low <= 0.5


# ── balance ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def about(found: Sequence[neutral_words.Finding], text: str) -> list[str]:
    return [f"{f.subject}: {f.reason}" for f in found if text in f.reason]


def test_right_letters_out_of_balance_are_found(scripts: tuple[Script, ...]) -> None:
    questions = [q for q in understanding(scripts[:120], 0) if q.category == "coarse"]
    assert not about(balance.check([], questions), "is right in")
    spoilt = [replace(q, options=(q.options[q.gold], *(o for i, o in enumerate(q.options) if i != q.gold)), gold=0) for q in questions]  # noqa: E501  # fmt: skip
    assert about(balance.check([], spoilt), f"A is right in {len(spoilt)}")


def laughing(scripts: tuple[Script, ...], answers: Sequence[str]) -> list[Question]:
    script = replace(scripts[0], cue="laughter", alternative="sigh", manner={})
    return [
        Question(
            f"q{i}", script, "target", "laughter", "Is it hearty?", ("Yes", "No"), ("target", "alternative"),
            ("Yes", "No").index(answer),
        )
        for i, answer in enumerate(answers)
    ]  # fmt: skip


def test_yes_and_no_must_be_balanced_overall_and_within_the_cue(scripts: tuple[Script, ...]) -> None:
    even = laughing(scripts, ["Yes"] * 6 + ["No"] * 5)
    assert balance.check([], even) == []
    skewed = laughing(scripts, ["Yes"] * 8 + ["No"] * 3)
    assert about(balance.check([], skewed), "overall: 8 Yes, 3 No")
    assert about(balance.check([], skewed), "on clips with laughter: 8 Yes, 3 No")
    # balanced overall by clips without laughter, but whoever hears laughter may say Yes
    rest = [replace(q, id=f"r{i}", style="alternative") for i, q in enumerate(laughing(scripts, ["No"] * 5))]
    found = balance.check([], skewed + rest)
    assert not about(found, "overall")
    assert about(found, "on clips with laughter")
    assert not about(found, "on clips with sigh")  # without laughter there is but one right answer


def test_an_option_that_is_the_longest_by_rule_is_found(scripts: tuple[Script, ...]) -> None:
    questions = [q for q in reasoning(scripts[:120], 0) if q.category == "suggestion" and not q.part]
    for kind in ("target", "harmful"):
        longer = [
            replace(q, options=tuple(f"{o}, and so on and so forth for a while" if p == kind else o for o, p in zip(q.options, q.provenance, strict=True)))  # noqa: E501
            for q in questions
        ]  # fmt: skip
        assert about(balance.check([], longer), f"the {kind} option is the longest in 100%")


def test_what_a_set_says_twice_is_found(scripts: tuple[Script, ...]) -> None:
    one, two = scripts[0], scripts[1]
    same = replace(two, words=one.words.upper().replace(".", "!"))
    assert about(balance.check([one, same], []), f"its words are those of {one.id}")
    echo = replace(two, reply=two.reply | {"target": one.reply["target"]})
    assert about(balance.check([one, echo], []), f"its reply to target is one of {one.id}")
    (q, *_) = [q for q in reasoning([one], 0) if "harmful" in q.provenance]
    assert about(balance.check([], [q, q]), "2 questions have this id")
    assert about(balance.check([], [replace(q, options=(q.options[0],) * 4)]), "two of its options are the same")
    borrowed = replace(q, id="other", script=two)
    assert about(balance.check([], [q, borrowed]), f"question and options are those of {one.id}")


def test_the_open_set_says_nothing_twice(scripts: tuple[Script, ...]) -> None:
    questions = [*understanding(scripts, 0), *reasoning(scripts, 0)]
    found = balance.check(scripts, questions)
    assert not [f for f in found if " those of " in f.reason or "same" in f.reason or "this id" in f.reason]
    assert not about(found, "is right in")
