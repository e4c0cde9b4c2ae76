"""`overtone judge` from the command line, against a judge behind a real endpoint and verdicts recorded in files."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest

from overtone.cli import main
from overtone.judge_trust import audits, people_agreement, scale_questions, validation
from overtone.judges import rubric, trust_record
from tests.judges.server import JudgeServer, Verdict, keys_asked
from tests.servers import Asked, tone

KEYS = ("cctxfit", "crespnat", "ccolloqdeg", "cspeechrel")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OVERTONE_JUDGES", str(tmp_path / "proofs"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(audits, "DRAWS", 60)
    for module in (people_agreement, validation, scale_questions):
        monkeypatch.setattr(module, "DRAWS", 60)
    for function in (
        validation.validate,
        scale_questions.coarse_against_fine,
        scale_questions.audio_against_description,
    ):
        monkeypatch.setitem(function.__kwdefaults__ or {}, "draws", 60)
    return tmp_path


def _labels(path: Path, units: int = 40, raters: int = 2) -> dict[str, int]:
    """Labels of replies that say how good they are; raters differ by one now and then. Returns the true values."""
    rng = np.random.default_rng(0)
    truth = {}
    lines = ["id,group,rater,cue,topic,words,reply,system," + ",".join(KEYS)]
    for number in range(units):
        worth = int(rng.integers(1, 6))
        truth[str(number)] = worth
        for rater in range(raters):
            given = [int(np.clip(worth + rng.choice([0, 0, 0, 1, -1]), 1, 5)) for _ in KEYS]
            system = "gpt-4o" if number % 2 else "qwen2"
            reply = f"Reply {number} worth {worth} " + "so " * int(rng.integers(1, 20))
            text = reply if not rater else ""
            lines.append(
                f"{number},g{number // 2},r{rater},a sad voice,work,Hi {number},{text},{system},"
                + ",".join(map(str, given))
            )
    path.write_text("\n".join(lines) + "\n")
    return truth


def good(asked: Asked) -> Verdict:
    worth = re.search(r"worth (\d)", asked.text)
    assert worth
    return dict.fromkeys(keys_asked(asked.text), int(worth[1]))


def test_a_judge_that_says_what_people_say_is_validated_and_paid_once(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _labels(home / "labels.csv")
    with JudgeServer(verdict=good) as server:
        command = ["judge", "validate", server.spec(), "--labels", "labels.csv", "--rubric", "echomind", "--out", "out"]
        assert main(command) == 0
        assert server.count == 40
        assert main(command) == 0
        assert server.count == 40, "nothing is asked twice"
    found = msgspec.json.decode((home / "out" / "validation.json").read_bytes())
    assert found["passed"] == dict.fromkeys(KEYS, True)
    for dimension in found["dimensions"]:
        assert dimension["units"] == 40 and dimension["agreement"]["alpha"]["low"] > 0.4
        assert set(dimension["agreement"]) == set(people_agreement.MEASURES)
        assert dimension["ceiling"]["raters"] == 2
        assert sum(map(sum, dimension["confusion"]["counts"])) == 40
    assert {f["audit"] for f in found["findings"]} == {
        "halo", "repeatability", "length bias", "polarisation", "self-preference", "lexical shortcut"
    }  # fmt: skip
    out = capsys.readouterr().out
    assert "Validated for cctxfit, crespnat, ccolloqdeg, cspeechrel of rubric echomind" in out
    echomind = rubric.load("echomind")
    proof = trust_record.validated("openai:scripted|hears:nothing|calls:together", echomind)
    assert proof is not None and proof.dimensions == KEYS
    other = msgspec.structs.replace(echomind, system="Other words.")
    assert trust_record.validated("openai:scripted|hears:nothing|calls:together", other) is None
    assert main(["judge", "list"]) == 0
    assert "agreed with people on cctxfit" in capsys.readouterr().out


def test_the_page_is_one_file_that_runs_nothing_and_believes_no_text(home: Path) -> None:
    _labels(home / "<script>alert(1)<.csv")
    with JudgeServer(verdict=good) as server:
        main(
            [
                "judge",
                "validate",
                server.spec(),
                "--labels",
                "<script>alert(1)<.csv",
                "--rubric",
                "echomind",
                "--out",
                "out",
            ]
        )
    page = (home / "out" / "validation.html").read_text()
    assert "<script" not in page and "&lt;script&gt;" in page
    assert not re.search(r"(src|href)\s*=", page)
    assert "default-src 'none'" in page
    for text in ("Krippendorff", "a person and the others", "halo", "people (rows)"):
        assert text in page


def test_a_judge_that_guesses_is_not_validated_and_loses_an_older_proof(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _labels(home / "labels.csv")
    identity, echomind = "openai:scripted|hears:nothing|calls:together", rubric.load("echomind")
    trust_record.write(identity, echomind, KEYS, "before", how=trust_record.PEOPLE)
    with JudgeServer() as server:
        command = ["judge", "validate", server.spec(), "--labels", "labels.csv", "--rubric", "echomind"]
        assert main([*command, "--repeats", "2", "--limit", "20"]) == 0
        assert server.count == 40, "twenty units, twice"
    found = msgspec.json.decode((home / "judges" / "scripted" / "validation.json").read_bytes())
    assert not any(found["passed"].values())
    repeats = [f for f in found["findings"] if f["audit"] == "repeatability"]
    assert all(f["value"] < 0.6 for f in repeats)
    assert "Not validated" in capsys.readouterr().out
    assert trust_record.validated(identity, echomind) is None


def test_a_judge_that_answers_nothing_or_nobody_is_an_error_that_says_why(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _labels(home / "labels.csv", units=6)
    with JudgeServer(verdict=good) as server:
        server.always = "words"
        command = ["judge", "validate", server.spec(), "--labels", "labels.csv", "--rubric", "echomind"]
        assert main(command) == 3
    err = capsys.readouterr().err
    assert "gave no verdict on 'cctxfit' for any of 6 labelled units" in err and "does not begin with {" in err


def test_a_budget_stops_cleanly_and_the_same_command_goes_on(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _labels(home / "labels.csv", units=12)
    command = ["--labels", "labels.csv", "--rubric", "echomind", "--out", "out"]
    with JudgeServer(verdict=good) as server:
        spec = server.spec("budget_requests=5")
        assert main(["judge", "validate", spec, *command]) == 4
        assert server.count == 5
        assert "run the same command again to resume" in capsys.readouterr().out
        assert main(["judge", "validate", server.spec(), *command]) == 0
        assert server.count == 12


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda c: [*c[:4], "none.csv", *c[5:]], "none.csv: cannot be read"),
        (lambda c: [*c[:-1], "ecomind"], "did you mean 'echomind'"),
        (lambda c: [*c[:-1], "ves"], r"no dimension of rubric ves \(ves\) is labelled"),
        (lambda c: [*c, "--dimension", "cctxfit"], "is not OURS=THEIRS"),
        (lambda c: [*c, "--dimension", "ctxfit=crespnat"], "no dimension 'ctxfit'; did you mean 'cctxfit'"),
        (lambda c: [*c, "--dimension", "cctxfit=respnat"], "no labels for 'respnat'; did you mean 'crespnat'"),
        (lambda c: [*c, "--limit", "0"], "--limit must be at least 1"),
        (lambda c: [*c[:-1], "false-cue", "--dimension", "false_cue=cctxfit"], "line .*: cctxfit is .* is yes or no"),
        (lambda c: [*c[:-1], "ves", "--dimension", "ves=cctxfit"], "needs reply_sound"),
        (lambda c: [c[0], c[1], "recorded:none.json", *c[3:]], "none.json: cannot be read"),
        (lambda c: [c[0], c[1], "recorded:", *c[3:]], "recorded: needs a file"),
    ],
)  # fmt: skip
def test_what_cannot_be_measured_is_one_line(
    home: Path, capsys: pytest.CaptureFixture[str], change: Callable[[list[str]], list[str]], problem: str
) -> None:
    _labels(home / "labels.csv", units=4)
    command = [
        "judge",
        "validate",
        "openai:x?base_url=http://127.0.0.1:9/v1",
        "--labels",
        "labels.csv",
        "--rubric",
        "echomind",
    ]
    assert main(change(command)) == 2
    assert re.search(problem, capsys.readouterr().err)


def test_verdicts_recorded_in_a_file_are_measured_and_nobody_is_asked(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = {"reply_a": "a a a", "reply_b": "b b"}
    pairs = [
        {"id": n, "group": n // 2, "rater": r, **texts, "best": "AB"[(n + (r == 2 and n == 3)) % 2]}
        for n in range(12)
        for r in range(3)
    ]
    (home / "people.json").write_bytes(msgspec.json.encode(pairs))
    said = {1: "A", 5: "tie", 7: "both"}
    verdicts = [{"id": n, "best": said.get(n, "AB"[n % 2])} for n in range(12)]
    (home / "judge.jsonl").write_bytes(b"\n".join(map(msgspec.json.encode, verdicts)))
    (home / "one.json").write_bytes(msgspec.json.encode([{**row, "group": "same"} for row in pairs]))
    command = ["judge", "validate", "recorded:judge.jsonl", "--out", "out", "--labels"]
    assert main([*command, "people.json"]) == 0
    found = msgspec.json.decode((home / "out" / "validation.json").read_bytes())
    (dimension,) = found["dimensions"]
    assert dimension["agreement"]["exact"]["value"] == pytest.approx(9 / 11)
    assert dimension["unjudged"] == 1, "an answer that people could not give is no verdict"
    assert dimension["confusion"]["values"] == ["B", "tie", "A"]
    assert dimension["ceiling"]["pairs"]["0 and 2"] == pytest.approx(10 / 11)
    assert main([*command, "one.json"]) == 0
    assert "one group" in capsys.readouterr().out
    assert list((home / "proofs").glob("*")) == [], "nobody will ask a file"


def test_pairs_are_asked_in_both_orders_and_a_judge_of_places_is_found(home: Path) -> None:
    lines = ["id,group,words,cue,reply_a,reply_b,preference"]
    lines += [f"{n},g{n},Hi,a sad voice,one {n},two {n} and more,{'AB'[n % 2]}" for n in range(20)]
    (home / "pairs.csv").write_text("\n".join(lines))
    with JudgeServer(verdict=lambda asked: {"preference": "A"}) as server:
        assert (
            main(["judge", "validate", server.spec(), "--labels", "pairs.csv", "--rubric", "pair", "--out", "out"]) == 0
        )
        assert server.count == 40
    found = msgspec.json.decode((home / "out" / "validation.json").read_bytes())
    by_name = {f["audit"]: f for f in found["findings"]}
    assert (by_name["position bias"]["value"], by_name["verdicts that turn"]["value"]) == (1.0, 1.0)
    assert found["dimensions"][0]["confusion"]["counts"][0][1] == 10, "two orders that differ are a tie"


def test_three_steps_against_five_and_sound_against_description(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = ["id,group,cue,reply_sound,ves"]
    for number in range(12):
        (home / f"{number}.wav").write_bytes(tone(number, 0.3, 16_000))
        lines.append(f"{number},g{number},a sad voice,{number}.wav,{number % 5 + 1}")
    (home / "labels.csv").write_text("\n".join(lines))
    with JudgeServer(verdict=lambda asked: {"ves": len(asked.text) % 3 + 1}) as server:
        command = ["judge", "questions", server.spec(), "--labels", "labels.csv", "--rubric", "ves", "--out", "out"]
        assert main(command) == 0
        assert server.count == 3 * 12
        coarse = [asked for asked in server.asked if "from 1 to 3" in asked.text]
        assert len(coarse) == 12
        anchors = rubric.load("ves").dimensions[0].anchors
        assert f"  2: {anchors['3']}" in coarse[0].text and anchors["2"] not in coarse[0].text
        assert sum(not asked.sounds for asked in server.asked) == 12
    found = msgspec.json.decode((home / "out" / "questions.json").read_bytes())
    assert [answer["question"] for answer in found] == ["coarse against fine"] * 2 + ["audio against description"]
    assert "difference" in capsys.readouterr().out


def test_five_steps_collapse_as_documented() -> None:
    assert scale_questions.collapsed(np.array([1, 2, 3, 4, 5, 2.5, np.nan]))[:6].tolist() == [1, 1, 2, 3, 3, 2]
    fine = scale_questions.coarse(rubric.load("echomind"))
    assert all(d.scale == (1, 3) and set(d.anchors) == {"1", "2", "3"} for d in fine.dimensions)


def test_show_prints_what_a_judge_is_told_with_the_form_of_the_answer(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["judge", "show", "ves"]) == 0
    out = capsys.readouterr().out
    found = rubric.load("ves")
    assert found.system.strip() in out and found.identity in out
    assert "Answer with one JSON object" in out and "How the assistant replied" in out
    assert main(["judge", "show", "vse"]) == 2
    assert "did you mean 'ves'" in capsys.readouterr().err


@pytest.mark.shared
def test_pandalms_recorded_judges_are_measured_against_its_annotators(shared: Path, home: Path) -> None:
    folder = shared / "data" / "pandalm"
    command = ["judge", "validate", f"recorded:{folder}/gpt-3.5-turbo-testset-v1.json", "--out", "out", "--labels"]
    assert main([*command, str(folder / "testset-v1.json")]) == 0
    found = msgspec.json.decode((home / "out" / "validation.json").read_bytes())
    (dimension,) = found["dimensions"]
    assert (dimension["units"], dimension["unjudged"]) == (974, 25)
    assert dimension["agreement"]["exact"]["value"] == pytest.approx(0.716, abs=1e-3)
    assert dimension["agreement"]["alpha"]["value"] == pytest.approx(0.492, abs=1e-3)


@pytest.mark.shared
def test_ievals_chats_are_judged_by_the_rubric_made_for_them(shared: Path, home: Path) -> None:
    with JudgeServer() as server:
        command = ["judge", "validate", server.spec(), "--labels", str(shared / "data" / "ieval" / "ieval_data.json")]
        assert main([*command, "--limit", "16", "--out", "out"]) == 0
        assert server.count == 16
        assert "Bot: " in server.asked[0].text
    found = msgspec.json.decode((home / "out" / "validation.json").read_bytes())
    assert len(found["dimensions"]) == 7 and found["groups"] == 2
