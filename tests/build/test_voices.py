"""Voices: engines found by name, a cast that spreads its speakers, and clear words when something does not speak."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from overtone import audio, registry
from overtone.build.reference_replies import speak_reply
from overtone.build.script import MANNERS, read_set
from overtone.build.voices import (
    DEFAULT,
    REPLY_VOICE,
    ROLES,
    Cast,
    How,
    VoiceError,
    cast,
    held_out,
)
from overtone.build.voices.espeak import split_voice
from overtone.build.voices.instructions import INSTRUCTIONS, PLAIN, instructions
from overtone.build.voices.recordings import Recordings
from overtone.cues import CUES
from overtone.embedded.espeak_voice import speak
from overtone.errors import DataError, MissingExtra, UsageError
from overtone.spec import parse_spec

WORDS = "The garage has sent me a price for the work."
PLAINLY = How("id_0101", "neutral")
embedded = pytest.mark.local
flite = pytest.mark.skipif(
    not shutil.which("flite"), reason="the program flite is not installed; run 'apt install flite'"
)
festival = pytest.mark.skipif(
    not shutil.which("text2wave"), reason="the program festival is not installed; run 'apt install festival'"
)


def opened(text: str) -> Any:
    spec = parse_spec(text)
    return registry.find("voices", spec.kind).load(spec)


def speech(voice: str = "en-us+f3") -> tuple[audio.Samples, int]:
    return speak(WORDS, voice=voice)


# ── the cast ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_engine_is_a_file_and_says_what_it_is() -> None:
    engines = registry.builtins("voices")
    assert set(engines) == {"command", "espeak", "festival", "flite", "openai", "recordings"}
    assert all(len(line) > 30 for line in engines.values())


def test_an_unknown_engine_is_an_error_with_the_nearest_name() -> None:
    with pytest.raises(UsageError, match="unknown voice 'esspeak'; did you mean 'espeak'"):
        opened("esspeak")
    with pytest.raises(UsageError, match="unknown key 'femal'; did you mean 'female'"):
        opened("espeak?femal=en-us+f1")
    with pytest.raises(UsageError, match="write 'espeak' alone"):
        opened("espeak:en-us+f1")


@embedded
def test_the_default_cast_has_four_speakers_or_more_of_each_sex_in_distinct_voices() -> None:
    speakers = cast(DEFAULT).speakers()
    assert min(Counter(s.sex for s in speakers).values()) >= 4
    for sex in ("male", "female"):
        variants = Counter(split_voice(s.name)[0].partition("+")[2] for s in speakers if s.sex == sex)
        assert max(variants.values()) <= 2
    assert len({(s.engine, s.name) for s in speakers}) == len(speakers)


@embedded
def test_a_script_meets_the_same_speaker_whatever_else_is_asked() -> None:
    first, again = cast(("espeak",)), Cast({"espeak": opened("espeak")})
    ids = [f"id_{n:04d}" for n in range(200)]
    assert [first.of("arlo", i) for i in ids] == [again.of("arlo", i) for i in reversed(ids)][::-1]
    assert cast(("espeak",)) is first


@embedded
def test_speakers_are_spread_evenly_and_every_cue_meets_several() -> None:
    scripts, players = read_set("open"), cast()
    drawn = {s.id: players.of(s.voice, s.id) for s in scripts}
    for sex in ("male", "female"):
        counts = Counter(s.name for s in drawn.values() if s.sex == sex)
        mean = sum(counts.values()) / sum(s.sex == sex for s in players.speakers())
        assert min(counts.values()) > 0.65 * mean
        assert max(counts.values()) < 1.4 * mean
    by_cue: dict[str, set[str]] = {}
    for s in scripts:
        by_cue.setdefault(s.cue, set()).add(drawn[s.id].name)
    assert min(map(len, by_cue.values())) >= 3


@embedded
def test_roles_fix_the_sex_the_control_has_another_speaker_of_it_and_the_partner_the_other_sex() -> None:
    players = cast()
    for n in range(100):
        for role, sex in ROLES.items():
            mine = players.of(role, f"x{n}")
            other, partner = players.other(mine, f"x{n}"), players.partner(mine, f"x{n}")
            assert other is not None
            assert mine.sex == other.sex == sex
            assert mine != other
            assert partner.sex != sex
    with pytest.raises(UsageError, match="did you mean 'freya'"):
        players.of("freja", "x")


@embedded
def test_several_voices_join_into_one_cast_and_a_lone_one_has_no_control() -> None:
    both = cast(("espeak?male=en-us+m2&female=en-us+f1", "espeak?female=en-gb+f4"))
    assert [s.name for s in both.speakers()] == ["en-us+m2", "en-us+f1", "en-gb+f4"]
    assert "espeak-ng@" in both.identity()
    assert both.other(both.of("arlo", "x"), "x") is None
    assert both.other(both.of("dora", "x"), "x") is not None
    with pytest.raises(UsageError, match="no male voice"):
        cast(("espeak?female=en-gb+f4",))
    with pytest.raises(UsageError, match="given twice"):
        cast(("espeak", "espeak"))


@embedded
def test_the_voices_held_out_are_those_heard_in_the_default_set() -> None:
    assert held_out() == {split_voice(name)[0] for name in (*(s.name for s in cast().speakers()), REPLY_VOICE)}


# ── the embedded engine ─────────────────────────────────────────────────────────────────────────────────────────────


@embedded
def test_the_embedded_engine_says_the_same_samples_every_time_and_differently_for_each_speaker() -> None:
    engine = opened("espeak")
    said = [engine.speak(WORDS, speaker, PLAINLY) for speaker in engine.speakers()]
    again = [engine.speak(WORDS, speaker, PLAINLY) for speaker in reversed(engine.speakers())][::-1]
    assert all(np.array_equal(a[0], b[0]) and a[1] == b[1] for a, b in zip(said, again, strict=True))
    assert len({x.tobytes() for x, _ in said}) == len(said)
    assert all(x.dtype == np.float32 and 1.5 < len(x) / rate < 6 for x, rate in said)
    assert not engine.native


@embedded
def test_men_and_women_of_the_default_cast_have_plausible_pitch() -> None:
    engine = opened("espeak")
    for speaker in engine.speakers():
        pitch = audio.measure(*engine.speak(WORDS, speaker, PLAINLY)).f0_hz
        assert pitch is not None
        low, high = (85, 150) if speaker.sex == "male" else (160, 260)
        assert low <= pitch <= high, speaker.name


@embedded
def test_a_wrong_voice_of_the_embedded_engine_is_named() -> None:
    with pytest.raises(UsageError, match="unknown variant 'm99'"):
        opened("espeak?male=en-us+m99")
    with pytest.raises(UsageError, match="the pitch after"):
        opened("espeak?male=en-us+m2^high")
    with pytest.raises(UsageError, match="named as male and as female"):
        opened("espeak?male=en-us+m2&female=en-us+m2")


# ── instructions ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_cue_of_the_voice_and_every_manner_has_its_own_sentence() -> None:
    slugs = [c.slug for c in CUES if c.dimension != "environment" and c.counted]
    assert len(slugs) == 23
    wanted = [*slugs, *(f"{slug} {kind}" for slug in slugs for kind in MANNERS.get(slug, ()))]
    assert set(wanted) <= set(INSTRUCTIONS)
    assert len(set(INSTRUCTIONS.values())) == len(INSTRUCTIONS)
    assert instructions("laughter", "nervous") != instructions("laughter", "hearty")
    assert instructions("rain") == instructions("") == PLAIN


# ── programs ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("name", "package"), [("flite", "apt install flite"), ("festival", "apt install festival ")])
def test_a_missing_program_names_its_package(name: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(MissingExtra, match=package):
        opened(name)


@pytest.mark.parametrize("name", [pytest.param("flite", marks=flite), pytest.param("festival", marks=festival)])
def test_a_speech_program_speaks_at_the_wanted_pace_the_same_every_time(name: str) -> None:
    engine = opened(name)
    speakers = {s.sex: s for s in engine.speakers()}
    assert set(speakers) == {"male", "female"}
    for speaker in speakers.values():
        slow, again = (engine.speak("“Café” — it’s done, he said.", speaker, PLAINLY, pace=130) for _ in range(2))
        fast, rate = engine.speak("“Café” — it’s done, he said.", speaker, PLAINLY, pace=190)
        assert np.array_equal(slow[0], again[0])
        assert 1.2 < (len(slow[0]) / slow[1]) / (len(fast) / rate) < 1.7
    assert "@" in engine.identity()
    assert "unknown" not in engine.identity()


@flite
def test_a_voice_in_another_size_moves_pitch_and_not_pace() -> None:
    engine = opened("flite?male=rms&female=slt,slt@1.1")
    _, tall, small = engine.speakers()
    (a, rate_a), (b, rate_b) = (engine.speak(WORDS, s, PLAINLY) for s in (tall, small))
    low, high = audio.measure(a, rate_a).f0_hz, audio.measure(b, rate_b).f0_hz
    assert low is not None
    assert high == pytest.approx(1.1 * low, rel=0.03)
    assert (len(b) / rate_b) / (len(a) / rate_a) == pytest.approx(1.0, abs=0.03)
    with pytest.raises(UsageError, match="the size after @"):
        opened("flite?female=slt@3")
    with pytest.raises(UsageError, match="flite has no voice 'rmss'; did you mean 'rms'"):
        opened("flite?male=rmss")


SAYER = """
import pathlib, sys, json
from overtone.audio import encode_wav
from overtone.embedded.espeak_voice import speak
args = dict(a.split("=", 1) for a in sys.argv[1:])
words = pathlib.Path(args["text"]).read_text() if "text" in args else sys.stdin.read()
pathlib.Path(args["log"]).write_text(json.dumps({**args, "words": words}))
pathlib.Path(args["out"]).write_bytes(encode_wav(*speak(words, voice=args["voice"])))
"""


def program(folder: Path, code: str, name: str = "say.py") -> Path:
    path = folder / name
    path.write_text(code)
    return path


@embedded
@pytest.mark.parametrize("text", ["", " text={text_file}"])
def test_a_command_is_told_the_words_the_voice_and_the_cue(tmp_path: Path, text: str) -> None:
    log = tmp_path / "log.json"
    args = f"out={{out}} voice={{voice}} cue={{cue}} how={{instructions}} log={log}{text}"
    engine = opened(f"command:{program(tmp_path, SAYER)}?native=yes&licence=CC0-1.0&male=en-us+m2&args={args}")
    words = "Say; $(touch x) --out=/nowhere {voice} naïve"
    samples, rate = engine.speak(words, engine.speakers()[0], How("id_1", "target", "angry"))
    told = msgspec.json.decode(log.read_bytes())
    assert told["words"].strip() == words
    assert (told["cue"], told["voice"]) == ("angry", "en-us+m2")
    assert told["how"].startswith(INSTRUCTIONS["angry"])
    assert len(samples) / rate > 1
    assert (engine.native, engine.licence) == (True, "CC0-1.0")
    assert engine.speak_reply("Yes.", "calm", "a.wav") is None


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("import sys; sys.exit('no licence found')", "exit status 1; its output ends:\nno licence found"),
        ("print('done')", "wrote no sound"),
        ("import sys; open(sys.argv[1], 'w').write('not a sound')", "wrote no usable sound"),
        ("import os, sys; sys.exit(os.environ['MY_API_KEY'])", "its output ends:\n…"),
        ("import time; time.sleep(60)", "no speech in 1 s"),
        (
            "import sys, numpy; from overtone.audio import encode_wav;"
            "open(sys.argv[1], 'wb').write(encode_wav(numpy.zeros(8000, 'f4'), 16000))",
            "the sound is silent",
        ),
    ],
)
def test_a_command_that_fails_says_how(
    tmp_path: Path, code: str, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_API_KEY", "very-secret-value-1234")
    wait = 1 if "sleep" in code else 60
    engine = opened(f"command:{program(tmp_path, code)}?args={{out}}&timeout={wait}")
    began = time.monotonic()
    with pytest.raises(VoiceError, match=problem.replace("(", r"\(")) as error:
        engine.speak(WORDS, engine.speakers()[0], PLAINLY)
    assert "very-secret" not in str(error.value)
    assert time.monotonic() - began < 30


def test_a_command_with_wrong_arguments_is_refused_before_it_runs(tmp_path: Path) -> None:
    path = program(tmp_path, "")
    with pytest.raises(UsageError, match=r"must contain \{out\}"):
        opened(f"command:{path}?args=--voice {{voice}}")
    with pytest.raises(UsageError, match=r"no place \{voise\}; did you mean 'voice'"):
        opened(f"command:{path}?args={{out}} {{voise}}")
    with pytest.raises(UsageError, match="there is no program"):
        opened("command:./nowhere.py")
    with pytest.raises(UsageError, match="not executable"):
        opened(f"command:{program(tmp_path, '', 'say.sh')}")


# ── a server ────────────────────────────────────────────────────────────────────────────────────────────────────────


class Speech(BaseHTTPRequestHandler):
    """POST /v1/audio/speech with the embedded voice, as a server of one's own would; misbehaves on request."""

    def do_POST(self) -> None:
        server: Any = self.server
        body = msgspec.json.decode(self.rfile.read(int(self.headers["Content-Length"])))
        server.asked.append((self.path, dict(self.headers), body))
        status, headers, data = server.plan.pop(0) if server.plan else (200, {}, None)
        if status == 0:
            self.connection.close()
            return
        if data is None and status == 200:
            data = audio.encode_wav(*speak(body["input"], voice=body["voice"]))
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data or b'{"error": {"message": "busy, Bearer my-own-secret-key"}}')

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Any]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Speech) as made:
        made.asked, made.plan = [], []  # type: ignore[attr-defined]
        made.base = f"http://127.0.0.1:{made.server_port}/v1"  # type: ignore[attr-defined]
        threading.Thread(target=made.serve_forever, daemon=True).start()
        yield made
        made.shutdown()


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long a client would have waited."""
    waited: list[float] = []
    monkeypatch.setattr("overtone.build.voices._http.time.sleep", waited.append)
    return waited


def served(server: Any, more: str = "") -> Any:
    return opened(f"openai:tiny?base_url={server.base}&male=en-us+m2&female=en-us+f1{more}")


@embedded
def test_a_server_is_told_how_to_speak_and_its_speech_is_taken(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "my-own-secret-key")
    engine = served(server, "&api_key_env=MY_KEY&licence=MIT")
    samples, rate = engine.speak(WORDS, engine.speakers()[1], How("id_1", "target", "whisper"))
    path, headers, body = server.asked[0]
    assert path == "/v1/audio/speech"
    assert headers["Authorization"] == "Bearer my-own-secret-key"
    assert (body["model"], body["voice"], body["input"]) == ("tiny", "en-us+f1", WORDS)
    assert body["instructions"].startswith(INSTRUCTIONS["whisper"])
    assert np.allclose(samples, speech("en-us+f1")[0], atol=1e-3)
    assert rate == 22_050
    assert engine.native
    assert engine.licence == "MIT"
    assert "secret" not in engine.identity()


@embedded
def test_with_world_delivery_a_server_speaks_plainly(server: Any) -> None:
    engine = served(server, "&delivery=world")
    engine.speak(WORDS, engine.speakers()[0], How("id_1", "target", "angry", instructions="Rage."))
    assert server.asked[0][2]["instructions"] == PLAIN
    assert not engine.native
    bare = served(server, "&delivery=world&instructions=no")
    bare.speak(WORDS, bare.speakers()[0], PLAINLY)
    assert "instructions" not in server.asked[1][2]
    with pytest.raises(UsageError, match="the server cannot deliver cues"):
        served(server, "&instructions=no")


@embedded
def test_a_server_may_speak_the_replies_in_their_style(server: Any) -> None:
    players = cast((f"openai:tiny?base_url={server.base}&male=a&female=b&reply=en-us+f4&licence=MIT",))
    samples, _, used = speak_reply(players, "I am so glad.", "warm and slow", "audio_response/happy/x_response.wav")
    assert "warm and slow" in server.asked[0][2]["instructions"]
    assert used.licence == "MIT"
    assert 0.5 < len(samples) / 24_000 < 4


@embedded
def test_overload_is_waited_out_as_the_server_asks(server: Any, pauses: list[float]) -> None:
    engine = served(server)
    server.plan = [(429, {"Retry-After": "7"}, None), (503, {}, None), (0, {}, None)]
    samples, _ = engine.speak(WORDS, engine.speakers()[0], PLAINLY)
    assert len(samples)
    assert len(server.asked) == 4
    assert pauses[0] == 7
    assert len(pauses) == 3


@pytest.mark.parametrize(
    ("answer", "asked", "problem"),
    [
        ((500, {}, None), 5, "HTTP 500 from .*/audio/speech.*tried 5 times"),
        ((401, {}, None), 1, "HTTP 401.*api_key_env=NAME"),
        ((404, {}, None), 1, "HTTP 404.*check base_url"),
        ((302, {"Location": "http://127.0.0.1:1/"}, b"gone"), 1, "HTTP 302"),
        ((200, {}, b'{"error": "no such voice"}'), 1, "not a sound.*it begins: .*no such voice"),
        ((200, {}, b"RIFF\x00\x00\x00\x00WAVEfmt "), 1, "cut short|no data chunk"),
        ((200, {"Content-Length": "5000"}, b"RIFF"), 5, "closed before its answer was complete"),
    ],
)
def test_a_server_that_fails_is_told_apart(
    server: Any, pauses: list[float], answer: Any, asked: int, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "my-own-secret-key")
    engine = served(server, "&api_key_env=MY_KEY")
    server.plan = [answer] * 9
    with pytest.raises(VoiceError, match=problem) as error:
        engine.speak(WORDS, engine.speakers()[0], PLAINLY)
    assert len(server.asked) == asked
    assert "my-own-secret" not in str(error.value)
    assert len(pauses) == (4 if asked == 5 else 0)


def test_nobody_at_the_address_is_said_at_once() -> None:
    engine = opened("openai:tiny?base_url=http://127.0.0.1:9/v1")
    with pytest.raises(VoiceError, match="no server listens there; start the server"):
        engine.speak(WORDS, engine.speakers()[0], PLAINLY)


@embedded
@pytest.mark.parametrize("form", ["FLAC", "MP3", "streamed"])
def test_other_formats_and_streamed_headers_are_read(server: Any, form: str) -> None:
    import soundfile

    samples, rate = speech()
    if form == "streamed":
        wav = bytearray(audio.encode_wav(samples, rate))
        wav[4:8] = wav[40:44] = b"\xff\xff\xff\xff"
        data = bytes(wav)
    else:
        out = BytesIO()
        soundfile.write(out, samples, rate, format=form)
        data = out.getvalue()
    server.plan = [(200, {}, data)]
    engine = served(server)
    got, got_rate = engine.speak(WORDS, engine.speakers()[0], PLAINLY)
    assert len(got) / got_rate == pytest.approx(len(samples) / rate, abs=0.15)


def test_a_key_is_asked_for_by_name_and_goes_to_its_own_host_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    engine = opened("openai:gpt-4o-mini-tts")
    with pytest.raises(UsageError, match="OPENAI_API_KEY is not set"):
        engine.speak(WORDS, engine.speakers()[0], PLAINLY)
    with pytest.raises(UsageError, match="no model is named"):
        opened("openai")
    with pytest.raises(UsageError, match="delivery must be native or world, not 'wold'; did you mean 'world'"):
        opened("openai:m?delivery=wold")


# ── recordings ──────────────────────────────────────────────────────────────────────────────────────────────────────


def take(folder: Path, name: str, pitch: float = 200.0) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    seconds = np.arange(8_000) / 16_000
    path.write_bytes(audio.encode_wav((0.2 * np.sin(2 * np.pi * pitch * seconds)).astype(np.float32), 16_000))
    return path


def how(case: str, style: str) -> How:
    return How(case, style, file=f"rain/{case}_rain_travel_{style}.wav")


def recordings(folder: Path, more: str = "?female=ann,eve&male=bob") -> Recordings:
    engine = opened(f"recordings:{folder}{more}")
    assert isinstance(engine, Recordings)
    return engine


def test_takes_are_found_by_either_name_in_any_folder(tmp_path: Path) -> None:
    take(tmp_path, "monday/id_0101_rain_travel_target.wav", 200)
    take(tmp_path, "id_0101_neutral.wav", 300)
    take(tmp_path, "replies/id_0101_target_response.wav", 400)
    engine = recordings(tmp_path)
    someone = engine.speakers()[0]
    assert engine.native
    for style, pitch in (("target", 200), ("neutral", 300)):
        samples, rate = engine.speak("ignored", someone, how("id_0101", style))
        assert np.abs(np.fft.rfft(samples)).argmax() == pytest.approx(pitch * len(samples) / rate, abs=1)
    assert engine.speak_reply("x", "calm", "audio_response/rain/id_0101_rain_travel_target_response.wav") is not None
    assert engine.speak_reply("x", "calm", "audio_response/rain/id_0101_rain_travel_neutral_response.wav") is None


def test_all_missing_takes_are_listed_at_once_with_the_names_they_may_have(tmp_path: Path) -> None:
    take(tmp_path, "id_0101_target.wav")
    engine = recordings(tmp_path)
    wanted = [how("id_0101", "target"), how("id_0101", "neutral"), how("id_0102", "target")]
    assert engine.missing(wanted) == [
        "id_0101_rain_travel_neutral.wav or id_0101_neutral.wav",
        "id_0102_rain_travel_target.wav or id_0102_target.wav",
    ]

    with pytest.raises(VoiceError, match="a take is missing"):
        engine.speak("x", engine.speakers()[0], wanted[1])


def test_the_turns_of_a_dialogue_are_told_apart(tmp_path: Path) -> None:
    take(tmp_path, "id_d1_changed.wav")
    take(tmp_path, "id_d1_turn2_changed.wav")
    first, second = (How("id_d1", "changed", file=f"dialogue/id_d1_work_turn{n}_changed.wav") for n in (1, 2))
    assert recordings(tmp_path).missing([second]) == []
    assert recordings(tmp_path).missing([first]) == ["id_d1_work_turn1_changed.wav or id_d1_turn1_changed.wav"]


def test_who_recorded_a_script_speaks_it(tmp_path: Path) -> None:
    take(tmp_path, "ann/id_1_target.wav")
    take(tmp_path, "eve/id_2_target.wav")
    take(tmp_path, "bob/id_2_target.wav", 100)
    players = Cast({str(parse_spec(f"recordings:{tmp_path}?female=ann,eve&male=bob")): recordings(tmp_path)})
    assert players.of("dora", "id_1").name == "ann"
    assert players.of("dora", "id_2").name == "eve"
    assert players.of("arlo", "id_2").name == "bob"
    with pytest.raises(VoiceError, match="no male recording of script id_1"):
        players.of("arlo", "id_1")
    bob = players.of("arlo", "id_2")
    samples, rate = players.engine(bob).speak("x", bob, how("id_2", "target"))
    assert np.abs(np.fft.rfft(samples)).argmax() == pytest.approx(100 * len(samples) / rate, abs=1)
    assert players.missing(bob, how("id_9", "target")) == ["id_9_rain_travel_target.wav or id_9_target.wav"]


def test_a_table_may_name_the_speakers(tmp_path: Path) -> None:
    take(tmp_path, "id_1_target.wav")
    (tmp_path / "speakers.csv").write_text("speaker,sex,case_id\nann,female,id_1\nbob,male,id_2\neve,female,id_3\n")
    engine = recordings(tmp_path, "")
    assert [(s.name, s.sex) for s in engine.speakers()] == [("bob", "male"), ("ann", "female"), ("eve", "female")]
    assert [s.name for s in engine.speakers_of("id_1")] == ["ann"]
    (tmp_path / "speakers.csv").write_text("speaker,sex\nann,woman\n")
    with pytest.raises(DataError, match=r"speakers.csv, line 2: .*male or female, not 'woman'"):
        recordings(tmp_path, "")
    (tmp_path / "speakers.csv").unlink()
    with pytest.raises(UsageError, match="no speaker is named"):
        recordings(tmp_path, "")
    with pytest.raises(UsageError, match="is not a folder"):
        recordings(tmp_path / "nowhere")


def test_a_broken_take_is_named_with_its_fault(tmp_path: Path) -> None:
    take(tmp_path, "id_1_target.wav").write_bytes(b"")
    whole = take(tmp_path, "id_2_target.wav").read_bytes()
    (tmp_path / "id_2_target.wav").write_bytes(whole[:30])
    (tmp_path / "id_3_target.wav").write_bytes(audio.encode_wav(np.zeros(8_000, np.float32), 16_000))
    engine = recordings(tmp_path)
    for case, fault in (("id_1", "empty"), ("id_2", "cut short|truncated|no data"), ("id_3", "silent")):
        with pytest.raises(VoiceError, match=f"{case}_target.wav.*({fault})"):
            engine.speak("x", engine.speakers()[0], how(case, "target"))


def test_hostile_names_reach_nothing_outside_the_folder(tmp_path: Path) -> None:
    outside = take(tmp_path, "secret_target.wav")
    inside = tmp_path / "takes"
    take(inside, "id_1_target.wav")
    engine = recordings(inside)
    for case in ("../secret", str(tmp_path / "secret"), "*", "", "id_1\0"):
        assert engine.missing([How(case, "target", file=f"../{case}_target.wav")])
    take(inside, "a\nb\x1b[31m_target.wav")
    assert not recordings(inside).missing([How("id_1", "target")])
    (inside / "id_2_target.wav").symlink_to(outside)
    with pytest.raises(DataError, match="leaves its folder"):
        recordings(inside).missing([How("id_2", "target")])


def test_two_takes_of_one_name_are_an_error(tmp_path: Path) -> None:
    take(tmp_path, "a/id_1_target.wav")
    take(tmp_path, "b/id_1_target.wav")
    with pytest.raises(DataError, match="two takes have one name"):
        recordings(tmp_path).missing([how("id_1", "target")])
    before = recordings(tmp_path / "a").identity()
    os.utime(take(tmp_path, "a/id_1_target.wav", 123), (1, 1))
    assert recordings(tmp_path / "a").identity() != before
