"""Judges that hear: the right sounds arrive whole and in order over every wire format; descriptions are text."""

from __future__ import annotations

import hashlib
import io
import sys
from pathlib import Path

import pytest
import soundfile

from overtone.judges.judge_input import Subject
from tests.judges.helpers import pair, reply, sit, sounds
from tests.judges.server import GeminiJudge, JudgeServer, Judging
from tests.servers import Asked, tone

BOTH = pytest.mark.parametrize("kind", [JudgeServer, GeminiJudge])
OWN = """
version = 1
title = "Both"
measures = "m"
cannot_see = "c"
source = "s"
shows = ["cue", "words"]
hears = ["clip", "reply"]
system = "You hear the user and the reply."
[headings]
clip = "The user"
reply = "The reply"
[[dimension]]
key = "ves"
label = "V"
question = "Does it fit?"
scale = [1, 5]
"""


def spoken(number: int, folder: Path) -> Subject:
    subject = reply(number)
    subject.sounds.update(sounds(folder, "clip", "reply"))
    return subject


def parts(asked: Asked) -> list[str]:
    """The user's message as the endpoint got it: its texts, and "sound" for each sound, in order."""
    if "contents" in asked.body:
        return [part.get("text", "sound") for part in asked.body["contents"][-1]["parts"]]
    content = asked.body["messages"][-1]["content"]
    return [content] if isinstance(content, str) else [part.get("text", "sound") for part in content]


@BOTH
def test_the_reply_arrives_whole_and_under_its_heading(tmp_path: Path, kind: type[Judging]) -> None:
    subject = spoken(1, tmp_path / "s")
    with kind(keep_audio=True) as server:
        (found,), _ = sit(server.spec(), "ves", [subject], tmp_path / "v.db")
    (asked,) = server.asked
    (wav,) = asked.wavs
    assert hashlib.sha256(wav).hexdigest() == hashlib.sha256(subject.sounds["reply"].read_bytes()).hexdigest()
    samples, rate = soundfile.read(io.BytesIO(wav))
    assert (len(samples), rate) == (6400, 16_000)
    before, sound, after = parts(asked)
    assert sound == "sound"
    assert before.rstrip().endswith("How the assistant replied:")
    assert "a worn-out voice" in before and "I am done" not in asked.text, "the words are not shown to this rubric"
    assert '"ves"' in after
    assert found.draws[0].values["ves"] in range(1, 6)


@BOTH
def test_a_rubric_that_wants_both_gets_the_clip_and_then_the_reply(tmp_path: Path, kind: type[Judging]) -> None:
    (tmp_path / "both.toml").write_text(OWN)
    subject = spoken(1, tmp_path / "s")
    with kind(keep_audio=True) as server:
        sit(server.spec(), str(tmp_path / "both.toml"), [subject], tmp_path / "v.db")
    (asked,) = server.asked
    assert asked.wavs == [subject.sounds["clip"].read_bytes(), subject.sounds["reply"].read_bytes()]
    user, first, middle, second, _ = parts(asked)
    assert (first, second) == ("sound", "sound")
    assert user.rstrip().endswith("The user:") and middle.strip() == "The reply:"


@BOTH
def test_a_spoken_pair_is_heard_in_both_orders_and_the_clip_stays_first(tmp_path: Path, kind: type[Judging]) -> None:
    subject = pair(1)
    subject.sounds.update(sounds(tmp_path / "s", "clip", "a", "b"))
    with kind(keep_audio=True, verdict=lambda asked: {"voice_preference": "A"}) as server:
        (found,), _ = sit(server.spec(), "pair-voice", [subject], tmp_path / "v.db")
    clip, a, b = (subject.sounds[name].read_bytes() for name in ("clip", "a", "b"))
    assert [asked.wavs for asked in server.asked] == [[clip, a, b], [clip, b, a]]
    assert [draw.values["voice_preference"] for draw in found.draws] == ["A", "B"]


@BOTH
def test_a_description_is_text_and_no_sound_is_sent(tmp_path: Path, kind: type[Judging]) -> None:
    subject = spoken(1, tmp_path / "s")
    with kind(keep_audio=True) as server:
        (found,), _ = sit(server.spec("hears=description"), "ves", [subject], tmp_path / "v.db")
    (asked,) = server.asked
    assert asked.wavs == [] and asked.sounds == ()
    assert "How the assistant replied, as measured:" in asked.text
    assert "Length: 0.4 s." in asked.text
    assert str(tmp_path) not in asked.text and "reply.wav" not in asked.text, "no names of files"
    assert found.judge == "scripted.description"


def test_what_is_heard_and_what_is_described_are_two_questions(tmp_path: Path) -> None:
    subject = spoken(1, tmp_path / "s")
    with JudgeServer() as server:
        sit(server.spec(), "ves", [subject], tmp_path / "v.db")
        sit(server.spec("hears=description"), "ves", [subject], tmp_path / "v.db")
        assert server.count == 2


def test_a_sound_of_another_form_is_sent_as_a_mono_wav_at_its_own_rate_or_the_specs(tmp_path: Path) -> None:
    import numpy as np

    rng = np.random.default_rng(1)
    soundfile.write(tmp_path / "stereo.flac", rng.uniform(-0.5, 0.5, (48_000, 2)), 48_000)
    subject = reply(1)
    subject.sounds["reply"] = tmp_path / "stereo.flac"
    with JudgeServer(keep_audio=True) as server:
        sit(server.spec(), "ves", [subject], tmp_path / "v.db")
        sit(server.spec("audio_rate=16000"), "ves", [subject], tmp_path / "v.db")
    for asked, own in zip(server.asked, (48_000, 16_000), strict=True):
        samples, rate = soundfile.read(io.BytesIO(asked.wavs[0]))
        assert (samples.ndim, rate, len(samples)) == (1, own, own)
        assert asked.wavs[0][:4] == b"RIFF"


def test_a_broken_sound_is_the_reason_and_nothing_is_paid(tmp_path: Path) -> None:
    (tmp_path / "broken.wav").write_bytes(b"RIFF\x24\0\0\0WAVEfmt ")
    subject = reply(1)
    subject.sounds["reply"] = tmp_path / "broken.wav"
    with JudgeServer() as server:
        for options in ("", "hears=description"):
            (found,), outcome = sit(server.spec(options), "ves", [subject], tmp_path / "v.db")
            assert found.draws[0].problem and not found.draws[0].values
            assert (outcome.skipped, outcome.failed) == (1, 0)
        assert server.count == 0


def test_a_judge_in_a_worker_process_hears_the_reply(tmp_path: Path) -> None:
    worker = Path(__file__).with_name("judging_worker.py")
    samples, rate = soundfile.read(io.BytesIO(tone(1, 0.4, 16_000)))
    found = []
    for number, gain in enumerate((1.0, 0.3)):
        subject = reply(number)
        subject.sounds["reply"] = tmp_path / f"{number}.wav"
        soundfile.write(subject.sounds["reply"], gain * samples, rate, subtype="PCM_16")
        found.append(subject)
    spec = f"worker:{worker}?python={sys.executable}&label=loudness"
    (loud, soft), outcome = sit(spec, "ves", found, tmp_path / "v.db")
    assert (loud.draws[0].values, soft.draws[0].values) == ({"ves": 5}, {"ves": 2})
    assert loud.draws[0].reasons["ves"] == "peak 0.30, 1 sound"
    assert sit(spec, "ves", found, tmp_path / "v.db")[1].requests == 0, "no process is started for what is known"
    assert outcome.requests == 2
