"""A server that drops the audio is told from a model that does not listen: by token counts, else by a probe."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.data import make
from overtone.cli import main
from overtone.runs import audio_probe
from overtone.runs.audio_probe import ENOUGH, PROMPT, Probe
from overtone.runs.store import Store
from tests.runs.helpers import run
from tests.servers import Asked, GeminiServer, OpenAIServer, echo

WARNING = "The server seems to drop the audio"


def deaf(asked: Asked) -> str:
    """What a text model says behind a server that leaves the audio out."""
    return echo(Asked(asked.text, (), asked.speech, asked.path, asked.headers, asked.body))


class Counting(OpenAIServer):
    """Reports prompt tokens as `tokens` counts them, and no audio tokens, as vLLM and `transformers serve` do."""

    def __init__(self, tokens: Callable[[Asked], int], **more: Any) -> None:
        super().__init__(keep_audio=True, **more)
        self.tokens = tokens

    def reply(self, text: str, wav: bytes | None, cut: int = 0) -> dict[str, Any]:
        return {**super().reply(text, wav, cut), "usage": {"prompt_tokens": self.tokens(self.asked[-1])}}

    @property
    def probes(self) -> list[Asked]:
        return [asked for asked in self.asked if asked.text == PROMPT]


def of_words(asked: Asked) -> int:
    return len(asked.text.split())


def of_seconds(asked: Asked) -> int:
    return len(asked.text.split()) + sum(len(wav) for wav in asked.wavs) // 100


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return make(tmp_path / "data", scripts=6, questions=6, seconds=0.2)


def stored(out: Path) -> Probe | None:
    with Store.read(out) as store:
        return audio_probe.read(store.meta().get(audio_probe.META))


def command(data: Path, out: Path, server: OpenAIServer, *more: str) -> int:
    model = f"openai:any?base_url={server.base_url}&temperature=0.7&top_p=0.9&speech=no"
    return main(["run", "echomind", "--data", str(data), "--model", model, "--out", str(out), *more])


def test_a_server_that_drops_the_audio_is_reported_in_run_report_and_exit_note(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    with Counting(of_words, answer=deaf) as server:
        assert command(data, out, server, "--max-connections", "2") == 0
        assert len(server.probes) == 3
        first, second, silent = (asked.wavs[0] for asked in server.probes)
        assert first != second
        assert not any(silent[44:])
        for asked in server.probes:
            assert asked.body["temperature"] == 0
            assert "top_p" not in asked.body
        places = [i for i, asked in enumerate(server.asked) if asked.text == PROMPT]
        assert places[0] < ENOUGH + 3, "early, before the whole benchmark is paid for"
        said = capsys.readouterr()
        assert f"warning: {WARNING}" in said.err, "while the run is on"
        assert f"warning: {WARNING}" in said.out, "and in its last lines"
        found = stored(out)
        assert found is not None
        assert (found.verdict, len(found.replies), len(set(found.tokens))) == ("dropped", 3, 1)
        count = server.count
        assert command(data, out, server) == 0
        assert server.count == count, "what is known is not asked again"
        assert f"warning: {WARNING}" in capsys.readouterr().out
    assert main(["report", str(out), "-o", str(tmp_path / "page.html")]) == 0
    assert WARNING in (tmp_path / "page.html").read_text()


def test_constant_prompt_tokens_of_a_model_that_hears_are_only_a_hint(data: Path, tmp_path: Path) -> None:
    with Counting(of_words) as server:
        outcome = run(data, server.base_url, tmp_path / "run")
        assert len(server.probes) == 2, "two clips got different replies: that is enough"
        assert (outcome.warning, outcome.requests) == ("", 6 + 6 + 18 + 2)
    found = stored(tmp_path / "run")
    assert found is not None
    assert found.verdict == "heard"


def test_token_counts_that_follow_the_clips_need_no_probe(tmp_path: Path) -> None:
    data = make(tmp_path / "data", scripts=6, questions=6, seconds=0.2)
    clip = sorted(data.rglob("*_target.wav"))[0]
    clip.write_bytes(
        make(tmp_path / "long", scripts=1, questions=1, seconds=1.5).rglob("*_target.wav").__next__().read_bytes()
    )
    with Counting(of_seconds, answer=deaf) as server:
        run(data, server.base_url, tmp_path / "run", levels="1", max_connections=1)
        assert not server.probes
    with OpenAIServer(answer=deaf) as plain:
        run(data, plain.base_url, tmp_path / "plain")
        assert not [asked for asked in plain.asked if asked.text == PROMPT]
    for name, why in (("run", "the prompt tokens differ between clips"), ("plain", "the endpoint counts audio tokens")):
        found = stored(tmp_path / name)
        assert found is not None
        assert (found.verdict, found.why) == ("heard", why)


def test_a_short_run_is_probed_at_its_end_and_one_clip_not_at_all(data: Path, tmp_path: Path) -> None:
    with Counting(lambda asked: 0, answer=deaf) as server:  # no usage reported at all
        assert WARNING in run(data, server.base_url, tmp_path / "short", levels="1", limit=4).warning
        assert server.count == 4 + 3
        run(data, server.base_url, tmp_path / "one", levels="1", limit=1)
        assert server.count == 4 + 3 + 1
        run(data, server.base_url, tmp_path / "words", input="transcript")
        run(data, server.base_url, tmp_path / "silence", input="silence")
        assert len(server.probes) == 3, "where no clip is sent, none can be dropped"


def test_the_probe_is_paid_from_the_budget_and_made_later_where_that_is_used_up(data: Path, tmp_path: Path) -> None:
    with Counting(of_words, answer=deaf) as server:
        outcome = run(data, server.base_url, tmp_path / "run", budget_requests=5, max_connections=1)
        assert (outcome.stopped, server.count) == ("budget", 5)
        outcome = run(data, server.base_url, tmp_path / "run", budget_requests=10, max_connections=1)
        assert (outcome.stopped, server.count, outcome.answered) == ("budget", 15, 8)
        outcome = run(data, server.base_url, tmp_path / "run", budget_requests=20, max_connections=1)
        assert server.count <= 35
    found = stored(tmp_path / "run")
    assert found is not None
    assert found.verdict == "dropped"


def test_a_probe_that_is_not_answered_decides_nothing_and_fails_no_item(data: Path, tmp_path: Path) -> None:
    class Fixed(Counting):
        """Takes no other temperature than its own."""

        async def _answer(self, request: Any, number: int) -> Any:
            if b'"temperature":0.0' in await request.read():
                self.always = "400:Unsupported value: 'temperature' does not support 0 with this model."
            try:
                return await super()._answer(request, number)
            finally:
                self.always = None

    with Fixed(of_words, answer=deaf) as server:
        outcome = run(data, server.base_url, tmp_path / "run", max_connections=1)
        assert (outcome.answered, outcome.failed, outcome.stopped, outcome.warning) == (30, 0, "", "")
    found = stored(tmp_path / "run")
    assert found is not None
    assert found.verdict == "undecided"
    assert "temperature" in found.why


def test_gemini_is_asked_greedily_too(data: Path, tmp_path: Path) -> None:
    class Uncounted(GeminiServer):
        def reply(self, text: str, wav: bytes | None, cut: int = 0) -> dict[str, Any]:
            return {**super().reply(text, wav, cut), "usageMetadata": {"promptTokenCount": 50}}

    with Uncounted(answer=deaf) as server:
        spec = f"gemini:any?base_url={server.base_url}&temperature=0.7&top_p=0.9"
        words = ["run", "echomind", "--data", str(data), "--model", spec, "--out", str(tmp_path / "run"), "-q"]
        assert main([*words, "--levels", "1"]) == 0
        probes = [asked for asked in server.asked if asked.text == PROMPT]
        assert [asked.body["generationConfig"] for asked in probes] == [{"temperature": 0}] * 3
