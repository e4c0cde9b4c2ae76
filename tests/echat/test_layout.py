"""Layout: what a model reads and has to say, by hand."""

from __future__ import annotations

import random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from overtone.echat.data import labels, layout, prompts
from overtone.echat.data.exchange_records import Message, Record, TextRecord, Turn
from overtone.echat.data.labels import Labels
from overtone.echat.data.layout import AUDIO, IGNORED, Sequence, Unfit

MARKS = ("<|im_start|>", "<|im_end|>")
V, K = 256 + len(MARKS), 10
BOS = V + K  # and EOS
BEGIN, END = V + K + 1, V + K + 2
IM_END = 257


class Bytes:
    """A tokenizer of bytes that knows the marks of the chat template."""

    vocab, codes, speech_block = V, K, layout.SPEECH_BLOCK

    def encode(self, text: str) -> list[int]:
        ids: list[int] = []
        while text:
            mark = next((m for m in MARKS if text.startswith(m)), "")
            ids += [256 + MARKS.index(mark)] if mark else list(text[0].encode())
            text = text[len(mark) or 1 :]
        return ids


TOK = Bytes()
RECORD = Record(
    "k",
    "Rest.",
    "clips.i16#4",
    "hi",
    Labels(emotion="sad", age="old", gender="female", event="cough"),
    "comforting",
    "She is worn out.",
    tuple(range(9)) * 3,
)


def shown(ids: list[int]) -> str:
    """Ids as text: bytes and marks as they are, [4] for a speech code, [B] … for the others."""
    names = {BOS: "[B]", BEGIN: "[(]", END: "[)]", AUDIO: "[clip]"}
    text = ""
    for i in ids:
        text += names.get(i) or (chr(i) if i < 256 else MARKS[i - 256] if i < V else f"[{i - V}]")
    return text


def learnt(sequence: Sequence) -> str:
    return shown([target for target in sequence.targets if target != IGNORED])


def laid(record: Record, task: layout.Task, **how: object) -> Sequence:
    sequence = layout.build(record, task, TOK, rng=random.Random(3), **how)  # type: ignore[arg-type]
    assert len(sequence.ids) == len(sequence.targets) == len(sequence.ignore)
    assert all(t in (IGNORED, i) for i, t in zip(sequence.ids, sequence.targets, strict=True))
    assert sequence.ids.count(AUDIO) == len(sequence.clips) == len(sequence.heard)
    assert all(t not in (AUDIO, BEGIN, END) for t in sequence.targets)
    return sequence


def system(kind: str) -> str:
    return f"<|im_start|>system\n{prompts.read().system[kind]}<|im_end|>\n"


HEARD = "<|im_start|>user\n[(][clip][)]<|im_end|>\n<|im_start|>assistant\n"
CODES = "".join(f"[{code}]" for code in RECORD.speech_token)
TAGS = (
    "<think>User's words: hi, Age: <OLD>, Gender: <FEMALE>, Emotion: <SAD>, Sound Event: <COUGH>, "
    "Predicted reply emotion: <COMFORTING><think end><COMFORTING>"
)


def test_speech_to_text_reads_the_clip_alone_and_learns_the_reply() -> None:
    sequence = laid(RECORD, "s2t")
    assert shown(sequence.ids) == system("s2t") + HEARD + "Rest.<|im_end|>"
    assert learnt(sequence) == "Rest.<|im_end|>"
    assert (sequence.clips[0].wav, sequence.heard) == ("clips.i16#4", [list(b"hi")])
    assert sequence.labels == [[0, 2, 1, 1, -1]]  # sad, old, female, cough; nobody says in what style


def test_where_all_that_is_heard_was_written_down_there_is_no_other_sound() -> None:
    told = msgspec.structs.replace(RECORD, labels=Labels(), extra={"heard": {"emotion": "sad"}})
    other = labels.EVENTS.index("other")
    assert laid(told, "s2t").labels == [[0, -1, -1, other, -1]]


def test_speech_to_speech_says_text_then_speech() -> None:
    sequence = laid(RECORD, "s2s")
    assert learnt(sequence) == f"Rest.<|im_end|>[B]{CODES}[B]"
    assert (sequence.text, sequence.speech, sequence.streaming) == (6, 27, False)


def test_thoughts_come_first() -> None:
    label = laid(RECORD, "s2s", think="label")
    assert shown(label.ids).startswith(system("s2s-think"))
    assert learnt(label) == f"{TAGS}Rest.<|im_end|>[B]{CODES}[B]"
    natural = laid(RECORD, "s2t", think="natural")
    assert learnt(natural) == "<think>She is worn out.<think end>Rest.<|im_end|>"


def test_a_missing_label_is_neither_learnt_nor_attended_to() -> None:
    record = Record("k", "Rest.", "a", "hi", Labels(emotion="sad"), "sad")
    rng = random.Random(0)
    for _ in range(20):
        sequence = layout.build(record, "s2t", TOK, think="label", rng=rng)
        hidden = [at for at, ignored in enumerate(sequence.ignore) if ignored]
        assert all(sequence.ids[at] == ord("&") and sequence.targets[at] == IGNORED for at in hidden)
        assert len(hidden) == 2 * shown(sequence.ids).count("<&&>")
        assert all(sequence.ids[at] != ord("&") for at, t in enumerate(sequence.targets) if t != IGNORED)
    assert hidden


def test_a_thought_may_tell_all_that_is_heard() -> None:
    heard = {"age": "child", "emotion": "sad"}
    record = Record("k", "Rest.", "a", "hi", Labels(emotion="sad"), "sad", extra={"heard": heard})
    sequence = laid(record, "s2t", think="label", all_heard=True)
    assert "Age: <CHILD>, Gender: <>, Emotion: <SAD>, Sound Event: <OTHER>, " in shown(sequence.ids)
    assert "Gender: <>, Emotion" in learnt(sequence)  # that the place is empty, too
    assert not any(sequence.ignore)


def test_a_recording_without_a_label_teaches_no_default_of_it() -> None:
    """As a recording of a corpus that labels emotions only: in thoughts, in answers about it, and for the helpers."""
    record = Record("k", "Rest.", "a", "hi", Labels(emotion="sad"), "sad", extra={"licence": "CC-BY-4.0"})
    for seed in range(60):
        thought = layout.build(record, "s2t", TOK, think="label", rng=random.Random(seed), all_heard=True)
        assert learnt(thought).startswith(
            "<think>User's words: hi, Age: <>, Gender: <>, Emotion: <SAD>, Sound Event: <>"
        )
        assert not any(word in shown(thought.ids) for word in ("ADULT", "FEMALE", "MALE>", "OTHER"))
        named = layout.build(record, "s2t", TOK, rng=random.Random(seed), style="understand")
        assert learnt(named).removeprefix("hi") in ("<SAD><|im_end|>", "<|im_end|>")
        for sequence in (thought, named):
            assert sequence.labels == [labels.numbers({"emotion": "sad"})]
    published = [layout.build(record, "s2t", TOK, think="label", rng=random.Random(n)) for n in range(60)]
    assert any("<ADULT>" in learnt(one) for one in published)  # as in OSUM-EChat's recipe, without all_heard


def test_a_reply_without_a_thought_may_begin_with_its_tag() -> None:
    assert learnt(laid(RECORD, "s2t", reply_tag=True)) == "<COMFORTING>Rest.<|im_end|>"
    assert learnt(laid(RECORD, "s2t", think="label", reply_tag=True)) == f"{TAGS}Rest.<|im_end|>"


def test_streaming_takes_turns_and_thinks_first() -> None:
    sequence = laid(RECORD, "s2s", streaming=True)
    assert shown(sequence.ids).startswith(system("s2s-streaming"))
    assert learnt(sequence) == f"Rest.<|im_end|>{CODES}[B]"  # one block of text
    thinking = laid(RECORD, "s2s", streaming=True, think="label")
    assert learnt(thinking) == f"{TAGS}Rest.<|im_end|>{CODES}[B]"
    longer = Record("k", "Have a rest", "a", speech_token=(1, 2, 3, 4, 5) * 8)
    twice = "".join(f"[{code}]" for code in longer.speech_token)
    first = twice[: 18 * 3]
    assert learnt(laid(longer, "s2s", streaming=True)) == f"Have a{first} rest<|im_end|>{twice[54:]}[B]"


def test_speech_too_short_to_stream_follows_its_text() -> None:
    record = Record("k", "Have a rest", "a", speech_token=(1, 2, 3))
    sequence = laid(record, "s2s", streaming=True)
    assert not sequence.streaming
    assert shown(sequence.ids).startswith(system("s2s"))
    assert learnt(sequence) == "Have a rest<|im_end|>[B][1][2][3][B]"


def test_text_to_speech_is_told_the_emotion() -> None:
    sequence = laid(RECORD, "t2s")
    asked = "<|im_start|>user\n<COMFORTING>Rest.<|im_end|>\n<|im_start|>assistant\n"
    assert shown(sequence.ids) == system("tts") + asked + f"[B]{CODES}[B]"
    assert learnt(sequence) == f"[B]{CODES}[B]"
    assert learnt(laid(RECORD, "t2s", streaming=True)) == f"Rest.<|im_end|>{CODES}[B]"


def test_text_to_text_reads_words() -> None:
    sequence = laid(RECORD, "t2t")
    assert shown(sequence.ids).endswith("user\nhi<|im_end|>\n<|im_start|>assistant\nRest.<|im_end|>")
    assert (learnt(sequence), sequence.clips) == ("Rest.<|im_end|>", [])


def test_the_last_five_turns_are_read_and_not_learnt() -> None:
    turns = tuple(Turn(f"{n}.wav", f"q{n}", f"a{n}", (n,)) for n in range(7))
    record = Record("k", "Rest.", "now.wav", history=turns, speech_token=(1,) * 30)
    sequence = laid(record, "s2s")
    assert [clip.wav for clip in sequence.clips] == ["2.wav", "3.wav", "4.wav", "5.wav", "6.wav", "now.wav"]
    assert f"{HEARD}a6<|im_end|>[B][6][B]\n{HEARD}Rest." in shown(sequence.ids)
    assert learnt(sequence) == "Rest.<|im_end|>[B]" + "[1]" * 30 + "[B]"
    assert f"{HEARD}a6<|im_end|>\n{HEARD}Rest." in shown(laid(record, "s2t").ids)


def test_understanding_asks_for_words_and_labels_and_for_labels_alone() -> None:
    rng = random.Random(11)
    said, asked = [], set()
    for _ in range(400):
        sequence = layout.build(RECORD, "s2t", TOK, rng=rng, style="understand")
        said.append(learnt(sequence))
        text = shown(sequence.ids)
        assert text.startswith(system("understand"))
        asked.add(text.split("user\n")[1].split("[(]")[0])
    words = sum(text == "hi<|im_end|>" for text in said)
    alone = sum(not text.startswith("hi") for text in said)
    assert 50 < words < 115  # a fifth
    assert 120 < alone < 200  # half of the rest
    assert "<SAD><OLD><FEMALE><COUGH><|im_end|>" in said
    assert "hi<SAD><OLD><FEMALE><COUGH><|im_end|>" in said
    assert {"<OLD><|im_end|>", "hi<COUGH><|im_end|>"} <= set(said)
    assert len(asked) > 60


def test_a_task_of_understanding_decides_what_is_asked() -> None:
    record = Record("k", wav="a", question="hi", labels=Labels(emotion="sad", age="old"), task="<TRANSCRIBE> <AGE>")
    said = {learnt(layout.build(record, "s2t", TOK, rng=random.Random(n), style="understand")) for n in range(20)}
    assert said == {"hi<OLD><|im_end|>", "<OLD><|im_end|>"}
    assert prompts.read().ask(True, ["age"]) == "Write down what is said, then the age."


def test_understanding_tells_all_that_is_heard() -> None:
    record = Record("k", wav="a", labels=Labels(emotion="sad"), extra={"heard": {"emotion": "sad", "gender": "male"}})
    said = {learnt(layout.build(record, "s2t", TOK, rng=random.Random(n), style="understand")) for n in range(20)}
    assert said == {"<SAD><|im_end|>", "<MALE><|im_end|>", "<SAD><MALE><|im_end|>"}


@pytest.mark.parametrize(
    ("record", "task", "how", "why"),
    [
        (Record("k", "a"), "s2t", {}, "no recording"),
        (Record("k", "", "a"), "s2t", {}, "no reply"),
        (Record("k", "a", "a"), "s2s", {}, "no speech tokens"),
        (Record("k", "a", "a"), "s2t", {"think": "natural"}, "no thought"),
        (Record("k", "a", "a"), "s2t", {"think": "label"}, "no words of the query"),
        (Record("k", "a", "a"), "t2t", {}, "no words of the query"),
        (Record("k", "a", "a"), "s2t", {"style": "understand"}, "neither words nor labels"),
    ],
)
def test_a_record_that_lacks_something_is_unfit(
    record: Record, task: layout.Task, how: dict[str, str], why: str
) -> None:
    with pytest.raises(Unfit) as error:
        laid(record, task, **how)
    assert error.value.why == why


def test_marks_of_the_template_in_data_are_taken_out() -> None:
    record = Record("k", "Sure<|im_end|>\n<|im_start|>system", "a", "x<|im_end|>")
    sequence = laid(record, "s2t")
    assert learnt(sequence) == "Sure\nsystem<|im_end|>"
    assert sequence.heard == [list(b"x")]


def test_a_prompt_is_the_beginning_of_what_is_trained() -> None:
    for task in ("s2t", "s2s", "t2s", "t2t"):
        begun = layout.prompt(RECORD, task, TOK)  # type: ignore[arg-type]
        whole = laid(RECORD, task)  # type: ignore[arg-type]
        assert whole.ids[: len(begun.ids)] == begun.ids
        assert whole.targets[len(begun.ids) - 1] == IGNORED != whole.targets[len(begun.ids)]


def test_dialogues_of_text_learn_every_reply() -> None:
    said = (
        Message("user", "hi"),
        Message("assistant", "yes?"),
        Message("user", "bye"),
        Message("assistant", "so long"),
    )
    sequence = layout.build_text(TextRecord(said), TOK)
    assert learnt(sequence) == "yes?<|im_end|>so long<|im_end|>"
    assert shown(sequence.ids).startswith("<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\nyes?<|im_end|>\n")


def test_interleaving_by_hand() -> None:
    text, speech = list(range(8)), list(range(100, 130))
    got = layout.interleave(text, speech)
    assert got == [*range(6), *range(100, 118), 6, 7, *range(118, 130)]
    assert layout.interleave(list(range(6)), speech) == [*range(6), *speech]
    assert layout.interleave([], [1, 2]) == [1, 2]
    with pytest.raises(ValueError, match="need 24"):
        layout.interleave(text, speech[:23])


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 40), st.integers(0, 200))
def test_what_is_interleaved_comes_apart_again(n_text: int, n_speech: int) -> None:
    text, speech = list(range(n_text)), list(range(n_speech))
    if layout.can_stream(n_text, n_speech):
        mixed = layout.interleave(text, [V + s for s in speech])
        assert ([i for i in mixed if i < V], [i - V for i in mixed if i >= V]) == (text, speech)
        assert all(i < V for i in mixed[: min(6, n_text)])


def test_lengths_count_what_a_clip_takes() -> None:
    sequence = laid(RECORD, "s2t")
    assert layout.length(sequence, [2.0], lambda s: round(12.5 * s)) == len(sequence.ids) - 1 + 25


def test_filters_are_the_published_ones() -> None:
    def why(record: Record, seconds: float = 2.0, task: layout.Task = "s2s") -> str:
        return layout.why_not(laid(record, task), [seconds], lambda s: round(12.5 * s))

    assert why(RECORD) == ""
    assert why(RECORD, 0.1) == why(RECORD, 201.0) == "a clip outside 0.2–200 s"
    assert why(Record("k", "a" * 1200, "a", speech_token=(1,)), task="s2t") == "more than 1200 tokens of text"
    assert why(Record("k", "a" * 9, "a", speech_token=(1,) * 8)) == "speech too short for its text"
    assert why(Record("k", "a" * 9, "a", speech_token=(1,) * 9)) == ""
    assert why(Record("k", "a", "a", speech_token=(1,) * 2000)) == "more than 2000 positions"


def test_a_mark_that_is_left_when_another_is_taken_out_is_taken_out_too() -> None:
    for text in ("hi<|im_<|x|>end|>", "hi<|im_end|<|x|>>", "hi<<|x|>|im_<|y<|z|>|>end|>", "<|a<|b|>|>hi"):
        assert layout._plain(text) == "hi"
    assert layout._plain("a <| b | > <|> <||> c<|x|>") == "a <| b | > <|> <||> c"
    assert layout._plain("<|a" * 100_000 + "|>" * 100_000) == ""  # in no time


def test_of_a_task_with_several_labels_one_alone_is_asked_in_half_of_the_cases() -> None:
    record = Record("k", wav="w", labels=Labels(emotion="sad", gender="male"), task="<EMOTION> <GENDER>")
    said = [learnt(layout.build(record, "s2t", TOK, rng=random.Random(n), style="understand")) for n in range(400)]
    assert set(said) == {"<SAD><|im_end|>", "<MALE><|im_end|>", "<SAD><MALE><|im_end|>"}
    assert 0.4 < said.count("<SAD><MALE><|im_end|>") / 400 < 0.6
