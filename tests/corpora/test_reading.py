"""Reading a corpus: the choice of the adapter, broken files, hostile names, bounded warnings."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from overtone import corpora, registry
from overtone.corpora import meld
from overtone.corpora.reading import SHOWN
from overtone.errors import AudioError, UsageError
from tests.conftest import REPOSITORY
from tests.corpora.folders import FOLDERS, text, tone
from tests.docs.conftest import EXAMPLES

HEAD = "file,speaker,sex,age,emotion\n"


def test_a_spec_names_the_kind_or_leaves_it_open(tmp_path: Path) -> None:
    assert corpora.parse(f"ravdess:{tmp_path}") == ("ravdess", tmp_path)
    assert corpora.parse("common_voice:cv/en") == ("common-voice", Path("cv/en"))
    assert corpora.parse(str(tmp_path)) == ("", tmp_path)
    assert corpora.parse("~/corpora")[1] == Path.home() / "corpora"
    with pytest.raises(UsageError, match=r"unknown corpus 'ravdes'; did you mean 'ravdess';"):
        corpora.parse("ravdes:/data")
    with pytest.raises(UsageError, match="no folder; write ravdess:DIR"):
        corpora.parse("ravdess:")


def test_a_wrong_kind_is_told_which_kind_the_folder_looks_like(tmp_path: Path) -> None:
    FOLDERS["tess"](tmp_path)
    with pytest.raises(UsageError, match=r"does not have the layout of RAVDESS: it looks like tess; write tess:"):
        corpora.read("ravdess", tmp_path)
    text(tmp_path / "labels.csv", f"{HEAD}OAF_Fear/OAF_back_fear.wav,OAF,female,64,fear\n")
    with pytest.raises(UsageError, match=r"does not have the layout of SAVEE: it looks like tess; write tess:"):
        corpora.read("savee", tmp_path)  # although there is a table
    with pytest.raises(UsageError, match="no such folder"):
        corpora.read("tess", tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=r"does not have the layout of TESS: expected OAF_angry/OAF_back_angry"):
        corpora.read("tess", tmp_path / "empty")
    with pytest.raises(UsageError, match=r"not the layout of a known corpus .*labels\.csv"):
        corpora.read("", tmp_path / "empty")


def test_without_a_kind_the_layout_decides(tmp_path: Path) -> None:
    FOLDERS["savee"](tmp_path)
    assert corpora.read("", tmp_path).kind == "savee"


def test_corpora_are_found_below_a_folder_and_not_taken_for_one(tmp_path: Path) -> None:
    for kind in ("ravdess", "tess", "librispeech", "nonverbal"):
        FOLDERS[kind](tmp_path / "some" / kind)
    FOLDERS["esc50"](tmp_path / "sounds")
    (tmp_path / ".hidden").mkdir()
    assert corpora.find(tmp_path) == [
        *((kind, tmp_path / "some" / kind) for kind in ("librispeech", "nonverbal", "ravdess", "tess")),
        ("esc50", tmp_path / "sounds"),
    ]
    assert corpora.find(tmp_path / "sounds") == [("esc50", tmp_path / "sounds")]


def test_any_kind_reads_a_converted_selection_with_a_table(tmp_path: Path) -> None:
    tone(tmp_path / "one.wav")
    text(tmp_path / "labels.csv", f"{HEAD}one.wav,Ses01F,female,,angry\n")
    one = corpora.read("iemocap", tmp_path).recordings[0]
    assert (one.corpus, one.licence, one.emotion) == ("iemocap", "non-commercial research only", "angry")


def test_bad_rows_are_named_with_their_line_and_the_others_stay(tmp_path: Path) -> None:
    tone(tmp_path / "one.wav")
    rows = ["one.wav,a,female,30,sad", "two.wav,a,female,30,sad", "one.wav,b,male,30,sad", "three.wav,a,woman?,30,sad",
            "four.wav,a,male,old,sad", "five.wav,a,male,-3,sad", ",a,male,,"]  # fmt: skip
    text(tmp_path / "labels.csv", HEAD + "\n".join(rows) + "\n")
    reading = corpora.read("table", tmp_path)
    assert [one.name for one in reading.recordings] == ["one.wav"] and reading.left_out == 6
    wrong = "\n".join(reading.warnings)
    for problem in (
        "two.wav: the file is missing",
        "one.wav: a second row of the same name",
        "line 5: sex 'woman?'",
        "line 6: age 'old'",
        "line 7: age '-3'",
        "'' is not a file name",
        "left out 6 of 7 as table",
    ):
        assert problem in wrong


def test_a_table_that_ends_early_or_is_not_utf8_gives_its_other_rows(tmp_path: Path) -> None:
    for name in ("one", "two"):
        tone(tmp_path / f"{name}.wav")
    text(tmp_path / "labels.csv", f"{HEAD}one.wav,a,female,30,sad\ntwo.wav")
    assert [one.speaker for one in corpora.read("table", tmp_path).recordings] == ["a", "two"]
    (tmp_path / "labels.csv").write_bytes(HEAD.encode() + b"two.wav,J\xfcrgen,,,\none.wav,a,female,30,sad\n")
    reading = corpora.read("table", tmp_path)
    assert [one.speaker for one in reading.recordings] == ["a"]
    assert "labels.csv line 2: not text in UTF-8" in reading.warnings[0]
    (tmp_path / "labels.csv").write_bytes(f"{HEAD}one.wav,Jürgen,,,\n".encode("utf-8-sig"))
    assert corpora.read("table", tmp_path).recordings[0].speaker == "Jürgen"
    (tmp_path / "labels.csv").write_text(f"{HEAD}one.wav,{'x' * 200_000},,,\n")
    assert "not a table" in corpora.read("table", tmp_path).warnings[0]


def test_paths_that_leave_the_folder_are_not_read(tmp_path: Path) -> None:
    tone(tmp_path / "secret.wav")
    home = tmp_path / "corpus"
    tone(home / "one.wav")
    (home / "link.wav").symlink_to(tmp_path / "secret.wav")
    rows = [
        "../secret.wav,a,,,",
        f"{tmp_path / 'secret.wav'},a,,,",
        "link.wav,a,,,",
        f"{'x' * 300}.wav,a,,,",
        "one.wav,a,,,",
    ]
    text(home / "labels.csv", HEAD + "\n".join(rows))
    reading = corpora.read("table", home)
    assert [one.name for one in reading.recordings] == ["one.wav"]
    assert reading.left_out == 4 and sum("leaves its folder" in line for line in reading.warnings) == 2


def test_texts_behind_links_are_not_read(tmp_path: Path) -> None:
    """A download must not bring other files of the user's into a set."""
    text(tmp_path / "secret.txt", "my password")
    home = tmp_path / "msp"
    FOLDERS["msp-podcast"](home)
    words = home / "Transcripts" / "MSP-PODCAST_0001_0008.txt"
    words.unlink()
    words.symlink_to(tmp_path / "secret.txt")
    reading = corpora.read("msp-podcast", home)
    assert "my password" not in str(reading.recordings) and ": a link; copy the file" in reading.warnings[0]
    table = home / "Labels" / "labels_consensus.csv"
    table.rename(tmp_path / "table.csv")
    table.symlink_to(tmp_path / "table.csv")
    assert ": a link; copy the file" in corpora.read("msp-podcast", home).warnings[0]


def test_a_linked_folder_of_sounds_is_not_entered(tmp_path: Path) -> None:
    FOLDERS["emodb"](tmp_path / "a")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "wav").symlink_to(tmp_path / "a" / "wav")
    assert corpora.detect(tmp_path / "b") == []
    linked = tmp_path / "linked"
    linked.symlink_to(tmp_path / "a")
    assert len(corpora.read("emodb", linked).recordings) == 4  # the folder itself may be a link


def test_a_pipe_in_place_of_a_table_is_not_waited_for(tmp_path: Path) -> None:
    FOLDERS["cremad"](tmp_path)
    (tmp_path / "VideoDemographics.csv").unlink()
    os.mkfifo(tmp_path / "VideoDemographics.csv")
    os.mkfifo(tmp_path / "labels.csv")
    assert len(corpora.read("", tmp_path).recordings) == 4


def test_warnings_are_bounded_and_counted(tmp_path: Path) -> None:
    FOLDERS["emodb"](tmp_path)
    rows = "".join(f"{n}.wav,a,,,\n" for n in range(100))
    text(tmp_path / "table" / "labels.csv", HEAD + rows)
    reading = corpora.read("table", tmp_path / "table")
    assert len(reading.warnings) == SHOWN + 1 and reading.left_out == 100
    assert reading.warnings[-1].endswith("left out 100 of 100 as table")


def test_texts_of_files_cannot_write_to_the_terminal(tmp_path: Path) -> None:
    text(tmp_path / "labels.csv", f"{HEAD}\x1b[31mred.wav,a,,,\n")
    assert "\x1b" not in "".join(corpora.read("table", tmp_path).warnings)


def test_second_copies_in_a_download_are_left_out(tmp_path: Path) -> None:
    FOLDERS["ravdess"](tmp_path)
    FOLDERS["ravdess"](tmp_path / "audio_speech_actors_01-24")
    reading = corpora.read("ravdess", tmp_path)
    assert len(reading.recordings) == 17 and reading.left_out == 17
    assert "a second copy of 03-01-01-01-02-01-01" in reading.warnings[0]


def test_a_damaged_sound_is_named_when_it_is_read(tmp_path: Path) -> None:
    FOLDERS["expresso"](tmp_path)
    found = [one for one in corpora.read("expresso", tmp_path).recordings if one.channel == 1]
    path = Path(found[0].path)
    path.write_bytes(path.read_bytes()[:20_000])
    with pytest.raises(AudioError, match=path.name):
        corpora.sound(found[0], 16_000)


def test_the_worked_example_of_an_adapter_reads_its_layout(tmp_path: Path) -> None:
    registry.load_plugin(EXAMPLES / "my_corpus.py")
    for name in ("speaker_ann/hap_01", "speaker_ann/sad_01", "speaker_bob/01"):
        tone(tmp_path / f"{name}.wav")
    reading = corpora.read("", tmp_path)
    assert [(one.corpus, one.speaker, one.emotion, one.licence) for one in reading.recordings] == [
        ("my-corpus", "speaker_ann", "happy", "CC-BY-4.0"),
        ("my-corpus", "speaker_ann", "sad", "CC-BY-4.0"),
    ]
    assert "01.wav: no emotion in the name" in reading.warnings[0] and reading.left_out == 1


def test_a_plug_in_whose_corpus_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "wrong_corpus.py").write_text('"""Wrong."""\n\nROOM = "corpora"\nCORPUS = 1\n')
    registry.load_plugin(tmp_path / "wrong_corpus.py")
    with pytest.raises(UsageError, match="CORPUS of the plug-in 'wrong-corpus' is not an"):
        corpora.read("wrong-corpus", tmp_path)


def test_the_page_on_corpora_states_the_licences_and_layouts_of_the_adapters() -> None:
    text = (REPOSITORY / "docs" / "reference" / "corpora.md").read_text("utf-8")
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("| `")
    ]
    listed = {row[0].strip("`"): row for row in rows if len(row) == 5}
    assert set(listed) == set(corpora.kinds()) == {row[0].strip("`") for row in rows if len(row) == 2} | {"table"}
    for kind, corpus in corpora.kinds().items():
        if kind != "table":
            assert listed[kind][1] == corpus.title and listed[kind][3].startswith(f"`{corpus.licence}`")
            assert (listed[kind][4] == "yes") is corpora.is_open(corpus.licence)
    assert meld.FFMPEG in text
