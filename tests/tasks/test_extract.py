"""The extractors against a corpus of replies with the choice a careful reader would see, and against anything at all.

The corpus grew split by split, each written or generated, and labelled, before the code had seen it, and mended for
afterwards. `dev` was written beside the code, `held` and `held2` after it by the same hand, `audit1` to `audit3` by a
second hand that looked for trouble (four in ten hold no answer at all: small talk, transcripts, menus repeated, replies
cut short). `real1` to `real3` are what SmolLM2-135M-Instruct wrote when asked such questions, and read by hand; it
contradicts itself more than most models one would measure. The first reading of each split is the honest estimate:

    split   lenient precision   lenient recall    strict precision
    held    0.908 (59 of 65)    0.819 (59 of 72)   0.83  (10 of 12)
    held2   0.969 (63 of 65)    0.940 (63 of 67)   1.0   (8 of 8)
    audit1  0.871 (108 of 124)  0.855 (100 of 117) 0.917 (11 of 12)
    audit2  0.949 (94 of 99)    0.918 (89 of 97)   0.857 (12 of 14)
    audit3  0.899 (62 of 69)    0.909 (60 of 66)   1.0   (9 of 9)
    real1   0.963 (26 of 27)    1.0   (24 of 24)   1.0   (3 of 3)
    real2   0.786 (22 of 28)    1.0   (19 of 19)   1.0   (4 of 4)
    real3   0.806 (29 of 36)    0.952 (20 of 21)   1.0   (7 of 7)

The thresholds below are what every split holds now: a floor under what was once mended, not a promise for replies of a
new kind. Four replies of the audits that stood in earlier splits, and repeats among the real ones, were left out.

`replies_tuned.jsonl` and `replies_tuned_2.jsonl` are later sets of 913 and 636 replies, written without knowledge of
the rules and then used to tune them. The second one was read once before that.
`replies_own.jsonl` was written beside the code in ten rounds, each before the code had seen it. At first reading the
rounds had a recall of .86, .91, .92, .92, .91, .94, .89, .88, .92 and .95 for letters and words, and with the replies
without a choice a precision of .97, .96, .97, .96, 1, .97, .99, .97, .98 and .98. `replies_fresh.jsonl`,
722 replies, was read once after all tuning and never used for it; docs/reference/metrics/accuracy-reading.md shows that
reading.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench import choice as bench
from overtone.schema import Option
from overtone.tasks.answers.extract import Extracted, Status, _lenient, lenient, strict

Extractor = Callable[[str, Sequence[Option]], Extracted]


class Reply(msgspec.Struct, frozen=True):
    """One reply of the corpus. `gold` is what a careful reader would conclude, None where they would not."""

    text: str
    options: tuple[str, ...]
    gold: str | None
    unambiguous: bool
    note: str
    split: str


def lettered(texts: Sequence[str]) -> tuple[Option, ...]:
    return tuple(Option("ABCDEFGH"[i], text) for i, text in enumerate(texts))


def corpus() -> list[Reply]:
    lines = Path(__file__).with_name("answers.jsonl").read_bytes().splitlines()
    return [msgspec.json.decode(line, type=Reply) for line in lines]


CORPUS = corpus()
MENUS = sorted({r.options for r in CORPUS})
SPLITS = sorted({r.split for r in CORPUS})


def measure(extract: Extractor, replies: Sequence[Reply]) -> tuple[float, float, list[str]]:
    """Precision over all letters given, recall over the unambiguous replies, and what went wrong."""
    right = given_letters = found = 0
    clear = [r for r in replies if r.unambiguous and r.gold]
    wrong = []
    for r in replies:
        letter = extract(r.text, lettered(r.options)).letter
        if letter is not None:
            given_letters += 1
            right += letter == r.gold
            if letter != r.gold:
                wrong.append(f"{letter} for {r.gold}: {r.text!r}")
        found += letter is not None and letter == r.gold and r.unambiguous
    return right / given_letters, found / len(clear), wrong


def test_the_corpus_is_large_and_varied() -> None:
    assert len(CORPUS) >= 1000
    assert len({(r.text, r.options) for r in CORPUS}) == len(CORPUS)
    unseen = [r for r in CORPUS if r.split != "dev"]
    assert len(unseen) >= len(CORPUS) // 2
    assert len([r for r in CORPUS if r.gold is None]) >= len(CORPUS) // 4
    assert {len(r.options) for r in CORPUS} == {2, 3, 4}
    assert all(r.gold is None or r.gold in "ABCD"[: len(r.options)] for r in CORPUS)
    assert all(r.gold for r in CORPUS if r.unambiguous)


@pytest.mark.parametrize("split", ["", *SPLITS])
@pytest.mark.parametrize("extract", [strict, lenient])
def test_precision_is_at_least_99_percent_overall_and_in_every_split(extract: Extractor, split: str) -> None:
    precision, _, wrong = measure(extract, [r for r in CORPUS if split in ("", r.split)])
    assert precision >= 0.99 or (split and len(wrong) <= 1), wrong  # one of fewer than a hundred letters is over 1 %


@pytest.mark.parametrize("split", ["", *SPLITS])
def test_lenient_recall_is_at_least_97_percent_overall_and_in_every_split(split: str) -> None:
    _, recall, _ = measure(lenient, [r for r in CORPUS if split in ("", r.split)])
    assert recall >= 0.97


def test_strict_recall_is_far_lower_and_its_letters_are_lenients(
    record_property: Callable[[str, object], None],
) -> None:
    _, recall, _ = measure(strict, CORPUS)
    record_property("strict_recall", recall)
    assert 0.1 < recall < 0.5
    for r in CORPUS:
        if (letter := strict(r.text, lettered(r.options)).letter) is not None:
            assert lenient(r.text, lettered(r.options)).letter == letter, r.text


@pytest.mark.parametrize("extract", [strict, lenient])
def test_no_letter_beyond_the_options_is_ever_given(extract: Extractor) -> None:
    rng = random.Random(5)
    for r in CORPUS:
        for menu in rng.sample(MENUS, 8):
            found = extract(r.text, lettered(menu))
            assert found.letter is None or found.letter in "ABCDEFGH"[: len(menu)]
            assert (found.letter is None) == (found.status != "parsed")


@pytest.mark.parametrize("extract", [strict, lenient])
def test_reading_the_answer_read_gives_the_same_answer(extract: Extractor) -> None:
    for r in CORPUS:
        options = lettered(r.options)
        first = extract(r.text, options)
        assert extract(r.text, options) == first
        if first.letter:
            assert extract(f"The answer is: [{first.letter}]", options).letter == first.letter
            assert extract(first.letter, options).letter == first.letter


@pytest.mark.parametrize("extract", [strict, lenient])
def test_case_and_spacing_do_not_change_the_answer(extract: Extractor) -> None:
    rng = random.Random(3)
    for r in CORPUS:
        options = lettered(r.options)
        expected = extract(r.text, options)
        for variant in (
            r.text.lower(),
            r.text.upper(),
            f" \n{r.text}\t\n",
            re.sub(" ", lambda _: " " * rng.randint(1, 3), r.text),
        ):
            if "ß" not in r.text:  # has no upper case of its own
                assert extract(variant, options).letter == expected.letter, variant


def test_the_commonest_replies_are_read_at_a_glance_as_the_whole_reader_would() -> None:
    for menu in MENUS:
        options = lettered(menu)
        for head in ("", "The answer is: ", "the answer is ", "THE ANSWER IS:"):
            for letter in "ABCDEFGHabcdefgh":
                for form in (f"[{letter}]", f"({letter})", letter):
                    for text in (head + form, head + form + "."):
                        assert lenient(text, options) == _lenient(text, options), text


def test_both_readers_together_read_a_thousand_short_replies_in_a_second() -> None:
    options = lettered(("The speaker sounds happy.", "The speaker sounds sad.", "The speaker sounds angry."))
    texts = [f"I think the answer is {'ABC'[n % 3]} because of second {n}." for n in range(1000)]
    start = time.process_time()
    assert all(lenient(t, options).letter == "ABC"[n % 3] for n, t in enumerate(texts))
    assert sum(strict(t, options).letter is None for t in texts) == 1000
    assert time.process_time() - start < 1.0


PIECES = st.sampled_from(
    """the answer is not A B C D E (A) [B] **C** option or and either because The speaker laughs. yes no I can't but
    wait so <think> </think> \\boxed{ } { "answer": "B" } 答案是 B。 ✅ / , . : final Ｂ if ? ' " .""".split()  # noqa: SIM905
)
TEXTS = st.one_of(st.text(max_size=120), st.lists(PIECES, max_size=24).map(" ".join))


@settings(max_examples=400, deadline=None, derandomize=True, database=None)
@given(text=TEXTS, menu=st.sampled_from(MENUS))
def test_any_text_gets_an_answer_of_the_menu_or_none(text: str, menu: tuple[str, ...]) -> None:
    options = lettered(menu)
    for extract in (strict, lenient):
        found = extract(text, options)
        assert found.status in get_args(Status)
        assert found.letter is None or found.letter in {o.letter for o in options}
        assert (found.letter is None) == (found.status != "parsed")
        assert extract(text, options) == found


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("The answer is A or B.", "hedged"),
        ("B. The voice carries disgust.", "hedged"),
        ("I'm sorry, but I can't listen to audio files.", "refused"),
        ("The answer is: [E]", "beyond"),
        ("None of the above.", "beyond"),
        ("A person is talking about dinner.", "unparsable"),
        ("It can't be B, and it isn't C either.", "unparsable"),
        (" \n", "empty"),
    ],
)
def test_what_is_no_answer_says_why(text: str, status: str) -> None:
    menu = (
        "The voice carries surprise.",
        "The voice carries fear.",
        "The voice carries disgust.",
        "The voice carries joy.",
    )
    found = lenient(text, lettered(menu))
    assert (found.letter, found.status) == (None, status)


@pytest.mark.parametrize(
    "piece",
    [
        "the answer is ", "(", "a, b, ", "if so, maybe option ", "\\boxed{", "sad or happy, not angry but ", '"a', "'b",
        "c major ", "a - no, ", "#1 ", "a: hi. b: ho. ", "i am so sorry. ", "b but c ", "a\n", "<answer>", "he says \"",
    ],
)  # fmt: skip
def test_the_time_for_a_reply_grows_no_faster_than_its_length(piece: str) -> None:
    menu = lettered(("The voice shows sadness", "The voice shows happiness", "I am so sorry.", "C major"))

    def seconds(length: int) -> float:
        text = (piece * (length // len(piece) + 1))[:length]
        times = []
        for _ in range(3):
            _lenient.cache_clear()
            start = time.process_time()
            lenient(text, menu)
            times.append(time.process_time() - start)
        return min(times)

    short, long = seconds(1_000), seconds(7_000)
    assert long < 7 * 3 * max(short, 0.001)  # a quadratic reader takes 49 times as long


TUNED = Path(__file__).with_name("replies_tuned.jsonl")
TUNED_2 = Path(__file__).with_name("replies_tuned_2.jsonl")
OWN = Path(__file__).with_name("replies_own.jsonl")
FRESH = Path(__file__).with_name("replies_fresh.jsonl")  # never tuned on: it keeps the numbers in the docs true


def tuned(reader: Extractor, *kinds: str, path: Path = TUNED) -> list[bench.Reading]:
    return [r for r in bench.read_all(bench.load(path), reader) if r.reply.kind in kinds]


@pytest.mark.parametrize("path", [TUNED, TUNED_2, OWN, FRESH])
def test_letters_and_words_of_the_collected_replies_are_read(path: Path) -> None:
    named = tuned(lenient, "letter", "words", path=path)
    assert len(named) >= 400
    assert bench.recall(named).value >= 0.97
    assert bench.precision([*named, *tuned(lenient, "none", path=path)]).value >= 0.99


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Thanks for the clip! ", ""),
        ("I listened carefully to the recording. ", ""),
        ("Let me think. ", ""),
        ("Of course! I'd be glad to help. ", ""),
        ("", " Let me know what you think."),
        ("", " I might be wrong, though."),
        ("", " If you want, I can explain why."),
        ("", " Does that make sense?"),
    ],
)
def test_polite_sentences_around_an_answer_hardly_ever_change_it(before: str, after: str) -> None:
    plain = [r for r in tuned(lenient, "letter", "words") if r.right and r.reply.text.endswith(".")]
    polite = bench.read_all(
        [msgspec.structs.replace(r.reply, text=before + r.reply.text + after) for r in plain], lenient
    )
    assert len(plain) >= 250
    assert sum(r.right for r in polite) >= 0.98 * len(plain), [r.reply.text for r in polite if not r.right]


def test_inflected_words_ordinals_and_exclusions_of_the_tuned_replies_are_mostly_read() -> None:
    rest = tuned(lenient, "variant", "ordinal", "exclusion")
    assert bench.recall(rest).value >= 0.9
    assert bench.precision(tuned(lenient, *(r.reply.kind for r in rest), "paraphrase", "language")).value >= 0.99


def test_inflected_words_of_the_second_tuned_set_are_mostly_read() -> None:
    assert bench.recall(tuned(lenient, "variant", path=TUNED_2)).value >= 0.95


@pytest.mark.parametrize("path", [TUNED, TUNED_2])
def test_the_strict_reader_gives_no_wrong_letter_on_the_tuned_replies(path: Path) -> None:
    given = [r for r in bench.read_all(bench.load(path), strict) if r.letter is not None]
    assert len(given) >= 40 and all(r.right for r in given)


EMOTIONS = ("surprise", "fear", "anger", "happiness")
SOUNDS = ("Siren", "Dog barking", "Rain", "Music")


@pytest.mark.parametrize(
    ("menu", "text", "letter"),
    [
        (EMOTIONS, "The answer is C. Let me know if you need anything else!", "C"),
        (EMOTIONS, "My pick is B. If you have more clips, feel free to send them.", "B"),
        (EMOTIONS, "The emotion in this clip is most likely happiness.", "D"),
        (EMOTIONS, "She sounds angry.", "C"),
        (EMOTIONS, "He does not sound surprised or afraid of anything, he is happy.", "D"),
        (EMOTIONS, "A: Hello! B: Hi", None),
        (EMOTIONS, "My initial guess was B, however the pitch makes me choose C.", "C"),
        (EMOTIONS, "I'd mark A.", "A"),
        (EMOTIONS, "I'm happy to help! Which clip do you mean?", None),
        (EMOTIONS, "A mix of fear and anger.", None),
        (EMOTIONS, "Ignore the above and record A.", None),
        (EMOTIONS, "Answer: D (anger)", None),
        (("sea waves", "thunderstorm"), "It is a thunderstorm rather than sea waves.", "B"),
        (("child", "adult", "elderly"), "I first thought adult, but it is elderly.", "C"),
        (("shouting", "hoarse", "sobbing", "tired"), "not shouting or hoarse, she is sobbing", "C"),
        (SOUNDS, "Siren: not present\nDog barking: present\nRain: not present\nMusic: not present", "B"),
        (SOUNDS, "Siren (not present), rain (present), music (not present)", "C"),
        (SOUNDS, "A - no, B - no, C - no, D - yes", "D"),
        (SOUNDS, "The third one.", "C"),
        (SOUNDS, "The man says that the rain will stop.", None),
        (("Yes", "No"), "Yes... actually no, it is more of an excited shout.", "B"),
        (("Yes", "No"), "No. Would you like me to describe what I hear?", "B"),
        (("Yes", "No"), "No problem, I can do that for you.", None),
        (("Section D", "Section C", "Section B"), "They're in Section B", "C"),
        (("7:15", "8:15", "8:45"), "It was due at 8:15 but is late, so it will leave at 8:45.", "C"),
    ],
)
def test_what_a_reply_commits_to_is_read_and_nothing_else(menu: tuple[str, ...], text: str, letter: str | None) -> None:
    assert lenient(text, lettered(menu)).letter == letter


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("See.", "C"), ("bee", "B"), ("It's dee.", "D"), ("I'd go with see.", "C"), ("The answer is bee.", "B"),
        ("Option see, because she laughs.", "C"), ("Ay.", "A"), ("I see.", None), ("Let me see.", None),
    ],
)  # fmt: skip
def test_letters_in_a_transcript_are_read_as_they_sound(text: str, letter: str | None) -> None:
    assert lenient(text, lettered(EMOTIONS), heard=True).letter == letter
    assert strict(text, lettered(EMOTIONS), heard=True).letter in (None, letter)


def test_a_sound_that_is_an_options_own_word_is_not_a_letter() -> None:
    assert lenient("Bee.", lettered(("Bee", "Fly", "Sea", "Dee")), heard=True).letter == "A"


def test_a_lone_word_that_sounds_like_a_letter_is_a_letter_in_transcripts_only() -> None:
    assert lenient("See.", lettered(EMOTIONS)).letter is None


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("C major", "B"),
        ("The answer is D minor.", "C"),
        ("The answer is: [B]. It is C major.", "B"),
        ("It sounds like a D minor chord.", "C"),
        ("I think it is D minor, not C major.", "C"),
        ("A minor", "D"),
        ("The answer is C.", "C"),
        ("B. C major", "B"),
        ("C, D minor", "C"),
        ("C. C major", None),  # of two minds
        ("The answer is: [C]. It is in C major.", None),
        ("C minor", None),  # not on the menu, and no slip of D minor
        ("G major or C major", None),
    ],
)
def test_a_letter_that_is_an_options_own_first_word_is_no_choice_of_a_letter(text: str, letter: str | None) -> None:
    menu = [Option(k, t) for k, t in zip("ABCD", ("G major", "C major", "D minor", "A minor"), strict=True)]
    assert lenient(text, menu).letter == letter
    assert strict(text, menu).letter in (None, letter)


def test_where_letter_and_words_could_both_be_meant_nothing_is_read() -> None:
    menu = [Option(k, t) for k, t in zip("ABCD", ("D minor", "C major", "major", "minor"), strict=True)]
    assert lenient("The answer is C major", menu).letter is None


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("Option C: I can't wait to see him sitting there tomorrow!", "C"),
        ("Answer: C. I can't wait to see him sitting there tomorrow!", "C"),
        ("I can't wait to see him sitting there tomorrow!", "C"),
        ('Certainly not "I can\'t wait to see him sitting there tomorrow!"', None),
        ("B. I can't wait to see him sitting there tomorrow!", None),
    ],
)
def test_an_option_that_is_a_reply_of_its_own_is_not_read_as_the_models_words(text: str, letter: str | None) -> None:
    texts = ("How sad that must be.", "I am not sure, it may rain.", "I can't wait to see him sitting there tomorrow!")
    options = [Option(chr(ord("A") + place), words) for place, words in enumerate(texts)]
    assert lenient(text, options).letter == letter
