"""Every speaker of a dialogue has a voice of a fitting sex, different from the others', the same in every build."""

from __future__ import annotations

import pytest

from overtone.build.dream.casting import FEMALE, MALE, sex_of, voices
from overtone.build.voices import Cast, VoiceError, cast


@pytest.mark.parametrize(
    ("label", "sex"),
    [
        ("M", "male"), ("Man", "male"), ("W", "female"), ("F", "female"), ("Woman", "female"), ("W2", "female"),
        ("Mr. Greenfield", "male"), ("Mrs. Smith", "female"), ("Young Girl", "female"), ("Dave's Sister", "female"),
        ("The Big Sister", "female"), ("Car Salesman", "male"), ("Anna Maria", "female"), ("John Knox", "male"),
        ("Dad", "male"), ("Emily", "female"), ("A", ""), ("Customer", ""), ("Police Officer", ""), ("", ""), ("…", ""),
    ],
)  # fmt: skip
def test_the_table_gives_labels_their_sex(label: str, sex: str) -> None:
    assert sex_of(label) == sex


def test_no_word_is_of_both_sexes() -> None:
    assert not MALE & FEMALE


@pytest.mark.local
class TestVoices:
    def test_one_speaker_has_one_voice_and_seven_have_seven(self) -> None:
        players = cast()
        assert voices(("M",), "1-1", players, 0)["M"].sex == "male"
        seven = voices(
            ("Narrator", "Captain", "Crdovi", "Computer", "Greg", "Mortia", "Mr. Greenfield"), "1-145", players, 0
        )
        assert len(set(seven.values())) == 7
        assert (seven["Greg"].sex, seven["Mortia"].sex, seven["Mr. Greenfield"].sex) == ("male", "female", "male")

    def test_the_choice_depends_on_dialogue_seed_and_take_alone(self) -> None:
        players = cast()
        first = voices(("M", "W"), "4-1", players, 0)
        assert voices(("W", "M"), "4-1", players, 0) == first
        assert voices(("M", "W"), "4-1", players, 0, take=1)["M"] != first["M"]
        drawn = {(v["M"].name, v["W"].name) for n in range(40) for v in [voices(("M", "W"), f"4-{n}", players, 0)]}
        assert len(drawn) > 10  # all voices are used
        sexes = {voices(("A",), f"4-{n}", players, 0)["A"].sex for n in range(20)}
        assert sexes == {"male", "female"} and {voices(("A",), "4-1", players, s)["A"].sex for s in range(20)} == sexes

    def test_more_men_than_male_voices_borrow_others_and_too_many_speakers_are_refused(self) -> None:
        players = cast(("espeak?male=en-us+Mike&female=en-us+f5",))
        pair = voices(("Dave", "Greg"), "4-1", players, 0)
        assert {speaker.sex for speaker in pair.values()} == {"male", "female"}
        with pytest.raises(VoiceError, match="4-1 has 3 speakers, but the cast has 2 voices"):
            voices(("A", "B", "C"), "4-1", players, 0)

    def test_labels_with_stray_letters_are_the_same_speaker(self) -> None:
        players: Cast = cast()
        found = voices(("Guest", "baskGuest", "Program Host", "dragonProgram Host"), "1-144", players, 0)
        assert found["Guest"] == found["baskGuest"] != found["Program Host"] == found["dragonProgram Host"]
