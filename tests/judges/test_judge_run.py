"""Judges over a run: as it goes and afterwards, side by side, dying, hearing; no other score is touched."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest

import overtone
from bench.data import make
from overtone import registry
from overtone.cli import main
from overtone.errors import UsageError
from overtone.judges import rubric
from overtone.judges.judge_run import FILE, judge_run
from overtone.judges.judgement import Outcome
from overtone.judges.policy import parse_judge
from overtone.runs.store import Store
from overtone.schema import Score
from tests.judges.helpers import QUICK
from tests.judges.server import JudgeServer, keys_asked
from tests.judges.test_panel import shown
from tests.servers import Asked, OpenAIServer

VERDICTS = 9 + 6 + 6 + 3  # of three scripts in three styles: echomind, implicit, ves, false-cue
BY_STYLE = {
    "target": {"cctxfit", "crespnat", "ccolloqdeg", "cspeechrel", "cspeechrel_implicit", "ves"},
    "alternative": {"cctxfit", "crespnat", "ccolloqdeg", "cspeechrel", "cspeechrel_implicit", "ves"},
    "neutral": {"cctxfit", "crespnat", "ccolloqdeg", "false_cue"},
}


def asked_of(data: Path, out: Path, model: OpenAIServer, *more: str) -> int:
    """`overtone run` on three scripts, conversations only."""
    flags = ["--data", str(data), "--out", str(out), "--model", f"openai:any?base_url={model.base_url}"]
    return main(["run", "echomind", "--levels", "3", "--prompt", "enhance", "-q", *flags, *more])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of nine spoken replies."""
    folder = tmp_path_factory.mktemp("judged")
    data = make(folder / "data", scripts=3, questions=6, seconds=0.2)
    with OpenAIServer() as model:
        assert asked_of(data, folder / "run", model) == 0
    return folder / "run"


@pytest.fixture
def finished(made: Path, tmp_path: Path) -> Path:
    """The same, one's own."""
    return Path(shutil.copytree(made, tmp_path / "run"))


def judge_scores(folder: Path, label: str = "") -> dict[tuple[int, str], Score]:
    with Store.read(folder) as store:
        return {(ask, s.metric): s for ask, s in store.scores() if "@" in s.metric and s.metric.endswith(label)}


def other_scores(folder: Path) -> dict[tuple[int, str, str], Score]:
    with Store.read(folder) as store:
        return {(ask, s.metric, s.signature): s for ask, s in store.scores() if "@" not in s.metric}


def judge(folder: Path, *specs: str) -> dict[str, Outcome]:
    with Store.create(folder) as store:
        return asyncio.run(judge_run(store, [parse_judge(spec) for spec in specs], retries=QUICK))


def styles(folder: Path) -> dict[int, str]:
    with Store.read(folder) as store:
        return {ask.id: ask.item.style for ask in store.answered()}


def test_a_run_is_judged_as_it_goes_and_every_score_is_stored_with_its_signature(small: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with OpenAIServer() as model, JudgeServer() as server:
        assert asked_of(small, out, model, "--judge", server.spec()) == 0
        assert server.count == VERDICTS
    found, style = judge_scores(out, "@scripted"), styles(out)
    for ask, wanted in ((a, BY_STYLE[s]) for a, s in style.items()):
        assert {m.partition("@")[0] for a, m in found if a == ask} == wanted
    for (_, metric), score in found.items():
        assert score.value is not None and score.reason == ""
        assert score.signature.startswith(f"{metric}|v1|rubric:")
        assert "|judge:openai:scripted|" in score.signature
        assert score.detail["why"] and score.detail["draws"] == 1 and score.detail["unread"] == 0
        low, high = (0, 1) if metric.startswith("false_cue") else (1, 5)
        assert low <= score.value <= high
    assert other_scores(out), "the metrics are there too"


def test_the_same_command_again_asks_neither_the_model_nor_the_judge(small: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with OpenAIServer() as model, JudgeServer() as server:
        asked_of(small, out, model, "--judge", server.spec())
        before = judge_scores(out), other_scores(out).keys(), model.count, server.count
        assert asked_of(small, out, model, "--judge", server.spec()) == 0
        assert main(["score", str(out), "-q", "--judge", server.spec()]) == 0
        assert (judge_scores(out), other_scores(out).keys(), model.count, server.count) == before


def test_afterwards_is_as_good_as_along_the_way(small: Path, tmp_path: Path, finished: Path) -> None:
    with OpenAIServer() as model, JudgeServer() as server:
        asked_of(small, tmp_path / "other", model, "--judge", server.spec())
        assert main(["score", str(finished), "-q", "--judge", server.spec()]) == 0
    assert judge_scores(finished) == judge_scores(tmp_path / "other")


def test_the_judge_is_told_the_cue_that_the_clip_carries(finished: Path) -> None:
    with JudgeServer() as server:
        judge(finished, server.spec("rubrics=echomind"))
    with Store.read(finished) as store:
        items = {ask.item.turns[-1].words + ask.reply.text: ask.item for ask in store.answered()}
    assert len(server.asked) == 9
    for asked in server.asked:
        text = shown(asked)
        (item,) = [
            i for words, i in items.items() if i.turns[-1].words in text and words[len(i.turns[-1].words) :] in text
        ]
        if item.style == "neutral":
            assert "nothing in particular" in text and "cspeechrel" not in text
        elif item.style == "target":
            assert item.cue_text in text and '"cspeechrel"' in text


def test_a_judge_that_dies_costs_nothing_paid_and_changes_no_other_score(finished: Path) -> None:
    before = other_scores(finished)
    with JudgeServer() as first, JudgeServer() as server:
        judge(finished, first.spec(name="steady"))
        steady = judge_scores(finished, "@steady")
        server.dies_after = 10
        outcome = judge(finished, server.spec("connections=1"))["scripted"]
        port = server.port
    assert outcome.stopped == "fatal" and outcome.answered == 10
    found = judge_scores(finished, "@scripted")
    missing = [score for score in found.values() if score.value is None]
    assert missing and all(score.reason for score in missing)
    assert other_scores(finished) == before
    assert judge_scores(finished, "@steady") == steady
    paid = {key: score for key, score in found.items() if score.value is not None}
    with JudgeServer(port=port) as server:
        outcome = judge(finished, server.spec("connections=1"))["scripted"]
        assert server.count == VERDICTS - 10, "nothing paid is asked again"
    after = judge_scores(finished, "@scripted")
    assert all(score.value is not None for score in after.values())
    assert {key: after[key] for key in paid} == paid


def test_a_judge_that_is_down_does_not_take_away_what_it_said_before(finished: Path) -> None:
    with JudgeServer() as server:
        judge(finished, server.spec())
        spec = server.spec()
    before = judge_scores(finished)
    outcome = judge(finished, spec)["scripted"]
    assert (outcome.requests, outcome.failed) == (0, 0)
    assert judge_scores(finished) == before


def test_a_budget_is_spent_once_along_the_way_and_not_again_at_the_end(small: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with OpenAIServer() as model, JudgeServer() as server:
        code = asked_of(small, out, model, "--judge", server.spec("budget_requests=7"))
        assert (code, server.count) == (4, 7)
        assert model.count == 9, "the run itself goes to its end"
        found = judge_scores(out)
        assert any("budget of 7 requests" in score.reason for score in found.values())
        code = main(["score", str(out), "-q", "--judge", server.spec()])
        assert (code, server.count) == (0, VERDICTS)


def test_several_judges_stand_side_by_side(finished: Path) -> None:
    def strict(asked: Asked) -> dict[str, int | str]:
        return {key: "no" if key == "false_cue" else 1 for key in keys_asked(asked.text)}

    with JudgeServer() as one, JudgeServer(verdict=strict) as other:
        outcomes = judge(finished, one.spec(name="kind"), other.spec(name="org/strict-1"))
    assert set(outcomes) == {"kind", "strict-1"}
    kind, hard = judge_scores(finished, "@kind"), judge_scores(finished, "@strict-1")
    assert len(kind) == len(hard)
    assert {s.value for (_, m), s in hard.items() if "false_cue" not in m} == {1.0}
    assert {s.value for s in kind.values()} != {1.0}


def test_two_judges_of_one_name_need_a_label(finished: Path) -> None:
    with JudgeServer() as server:
        with pytest.raises(UsageError, match="label=NAME"):
            judge(finished, server.spec(), server.spec("temperature=1"))
        judge(finished, server.spec("rubrics=implicit"), server.spec("rubrics=implicit&temperature=1&label=warm"))
    assert {m for _, m in judge_scores(finished)} == {"cspeechrel_implicit@scripted", "cspeechrel_implicit@warm"}


def test_a_rubric_of_ones_own_is_scored_like_any_other(finished: Path, tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "rubrics" / "index.md").read_text(encoding="utf-8")
    (tmp_path / "brevity.toml").write_text(page.partition("```toml\n")[2].partition("```")[0], encoding="utf-8")
    with JudgeServer(verdict=lambda asked: {"brevity": 2}) as server:
        assert main(["score", str(finished), "-q", "--judge", server.spec(f"rubrics={tmp_path / 'brevity.toml'}")]) == 0
    found = judge_scores(finished)
    assert {(m, s.value) for (_, m), s in found.items()} == {("brevity@scripted", 2.0)} and len(found) == 9
    sha = rubric.load(str(tmp_path / "brevity.toml")).sha256[:8]
    assert all(f"|rubric:brevity.1.{sha}|" in score.signature for score in found.values())


def test_off_menu_answers_are_stored_as_unscored_with_the_reason(finished: Path) -> None:
    with JudgeServer() as server:
        server.always = "off_menu"
        outcome = judge(finished, server.spec("rubrics=implicit"))["scripted"]
        assert server.count == 12, "asked for once more each"
    assert (outcome.unread, outcome.answered) == (6, 0)
    for score in judge_scores(finished).values():
        assert score.value is None and "not on the menu" in score.reason


def test_a_hearing_judge_gets_the_stored_reply(finished: Path) -> None:
    with JudgeServer() as server:
        judge(finished, server.spec("rubrics=ves"))
        heard = {sound for asked in server.asked for sound in asked.sounds}
    with Store.read(finished) as store:
        spoken = {reply.audio for reply in store.replies()}
    assert heard and heard <= spoken


def test_a_judge_without_ears_reads_a_description(finished: Path) -> None:
    with JudgeServer() as server:
        judge(finished, server.spec("rubrics=ves&hears=description"))
        assert not any(asked.sounds for asked in server.asked)
        assert all("as measured" in asked.text for asked in server.asked)
    for score in judge_scores(finished).values():
        assert "|hears:description.1|" in score.signature


class Silent(OpenAIServer):
    """Answers in speech alone: no text, no transcript."""

    def reply(self, text: str, wav: bytes | None, cut: int = 0) -> dict[str, Any]:
        out = super().reply(text, wav, cut)
        message = out["choices"][0]["message"]
        message["content"] = None
        if "audio" in message:
            message["audio"]["transcript"] = ""
        return out


def test_a_reply_without_text_is_judged_by_a_transcript_and_the_signature_says_so(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    times: list[Path] = []

    def transcript(path: Path) -> str:
        times.append(path)
        return f"heard in {path.stem[:6]}"

    monkeypatch.setattr("overtone.judges.reply_audio.transcript", transcript)
    out = tmp_path / "run"
    with Silent() as model, JudgeServer() as server:
        asked_of(small, out, model)
        judge(out, server.spec())
        texts = [shown(asked) for asked in server.asked if "<reply>" in asked.text]
        assert texts and all("heard in" in text for text in texts)
    for (_, metric), score in judge_scores(out).items():
        assert f"|text:{'none' if metric.startswith('ves') else 'transcript'}" in score.signature
    assert len(times) == len(set(times)), "each reply is transcribed once"


def test_a_wrong_judge_is_an_error_before_anything_is_asked(small: Path, tmp_path: Path) -> None:
    out, odd = tmp_path / "run", tmp_path / "odd.toml"
    odd.write_text(registry.find_rubric("implicit").read_text().replace('shows = ["cue"', 'shows = ["mood", "cue"'))
    with OpenAIServer() as model, JudgeServer() as server:
        options = ("rubrics=ecomind", "repeets=3", "repeats=0", "rubrics=echomind,pair", f"rubrics={odd}")
        for spec in (*map(server.spec, options), "openay:gpt-4o"):
            assert asked_of(small, out, model, "--judge", spec) == 2
            with pytest.raises(UsageError):
                overtone.run(
                    "echomind", data=small, out=out, model=f"openai:a?base_url={model.base_url}", judges=[spec]
                )
        assert asked_of(small, out, model, "--judge", "openai:gpt-4o?api_key_env=NO_SUCH_VARIABLE_HERE") == 2
        assert (model.count, server.count) == (0, 0)


def test_the_verdicts_lie_beside_the_run(finished: Path) -> None:
    with JudgeServer() as server:
        judge(finished, server.spec())
    assert (finished / FILE).is_file()


def test_what_a_strangers_run_says_of_rubrics_is_not_believed(finished: Path) -> None:
    for hostile in ("[1, 2]", "{", '{"cspeechrel": 3}', "[" * 100_000):
        with Store.create(finished) as store:
            store.set_meta({"rubrics": hostile})
        with JudgeServer() as server:
            assert main(["score", str(finished), "-q", "--judge", server.spec("rubrics=implicit")]) == 0
        with Store.read(finished) as store:
            assert "cspeechrel_implicit" in store.meta()["rubrics"]
