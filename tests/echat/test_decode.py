"""Answers come phase by phase, the same alone as among others, and exactly what the model finds likeliest."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from overtone.echat.data import layout
from overtone.echat.data.exchange_records import Record
from overtone.echat.net import checkpoint, config, decode
from overtone.echat.net.decode import DecodeOptions, Sampling
from overtone.echat.net.tokenizer import open_tokenizer
from overtone.errors import DataError

SECONDS = (0.5, 1.3, 0.8)


@pytest.fixture(scope="module")
def parts():  # type: ignore[no-untyped-def]
    torch.manual_seed(0)
    preset = config.read("tiny")
    model = checkpoint.make(preset).eval()
    return model, open_tokenizer(preset.model)


@pytest.fixture(scope="module")
def waves() -> list[list[np.ndarray]]:
    rng = np.random.default_rng(0)
    return [[(0.1 * rng.standard_normal(int(16_000 * s))).astype(np.float32)] for s in SECONDS]


def asked(tok, think="", streaming=False):  # type: ignore[no-untyped-def]
    return [
        layout.prompt(Record(key=f"k{i}", txt="", wav="a.wav"), "s2s", tok, think=think, streaming=streaming)
        for i in range(len(SECONDS))
    ]


def test_an_answer_is_the_same_alone_as_among_longer_ones(parts, waves) -> None:  # type: ignore[no-untyped-def]
    model, tok = parts
    how = DecodeOptions(speak=True, max_text=12, max_speech=20, speech=Sampling(temperature=0))
    together = decode.respond(model, tok, asked(tok), waves, how)
    alone = [decode.respond(model, tok, [a], [w], how)[0] for a, w in zip(asked(tok), waves, strict=True)]
    assert together == alone
    assert all(len(said.codes) == 20 or said.cut != "speech" for said in together)


def test_without_speech_there_are_no_codes(parts, waves) -> None:  # type: ignore[no-untyped-def]
    model, tok = parts
    for said in decode.respond(model, tok, asked(tok), waves, DecodeOptions(max_text=7)):
        assert said.codes == () and len(said.text_ids) <= 7


def test_it_says_what_the_model_finds_likeliest_after_its_own_words(parts, waves) -> None:  # type: ignore[no-untyped-def]
    """The cached steps, against one pass over prompt and answer without a cache."""
    model, tok = parts
    said = decode.respond(model, tok, asked(tok)[:1], waves[:1], DecodeOptions(max_text=10))[0]
    with torch.inference_mode():
        x, _ = decode.read_in(model, asked(tok)[:1], [decode._hear(model, waves[0], torch.device("cpu"))])
        told = torch.tensor([said.text_ids])
        whole = torch.cat((x, model.embed_ids(told)), 1)
        hidden = model.lm.base_model(inputs_embeds=whole, use_cache=False).last_hidden_state
        likeliest = model.logits(hidden)[0, x.shape[1] - 1 : -1, : tok.vocab].argmax(-1)
    assert likeliest.tolist() == list(said.text_ids)


def test_streaming_takes_six_of_text_and_twelve_of_speech_in_turn(parts, waves) -> None:  # type: ignore[no-untyped-def]
    model, tok = parts
    how = DecodeOptions(speak=True, streaming=True, max_text=15, max_speech=60, speech=Sampling(top_k=50))
    kinds = [kind for kind, _ in decode.stream(model, tok, asked(tok, streaming=True)[0], waves[0], how)]
    runs: list[tuple[str, int]] = []
    for kind in kinds:
        runs = [*runs[:-1], (kind, runs[-1][1] + 1)] if runs and runs[-1][0] == kind else [*runs, (kind, 1)]
    text = sum(n for kind, n in runs if kind == "text")
    if text >= 6:
        assert runs[0] == ("text", 6) and runs[1] == ("speech", 12)
    assert all(n <= 6 for kind, n in runs if kind == "text")


def test_the_same_seed_draws_the_same_answer_and_another_another(parts, waves) -> None:  # type: ignore[no-untyped-def]
    model, tok = parts

    def codes(seed: int) -> tuple[int, ...]:
        how = DecodeOptions(speak=True, max_text=2, max_speech=30, speech=Sampling(top_k=100), seed=seed)
        return decode.respond(model, tok, asked(tok)[:1], waves[:1], how)[0].codes

    assert codes(1) == codes(1) != codes(2)


def test_a_code_is_not_said_for_ever(parts, waves) -> None:  # type: ignore[no-untyped-def]
    model, tok = parts
    with torch.no_grad():
        before = model.speech["head"].bias.clone()
        model.speech["head"].bias[7] += 100
    try:
        how = DecodeOptions(speak=True, max_text=1, max_speech=40, speech=Sampling(temperature=0))
        codes = decode.respond(model, tok, asked(tok)[:1], waves[:1], how)[0].codes
        quiet = DecodeOptions(speak=True, max_text=1, max_speech=40, speech=Sampling(temperature=0), quiet=7)
        longer = decode.respond(model, tok, asked(tok)[:1], waves[:1], quiet)[0].codes
    finally:
        with torch.no_grad():
            model.speech["head"].bias.copy_(before)
    assert codes[:5] == (7,) * 5 and codes[5] != 7
    assert longer[:10] == (7,) * 10 and longer[10] != 7


def test_a_label_of_a_closed_set_is_one_of_it(parts, waves) -> None:  # type: ignore[no-untyped-def]
    _, tok = parts
    rows = [decode._Row(text=tok.encode("<think>User's words: hello, Age: <"), thinking=True)]
    held = decode._closed_fields(tok)
    logits = torch.zeros(1, tok.vocab + tok.codes + 1)
    logits[0, ord("z")] = 9.0
    token = decode._choose(logits, rows, tok, DecodeOptions(thinks=True), held)[0]
    assert chr(token) in "CAO"  # CHILD, ADULT, OLD


def test_a_prompt_without_its_clip_is_refused(parts) -> None:  # type: ignore[no-untyped-def]
    model, tok = parts
    with pytest.raises(DataError, match="1 clips, but 0 were given"):
        decode.respond(model, tok, asked(tok)[:1], [[]], DecodeOptions())


def test_what_is_drawn_does_not_depend_on_the_other_rows(parts, waves) -> None:  # type: ignore[no-untyped-def]
    model, tok = parts
    how = DecodeOptions(speak=True, max_text=8, max_speech=20, text=Sampling(1.0), speech=Sampling(top_k=100))
    together = decode.respond(model, tok, asked(tok), waves, how, seeds=[5, 6, 5])
    alone = [
        decode.respond(model, tok, [a], [w], how, seeds=[seed])[0]
        for a, w, seed in zip(asked(tok), waves, [5, 6, 5], strict=True)
    ]
    assert together == alone


def test_draws_come_as_often_as_they_are_likely() -> None:
    dice = torch.linspace(0, 0.9999, 1000)
    logits = torch.tensor([0.5, 0.3, 0.2]).log().expand(1000, 3)
    drawn = decode._draw(logits, Sampling(1.0), dice)
    assert [int((drawn == i).sum()) for i in range(3)] == pytest.approx([500, 300, 200], abs=2)
    assert set(decode._draw(logits, Sampling(1.0, top_p=0.6), dice).tolist()) == {0, 1}
    assert set(decode._draw(logits, Sampling(1.0, top_k=1), dice).tolist()) == {0}


@pytest.mark.parametrize("temperature", [0.0, 1e-320, 1e-40, 0.009, 0.01, 1.0, 1e38, 1e308, -1.0, float("inf")])
def test_whatever_numbers_are_given_one_of_the_likely_tokens_is_drawn(temperature: float) -> None:
    """Some tokens are forbidden, as most are in every phase; others lie far apart."""
    logits = torch.tensor([[-torch.inf, 80.0, 3.0, -torch.inf, 79.9, -3e38]]).expand(50, 6)
    dice = torch.linspace(0, 1, 50)
    for top_k in (0, 1, 3, 9, -1):
        for top_p in (0.0, 1e-40, 0.5, 1.0, 7.0, -1.0, float("nan")):
            drawn = set(decode._draw(logits, Sampling(temperature, top_k, top_p), dice).tolist())
            assert drawn <= {1, 2, 4, 5} and 1 in drawn
            if temperature < 0.01 or top_k == 1 or not top_p > 1e-9:
                assert drawn == {1}


def test_neither_a_thought_nor_the_tag_of_a_reply_is_interleaved(parts) -> None:  # type: ignore[no-untyped-def]
    _, tok = parts
    how = DecodeOptions(speak=True, streaming=True, thinks=True)
    row = decode._Row.start(how, tok, 0)
    for token in tok.encode("<think>User's words: hello<think end><HAPPY>Hello "):
        assert row.phase == "text"
        row.take(token, tok, how)
    assert row.phase == "speech"  # six bytes after the tag
    row = decode._Row.start(DecodeOptions(speak=True, streaming=True), tok, 0)
    for token in tok.encode("Hello "):
        assert row.phase == "text"
        row.take(token, tok, how)
    assert row.phase == "speech"


def test_a_given_text_is_only_spoken(parts) -> None:  # type: ignore[no-untyped-def]
    model, tok = parts
    spoken = layout.prompt(Record(key="k", txt="Good day."), "t2s", tok)
    how = DecodeOptions(write=False, speak=True, max_speech=12, speech=Sampling(top_k=50))
    said = decode.respond(model, tok, [spoken], [[]], how)[0]
    assert said.text == "" and 0 < len(said.codes) <= 12
    assert [kind for kind, _ in decode.stream(model, tok, spoken, [], how)] == ["speech"] * len(said.codes)


def test_a_model_that_would_never_begin_to_speak_does(parts, waves) -> None:  # type: ignore[no-untyped-def]
    model, tok = parts
    with torch.no_grad():
        before = model.speech["head"].bias.clone()
        model.speech["head"].bias[-1] += 100
    try:
        how = DecodeOptions(speak=True, max_text=1, max_speech=40, speech=Sampling(temperature=0))
        codes = decode.respond(model, tok, asked(tok)[:1], waves[:1], how)[0].codes
    finally:
        with torch.no_grad():
            model.speech["head"].bias.copy_(before)
    assert len(codes) == 1


def test_an_answer_can_begin_as_told_and_can_be_stopped(parts, waves) -> None:  # type: ignore[no-untyped-def]
    model, tok = parts
    left = iter([True, True, True, False])
    how = DecodeOptions(max_text=20, opening=tuple(tok.encode("<th")))
    said = decode.respond(model, tok, asked(tok)[:1], waves[:1], how, go_on=lambda row: next(left))[0]
    assert said.text.startswith("<th") and len(said.text_ids) <= 4


def test_one_answer_is_stopped_and_the_others_are_what_they_would_be(parts, waves) -> None:  # type: ignore[no-untyped-def]
    model, tok = parts
    how = DecodeOptions(speak=True, max_text=12, max_speech=20, speech=Sampling(temperature=0))
    whole = decode.respond(model, tok, asked(tok), waves, how)
    left = iter([True] * 5 + [False])
    found = decode.respond(model, tok, asked(tok), waves, how, go_on=lambda row: row != 1 or next(left))
    assert [found[0], found[2]] == [whole[0], whole[2]]
    assert found[1].text_ids == whole[1].text_ids[:6] and found[1].codes == ()
