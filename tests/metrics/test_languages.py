"""Texts in other languages: what is counted of them, against the libraries of the field, and what has no value."""

from __future__ import annotations

import json
from pathlib import Path

import jiwer
import pytest
from whisper_normalizer.basic import BasicTextNormalizer

from overtone.languages import LanguageCheck, is_tag, is_unspaced, language_of, primary, tag_problem
from overtone.metrics import bertscore, bleu, lengths, meteor, rouge, semsim, style, wer
from overtone.metrics.normalise import basic
from overtone.schema import Score
from tests.metrics.answers import answered, item
from tests.metrics.make_languages import TEXTS, pairs

ROWS = json.loads(Path(__file__).with_name("languages.json").read_text("utf-8"))["rows"]
WRONG = ("今天天气真的非常好呀", "今天天气真的非常坏呀")  # one of ten characters


def transcript(reply: str, reference: str, language: str) -> dict[str, Score]:
    row = wer.load().score([answered(item("transcribe", references=(reference,), language=language), reply)])[0]
    return {score.metric: score for score in row}


def talk(metric: object, reply: str, reference: str, language: str) -> dict[str, Score]:
    of = item("converse", references=(reference,), language=language)
    return {score.metric: score for score in metric.score([answered(of, reply)])[0]}  # type: ignore[attr-defined]


@pytest.mark.parametrize("language", ["zh", "zh-Hant", ""])
def test_one_wrong_character_of_ten_is_an_error_rate_of_ten_percent(language: str) -> None:
    right, wrong = WRONG
    found = transcript(wrong, right, language)
    assert found["wer"].value == found["wer_raw"].value == pytest.approx(0.1)
    assert found["wer"].detail["unit"] == "character" and found["wer"].detail["reference_words"] == 10
    assert 0.5 < (talk(bleu.load(), wrong, right, language)["bleu"].value or 0) < 1
    assert talk(rouge.load(), wrong, right, language)["rouge_l"].value == pytest.approx(0.9)


@pytest.mark.parametrize(("language", "reply", "reference"), pairs())
def test_raw_rates_are_those_of_jiwer(language: str, reply: str, reference: str) -> None:
    rate = jiwer.cer if is_unspaced(language) else jiwer.wer
    expected = rate(reference, reply) if reply else 1.0
    assert transcript(reply, reference, language)["wer_raw"].value == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("language", "reply", "reference", "score"), ROWS)
def test_corpus_bleu_is_that_of_sacrebleu(language: str, reply: str, reference: str, score: float) -> None:
    found = talk(bleu.load(), reply, reference, language)["bleu_corpus"].value
    assert found is not None and 100 * found == pytest.approx(score, abs=1e-6)


@pytest.mark.parametrize(
    "text", [text for texts in TEXTS.values() for text in texts] + ["[lacht] Öl!", "नमस्ते दुनिया।", "สวัสดี"]
)
def test_other_languages_are_normalised_as_whisper_does_with_marks_preserved(text: str) -> None:
    theirs = BasicTextNormalizer(preserve_marks=True)(text)
    if "（" not in text:  # full-width remarks are removed here as ASCII ones are
        assert basic(text).split() == theirs.split()


def test_full_width_remarks_are_removed() -> None:
    assert basic("好的（笑）。").split() == ["好的"]


def test_english_rules_do_not_touch_german_and_spanish() -> None:
    """The English normaliser would make "schön" of "schon", and "1" of "one"."""
    assert transcript("schon gut", "schön gut", "de")["wer"].value == 0.5
    assert transcript("Schön, gut!", "schön gut", "de")["wer"].value == 0.0
    assert transcript("el ano", "el año", "es")["wer"].value == 0.5
    assert transcript("one", "1", "de")["wer"].value == 1.0 and transcript("one", "1", "en")["wer"].value == 0.0
    assert talk(rouge.load(), "schon", "schön", "de")["rouge_l"].value == 0.0
    assert talk(rouge.load(), "¡Años!", "años", "es")["rouge_l"].value == 1.0


@pytest.mark.parametrize("language", ["zh", "ja", "de", "es", "mul"])
def test_what_knows_english_alone_is_unscored_with_the_reason(language: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from overtone.embedded import embedder

    def unused(*_: object, **__: object) -> list[object]:
        return []

    monkeypatch.setattr(embedder, "identity", lambda: "none")
    monkeypatch.setattr(embedder, "embed", unused)
    monkeypatch.setattr(embedder, "tokens", unused)
    text = TEXTS.get(language, TEXTS["es"])[0]
    scores = [
        talk(metric, text, text, language)[name]
        for metric, name in (
            (semsim.load(), "semsim"),
            (bertscore.load(), "bertscore"),
            (rouge.load(), "rouge_l_stemmed"),
            (style.load(), "style_margin"),
        )
    ]
    (by_meteor,) = talk(meteor.load(), text, text, language).values()
    for score in [*scores, by_meteor]:
        assert score.value is None
        assert f"is for English, and this item is in {language!r}" in score.reason


def test_a_model_of_many_languages_is_not_refused_by_bertscore() -> None:
    assert "bert-base-multilingual-cased" not in bertscore.ENGLISH and "roberta-large" in bertscore.ENGLISH


def test_lengths_count_characters_where_words_have_no_spaces() -> None:
    found = {s.metric: s for s in lengths.load().score([answered(item("converse", language="ja"), "はい、はい。")])[0]}
    assert found["reply_words"].value is None and "'ja' has no spaces" in found["reply_words"].reason
    assert found["reply_chars"].value == 6
    assert found["reply_distinct_1"].value == 0.5  # は, い of four characters without marks
    german = {
        s.metric: s for s in lengths.load().score([answered(item("converse", language="de"), "Schöne Grüße!")])[0]
    }
    assert german["reply_words"].value == 2


def test_signatures_tell_how_text_is_split() -> None:
    zh, en = (transcript("a", "a", language)["wer"].signature for language in ("zh", "en"))
    assert zh == en and "split:space,unspaced=char" in zh
    assert "unspaced=char" in bleu.CORPUS and "unspaced=char" in rouge.PLAIN and "lang:en" in meteor.NAME


def test_a_language_is_what_the_item_says_else_what_its_script_suggests() -> None:
    assert [primary(tag) for tag in ("zh-Hant", "EN_us", "German", "")] == ["zh", "en", "de", ""]
    assert is_tag("de") and is_tag("zh-Hant-TW") and not is_tag("d") and not is_tag("de de")
    assert language_of("de", "你好") == "de"
    assert [
        language_of("", text) for text in ("hello", "schön", "", "你好", "それは大変", "안녕하세요", "สวัสดี", "Привет")
    ] == [*("en", "en", "en", "zh", "ja", "ko", "th", "und")]
    assert language_of("mul", "hola") == "mul" and language_of("mul", "你好吗") == "zh"


def test_an_item_in_another_language_does_not_ask_for_what_would_not_help_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from overtone.embedded import embedder
    from overtone.errors import MissingExtra

    def missing(*_: object, **__: object) -> None:
        raise MissingExtra("install this")

    monkeypatch.setattr(embedder, "identity", missing)
    monkeypatch.setattr(embedder, "tokens", missing)
    monkeypatch.setattr(meteor, "wordnet", missing)
    for metric in (semsim.load(), style.load(), meteor.load(), bertscore.load()):
        (foreign,) = talk(metric, "hallo", "hallo", "de").values()
        (english,) = talk(metric, "hello", "hello", "en").values()
        assert "is for English" in foreign.reason and english.reason == "install this"


def test_a_tag_that_names_no_language_is_a_problem_with_the_nearest_one() -> None:
    for tag, meant in (("jp", "ja"), ("cn", "zh"), ("cz", "cs"), ("spanis", "es"), ("JP", "ja")):
        assert f"did you mean {meant!r}?" in tag_problem(tag)
    assert "no language 'klingon'" in tag_problem("klingon") and "BCP-47" in tag_problem("mostly German")
    assert not [tag for tag in ("de", "zh-Hant", "yue", "German", "mul", "und", "en_GB") if tag_problem(tag)]
    assert "write 'ja'" in tag_problem("jpn") and "write 'zh'" in tag_problem("zho-Hant")


def test_texts_that_do_not_fit_their_language_are_reported_once_for_all() -> None:
    check = LanguageCheck()
    for n, text in enumerate(("Ich bin so müde.", "Das ist ja toll!", "Wie geht es dir heute?", "Nein danke")):
        check.add(f"d{n}", "", [text])
    check.add("s0", "en", ["¿Qué tal estás?"])
    check.add("j0", "de", ["それは大変ですね"])
    check.add("z0", "zh", ["I am so tired of this"])
    check.add("k0", "kr", ["안녕하세요"])
    german, japanese, spanish, korean, english = check.warnings()
    assert "3 of 4 items without a language seem to be in 'de' (d0, d1, d2)" in german and "scored as 'en'" in german
    assert '"language": "ja"' in japanese and "'es'" in spanish and "'ko'" in korean and "'en' (z0)" in english


def test_texts_that_fit_their_language_are_not_reported() -> None:
    check = LanguageCheck()
    for tag, text in (
        ("", "I visited Los Angeles as soon as possible."), ("", "それは大変ですね"), ("ja", "東京"), ("yue", "你好吗"),
        ("de", "Ich bin so müde."), ("ko", "안녕하세요"), ("mul", "¿Qué tal estás?"), ("ru", "Привет"), ("zh", "OK"),
    ):  # fmt: skip
        check.add("one", tag, [text])
    for n in range(200):
        check.add(f"e{n}", "", ["I like this place."])
    check.add("quoted", "", ["Que sera sera, los dos"])  # one of hundreds
    assert check.warnings() == []
