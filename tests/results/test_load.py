"""A run read into memory: what a reader is told about the languages of its texts."""

from __future__ import annotations

import io
from pathlib import Path

from overtone.report import latex_tables, table_formats
from overtone.report.score_tables import result_tables
from overtone.report.terminal import print_case
from overtone.results.cases import case
from overtone.results.corpus_scores import corpus_wer
from overtone.results.load import open_run
from overtone.results.summary import summarise_reading
from overtone.runs.export_rows import rows
from overtone.runs.store import Store
from overtone.schema import Item
from overtone.scoring import score_run
from tests.results.small import Maker, item

CHINESE, WRONG = "今天天气真的非常好呀", "今天天气真的非常坏呀"


def spoken(name: str, words: str, language: str = "") -> Item:
    return item(name, "transcribe", category="asr", script=name, references=(words,), language=language)


def test_a_run_in_chinese_is_scored_by_characters_and_says_so(tmp_path: Path) -> None:
    made = Maker(tmp_path / "run")
    made.answered(spoken("one", CHINESE, "zh"), WRONG)
    made.answered(spoken("two", CHINESE), CHINESE)  # known by its script
    made.failed(spoken("three", CHINESE, "zh"))
    made.store.close()
    score_run(tmp_path / "run")
    for light in (False, True):
        reading = open_run(tmp_path / "run", light=light)
        assert [a.value("wer") for a in reading.answers] == [0.1, 0.0, None]
        (note,) = [note for note in reading.notes if "language" in note]
        assert note.startswith("Items by language: zh 3. For zh, which is written without spaces")
        assert "mixes" not in note
        rate = corpus_wer(reading.answers)
        assert rate.value == 1 / 20 and rate.worst == 11 / 30, "a missing transcript counts its ten characters"


def test_a_mean_over_languages_with_and_without_spaces_is_flagged(tmp_path: Path) -> None:
    made = Maker(tmp_path / "run")
    made.answered(spoken("one", CHINESE, "zh"), WRONG)
    made.answered(spoken("two", "the cat sat down"), "the cat sat")
    made.store.close()
    score_run(tmp_path / "run")
    reading = open_run(tmp_path / "run")
    (note,) = [note for note in reading.notes if "language" in note]
    assert "zh 1, en 1" in note and "compare language by language" in note
    assert set(reading.signatures) >= {"wer", "wer_raw"} and not reading.measured_twice
    assert [a.value("wer") for a in reading.answers] == [0.1, 0.25]


def test_a_run_in_languages_with_spaces_has_no_such_note(tmp_path: Path) -> None:
    made = Maker(tmp_path / "run")
    made.answered(spoken("one", "schön gut", "de"), "schon gut")
    made.store.close()
    score_run(tmp_path / "run")
    reading = open_run(tmp_path / "run")
    assert [a.value("wer") for a in reading.answers] == [0.5]
    assert not [note for note in reading.notes if "language" in note]


def test_mean_words_of_replies_leave_out_texts_without_spaces_as_reply_words_does(tmp_path: Path) -> None:
    made = Maker(tmp_path / "run")
    made.answered(item("zh", "converse", level=3, references=(CHINESE,)), CHINESE)
    made.answered(item("de", "converse", level=3, references=("Wie schön!",), language="de"), "Ach – wie schön, oder?")
    made.answered(item("en", "converse", level=3, references=("Oh no.",)), "I'm so sorry.")
    made.store.close()
    (table,) = result_tables("results", [open_run(tmp_path / "run", light=True)])
    assert "3.5 (of 2 replies)" in [cell.text for cell in table.lines[0].cells]
    score_run(tmp_path / "run", metrics=["lengths"])
    (condition,) = summarise_reading(open_run(tmp_path / "run", light=True)).conditions
    talk = condition.conversation
    assert talk is not None and (talk.words, talk.counted, talk.texts) == (3.5, 2, 3)
    assert talk.measures["reply_words"].value == 3.5, "one definition"


def test_choice_questions_count_among_the_items_of_a_language(tmp_path: Path) -> None:
    made = Maker(tmp_path / "run")
    made.answered(spoken("one", CHINESE, "zh"), CHINESE)
    made.choice(item("two", "choose", language="zh"), "A")
    made.store.close()
    (note,) = [note for note in open_run(tmp_path / "run").notes if "language" in note]
    assert note.startswith("Items by language: zh 2.")


def test_a_rate_of_characters_is_called_cer_and_the_table_says_so(tmp_path: Path) -> None:
    for name, languages in (("zh", ["zh"]), ("both", ["zh", "de"])):
        made = Maker(tmp_path / name)
        for language in languages:
            made.answered(spoken(language, CHINESE if language == "zh" else "Ach wie schön", language), WRONG)
        made.store.close()
        score_run(tmp_path / name, metrics=["wer"])
    chinese, both = (open_run(tmp_path / name, light=True) for name in ("zh", "both"))
    (alone,), (mixed,) = result_tables("results", [chinese]), result_tables("results", [both])
    assert alone.heads[:2] == ("CER ↓", "CER, corpus ↓") and mixed.heads[:2] == ("WER/CER ↓", "WER/CER, corpus ↓")
    for table, words in ((alone, "character error rate"), (mixed, "compare language by language")):
        for form in (table_formats.markdown, latex_tables.latex, table_formats.csv_text):
            assert words in form([table], ["run"])
    with Store.read(tmp_path / "both") as store:
        out = io.StringIO()
        print_case(case(store, "synthesis/zh/target"), out)
        print_case(case(store, "synthesis/de/target"), out)
    assert "CER 10.0" in out.getvalue() and "WER 100.0" in out.getvalue()


def test_an_export_says_the_language_of_each_row_and_what_is_counted(tmp_path: Path) -> None:
    made = Maker(tmp_path / "run")
    made.answered(spoken("one", CHINESE), WRONG)  # known by its script
    made.answered(spoken("two", "schön gut", "de"), "schon gut")
    made.store.close()
    with Store.read(tmp_path / "run") as store:
        told = [(row["item"], row["language"], row["unit"]) for row in rows(store)]
    assert told == [("one", "zh", "characters"), ("two", "de", "words")]
