"""The recording desk over its API: whole sessions, retakes, resuming, refusals, a full disk, withdrawal."""

from __future__ import annotations

import errno
import json
import secrets
from pathlib import Path
from typing import Any

import pytest

from overtone.studio.server import app, take_api
from overtone.studio.study import Study
from overtone.studio.take_checker import TakeChecker
from overtone.studio.take_checks import MOST_BYTES
from tests.studio.desk_helpers import SPEAKER, desk, some_scripts
from tests.studio.server.helpers import Rater, Server, served
from tests.studio.speech import tone

GOOD, OTHER, BAD = tone(3.5), tone(3.6, noise=2e-4), tone(3.5, level=1.8)


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    """One script whose words are also spoken sadly, and one whose cue is a scene."""
    monkeypatch.setattr(app, "TakeChecker", lambda: TakeChecker(listen=False))
    return desk(tmp_path, "record", some_scripts("sad", "rain"), "--votes", "2")


async def enter(server: Server, token: str = "", **consents: bool) -> Rater:
    """A speaker who has agreed and set up the microphone."""
    speaker = server.rater(token)
    state = await speaker.get("api/state")
    if state["step"] == "consent":
        parts = {"analysis": True, **consents}
        sha = state["study"]["texts"]["consent_sha"]
        await speaker.post("api/consent", {"consent_sha": sha, "agree": True, "parts": parts})
        await speaker.post("api/setup", {"device": SPEAKER, "level": None})
    speaker.state = await speaker.get("api/state")
    return speaker


async def upload(
    speaker: Rater, slot: str, part: str, data: bytes, *, key: str = "", status: int = 200, **settings: Any
) -> Any:
    query = f"slot={slot}&part={part}&client_key={key or secrets.token_hex(8)}"
    headers = {"Content-Type": "audio/wav", "X-Take-Settings": json.dumps({"sampleRate": 48_000, **settings})}
    got, _, body = await speaker.server.raw("POST", f"api/take?{query}", speaker.token, data=data, headers=headers)
    assert got == status, body[:400]
    return json.loads(body)


async def record(speaker: Rater) -> dict[str, Any]:
    """Record and keep every delivery of the present script, and go on to the next."""
    slot = speaker.state["screen"]["slot"]
    task = await speaker.get(f"api/record?slot={slot}")
    for part in task["parts"]:
        stored = await upload(speaker, slot, part["key"], GOOD)
        await speaker.post("api/take/keep", {"take": stored["take"]["id"], "kept": True})
    done = {"slot": slot, "client_key": secrets.token_hex(8), "ms": 9000, "done": True}
    speaker.state = await speaker.post("api/answer", done)
    return task


def files(study: Study) -> list[Path]:
    return sorted((study.path.parent / "desk-takes").rglob("*.wav"))


async def test_a_speaker_records_every_delivery_of_every_script(study: Study) -> None:
    async with served(study) as server:
        speaker = await enter(server, publication=True)
        assert speaker.state["study"]["needs_microphone"] and speaker.state["screen"]["layout"] == "record"
        assert [(one["key"], one["required"], one["default"]) for one in speaker.state["study"]["consents"]] == [
            ("analysis", True, False), ("publication", False, False), ("training", False, False),
            ("cloning", False, False),
        ]  # fmt: skip
        tasks = []
        while speaker.state["step"] == "rating":
            tasks.append(await record(speaker))
        assert speaker.state["step"] == "done"
        parts = {part["key"]: part["instruction"] for task in tasks for part in task["parts"]}
        assert {"plain", "sad"} <= set(parts) and "sadness" in parts["sad"]
        assert not {"rain"} & set(parts)  # a scene is mixed in later: the plain take serves it
        kept = server.studio.store.takes.all(kept=True)
        assert len(kept) == sum(len(task["parts"]) for task in tasks)
        assert kept[0].settings["sampleRate"] == 48_000 and kept[0].checks["words"]["state"] == "unchecked"
        person = server.studio.store.people.find(speaker.token)
        assert person is not None and person.parts["publication"] and not person.parts["cloning"]


async def test_a_retake_keeps_the_earlier_take_until_the_session_ends(study: Study) -> None:
    async with served(study) as server:
        speaker = await enter(server)
        slot = speaker.state["screen"]["slot"]
        first = await upload(speaker, slot, "plain", GOOD)
        await speaker.post("api/take/keep", {"take": first["take"]["id"], "kept": True})
        second = await upload(speaker, slot, "plain", BAD)
        assert second["take"]["verdict"] == "retake" and "distorted" in second["take"]["reasons"][0]
        refused = await speaker.post("api/take/keep", {"take": second["take"]["id"], "kept": True}, status=422)
        assert "made again" in refused["error"]["message"]
        task = await speaker.post("api/take/keep", {"take": second["take"]["id"], "kept": False})
        plain = next(part for part in task["parts"] if part["key"] == "plain")
        assert plain["take"]["id"] == first["take"]["id"] and plain["take"]["kept"] and plain["takes"] == 2
        third = await upload(speaker, slot, "plain", OTHER)
        await speaker.post("api/take/keep", {"take": third["take"]["id"], "kept": True})
        assert len(files(study)) == 3
        while speaker.state["step"] == "rating":
            await record(speaker)
        kept = {take.sha256 for take in server.studio.store.takes.all(kept=None)}
        assert {path.stem for path in files(study)} == kept and all(
            take.kept for take in server.studio.store.takes.all(kept=None)
        )


async def test_a_session_resumes_on_another_device_with_the_takes_so_far(study: Study) -> None:
    async with served(study) as server:
        speaker = await enter(server)
        slot = speaker.state["screen"]["slot"]
        key = secrets.token_hex(8)
        first = await upload(speaker, slot, "plain", GOOD, key=key)
        again = await upload(speaker, slot, "plain", GOOD, key=key)  # the answer was lost, and the page repeats it
        assert again["take"]["id"] == first["take"]["id"]
    async with served(study) as server:
        later = await enter(server, speaker.token)
        assert later.state["screen"]["slot"] == slot
        task = await later.get(f"api/record?slot={slot}")
        plain = next(part for part in task["parts"] if part["key"] == "plain")
        assert plain["takes"] == 1 and plain["take"]["kept"] is None and task["speaker"]
        assert await later.get(plain["take"]["url"]) == GOOD


async def test_a_script_is_not_finished_before_every_delivery_is_kept(study: Study) -> None:
    async with served(study) as server:
        speaker = await enter(server)
        slot = speaker.state["screen"]["slot"]
        await upload(speaker, slot, "plain", GOOD)
        done = {"slot": slot, "client_key": secrets.token_hex(8), "done": True}
        refused = await speaker.post("api/answer", done, status=422)
        assert "please record and keep: ordinary" in refused["error"]["message"]


async def test_hostile_uploads_are_refused_and_store_nothing(study: Study) -> None:
    async with served(study) as server:
        speaker, other = await enter(server), await enter(server)
        slot = speaker.state["screen"]["slot"]
        for data, status, code in (
            (GOOD[:-999], 422, "take_damaged"),
            (b"<html>", 422, "take_format"),
            (b"", 422, "take_format"),
            (b"RIFF" + bytes(MOST_BYTES + 1), 413, "too_large"),
        ):
            assert (await upload(speaker, slot, "plain", data, status=status))["error"]["code"] == code
        assert "no such delivery" in str(await upload(speaker, slot, "../plain", GOOD, status=422))
        assert "simple values" in str(await upload(speaker, slot, "plain", GOOD, status=422, a={"b": 1}))
        await upload(other, slot, "plain", GOOD, status=404)
        taken = await upload(speaker, slot, "plain", GOOD)
        await other.get(taken["take"]["url"], status=404)
        await other.post("api/take/keep", {"take": taken["take"]["id"], "kept": True}, status=404)
        assert len(files(study)) == 1


async def test_nobody_records_before_saying_whose_voice_it_is_and_that_a_guardian_agrees(study: Study) -> None:
    async with served(study) as server:
        speaker = await enter(server)
        slot = speaker.state["screen"]["slot"]
        await speaker.post("api/setup", {"device": {**SPEAKER, "adult": False}, "level": None})
        assert "guardian" in str(await upload(speaker, slot, "plain", GOOD, status=422))
        assert not (await speaker.get(f"api/record?slot={slot}"))["speaker"]
        await speaker.post("api/setup", {"device": {**SPEAKER, "adult": False, "guardian": True}, "level": None})
        await upload(speaker, slot, "plain", GOOD)


async def test_a_full_disk_loses_nothing_and_tells_the_owner(
    study: Study, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async with served(study) as server:
        speaker = await enter(server)
        slot = speaker.state["screen"]["slot"]
        first = await upload(speaker, slot, "plain", GOOD)
        await speaker.post("api/take/keep", {"take": first["take"]["id"], "kept": True})
        with monkeypatch.context() as full:

            def no_space(path: Path) -> None:
                raise OSError(errno.ENOSPC, "No space left on device")

            full.setattr("overtone.studio.store.stored_takes.to_disk", no_space)
            refused = await upload(speaker, slot, "plain", OTHER, key="the-same-key", status=503)
            assert str(study.path.parent) not in str(refused)
        assert "No space left on device" in capsys.readouterr().err
        task = await speaker.get(f"api/record?slot={slot}")
        assert task["parts"][0]["take"]["id"] == first["take"]["id"] and len(files(study)) == 1
        stored = await upload(speaker, slot, "plain", OTHER, key="the-same-key")
        assert stored["take"]["verdict"] == "good" and len(files(study)) == 2


async def test_withdrawal_removes_every_byte_of_a_voice(study: Study) -> None:
    async with served(study) as server:
        speaker, other = await enter(server), await enter(server)
        await upload(speaker, speaker.state["screen"]["slot"], "plain", GOOD)
        await upload(speaker, speaker.state["screen"]["slot"], "plain", OTHER)
        await upload(other, other.state["screen"]["slot"], "plain", OTHER)
        await speaker.post("api/withdraw", {})
        assert len(files(study)) == 1 and len(server.studio.store.takes.all(kept=None)) == 1
    for path in study.path.parent.rglob("*"):
        assert not path.is_file() or GOOD[44:2044] not in path.read_bytes()


async def test_a_speaker_can_hear_an_example_of_each_delivery(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "TakeChecker", lambda: TakeChecker(listen=False))
    (script,) = some_scripts("sad")
    home = tmp_path / "set" / "data_synthesis"
    info: dict[str, Any] = {"case_id": script.id, "spoken_info": "sad", "topic": "work", "speak_A": script.words}
    for number, style in enumerate(("target", "neutral")):
        path = home / "audio" / script.file_name(style)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(tone(1 + number))
        info[f"{style}_audio_info"] = {f"{style}_input_audio_file": script.file_name(style)}
    (home / "script_info_synthesis.json").write_text(json.dumps([info]))
    study = desk(tmp_path, "record", [script], "--examples", str(tmp_path / "set"))
    async with served(study) as server:
        speaker = await enter(server)
        task = await speaker.get(f"api/record?slot={speaker.state['screen']['slot']}")
        examples = {part["key"]: part["example"] for part in task["parts"]}
        assert await speaker.get(examples["sad"]) == tone(1) and await speaker.get(examples["plain"]) == tone(2)
        assert examples["happy"] == ""  # the set has no clip of the alternative
        other = await enter(server)
        await other.get(examples["sad"], status=404)
        (home / "audio" / script.file_name("target")).write_bytes(tone(1.5))
        await speaker.get(examples["sad"], status=404)  # changed since: not played


async def test_a_take_of_a_finished_script_is_neither_kept_nor_discarded(study: Study) -> None:
    async with served(study) as server:
        speaker = await enter(server)
        await record(speaker)
        (first, *_) = server.studio.store.takes.all(kept=True)
        for kept in (True, False):
            refused = await speaker.post("api/take/keep", {"take": first.id, "kept": kept}, status=409)
            assert refused["error"]["code"] == "slot"
        assert first in server.studio.store.takes.all(kept=True)


async def test_a_delivery_is_recorded_a_limited_number_of_times(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(take_api, "MOST_TAKES", 2)
    async with served(study) as server:
        speaker = await enter(server)
        slot = speaker.state["screen"]["slot"]
        for data in (GOOD, OTHER):
            await upload(speaker, slot, "plain", data)
        refused = await upload(speaker, slot, "plain", BAD, status=422)
        assert "2 times" in refused["error"]["message"] and len(files(study)) == 2
