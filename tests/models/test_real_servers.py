"""Runs against real servers: llama.cpp, `transformers serve` with tiny checkpoints, and LiteLLM's proxy.

The bodies of their errors are compared with those in server_answers, which the quick tests play back. LiteLLM and what
`transformers serve` needs are in an environment of their own; torch and transformers come from that of the workers.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.data import make
from overtone.cli import main
from overtone.errors import ModelFailure
from overtone.models import openai
from overtone.runs import audio_probe
from overtone.runs.store import Store
from overtone.schema import Reply
from overtone.spec import parse_spec
from tests.models.conftest import Make
from tests.models.test_server_answers import SITUATIONS
from tests.needs import SERVERS as BIN
from tests.servers import OpenAIServer

HERE = Path(__file__).parent
WORKER = Path(os.environ.get("OVERTONE_WORKER_PYTHON") or HERE.parents[1] / ".venv-worker/bin/python")
KEY = "sk-gateway-0123456789"
SERVE = "import sys; sys.path.append(sys.argv.pop(1)); from transformers.cli.transformers import main; main()"
PROXY = """
model_list:
  - model_name: speech
    litellm_params: {model: hosted_vllm/test-model, api_base: os.environ/UPSTREAM, api_key: none}
litellm_settings: {num_retries: 0}
router_settings: {num_retries: 0, disable_cooldowns: true}
general_settings: {master_key: os.environ/GATEWAY_KEY}
"""


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextlib.contextmanager
def started(command: list[str | Path], log: Path, health: str, **variables: str) -> Iterator[None]:
    """Run a server until it answers at `health`; end it afterwards."""
    env = os.environ | {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"} | variables
    with log.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=out, env=env, cwd=log.parent) as server:
        try:
            until = time.monotonic() + 240
            while True:
                with contextlib.suppress(OSError), urllib.request.urlopen(health, timeout=5):
                    break
                assert server.poll() is None and time.monotonic() < until, log.read_text()[-3000:]
                time.sleep(0.5)
            yield
        finally:
            server.terminate()
            try:
                server.wait(10)
            except subprocess.TimeoutExpired:
                server.kill()


def post(base_url: str, body: dict[str, Any], key: str = "") -> tuple[int, str]:
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
    request = urllib.request.Request(f"{base_url}/chat/completions", json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def assert_still(name: str, got: tuple[int, str], **replaced: str) -> None:
    """Compare a server's answer with the stored one."""
    (stored,) = SITUATIONS[name]["answers"]
    expected, found = stored.get("text"), got[1]
    if expected is None:
        expected, found = json.dumps(stored["json"], sort_keys=True), json.dumps(json.loads(found), sort_keys=True)
    for old, new in replaced.items():
        expected = expected.replace(old, new)
    assert (got[0], found) == (stored["status"], expected)


def message(*parts: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"role": "user", "content": list(parts)}]


TEXT = {"type": "text", "text": "What do you hear?"}


def heard(sound: Any) -> dict[str, Any]:
    return {"type": "input_audio", "input_audio": {"data": base64.b64encode(sound.wav).decode(), "format": "wav"}}


async def reply_of(spec: str, request_with: Make, **more: Any) -> Reply:
    model = openai.load(parse_spec(spec))
    await model.open()
    try:
        request = request_with(**more)
        return await (model.stream(request, lambda piece: None) if model.streams else model.ask(request))
    finally:
        await model.close()


# ── llama.cpp ─────────────────────────────────────────────────────────────────────────────────────────────────────────
@pytest.fixture(scope="module")
def llama() -> Iterator[str]:
    command = [sys.executable, "-m", "tests.models.llama_server", KEY]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=HERE.parents[1]) as server:
        assert server.stdout is not None
        try:
            yield f"{server.stdout.readline().strip()}/v1"
        finally:
            server.kill()


@pytest.mark.local
@pytest.mark.full
async def test_llama_cpp_answers_as_stored(
    llama: str, sound: Any, request_with: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    clip = heard(sound)
    url = {"type": "audio_url", "audio_url": {"url": "data:audio/wav;base64,UklGRg=="}}
    assert_still("llamacpp-no-mmproj", post(llama, {"messages": message(clip, TEXT)}, KEY))
    assert_still("llamacpp-audio-url", post(llama, {"messages": message(url, TEXT)}, KEY))
    assert_still("llamacpp-key", post(llama, {"messages": message(TEXT)}, "sk-wrong"))
    long = [{"role": "user", "content": "word " * 800}]
    assert_still("llamacpp-context", post(llama, {"messages": long}, KEY))
    monkeypatch.setenv("LLAMA_KEY", KEY)
    spec = f"openai:any?base_url={llama}&api_key_env=LLAMA_KEY&max_tokens=4"
    with pytest.raises(ModelFailure, match="the server takes no audio for this model"):
        await reply_of(spec, request_with)


# ── transformers serve ────────────────────────────────────────────────────────────────────────────────────────────────
@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A tiny random Qwen2-Audio, which hears, and a tiny random Llama, which does not."""
    folders = {name: tmp_path_factory.mktemp("tiny") / name for name in ("hears", "deaf")}
    for command in (
        [HERE / "make_tiny.py", "qwen2_audio", folders["hears"]],
        [HERE / "make_tiny_causal.py", folders["deaf"], "template"],
    ):
        env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | {"HF_HUB_OFFLINE": "1"}
        made = subprocess.run([WORKER, *command], env=env, capture_output=True, text=True, timeout=240)
        assert made.returncode == 0, made.stderr
    return folders


@pytest.fixture(scope="module")
def served(checkpoints: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    packages = subprocess.run(
        [WORKER, "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"], capture_output=True, text=True
    ).stdout.strip()
    port, log = free_port(), tmp_path_factory.mktemp("log") / "serve.log"
    command = [BIN / "python", "-c", SERVE, packages, "serve", "--host", "127.0.0.1", "--port", str(port)]
    with started([*command, "--device", "cpu"], log, f"http://127.0.0.1:{port}/health"):
        yield f"http://127.0.0.1:{port}/v1"


def overtone_run(data: Path, out: Path, model: str) -> int:
    given = ["--data", str(data), "--levels", "1", "--limit", "6", "--max-connections", "1", "--model", model]
    return main(["run", "echomind", *given, "--out", str(out)])


@pytest.mark.servers
@pytest.mark.worker
@pytest.mark.full
@pytest.mark.parametrize(("name", "verdict"), [("hears", "heard"), ("deaf", "dropped")])
def test_a_run_against_transformers_serve_notices_whether_the_audio_arrives(
    served: str, checkpoints: dict[str, Path], tmp_path: Path, name: str, verdict: str
) -> None:
    data = make(tmp_path / "data", scripts=6, questions=6, seconds=0.3)
    for number, stream in enumerate(("no", "yes")):
        out = tmp_path / f"run{number}"
        keys = f"base_url={served}&max_tokens=8&temperature=0&stream={stream}"
        assert overtone_run(data, out, f"openai:{checkpoints[name]}?{keys}") == 0
        with Store.read(out) as store:
            assert store.counts()["failed"] == 0 and store.counts()["answered"] == 6
            probe = audio_probe.read(store.meta().get(audio_probe.META))
            assert probe is not None and probe.verdict == verdict
            timed = [stored.timings is not None for stored in store.replies()]
            assert all(timed) if stream == "yes" else not any(timed)


@pytest.mark.servers
@pytest.mark.worker
@pytest.mark.full
async def test_transformers_serve_answers_as_stored(served: str, checkpoints: dict[str, Path]) -> None:
    unknown = {"model": "nobody/nothing", "messages": message(TEXT)}
    assert_still("transformers-unknown-model", post(served, unknown))
    known = {"model": str(checkpoints["deaf"]), "messages": message(TEXT), "top_k": 4}
    assert_still("transformers-unknown-field", post(served, known))


# ── LiteLLM ───────────────────────────────────────────────────────────────────────────────────────────────────────────
@pytest.fixture(scope="module")
def upstream() -> Iterator[OpenAIServer]:
    with OpenAIServer() as running:
        yield running


@pytest.fixture(scope="module")
def proxy(upstream: OpenAIServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder, port = tmp_path_factory.mktemp("proxy"), free_port()
    (folder / "config.yaml").write_text(PROXY)
    command = [BIN / "litellm", "--config", folder / "config.yaml", "--host", "127.0.0.1", "--port", str(port)]
    local = {"UPSTREAM": upstream.base_url, "GATEWAY_KEY": KEY, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    health = f"http://127.0.0.1:{port}/health/liveliness"
    with started([*command, "--telemetry", "False"], folder / "proxy.log", health, **local):
        yield f"http://127.0.0.1:{port}/v1"


@pytest.fixture
def through_proxy(proxy: str, upstream: OpenAIServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("GATEWAY_KEY", KEY)
    yield f"openai:speech?base_url={proxy}&api_key_env=GATEWAY_KEY&timeout=120"
    upstream.always = None


@pytest.mark.servers
@pytest.mark.full
async def test_litellm_passes_clips_speech_streams_and_seeds_on(
    through_proxy: str, upstream: OpenAIServer, request_with: Make
) -> None:
    spoken = await reply_of(f"{through_proxy}&speech=yes", request_with, speech=True, seed=3)
    assert spoken.audio is not None and spoken.text.startswith("I hear you")
    asked = upstream.asked[-1]
    assert asked.sounds == (request_with().messages[1].parts[0].sha256,) and asked.body["seed"] == 3
    streamed = await reply_of(f"{through_proxy}&stream=yes", request_with)
    assert streamed.text == spoken.text and streamed.usage.input_audio_tokens == 40
    assert streamed.notes == ("thought: The voice is calm.",)


@pytest.mark.servers
@pytest.mark.full
async def test_litellm_answers_as_stored(
    proxy: str, through_proxy: str, upstream: OpenAIServer, sound: Any, request_with: Make
) -> None:
    clip = {"model": "speech", "messages": message(heard(sound), TEXT)}
    assert_still("litellm-wrong-key", post(proxy, clip, "sk-wrong-0123456789"))
    assert_still("litellm-no-key", post(proxy, clip))
    status, body = post(proxy, clip | {"model": "tiny"}, KEY)
    (stored,) = SITUATIONS["litellm-unknown-model"]["answers"]
    assert (status, json.loads(body)["error"]["message"]) == (400, stored["json"]["error"]["message"])
    for name, behaviour in (
        ("litellm-no-audio", "500:audio input is not supported - hint: if this is unexpected, you may need to provide "
         "the mmproj"),
        ("litellm-context", "400:This model's maximum context length is 4096 tokens. However, you requested 5000 "
         "tokens"),
    ):  # fmt: skip
        upstream.always = behaviour
        assert_still(name, post(proxy, clip, KEY))
        with pytest.raises(ModelFailure) as caught:
            await reply_of(through_proxy, request_with)
        assert SITUATIONS[name]["expect"]["sentence"] in caught.value.detail
    upstream.always = "cut_stream"
    cut = await reply_of(f"{through_proxy}&stream=yes", request_with)
    assert (cut.text, cut.finish) == ("", "stop"), "the proxy calls a stream complete that broke behind it"


@pytest.mark.servers
@pytest.mark.full
def test_a_whole_run_through_litellm_succeeds(through_proxy: str, tmp_path: Path) -> None:
    data = make(tmp_path / "data", scripts=6, questions=6, seconds=0.2)
    assert overtone_run(data, tmp_path / "run", through_proxy) == 0
    with Store.read(tmp_path / "run") as store:
        assert store.counts() == {"pending": 0, "answered": 6, "failed": 0}
