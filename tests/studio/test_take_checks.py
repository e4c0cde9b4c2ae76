"""The checks of takes: good ones pass, each fault has its reason, and hostile bytes are refused."""

from __future__ import annotations

import asyncio
import struct

import numpy as np
import pytest

from overtone import audio
from overtone.studio import take_checks
from overtone.studio.take_checker import TakeChecker
from overtone.studio.take_checks import Checked, TakeError, Wanted
from tests.studio.speech import RATE, spoken, tone

WORDS = "The garage has sent me a price for the work."
OTHER = "My sister moves to another city in the autumn."


def check(data: bytes, words: str = WORDS, *, cue: str = "", noise: float | None = None) -> Checked:
    return take_checks.check(data, Wanted(words, cue, noise=noise), listen=False)


def codes(checked: Checked) -> list[str]:
    return [reason.code for reason in checked.reasons]


def test_a_clean_take_is_good_and_its_measures_are_right() -> None:
    checked = check(tone(2.5, edge=0.5))
    assert checked.verdict == "good" and checked.may_keep
    got = checked.checks
    assert (got.seconds, got.rate, got.clipped) == (3.5, RATE, 0)
    assert got.lead == pytest.approx(0.5, abs=0.06) and got.trail == pytest.approx(0.5, abs=0.06)
    assert got.level == pytest.approx(-19, abs=2) and got.noise == pytest.approx(-80, abs=3)
    assert got.words.state == "unchecked"


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (tone(2.5, level=1.8), "clipped"),
        (tone(2.5, level=0.002, noise=1e-5), "quiet"),
        (tone(2.5, noise=0.05), "noise"),
        (tone(0.6), "short"),
        (tone(24), "long"),
        (tone(2.5, edge=0.0), "cut start"),
        (tone(2.5, edge=6.0), "silence"),
        (tone(2.5, rate=8_000), "narrow"),
        (audio.encode_wav(np.zeros(RATE * 2, np.float32), RATE), "silent"),
    ],
)
def test_each_fault_asks_for_a_retake_in_plain_words(data: bytes, code: str) -> None:
    checked = check(data)
    assert code in codes(checked) and checked.verdict == "retake" and not checked.may_keep
    assert all(reason.text.endswith(".") and len(reason.text) > 30 for reason in checked.reasons)


def test_a_whisper_may_be_quieter_and_noisier_than_plain_speech() -> None:
    soft = tone(2.5, level=0.006, noise=4e-4)
    assert check(soft, cue="whisper").verdict == "good"
    assert set(codes(check(soft))) & {"quiet", "noise"}


def test_the_length_limits_follow_the_words_and_the_asked_pace() -> None:
    shortest, longest = take_checks.limits(WORDS)
    assert shortest == pytest.approx(10 / take_checks.FASTEST, abs=0.01) and longest > 15
    assert take_checks.limits(WORDS, "fast")[0] < shortest and take_checks.limits(WORDS, "slow")[1] > longest
    assert take_checks.limits("修车厂给我报了价格", language="zh")[0] > take_checks.limits("修车厂给我报了价格")[0]


def _header(**fields: int) -> bytes:
    values = {"code": 1, "channels": 1, "rate": RATE, "bits": 16, "claim": 2 * RATE} | fields
    width = values["channels"] * values["bits"] // 8
    fmt = struct.pack(
        "<HHIIHH", values["code"], values["channels"], values["rate"], values["rate"] * width, width, values["bits"]
    )
    head = b"WAVEfmt " + struct.pack("<I", 16) + fmt + b"data" + struct.pack("<I", values["claim"])
    return b"RIFF" + struct.pack("<I", min(36 + values["claim"], 0xFFFFFFFF)) + head + b"\1\0" * RATE


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "format"),
        (b"RIFF", "format"),
        (b"\x1aE\xdf\xa3 webm", "format"),
        (b"fLaC" + b"\0" * 100, "format"),
        (_header(channels=2), "format"),
        (_header(code=3, bits=32), "format"),
        (_header(bits=8), "format"),
        (_header(rate=0), "damaged"),
        (_header(rate=900_000), "damaged"),
        (_header(claim=0), "damaged"),
        (_header(claim=0xFFFFFFFF), "damaged"),
        (_header(claim=4 * RATE), "damaged"),
        (_header(claim=RATE), "damaged"),
        (tone(2.5)[:-1000], "damaged"),
        (tone(2.5)[:40], "damaged"),
        (tone(2.5) + b"<script>", "damaged"),
        (tone(121, rate=16_000), "long"),
        (b"RIFF" + b"\0" * (take_checks.MOST_BYTES + 1), "large"),
    ],
)
def test_hostile_and_truncated_uploads_are_refused_with_a_reason(data: bytes, code: str) -> None:
    with pytest.raises(TakeError) as caught:
        check(data)
    assert caught.value.code == code


@pytest.mark.local
def test_the_words_are_recognised_and_wrong_words_ask_for_a_retake() -> None:
    good = take_checks.check(spoken(WORDS), Wanted(WORDS, others=(OTHER,)))
    assert (good.verdict, good.checks.words.state) == ("good", "heard")
    assert good.checks.words.wer is not None and good.checks.words.wer <= 0.3
    wrong = take_checks.check(spoken(OTHER), Wanted(WORDS))
    assert codes(wrong) == ["words"] and "sister" in wrong.reasons[0].text
    assert wrong.may_keep  # the recogniser is a machine: the speaker may insist
    foreign = take_checks.check(spoken(WORDS), Wanted("Die Werkstatt hat mir einen Preis genannt.", language="de"))
    assert foreign.checks.words.state == "unchecked" and "English" in foreign.checks.words.why


@pytest.mark.local
def test_words_nearer_to_another_script_are_wrong_although_few_differ() -> None:
    said, asked = "I have to be at the station at nine.", "I have to be at the station at ten."
    wanted = Wanted(asked, others=(asked, said))
    assert codes(take_checks.check(spoken(said), wanted)) == ["words"]
    assert take_checks.check(spoken(asked), wanted).verdict == "good"


def test_without_the_recogniser_the_words_are_recorded_as_not_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(take_checks, "present", lambda package: False)
    checked = take_checks.check(tone(2.5), Wanted(WORDS))
    assert checked.verdict == "good" and checked.checks.words.state == "unchecked"
    assert "overtone setup local" in checked.checks.words.why


async def test_the_checker_leaves_the_loop_free_and_survives_the_death_of_its_process() -> None:
    checker = TakeChecker(listen=False)
    try:
        beats = 0

        async def beat() -> None:
            nonlocal beats
            while True:
                await asyncio.sleep(0.01)
                beats += 1

        heart = asyncio.create_task(beat())
        assert (await checker.check(tone(2.5), Wanted(WORDS))).verdict == "good"
        heart.cancel()
        assert beats >= 10  # the process takes longer than that to start
        with pytest.raises(TakeError) as caught:
            await checker.check(b"RIFF", Wanted(WORDS))
        assert caught.value.code == "format"
        assert checker._pool is not None
        for process in checker._pool._processes.values():
            process.kill()
        assert (await checker.check(tone(2.5), Wanted(WORDS))).verdict == "good"
    finally:
        checker.close()
