"""EChat-eval's open texts: they keep the rules, share nothing with the other set, and a broken one is named."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec
import pytest

from overtone.build import echat_texts as texts
from overtone.build.script import read_conflicts, read_dialogues, read_set, sets
from overtone.build.voices import ROLES
from overtone.cues import BY_SLUG
from overtone.errors import DataError
from tests.build.echat_rules import problems

QUERY = """
[[query]]
id = "{kind}-01"
topic = "home"
voice = "dora"
words = "{words}"
[[query.said]]
{one}
reply = "{reply}"
reply_emotion = "happy"
style = "bright"
[[query.said]]
{two}
reply = "Another one"
reply_emotion = "sad"
style = "soft"
"""


def open_texts() -> list[str]:
    scripts = [*read_set("open"), *read_conflicts("open")]
    found = [text for s in scripts for text in (s.words, *s.reply.values())]
    return found + [text for d in read_dialogues("open") for turn in d.turn for text in (turn.words, turn.reply)]


def written(folder: Path, category: str = "emotion", **change: str) -> Path:
    """A folder of five files with one query each, of which one is changed."""
    plain = {
        "emotion": ('emotion = "happy"', 'emotion = "sad"'),
        "age": ('age = "child"', 'age = "old"'),
        "gender": ('gender = "male"', 'gender = "female"'),
        "event": ('event = "rain"', 'event = "dog"'),
        "multi": ('age = "child"\nevent = "dog"', 'emotion = "sad"\nage = "old"\nevent = "dog"'),
    }
    for name, (one, two) in plain.items():
        fields = {"kind": name, "words": f"Words of {name}.", "one": one, "two": two, "reply": "A reply."}
        if name == category:
            fields |= change
        (folder / f"{name}.toml").write_text(QUERY.format(**fields))
    return folder


def test_every_rule_is_kept_and_nothing_is_said_in_the_other_set() -> None:
    assert problems(texts.read(), open_texts()) == []


def test_each_category_has_its_items_and_labels_come_evenly() -> None:
    items = list(texts.spoken(texts.read()))
    assert Counter(s.query.category for s in items) == dict.fromkeys(texts.CATEGORIES, 44)
    assert len({s.id for s in items}) == 220
    for category in ("emotion", "age", "gender", "event"):
        labels = Counter(s.said.labels[category] for s in items if s.query.category == category)
        most = {"emotion": 1.2, "age": 1.1, "gender": 1.0, "event": 2.5}[category]
        assert max(labels.values()) <= most * min(labels.values()), labels
    together = Counter(len(s.said.labels) for s in items if s.query.category == "multi")
    assert set(together) == {2, 3} and together[3] >= 8


def test_every_sentence_wants_another_reply_for_each_way_it_is_said() -> None:
    for query in texts.read():
        assert len({said.reply for said in query.said}) == len(query.said) == 2, query.id


def test_every_label_is_a_cue_of_ours_or_nothing_to_hear() -> None:
    assert set(texts.EVENTS) <= set(BY_SLUG)
    for s in texts.spoken(texts.read()):
        heard = [label for label in s.said.labels.values() if label != "neutral"]
        assert [cue.slug for cue in s.said.cues] == [{"old": "elderly"}.get(label, label) for label in heard]


def test_who_speaks_has_the_sex_of_the_label() -> None:
    for s in texts.spoken(texts.read()):
        if s.said.gender:
            assert ROLES[s.voice] == s.said.gender
        else:
            assert s.voice == s.query.voice


def test_a_record_is_echats_with_what_it_lacks() -> None:
    found = {s.id: s.record() for s in texts.spoken(texts.read())}
    one = found["multi-04-angry-wind"]
    assert one["wav"] == "audio/multi/multi-04-angry-wind.wav" and one["category"] == "multi"
    assert one["txt"].startswith("Behind the shed, and I should have put it back")
    extra = one["extra"]
    assert (extra["q_emotion"], extra["caption"], extra["a_emotion"]) == ("<ANGER>", "<WIND>", "<NEUTRAL>")
    assert "age" not in extra and "gender" not in extra
    assert extra["question"] == "I'm out in the garden; where did you put the ladder?"
    assert found["event-02-sobbing"]["extra"]["caption"] == "<CRY>"


def test_the_texts_are_no_script_set() -> None:
    assert "echat_eval" not in sets()


@pytest.mark.parametrize(
    ("category", "change", "problem"),
    [
        ("emotion", {"one": 'emotion = "joy"'}, r"emotion\.toml: cannot be read as queries: .*'joy'"),
        ("emotion", {"one": 'emotion = "sad"'}, "each with different labels"),
        ("age", {"one": 'gender = "male"'}, "its labels are gender"),
        ("event", {"one": 'event = "sneeze"'}, "no event 'sneeze'"),
        ("multi", {"one": 'age = "old"'}, "two or three in multi"),
        ("gender", {"one": ""}, "its labels are none"),
        ("event", {"kind": "multi"}, "like event-01"),
        ("emotion", {"words": " "}, "printable characters"),
        ("emotion", {"one": 'emotion = "fear"\nmood = "bad"'}, "unknown field `mood`"),
    ],
)
def test_what_cannot_be_spoken_is_said_with_its_file(
    tmp_path: Path, category: str, change: dict[str, str], problem: str
) -> None:
    with pytest.raises(DataError, match=problem):
        texts.read(written(tmp_path, category, **change))


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("Too few words here.", "4 words"),
        ("I do feel so happy about the new garden fence today.", "name the cue 'happy'"),
        ("They say that what a wonderful garden fence we have got.", "'wonderful' would tell a reader"),
    ],
)
def test_broken_rules_are_listed(words: str, problem: str) -> None:
    first = texts.read()[0]
    found = problems([msgspec.structs.replace(first, words=words)])
    assert any(problem in line for line in found)


def test_a_sentence_of_another_set_and_a_beginning_of_the_same_are_found() -> None:
    first, second, *_ = texts.read()
    found = problems([first], [f"Well, {first.words.lower()}"])
    assert any("also said in another set: 'the house on the corner has'" in line for line in found)
    twice = msgspec.structs.replace(second, words=first.words)
    assert any("begins like emotion-01" in line for line in problems([first, twice]))
    reply = msgspec.structs.replace(first.said[0], reply="Short.")
    short = msgspec.structs.replace(first, said=(reply, first.said[1]))
    assert any("a reply has 15 to 30" in line for line in problems([short]))
    assert any("set: 2 of emotion; at least 40" in line for line in problems([first]))
