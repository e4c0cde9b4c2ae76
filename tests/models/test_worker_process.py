"""Worker processes without heavy libraries: batches, failures, deaths, secrets and limits, with the echo worker."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import textwrap
import time
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import psutil
import pytest

from overtone.audio import decode, silence
from overtone.errors import MissingExtra, ModelFailure, UsageError
from overtone.models.worker import WorkerModel, built_in, load
from overtone.schema import Key, Message, Reply, Request, Sound
from overtone.spec import parse_spec
from overtone.workers import protocol
from overtone.workers.host import worker_environment

ECHO = Path(__file__).with_name("echo_worker.py")


@pytest.fixture(autouse=True)
def logs_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The logs of workers that failed are kept; keep them with the test."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def asked(text: str, sound: Sound | None = None, *, speech: bool = False, repeat: int = 0) -> Request:
    parts: tuple[str | Sound, ...] = (text,) if sound is None else (sound, text)
    return Request(Key("item", "task/audio", repeat), (Message("user", parts),), speech)


def echo(**keys: object) -> WorkerModel:
    query = "&".join(f"{k}={v}" for k, v in {"python": sys.executable, **keys}.items())
    return load(parse_spec(f"worker:{ECHO}?{query}"))


@asynccontextmanager
async def opened(**keys: object) -> AsyncIterator[WorkerModel]:
    model = echo(**keys)
    await model.open()
    try:
        yield model
    finally:
        await model.close()


async def outcomes(*asks: Awaitable[Reply]) -> list[Reply | BaseException]:
    return await asyncio.gather(*asks, return_exceptions=True)


async def gone(pid: int, seconds: float = 8.0) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return True
        await asyncio.sleep(0.05)
    return False


async def test_a_reply_comes_back_although_the_worker_prints_garbage_on_stdout() -> None:
    async with opened() as model:
        reply = await model.ask(asked("hello", silence(0.1)))
        assert reply.text == "hello" and reply.finish == "stop"
        assert reply.usage.input_audio_tokens == 1
        assert model.log_folder is not None
        assert b"garbage" in (model.log_folder / "worker-0.log").read_bytes()
        folder = model.log_folder
    assert not folder.exists()


async def test_requests_that_come_together_travel_as_one_batch_of_at_most_the_given_size() -> None:
    async with opened(batch=4) as model:
        assert model.slots == 4
        replies = await asyncio.gather(*(model.ask(asked(f"r{i}", silence(0.1 + i / 10))) for i in range(6)))
    assert [r.text for r in replies] == [f"r{i}" for i in range(6)]
    assert [r.notes[-2] for r in replies] == ["together=4"] * 4 + ["together=2"] * 2


async def test_a_failing_item_is_retried_alone_and_the_rest_of_its_batch_is_answered() -> None:
    async with opened(batch=4) as model:
        a, bad, refused, b = await outcomes(*(model.ask(asked(t)) for t in ("a", "fail=5", "refuse", "b")))
    assert isinstance(a, Reply) and isinstance(b, Reply) and (a.text, b.text) == ("a", "b")
    assert a.notes[-2] == "together=1"
    assert isinstance(bad, ModelFailure) and bad.reason == "server" and "cannot answer 5" in bad.detail
    assert isinstance(refused, ModelFailure) and refused.reason == "bad_clip" and not refused.retry


async def test_running_out_of_memory_halves_the_batch_and_later_batches_stay_small() -> None:
    async with opened(batch=8) as model:
        first = await asyncio.gather(*(model.ask(asked("oom=3")) for _ in range(8)))
        assert {r.notes[-2] for r in first} == {"together=2"}
        second = await asyncio.gather(*(model.ask(asked("x")) for _ in range(4)))
        assert {r.notes[-2] for r in second} == {"together=2"}
        (alone,) = await outcomes(model.ask(asked("oom=0")))
    assert isinstance(alone, ModelFailure) and alone.reason == "too_large"


async def test_a_dead_worker_is_a_failure_with_its_last_words_and_is_started_again() -> None:
    async with opened() as model:
        (died,) = await outcomes(model.ask(asked("die")))
        assert isinstance(died, ModelFailure)
        assert (died.reason, died.retry, died.fatal) == ("worker_died", True, False)
        assert "exit status 7" in died.detail and died.detail.endswith("last words")
        assert (await model.ask(asked("back"))).text == "back"


async def test_a_worker_killed_from_outside_fails_the_request_it_was_at_and_serves_the_next() -> None:
    async with opened() as model:
        pid = int((await model.ask(asked("pid"))).text)
        pending = asyncio.create_task(model.ask(asked("sleep=30")))
        await asyncio.sleep(0.2)
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(ModelFailure, match="SIGKILL"):
            await pending
        assert (await model.ask(asked("back"))).text == "back"


async def test_after_the_allowed_restarts_without_an_answer_the_failure_is_fatal() -> None:
    async with opened(restarts=1) as model:
        failures = [(await outcomes(model.ask(asked("die"))))[0] for _ in range(3)]
    assert [isinstance(f, ModelFailure) and f.fatal for f in failures] == [False, False, True]


async def test_a_worker_without_heartbeat_is_killed() -> None:
    async with opened(heartbeat_timeout=1) as model:
        pid = int((await model.ask(asked("pid"))).text)
        start = time.monotonic()
        with pytest.raises(ModelFailure, match="no heartbeat for 1 s"):
            await model.ask(asked("hang=30"))
        assert time.monotonic() - start < 10
        assert await gone(pid)
        assert (await model.ask(asked("back"))).text == "back"


async def test_a_long_generation_with_heartbeats_is_left_alone_until_its_timeout() -> None:
    async with opened(heartbeat_timeout=1, timeout=3) as model:
        assert (await model.ask(asked("sleep=1.6"))).text == "sleep=1.6"
        with pytest.raises(ModelFailure) as failure:
            await model.ask(asked("sleep=30"))
    assert failure.value.reason == "timeout" and failure.value.retry


async def test_a_request_given_up_does_not_mix_up_the_answers_of_the_next() -> None:
    async with opened() as model:
        given_up = asyncio.create_task(model.ask(asked("sleep=0.5")))
        await asyncio.sleep(0.1)
        given_up.cancel()
        assert (await model.ask(asked("mine"))).text == "mine"


async def test_closing_ends_the_worker_and_what_it_started() -> None:
    async with opened() as model:
        pid = int((await model.ask(asked("pid"))).text)
        child = int((await model.ask(asked("child"))).text)
    assert await gone(pid)
    assert await gone(child)


async def test_closing_while_a_request_waits_fails_it() -> None:
    model = echo()
    await model.open()
    waiting = [asyncio.create_task(model.ask(asked("sleep=30"))) for _ in range(2)]
    await asyncio.sleep(0.2)
    await asyncio.wait_for(model.close(), 10)
    for outcome in await asyncio.gather(*waiting, return_exceptions=True):
        assert isinstance(outcome, ModelFailure) and outcome.reason == "worker_died"


async def test_several_gpus_get_a_process_each_which_sees_only_its_own() -> None:
    async with opened(gpus="0,3") as model:
        assert model.slots == 2
        replies = await asyncio.gather(*(model.ask(asked("environment")) for _ in range(2)))
        seen = {json.loads(r.text)["CUDA_VISIBLE_DEVICES"] for r in replies}
    assert seen == {"0", "3"}


async def test_when_the_parent_is_killed_the_worker_ends_even_in_the_middle_of_work(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(
        textwrap.dedent(f"""
        import asyncio
        from overtone.models.worker import load
        from overtone.schema import Key, Message, Request
        from overtone.spec import parse_spec

        def asked(text):
            return Request(Key("i", "task/audio"), (Message("user", (text,)),))

        async def main():
            model = load(parse_spec("worker:{ECHO}?python={sys.executable}"))
            await model.open()
            print((await model.ask(asked("pid"))).text, flush=True)
            await model.ask(asked("sleep=60"))

        asyncio.run(main())
        """)
    )
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert psutil.pid_exists(pid)
        parent.kill()
    assert await gone(pid)


async def test_secrets_stay_out_of_the_workers_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    names = (
        "OPENAI_API_KEY",
        "GITHUB_TOKEN",
        "HF_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "DB_PASSWORD",
        "MY_SETTING",
        "EXTRA_TOKEN",
    )
    for name in names:
        monkeypatch.setenv(name, "hidden-value")
    monkeypatch.setenv("OVERTONE_WORKER_ENV", "MY_SETTING,EXTRA_TOKEN")
    async with opened() as model:
        seen = json.loads((await model.ask(asked("environment"))).text)
    assert [n for n in names if n in seen] == ["MY_SETTING"]
    assert seen["PATH"] == os.environ["PATH"] and seen["HF_HUB_OFFLINE"] == "1"
    assert protocol.FD_VARIABLE not in seen


def test_the_hub_token_passes_for_a_hub_id_only() -> None:
    environ = {
        "HF_TOKEN": "t",
        "HF_HOME": "/cache",
        "HTTPS_PROXY": "http://proxy",
        "OTHER_API_KEY": "k",
        "PYTHONPATH": "/x",
    }
    hub = worker_environment(environ, hub=True, gpu=None)
    disk = worker_environment(environ, hub=False, gpu=None)
    assert hub["HF_TOKEN"] == "t" and hub["HTTPS_PROXY"] and hub["HF_HOME"] == "/cache"
    assert "HF_TOKEN" not in disk and "HTTPS_PROXY" not in disk and disk["HF_HUB_DISABLE_IMPLICIT_TOKEN"] == "1"
    assert "OTHER_API_KEY" not in hub and hub["PYTHONPATH"] != "/x"


async def test_sounds_reach_the_worker_at_the_rate_it_asked_for() -> None:
    async with opened(speech="auto", voice=8000) as model:
        reply = await model.ask(asked("x", silence(0.5, 16000), speech=True))
    assert reply.audio is not None
    samples, rate = decode(reply.audio)
    assert rate == 8000 and len(samples) == 4000


async def test_speech_asked_of_a_text_worker_is_noted_or_refused() -> None:
    async with opened() as model:
        reply = await model.ask(asked("x", silence(0.1), speech=True))
        assert reply.audio is None and "this model answers in text alone" in reply.notes
    async with opened(speech="yes") as model:
        with pytest.raises(ModelFailure) as failure:
            await model.ask(asked("x", silence(0.1), speech=True))
    assert failure.value.reason == "speech_refused"


async def test_a_requests_seed_wins_over_the_specs() -> None:
    async with opened(seed=7) as model:
        requests = [asked("x"), msgspec.structs.replace(asked("x"), seed=8)]
        notes = [(await model.ask(request)).notes[-1] for request in requests]
    assert notes == ["seed=7", "seed=8"]


async def test_a_request_too_large_for_a_message_is_refused_before_it_is_sent() -> None:
    model = echo()
    model._limit = 100_000
    await model.open()
    try:
        with pytest.raises(ModelFailure) as failure:
            await model.ask(asked("x", silence(4.0)))
        assert failure.value.reason == "too_large"
        with pytest.raises(ModelFailure) as failure:
            await model.ask(asked("big=200000"))
        assert failure.value.reason == "too_large"
        assert (await model.ask(asked("small"))).text == "small"
    finally:
        await model.close()


async def test_a_batch_that_would_be_too_large_is_sent_in_parts() -> None:
    model = echo(batch=4)
    model._limit = 200_000
    await model.open()
    try:
        replies = await asyncio.gather(*(model.ask(asked(f"r{i}", silence(2.0))) for i in range(3)))
        assert [r.text for r in replies] == ["r0", "r1", "r2"]
        assert [r.notes[-2] for r in replies] == ["together=2", "together=2", "together=1"]
    finally:
        await model.close()


def checkpoint(folder: Path, name: str) -> Path:
    (folder / name).mkdir()
    return folder / name


async def test_a_worker_that_dies_while_starting_is_an_error_with_its_log(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="exit status 3") as error:
        await echo(model=checkpoint(tmp_path, "die-at-start")).open()
    assert "the checkpoint is broken" in str(error.value)


async def test_a_missing_package_is_an_error_with_the_line_that_installs_it(tmp_path: Path) -> None:
    with pytest.raises(MissingExtra, match=r"a_library_nobody_has.*-m pip install -r .*requirements\.txt"):
        await echo(model=checkpoint(tmp_path, "needs-library")).open()


async def test_a_worker_that_is_not_ready_in_time_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not ready after 1 s"):
        await echo(model=checkpoint(tmp_path, "slow-start"), start_timeout=1).open()


async def test_code_from_a_checkpoint_is_run_only_with_a_second_yes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OVERTONE_TRUST_REMOTE_CODE", raising=False)
    model = echo(trust_remote_code="yes")
    assert model.needs_trust and not echo().needs_trust
    with pytest.raises(UsageError, match="OVERTONE_TRUST_REMOTE_CODE"):
        await model.open()
    monkeypatch.setenv("OVERTONE_TRUST_REMOTE_CODE", "yes")
    async with opened(trust_remote_code="yes") as trusted:
        assert (await trusted.ask(asked("x"))).text == "x"


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("worker:qwen2_5_omi", "did you mean 'qwen2_5_omni'"),
        ("worker:/nowhere/x.py", "no worker program"),
        ("worker:qwen2-audio?batch=0", "batch must be more than 0"),
        ("worker:qwen2-audio?gpus=0,0", "different GPUs"),
        ("worker:qwen2-audio?voice=a&speaker=b", "give one of them"),
        ("worker:qwen2-audio?modle=x", "did you mean 'model'"),
    ],
)
def test_a_wrong_spec_is_refused_at_once(spec: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        load(parse_spec(spec))


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("python=/nowhere/python", "no Python for the worker at /nowhere/python"),
        (f"python={sys.executable}&model=./not-there", "'./not-there' is neither a checkpoint"),
    ],
)
async def test_a_wrong_path_is_refused_when_opened(query: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        await load(parse_spec(f"worker:qwen2_audio?{query}")).open()


def test_what_is_described_holds_what_shapes_answers_and_no_machine_detail() -> None:
    described = load(
        parse_spec("worker:qwen2_audio?model=o/m&speaker=Ann&temperature=0.5&python=/x&batch=3")
    ).describe()
    assert described == {"worker": "qwen2_audio", "model": "o/m", "voice": "Ann", "temperature": 0.5}


def test_helpers_are_not_listed_as_workers() -> None:
    assert built_in() == ["causal_text", "hf_audio_text", "qwen2_5_omni", "qwen2_audio", "qwen3_omni"]


def ends() -> tuple[protocol.Channel, protocol.Channel]:
    left, right = socket.socketpair()
    for end in (left, right):
        end.settimeout(5)
    return protocol.Channel(left, 10_000), protocol.Channel(right, 10_000)


def test_a_frame_keeps_its_text_and_its_blobs() -> None:
    a, b = ends()
    a.send({"type": "x", "text": "Grüße\x00"}, [b"", b"\x00\xff"])
    assert b.receive() == ({"type": "x", "text": "Grüße\x00"}, [b"", b"\x00\xff"])
    a.end.close()
    assert b.receive() is None


def test_a_frame_over_the_limit_is_neither_sent_nor_read() -> None:
    a, b = ends()
    with pytest.raises(protocol.TooLarge):
        a.send({"type": "x"}, [bytes(10_000)])
    a.end.sendall(struct.pack(">I", 1 << 31))
    with pytest.raises(protocol.TooLarge):
        b.receive()
    with pytest.raises(protocol.TooLarge):
        protocol.parse_header(b'{"type": "x", "blobs": [99999]}', 10_000)


@pytest.mark.parametrize(
    "text", [b"\xff", b"[]", b"{}", b'{"type": 1}', b'{"type":"x","blobs":[-1]}', b'{"type":"x","blobs":[true]}']
)
def test_what_is_no_frame_is_refused(text: bytes) -> None:
    with pytest.raises(protocol.ProtocolError):
        protocol.parse_header(text)
