"""Each adapter reads its publisher's layout: constructed folders, and real files where they are there."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from overtone import corpora
from overtone.corpora import Recording
from tests.corpora.folders import FOLDERS, text, tone
from tests.needs import SHARED


@pytest.fixture(params=sorted(FOLDERS))
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def read(kind: str, home: Path) -> dict[str, Recording]:
    """The recordings of the constructed folder by the stems of their names."""
    FOLDERS[kind](home)
    reading = corpora.read(kind, home)
    return {one.name.rpartition("/")[2].replace(".wav", ""): one for one in reading.recordings}


def labels(one: Recording) -> dict[str, Any]:
    """What the corpus says of a recording, without what is the same for all of the corpus."""
    same = {"corpus", "name", "path", "licence", "start"}
    return {
        field: value
        for field in one.__struct_fields__
        if field not in same and (value := getattr(one, field)) not in ("", None)
    }


def test_every_adapter_has_a_constructed_folder() -> None:
    assert sorted(FOLDERS) == sorted(corpora.kinds())


def test_a_folder_is_recognised_as_its_own_corpus_only(kind: str, tmp_path: Path) -> None:
    FOLDERS[kind](tmp_path)
    assert corpora.detect(tmp_path) == [kind]


def test_every_recording_has_a_file_a_speaker_and_a_licence_in_the_common_vocabulary(kind: str, tmp_path: Path) -> None:
    FOLDERS[kind](tmp_path)
    reading = corpora.read(kind, tmp_path)
    assert reading.recordings and reading.kind == kind
    for one in reading.recordings:
        assert one.corpus == kind and one.speaker and one.licence and Path(one.path).is_file()
        assert one.sex in ("", *corpora.SEXES) and one.age_group in ("", *corpora.AGE_GROUPS)
        assert one.intensity in ("", *corpora.INTENSITIES)
        assert one.emotion == one.emotion.lower() and one.event == one.event.lower()


def test_ravdess_keeps_calm_apart_from_neutral(tmp_path: Path) -> None:
    found = read("ravdess", tmp_path)
    assert [one.emotion for one in found.values()][:8] == [
        "neutral", "calm", "happy", "sad", "angry", "angry", "fear", "disgust",
    ]  # fmt: skip
    assert corpora.basic("calm") == "neutral"
    assert labels(found["03-01-05-02-01-02-01"]) == {
        "speaker": "01", "sex": "male", "age_group": "adult", "emotion": "angry", "intensity": "strong",
        "words": "Kids are talking by the door.", "language": "en-US",
    }  # fmt: skip


def test_tess_reads_the_name_that_lacks_a_letter(tmp_path: Path) -> None:
    found = read("tess", tmp_path)
    assert found["OA_bite_neutral"].speaker == "OAF" and found["OA_bite_neutral"].age_group == "elderly"
    assert found["YAF_dog_ps"].emotion == "surprise" and found["YAF_dog_ps"].words == "Say the word dog."


def test_savee_tells_a_from_sa(tmp_path: Path) -> None:
    assert {name: (one.speaker, one.emotion) for name, one in read("savee", tmp_path).items()} == {
        "a01": ("DC", "angry"), "sa15": ("JE", "sad"), "su03": ("KL", "surprise"), "n30": ("JK", "neutral"),
    }  # fmt: skip


def test_emodb_reads_german_letters(tmp_path: Path) -> None:
    found = read("emodb", tmp_path)
    assert {name: one.emotion for name, one in found.items()} == {
        "03a01Fa": "happy", "08b10Wc": "angry", "16a05Ld": "bored", "11b09Ab": "fear",
    }  # fmt: skip
    assert found["08b10Wc"].age == 34 and found["08b10Wc"].words.startswith("Die wird auf dem Platz sein")


def test_cremad_takes_people_from_its_table_and_reads_the_name_with_one_x(tmp_path: Path) -> None:
    found = read("cremad", tmp_path)
    assert labels(found["1002_IEO_HAP_HI"]) == {
        "speaker": "1002", "sex": "female", "age": 21, "age_group": "adult", "emotion": "happy", "intensity": "strong",
        "words": "It's eleven o'clock.", "language": "en-US",
    }  # fmt: skip
    assert found["1040_ITH_SAD_X"].intensity == "" and found["1091_WSI_NEU_LO"].age_group == "elderly"
    (tmp_path / "VideoDemographics.csv").unlink()
    reading = corpora.read("cremad", tmp_path)
    assert len(reading.recordings) == 4 and reading.left_out == 0 and reading.recordings[0].sex == ""
    assert "so that sex and age are unknown" in reading.warnings[0]


def test_meld_joins_tables_and_sounds_by_part_dialogue_and_utterance(tmp_path: Path) -> None:
    FOLDERS["meld"](tmp_path)
    found = {one.name: one for one in corpora.read("meld", tmp_path).recordings}
    assert labels(found["train_splits/dia0_utt0.wav"]) == {
        "speaker": "Chandler", "sex": "male", "emotion": "neutral", "words": "I can’t, and you?", "split": "train",
        "language": "en-US",
    }  # fmt: skip
    assert found["train_splits/dia0_utt1.wav"].sex == "" and found["train_splits/dia0_utt1.wav"].emotion == "happy"
    assert found["output_repeated_splits_test/dia0_utt0.wav"].speaker == "Mark"
    assert len(found) == 4


def test_meld_without_sounds_gives_the_line_that_converts_its_videos(tmp_path: Path) -> None:
    FOLDERS["meld"](tmp_path)
    for path in tmp_path.rglob("*.wav"):
        path.rename(path.with_suffix(".mp4"))
    reading = corpora.read("meld", tmp_path)
    assert not reading.recordings and "ffmpeg -nostdin" in reading.warnings[0]


def test_iemocap_takes_the_majority_of_its_evaluators_and_nothing_where_they_disagree(tmp_path: Path) -> None:
    found = read("iemocap", tmp_path)
    assert {name: (one.speaker, one.emotion, one.split) for name, one in found.items()} == {
        "Ses01F_impro01_F000": ("Ses01F", "neutral", "session 1"),
        "Ses01F_impro01_M001": ("Ses01M", "", "session 1"),
        "Ses02M_script01_1_F002": ("Ses02F", "excited", "session 2"),
    }
    told = found["Ses01F_impro01_M001"]
    assert (told.words, told.event, told.sex) == ("Do you have your forms?", "laughter", "male")


def test_esd_reads_the_four_encodings_and_both_layouts_of_its_texts(tmp_path: Path) -> None:
    found = read("esd", tmp_path)
    assert {name: (one.emotion, one.words, one.language, one.split) for name, one in found.items()} == {
        "0001_000701": ("happy", "他很高兴。", "zh-CN", ""),
        "0003_001401": ("surprise", "打远一看。", "zh-CN", "test"),
        "0011_000371": ("angry", "Let it be.", "en", "train"),
        "0011_000001": ("neutral", "The nine the eggs, I keep.", "en", "dev"),
        "0016_001051": ("sad", "You’re late.", "en", ""),
    }
    (tmp_path / "0011" / "0011.txt").unlink()
    reading = corpora.read("esd", tmp_path)
    assert len(reading.recordings) == 5 and "no words of speaker 0011" in reading.warnings[0]


def test_emovdb_takes_the_speaker_from_the_folder_and_words_from_arctic(tmp_path: Path) -> None:
    FOLDERS["emovdb"](tmp_path)
    found = {one.speaker: one for one in corpora.read("emovdb", tmp_path).recordings}
    assert {name: (one.emotion, one.sex) for name, one in found.items()} == {
        "bea": ("amused", "female"), "sam": ("sleepy", "male"), "josh": ("neutral", "male"),
    }  # fmt: skip
    assert found["bea"].words.startswith("Author of the danger trail")
    assert found["josh"].words == ""  # arctic_b0003 is another sentence than 0003
    tone(tmp_path / "amused_1-15_0005.wav")
    assert "no folder names the speaker" in corpora.read("emovdb", tmp_path).warnings[0]


def test_expresso_cuts_dialogues_into_turns_of_one_channel(tmp_path: Path) -> None:
    FOLDERS["expresso"](tmp_path)
    found = corpora.read("expresso", tmp_path).recordings
    turns = [one for one in found if one.channel is not None]
    assert [(one.speaker, one.emotion, one.start, one.end, one.split) for one in turns] == [
        ("ex04", "angry", 0.5, 1.75, "test"), ("ex04", "angry", 3.0, 4.5, "train"), ("ex01", "sad", 1.8, 2.9, "test"),
    ]  # fmt: skip
    sounds = [corpora.sound(one, 8_000) for one in turns]
    assert [len(sound) for sound in sounds] == [10_000, 12_000, 8_800]
    assert [crossings(sound) for sound in sounds] == [pytest.approx(2 * hertz, rel=0.02) for hertz in (200, 200, 500)]
    by_name = {Path(one.path).stem: one for one in found if one.channel is None and one.end is None}
    assert by_name["ex01_happy_00085"].words == "You did it!"
    assert (by_name["ex02_whisper_00003"].style, by_name["ex02_whisper_00003"].emotion) == ("whisper", "")
    assert len([one for one in found if "longform" in one.name]) == 2
    (tmp_path / "VAD_segments.txt").unlink()
    reading = corpora.read("expresso", tmp_path)
    assert len(reading.recordings) == 3 and "so that its turns are unknown" in reading.warnings[0]


def crossings(sound: Any) -> float:
    """Crossings of zero per second at 8 kHz."""
    return float(((sound[1:] > 0) != (sound[:-1] > 0)).sum() / len(sound) * 8_000)


def test_msp_podcast_knows_no_emotion_where_listeners_disagree_and_no_speaker_where_he_is_unknown(
    tmp_path: Path,
) -> None:
    found = read("msp-podcast", tmp_path)
    assert {name: (one.speaker, one.emotion, one.sex, one.split) for name, one in found.items()} == {
        "MSP-PODCAST_0001_0008": ("30", "neutral", "male", "test1"),
        "MSP-PODCAST_0001_0009": ("podcast MSP-PODCAST_0001", "", "", "train"),
        "MSP-PODCAST_0153_0020_01": ("39", "surprise", "female", "dev"),
    }
    assert found["MSP-PODCAST_0001_0008"].words == "But it is what it is."


def test_vocalsound_has_one_of_its_two_rates_and_ages_and_parts(tmp_path: Path) -> None:
    FOLDERS["vocalsound"](tmp_path)
    found = corpora.read("vocalsound", tmp_path).recordings
    assert [(one.speaker, one.event, one.age, one.split) for one in found] == [
        ("f0003", "cough", 24, "train"), ("f0003", "throat clearing", 24, "train"), ("m0004", "laughter", 61, "test"),
    ]  # fmt: skip
    assert all(one.name.startswith("audio_16k/") for one in found)
    text(tmp_path / "meta" / "all_meta.json", "[1")
    reading = corpora.read("vocalsound", tmp_path)
    assert len(reading.recordings) == 3 and "not JSON" in reading.warnings[0]


def test_nonverbal_takes_sound_sex_and_age_from_the_name(tmp_path: Path) -> None:
    found = read("nonverbal", tmp_path)
    assert labels(found["0C1S_6_8_0_11_0_1_1"]) == {
        "speaker": "0C1S", "sex": "female", "age": 11, "age_group": "child", "event": "throat clearing",
    }  # fmt: skip


def test_esc50_has_a_licence_per_row(tmp_path: Path) -> None:
    found = read("esc50", tmp_path)
    assert {one.event: (one.licence, one.speaker) for one in found.values()} == {
        "rain": ("CC-BY-3.0", "1000"), "sea waves": ("CC-BY-NC-3.0", "1001"), "cough": ("CC-BY-NC-3.0", "1002"),
    }  # fmt: skip


def test_common_voice_reads_quotes_and_both_spellings_of_gender(tmp_path: Path) -> None:
    FOLDERS["common-voice"](tmp_path)
    found = corpora.read("common-voice", tmp_path).recordings
    assert [(one.sex, one.age_group, one.words, one.split) for one in found] == [
        ("female", "adult", '"Quoted, he said.', "train"),
        ("male", "elderly", "Second sentence.", "test"),
        ("", "", "Third sentence.", ""),
    ]
    assert len({one.speaker for one in found}) == 3


def test_librispeech_takes_sex_from_its_list_of_speakers(tmp_path: Path) -> None:
    one = read("librispeech", tmp_path)["1688-142285-0000.flac"]
    assert (one.sex, one.split, one.words) == ("male", "test-other", "There's iron they say and I know it.")
    inner = corpora.read("librispeech", tmp_path / "test-other").recordings
    assert [(same.sex, same.split) for same in inner] == [("male", "test-other")]


def test_speechocean_joins_the_tables_of_its_parts(tmp_path: Path) -> None:
    found = read("speechocean", tmp_path)
    assert labels(found["000010011.WAV"]) == {
        "speaker": "0001", "sex": "male", "age": 6, "age_group": "child", "words": "We call it bear.", "language": "en",
        "split": "train",
    }  # fmt: skip
    assert found["000030012.WAV"].age == 25


def test_a_table_of_ones_own_states_what_it_likes_and_nothing_else_is_assumed(tmp_path: Path) -> None:
    found = read("table", tmp_path)
    assert labels(found["1"]) == {
        "speaker": "ann", "sex": "female", "age": 34, "age_group": "adult", "emotion": "happy", "intensity": "strong",
        "event": "laughter", "words": "It is late.", "language": "en-GB", "split": "train",
    }  # fmt: skip
    assert labels(found["2"]) == {"speaker": "2"} and found["2"].licence == "unknown"


@pytest.mark.shared
def test_real_corpora_have_the_counts_that_their_publishers_state() -> None:
    data = SHARED / "data"
    readings = {
        name: corpora.read(kind, data / name)
        for name, kind in {
            "people/ravdess": "ravdess",
            "people/tess": "tess",
            "people/savee": "savee",
            "people/emodb": "emodb",
            "people/speechocean_train": "speechocean",
            "ravdess": "ravdess",
            "nonverbal": "nonverbal",
            "esc50": "esc50",
            "speechocean": "speechocean",
            "librispeech": "librispeech",
        }.items()
    }
    assert not [line for reading in readings.values() for line in reading.warnings]
    assert {name: len(reading.recordings) for name, reading in readings.items()} == {
        "people/ravdess": 1080, "people/tess": 2800, "people/savee": 480, "people/emodb": 535,
        "people/speechocean_train": 2500, "ravdess": 540, "nonverbal": 173, "esc50": 192, "speechocean": 75,
        "librispeech": 50,
    }  # fmt: skip
    speakers = {name: len({one.speaker for one in reading.recordings}) for name, reading in readings.items()}
    assert [speakers[f"people/{name}"] for name in ("ravdess", "tess", "savee", "emodb", "speechocean_train")] == [
        18, 2, 4, 10, 125,
    ]  # fmt: skip
    emotions = Counter(one.emotion for one in readings["people/emodb"].recordings)
    assert emotions == {
        "angry": 127, "bored": 81, "neutral": 79, "happy": 71, "fear": 69, "sad": 62, "disgust": 46,
    }  # fmt: skip
    assert sum(corpora.is_open(one.licence) for one in readings["esc50"].recordings) == 60


@pytest.mark.shared
@pytest.mark.parametrize("name", ["ravdess", "tess", "savee", "emodb"])
def test_names_say_the_same_as_the_tables_beside_real_files(name: str) -> None:
    folder = SHARED / "data" / "people" / name
    by_name = {one.name: one for one in corpora.read(name, folder).recordings}
    for row in corpora.read("table", folder).recordings:
        one = by_name[row.name]
        assert (one.speaker, one.sex, one.emotion) == (row.speaker, row.sex, row.emotion)
        assert row.intensity in ("", one.intensity) and row.words in ("", one.words) and row.age in (None, one.age)
