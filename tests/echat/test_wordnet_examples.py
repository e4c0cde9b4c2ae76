"""Sentences for their words: out of WordNet's examples, where there is one."""

from __future__ import annotations

from pathlib import Path

import pytest

from overtone.echat.data.containers import Pack
from overtone.echat.data.labels import REPLY
from overtone.echat.making import wordnet_examples
from overtone.echat.making.make import build
from overtone.echat.making.write import Outputs
from overtone.errors import UsageError

EXAMPLES = [
    "the cat sat on the mat",
    "the cat sat on the mat today",
    "too short",
    "he paid $5 for the old book",
    "they tried to kill the old king",
    "a friend's letter, long since lost",
    "a Frenchman's letter, long since lost",
    "Frenchmen write letters when they can",
    "This is what I wanted to say",
    "the mat sat on the cat",
    "an ever so much longer sentence that goes on and on until nobody listens",
]


def test_plain_sentences_are_taken_and_new_words_come_first() -> None:
    found = wordnet_examples.chosen(EXAMPLES, 0, 10)
    assert set(found) == {
        "The cat sat on the mat.",
        "The cat sat on the mat today.",
        "A friend's letter, long since lost.",
        "This is what I wanted to say.",
        "The mat sat on the cat.",
    }
    same = [f"the dog saw the {name} here" for name in ("cat", "cat again", "cat once more", "cat twice more")]
    first = wordnet_examples.chosen([*same, "a bird sang in the tree"], 0, 4)
    assert "A bird sang in the tree." in first
    assert wordnet_examples.chosen(EXAMPLES, 0, 2) == found[:2]
    assert any(wordnet_examples.chosen(EXAMPLES, seed, 10) != found for seed in range(1, 5))


@pytest.fixture
def small_wordnet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "wordnet"
    folder.mkdir()
    for kind in ("noun", "verb", "adj", "adv"):
        (folder / f"index.{kind}").write_text("  1 WordNet 3.0 Copyright\n")
        (folder / f"{kind}.exc").write_text("")
        (folder / f"data.{kind}").write_text('  1 This "licence" is no example of any word\n')
    lines = "; ".join(
        f'"the {thing} stands in the old garden"' for thing in ("table", "ladder", "green chair", "bicycle")
    )
    with (folder / "data.noun").open("a") as file:
        file.write(f"00000044 06 n 01 thing 0 000 | something; {lines}  \n")
    monkeypatch.setenv("OVERTONE_WORDNET", str(folder))
    return folder


@pytest.mark.local
def test_they_are_spoken_to_be_written_down_and_read_aloud(small_wordnet: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    outputs = Outputs(wavs=False, pack=str(out / "pack"))
    made = build(out, count=12, only=("words",), gates=False, jobs=1, outputs=outputs)
    assert made.parts == {"words": 4, "aloud": 4}
    for record in Pack(out / "pack" / "words").records:
        assert record.txt == record.question
        assert record.task == "<TRANSCRIBE>"
        assert record.part == "train"
        assert record.heard.known().keys() == {"age", "gender"}
    assert {r.txt for r in Pack(out / "pack" / "aloud").records} >= {"The green chair stands in the old garden."}
    assert b"WordNet 3.0" in (out / "manifest.json").read_bytes()


@pytest.mark.local
def test_they_join_a_set_where_wordnet_was_missing_and_are_not_lost_where_it_is_again(
    small_wordnet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def made() -> dict[str, int]:
        return build(tmp_path / "out", count=12, only=("style", "words"), gates=False, jobs=1, speech="").parts

    monkeypatch.setenv("OVERTONE_WORDNET", str(tmp_path / "nowhere"))
    assert made() == {"style": 4}
    monkeypatch.setenv("OVERTONE_WORDNET", str(small_wordnet))
    assert made() == {"style": 4, "words": 4}
    monkeypatch.setenv("OVERTONE_WORDNET", str(tmp_path / "nowhere"))
    with pytest.raises(UsageError, match=r"its texts differ \(another version of Overtone, or another WordNet\)"):
        made()
    assert (tmp_path / "out" / "words.list").is_file()


def test_its_notice_goes_along(small_wordnet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert wordnet_examples.notice().endswith('notice:\n\nThis "licence" is no example of any word\n')
    monkeypatch.setenv("OVERTONE_WORDNET", str(tmp_path / "nowhere"))
    assert "Princeton University" in wordnet_examples.notice()


@pytest.mark.local
def test_without_wordnet_the_part_is_left_out_and_the_command_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OVERTONE_WORDNET", str(tmp_path / "nowhere"))
    assert wordnet_examples.source() == ""
    outputs = Outputs(wavs=False, pack=str(tmp_path / "out" / "pack"))
    made = build(tmp_path / "out", count=4, only=("style", "words"), gates=False, jobs=1, speech="", outputs=outputs)
    assert "words" not in made.parts
    assert any("apt install wordnet-base" in warning for warning in made.warnings)


@pytest.mark.wordnet
def test_a_share_of_all_examples_is_read_aloud_each_in_one_emotion() -> None:
    few, more = (wordnet_examples.to_read(0, share) for share in (0.001, 0.002))
    assert 10 < len(few) < len(more) < 50 and more[: len(few)] == few
    assert len({text for text, _ in more}) == len(more)
    assert {emotion for _, emotion in more} <= set(REPLY) and len({emotion for _, emotion in more}) > 2
