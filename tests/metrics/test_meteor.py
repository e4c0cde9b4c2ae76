"""METEOR: parity with NLTK's, WordNet's own files read, and no score at all where there is no WordNet."""

from __future__ import annotations

from pathlib import Path

import pytest

from overtone.embedded.wordnet import FOLDER, VARIABLE, WordNet, wordnet
from overtone.errors import DataError, MissingExtra
from overtone.metrics.meteor import align, load
from tests.metrics.answers import answered, item
from tests.metrics.words import words
from tests.needs import missing

HEADER = "  1 WordNet 3.0 Copyright 2006 by nobody  \n"
KINDS = ("noun", "verb", "adj", "adv")


def make(folder: Path, synsets: dict[str, list[str]], irregular: str = "") -> Path:
    """A WordNet of a few synsets for each kind, with true offsets."""
    for kind in KINDS:
        data, index = HEADER, {}
        for line in synsets.get(kind, []):
            members = line.split()
            named = " ".join(f"{member} 0" for member in members)
            for member in members:
                index.setdefault(member.partition("(")[0].lower(), []).append(len(data.encode()))
            data += f'{len(data.encode()):08d} 03 {kind[0]} {len(members):02x} {named} 000 | a gloss, with "words"\n'
        lines = [
            f"{w} {kind[0]} {len(at)} 2 @ ~ {len(at)} 0 {' '.join(f'{a:08d}' for a in at)}  \n"
            for w, at in index.items()
        ]
        (folder / f"data.{kind}").write_text(data)
        (folder / f"index.{kind}").write_text(HEADER + "".join(sorted(lines)))
        (folder / f"{kind}.exc").write_text(irregular if kind == "noun" else "")
    return folder


@pytest.fixture
def small_wordnet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    synsets = {
        "noun": ["car auto motor_vehicle", "goose", "car railcar", "Paris"],
        "verb": ["begin start", "buy purchase"],
        "adj": ["big(p) large"],
    }
    return make(tmp_path, synsets, "geese goose\n")


def real() -> WordNet:
    if reason := missing("wordnet"):
        pytest.skip(reason)
    return WordNet(FOLDER)


def test_each_of_1500_pairs_has_nltks_value_given_wordnets_synonyms() -> None:
    known = words().synonyms
    expected = words().values("meteor")
    assert len(expected) > 1400 and sum(0 < value < 1 for *_, value in expected) > 500
    for reply, reference, value in expected:
        found = align(reply.lower().split(), reference.lower().split(), lambda word: {word, *known.get(word, ())})
        assert found.value == pytest.approx(value, abs=1e-6), (reply, reference)


def test_synonyms_matter_to_the_parity_above() -> None:
    changed = 0
    for reply, reference, value in words().values("meteor"):
        changed += abs(align(reply.lower().split(), reference.lower().split(), lambda w: (w,)).value - value) > 1e-6
    assert changed > 50


def test_the_installed_wordnet_has_the_synonyms_nltk_finds_in_it() -> None:
    found, expected = real(), words().synonyms
    assert len(expected) > 150
    assert {word: sorted(found.synonyms(word) - {word}) for word in expected} == {
        word: sorted(set(names) - {word}) for word, names in expected.items()
    }
    assert found.identity.startswith("3.0-")


def test_each_of_1500_pairs_has_nltks_value_with_the_installed_wordnet(monkeypatch: pytest.MonkeyPatch) -> None:
    real()
    monkeypatch.delenv(VARIABLE, raising=False)
    expected = words().values("meteor")
    rows = load().score(
        [answered(item("converse", references=(reference,)), reply) for reply, reference, _ in expected]
    )
    assert [row[0].value for row in rows] == pytest.approx([value for *_, value in expected], abs=1e-6)


def test_synonyms_are_found_by_inflected_and_irregular_forms(small_wordnet: Path) -> None:
    found = wordnet()
    assert found.synonyms("cars") == {"cars", "car", "auto", "railcar"}
    assert found.synonyms("geese") == {"geese", "goose"}
    assert found.synonyms("starting") == {"starting", "begin", "start"}
    assert found.synonyms("larger") == {"larger", "big", "large"}
    assert found.synonyms("paris") == {"paris", "Paris"}
    assert found.synonyms("motor") == {"motor"}


def test_every_regular_ending_leads_to_its_word(tmp_path: Path) -> None:
    forms = {
        "noun": "dogs-dog gases-gas wolves-wolf boxes-box quizzes-quizz benches-bench dishes-dish men-man flies-fly",
        "verb": "runs-run tries-try likes-like goes-go liked-like walked-walk liking-like walking-walk",
        "adj": "smaller-small smallest-small nicer-nice nicest-nice",
    }
    pairs = {kind: [pair.split("-") for pair in text.split()] for kind, text in forms.items()}
    found = WordNet(make(tmp_path, {kind: sorted({base for _, base in p}) for kind, p in pairs.items()}))
    for form, base in (pair for of_kind in pairs.values() for pair in of_kind):
        assert found.synonyms(form) == {form, base}


def test_a_synonym_and_a_stem_count_as_matches(small_wordnet: Path) -> None:
    of = item("converse", references=("They start the auto",))
    score = load().score([answered(of, "they started the car")])[0][0]
    assert score.detail == {"matches": 4, "chunks": 1, "reply_words": 4, "reference_words": 4}
    assert score.value == pytest.approx(1 - 0.5 / 64)
    assert score.signature.startswith("meteor|v2|alpha:0.9|beta:3|gamma:0.5|")
    assert score.signature.endswith(f"|wordnet:{wordnet().identity}")


def test_broken_order_costs(small_wordnet: Path) -> None:
    of = item("converse", references=("one two three four",))
    straight, broken = (
        row[0].value for row in load().score([answered(of, "one two three four"), answered(of, "four three two one")])
    )
    assert straight is not None and broken == pytest.approx(0.5) and straight > 0.99


def test_without_wordnet_nothing_is_scored_and_the_command_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "nowhere"))
    score = load().score([answered(item("converse", references=("same words",)), "same words")])[0][0]
    assert score.value is None and "apt install wordnet-base" in score.reason
    assert score.signature.endswith("|wordnet:missing")
    with pytest.raises(MissingExtra, match=rf"no index\.noun in .*nowhere, which {VARIABLE} names"):
        wordnet()
    monkeypatch.delenv(VARIABLE)
    monkeypatch.setattr("overtone.embedded.wordnet.FOLDER", tmp_path / "nothing")
    score = load().score([answered(item("converse", references=("same words",)), "same words")])[0][0]
    assert score.reason == "WordNet is not installed; apt install wordnet-base"


def test_a_wordnet_whose_files_do_not_belong_together_scores_nothing(small_wordnet: Path) -> None:
    data = small_wordnet / "data.noun"
    data.write_text("  a line more\n" + data.read_text())
    with pytest.raises(DataError, match="no synset at"):
        wordnet().synonyms("car")
    score = load().score([answered(item("converse", references=("auto",)), "car")])[0][0]
    assert score.value is None and "no synset at" in score.reason


@pytest.mark.parametrize(
    ("name", "text"), [("data.verb", ""), ("index.verb", "begin v x\n"), ("index.adv", "so r 1 0 1")]
)
def test_an_empty_or_cut_file_of_wordnet_is_named(small_wordnet: Path, name: str, text: str) -> None:
    (small_wordnet / name).write_text(text)
    score = load().score([answered(item("converse", references=("auto",)), "car")])[0][0]
    assert score.value is None and name in score.reason and "apt install wordnet-base" in score.reason


def test_an_empty_reply_has_zero_and_no_reference_is_unscored(small_wordnet: Path) -> None:
    empty, without = load().score(
        [answered(item("converse", references=("words",)), " "), answered(item("converse"), "words")]
    )
    assert empty[0].value == 0.0
    assert (without[0].value, without[0].reason) == (None, "no reference")


def test_only_conversation_is_scored() -> None:
    assert load().applies(item("converse")) and not load().applies(item("choose"))
