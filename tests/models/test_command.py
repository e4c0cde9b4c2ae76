"""A program as a model: real scripts, started and killed."""

from __future__ import annotations

import asyncio
import base64
import itertools
import os
import re
import textwrap
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from overtone.errors import ModelFailure, UsageError
from overtone.models import command
from overtone.schema import Sound, Usage
from overtone.spec import parse_spec
from tests.models.conftest import Make
from tests.servers import tone

Write = Callable[..., Any]
HEAD = """
import base64, hashlib, json, os, signal, sys, time
def answer(id, text="ok", **more):
    print(json.dumps({"id": id, "text": text, **more}), flush=True)
"""
LOOP = "for line in sys.stdin:\n    asked = json.loads(line)\n"


@pytest.fixture
async def program(tmp_path: Path) -> AsyncIterator[Write]:
    opened: list[command.Command] = []

    async def make(body: str, query: str = "timeout=20", head: str = "") -> command.Command:
        path = tmp_path / f"model{len(opened)}.py"
        path.write_text(HEAD + textwrap.dedent(head) + "\n" + LOOP + textwrap.indent(textwrap.dedent(body), "    "))
        model = command.load(parse_spec(f"command:{path}?{query}"))
        opened.append(model)
        await model.open()
        return model

    yield make
    for model in opened:
        await model.close()


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    status = Path(f"/proc/{pid}/status")
    return status.exists() and "State:\tZ" in status.read_text()


async def failure_of(model: command.Command, request: Any) -> ModelFailure:
    with pytest.raises(ModelFailure) as caught:
        await model.ask(request)
    return caught.value


async def test_the_program_gets_the_words_the_bytes_of_the_sound_and_the_parameters(
    program: Write, request_with: Make, sound: Sound
) -> None:
    model = await program(
        """
        part = asked["messages"][1]["parts"][0]
        same = hashlib.sha256(base64.b64decode(part["audio"])).hexdigest() == part["sha256"]
        text = asked["messages"][0]["parts"][0]["text"]
        answer(asked["id"], f"{same} {part['seconds']:.2f} {text} {asked['parameters']} {asked['task']} {sys.argv[1:]}")
        """,
        query="temperature=0.5&seed=1&args=--size%20big",
    )
    reply = await model.ask(request_with(seed=9))
    assert reply.text == "True 0.30 Be brief. {'temperature': 0.5, 'seed': 9} converse ['--size', 'big']"


async def test_speech_usage_and_refusals_come_back(program: Write, request_with: Make) -> None:
    wav = base64.b64encode(tone()).decode()
    model = await program(
        f"""
        if asked["speech"]:
            answer(asked["id"], audio="{wav}", usage={{"input_tokens": 5, "output_audio_tokens": 9}}, model="mine")
        else:
            answer(asked["id"], "no", refused=True, finish="refusal")
        """
    )
    spoken = await model.ask(request_with(speech=True))
    assert (spoken.audio, spoken.usage, spoken.model) == (tone(), Usage(input_tokens=5, output_audio_tokens=9), "mine")
    refused = await model.ask(request_with())
    assert (refused.text, refused.refused, refused.finish) == ("no", True, "refusal")


async def test_a_reply_of_many_megabytes_on_one_line_arrives(program: Write, request_with: Make) -> None:
    model = await program("answer(asked['id'], 'x' * 5_000_000)")
    assert len((await model.ask(request_with())).text) == 5_000_000


async def test_replies_are_matched_by_id_when_they_come_out_of_order(program: Write, request_with: Make) -> None:
    model = await program(
        """
        kept.append(asked)
        if len(kept) == 4:
            for one in reversed(kept):
                answer(one["id"], one["messages"][1]["parts"][1]["text"])
            kept.clear()
        """,
        query="slots=4&timeout=20",
        head="kept = []",
    )
    replies = await asyncio.gather(*(model.ask(request_with(text=f"q{n}")) for n in range(8)))
    assert [reply.text for reply in replies] == [f"q{n}" for n in range(8)]
    assert model.slots == 4


async def test_without_slots_only_one_request_is_in_flight(program: Write, request_with: Make) -> None:
    model = await program(
        """
        start = time.time()
        time.sleep(0.05)
        answer(asked["id"], f"{start} {time.time()}")
        """
    )
    replies = await asyncio.gather(*(model.ask(request_with()) for _ in range(3)))
    spans = sorted(tuple(map(float, reply.text.split())) for reply in replies)
    assert all(earlier[1] <= later[0] for earlier, later in itertools.pairwise(spans))
    assert model.slots == 1


async def test_a_line_that_is_no_json_is_malformed_and_shown(program: Write, request_with: Make) -> None:
    model = await program("print('Loading weights'); answer(asked['id'])")
    failure = await failure_of(model, request_with())
    assert (failure.reason, failure.retry) == ("malformed", True)
    assert "'Loading weights'" in failure.detail and "stderr" in failure.detail


async def test_a_banner_before_the_first_request_is_malformed_once(program: Write, request_with: Make) -> None:
    model = await program("answer(asked['id'])", head="print('welcome', flush=True)")
    failure = await failure_of(model, request_with())
    assert failure.reason == "malformed" and "welcome" in failure.detail
    assert (await model.ask(request_with())).text == "ok"


async def test_json_that_is_no_reply_is_malformed(program: Write, request_with: Make) -> None:
    model = await program("print(json.dumps({'level': 'info'}), flush=True)")
    assert (await failure_of(model, request_with())).reason == "malformed"


async def test_an_error_of_the_program_is_a_failure_with_its_reason(program: Write, request_with: Make) -> None:
    model = await program(
        """
        error = {"q0": "plain", "q1": {"reason": "rate_limited", "message": "slow", "retry": True},
                 "q2": {"reason": "odd", "message": "m"}}[asked["messages"][1]["parts"][1]["text"]]
        print(json.dumps({"id": asked["id"], "error": error}), flush=True)
        """
    )
    failures = [await failure_of(model, request_with(text=f"q{n}")) for n in range(3)]
    assert [(f.reason, f.detail, f.retry) for f in failures] == [
        ("rejected", "plain", False),
        ("rate_limited", "slow", True),
        ("rejected", "odd: m", False),
    ]


async def test_a_reply_without_text_is_malformed(program: Write, request_with: Make) -> None:
    model = await program("print(json.dumps({'id': asked['id']}), flush=True)")
    assert (await failure_of(model, request_with())).reason == "malformed"


@pytest.mark.parametrize("audio", ["UklGRg", base64.b64encode(tone()[:900]).decode()])
async def test_cut_speech_is_asked_for_again(program: Write, request_with: Make, audio: str) -> None:
    model = await program(f"answer(asked['id'], audio='{audio}')")
    failure = await failure_of(model, request_with(speech=True))
    assert (failure.reason, failure.retry) == ("truncated_audio", True)


async def test_speech_that_does_not_come_is_noted_or_with_speech_yes_a_failure(
    program: Write, request_with: Make
) -> None:
    auto = await program("answer(asked['id'])")
    assert (await auto.ask(request_with(speech=True))).notes == ("speech was asked for, none came back",)
    strict = await program("answer(asked['id'])", query="speech=yes")
    assert (await failure_of(strict, request_with(speech=True))).reason == "speech_refused"


async def test_a_program_that_dies_shows_its_last_words_and_is_started_again(
    program: Write, request_with: Make, tmp_path: Path
) -> None:
    model = await program(
        f"""
        if not os.path.exists({str(tmp_path / "once")!r}):
            open({str(tmp_path / "once")!r}, "w").close()
            sys.stderr.write("CUDA out of memory\\n")
            sys.exit(7)
        answer(asked["id"], "back")
        """
    )
    failure = await failure_of(model, request_with())
    assert (failure.reason, failure.retry, failure.fatal) == ("worker_died", True, False)
    assert "exit status 7" in failure.detail and "CUDA out of memory" in failure.detail
    assert (await model.ask(request_with())).text == "back"


async def test_a_program_that_never_answers_is_given_up_after_three_restarts(
    program: Write, request_with: Make, tmp_path: Path
) -> None:
    starts = tmp_path / "starts"
    model = await program("sys.exit('broken')", head=f"open({str(starts)!r}, 'a').write('x')")
    failures = [await failure_of(model, request_with()) for _ in range(6)]
    assert [failure.fatal for failure in failures] == [False] * 4 + [True] * 2
    assert "broken" in failures[-1].detail
    assert starts.read_text() == "xxxx"


async def test_a_hanging_program_is_killed_with_its_children_and_restarted(
    program: Write, request_with: Make, tmp_path: Path
) -> None:
    pids = tmp_path / "pids"
    model = await program(
        f"""
        if not os.path.exists({str(pids)!r}):
            child = subprocess.Popen(["sleep", "60"])
            open({str(pids)!r}, "w").write(f"{{os.getpid()}} {{child.pid}}")
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(60)
        answer(asked["id"], "back")
        """,
        query="timeout=1",
        head="import subprocess",
    )
    start = time.monotonic()
    failure = await failure_of(model, request_with())
    assert (failure.reason, failure.retry) == ("timeout", True)
    assert time.monotonic() - start < 3
    assert (await model.ask(request_with())).text == "back"
    assert all(gone(int(pid)) for pid in pids.read_text().split())


async def test_a_timeout_fails_the_others_in_flight_in_a_way_that_is_retried(
    program: Write, request_with: Make
) -> None:
    model = await program("time.sleep(60)", query="slots=2&timeout=0.5")
    first = asyncio.create_task(failure_of(model, request_with()))
    await asyncio.sleep(0.2)
    second = await failure_of(model, request_with())
    assert (await first).reason == "timeout"
    assert (second.reason, second.retry) == ("worker_died", True)
    assert second is not await first


async def test_a_cancelled_request_does_not_give_its_reply_to_the_next(program: Write, request_with: Make) -> None:
    model = await program(
        """
        time.sleep(0.3)
        answer(asked["id"], asked["messages"][1]["parts"][1]["text"])
        """
    )
    cancelled = asyncio.create_task(model.ask(request_with(text="first")))
    await asyncio.sleep(0.1)
    cancelled.cancel()
    assert (await model.ask(request_with(text="second"))).text == "second"


async def test_closing_while_requests_wait_starts_nothing_anew(
    program: Write, request_with: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "GRACE_SECONDS", 0.2)
    starts = tmp_path / "starts"
    model = await program("time.sleep(60)", query="slots=2", head=f"open({str(starts)!r}, 'a').write('x')")
    asked = [asyncio.create_task(failure_of(model, request_with())) for _ in range(6)]
    await asyncio.sleep(0.3)
    await model.close()
    assert {failure.reason for failure in await asyncio.gather(*asked)} == {"worker_died"}
    assert starts.read_text() == "x"


async def test_a_start_that_is_cancelled_half_way_does_not_hang(program: Write, request_with: Make) -> None:
    model = await program("sys.exit(1)", query="slots=4")
    for pause in (0.0, 0.0, 0.001, 0.01):
        asked = [asyncio.create_task(model.ask(request_with())) for _ in range(4)]
        await asyncio.sleep(pause)
        for task in asked:
            task.cancel()
        async with asyncio.timeout(10):
            await asyncio.gather(*asked, return_exceptions=True)
    await model.close()


async def test_closing_lets_the_program_finish(tmp_path: Path, program: Write, request_with: Make) -> None:
    model = await program("answer(asked['id'], str(os.getpid()))")
    pid = int((await model.ask(request_with())).text)
    path = tmp_path / "model0.py"
    path.write_text(path.read_text() + f"\nopen({str(tmp_path / 'ended')!r}, 'w').write('well')\n")
    await model.close()
    assert gone(pid)
    again = command.load(parse_spec(f"command:{path}"))
    await again.open()
    await again.ask(request_with())
    await again.close()
    await again.close()
    assert (tmp_path / "ended").read_text() == "well"


async def test_a_program_that_ignores_its_end_is_killed(
    program: Write, request_with: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "GRACE_SECONDS", 0.2)
    model = await program(
        "answer(asked['id'], str(os.getpid()))\nif asked['id'] == 1:\n    time.sleep(60)",
        head="signal.signal(signal.SIGTERM, signal.SIG_IGN)",
    )
    pid = int((await model.ask(request_with())).text)
    await model.close()
    assert gone(pid)


async def test_a_line_over_the_limit_is_too_large_and_the_next_request_is_served(
    program: Write, request_with: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "MAX_LINE_BYTES", 2**20)
    model = await program("answer(asked['id'], 'x' * (3 * 2**20 if 'big' in line else 3))")
    assert (await failure_of(model, request_with(text="big"))).reason == "too_large"
    assert (await model.ask(request_with())).text == "xxx"


async def test_an_executable_runs_without_a_shell(tmp_path: Path, request_with: Make) -> None:
    path = tmp_path / "my $(touch evil) model"
    path.write_text('#!/bin/sh\nread line\necho \'{"id": 1, "text": "from sh"}\'\n')
    path.chmod(0o755)
    model = command.load(parse_spec(f"command:{path}"))
    await model.open()
    try:
        assert (await model.ask(request_with())).text == "from sh"
    finally:
        await model.close()
    assert not (tmp_path / "evil").exists()


def test_a_wrong_spec_says_what_is_wrong(tmp_path: Path) -> None:
    plain = tmp_path / "plain.sh"
    plain.write_text("#!/bin/sh\n")
    for spec, words in {
        "command:": "path is missing",
        "command:./no/such.py": "there is no program",
        "command:no-such-program-anywhere": "there is no program",
        f"command:{plain}": "is not executable; run 'chmod +x",
        f"command:{__file__}?slots=0": "slots must be at least 1",
        f"command:{__file__}?slot=2": "did you mean 'slots'",
    }.items():
        with pytest.raises(UsageError, match=re.escape(words)):
            command.load(parse_spec(spec))


def test_describe_changes_with_the_program(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text("1\n")
    model = command.load(parse_spec(f"command:{path}?seed=3"))
    first = model.describe()
    path.write_text("2\n")
    assert first != model.describe()
    assert (first["program"], first["seed"]) == ("model.py", 3)
    assert str(tmp_path) not in str(first), "the same program in another folder is the same model"


async def test_the_last_words_of_a_program_hold_no_secret_of_the_environment(
    program: Write, request_with: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "canary-0123456789")
    dump = "print(dict(os.environ), file=sys.stderr, flush=True)\nsys.exit(3)"
    stray = "print('SOME_API_KEY is', os.environ['SOME_API_KEY'], flush=True)"
    error = "answer(asked['id'], error='no: ' + os.environ['SOME_API_KEY'])"
    for body in (dump, stray, error):
        with pytest.raises(ModelFailure) as caught:
            await (await program(body)).ask(request_with())
        assert "canary" not in caught.value.detail
        assert "…" in caught.value.detail
