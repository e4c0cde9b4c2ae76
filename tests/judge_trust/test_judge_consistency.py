"""Several judges on the same 50 pairs: how often they say the same, and the line of 80 %."""

from __future__ import annotations

import re
from contextlib import ExitStack
from pathlib import Path

import msgspec
import pytest

from overtone.cli import main
from overtone.judge_trust import audits, people_agreement, validation
from overtone.judge_trust.judge_consistency import consistency
from overtone.judges import rubric
from tests.judges.server import JudgeServer, Verdict
from tests.servers import Asked

PAIRS = 50


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OVERTONE_JUDGES", str(tmp_path / "proofs"))
    monkeypatch.chdir(tmp_path)
    for module in (audits, people_agreement, validation):
        monkeypatch.setattr(module, "DRAWS", 60)
    for function in (validation.validate, consistency):
        monkeypatch.setitem(function.__kwdefaults__ or {}, "draws", 60)
    lines = ["id,group,cue,topic,words,reply_a,reply_b,preference"]
    for n in range(PAIRS):
        better = "AB"[n % 2]
        lines.append(f"{n},g{n},a sad voice,work,Hi {n}.,Pair {n} {better} first.,Pair {n} {better} second.,{better}")
    (tmp_path / "pairs.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def says(wrong: range) -> JudgeServer:
    """A judge that prefers what people prefer but for these pairs."""

    def verdict(asked: Asked) -> Verdict:
        found = re.search(r"Pair (\d+) ([AB]) first", asked.text)
        assert found
        right = found[2]
        return {"preference": {"A": "B", "B": "A"}[right] if int(found[1]) in wrong else right}

    return JudgeServer(verdict=verdict)


def ask(*wrong: range, beside: tuple[str, ...] = (), out: str = "judges") -> int:
    with ExitStack() as stack:
        servers = [stack.enter_context(says(one)) for one in wrong]
        specs = [server.spec(f"swap=no&label=j{n}", f"m{n}") for n, server in enumerate(servers, 1)]
        words = ["--labels", "pairs.csv", "--rubric", "pair", "--limit", "50", "--out", out]
        return main(["judge", "validate", *specs, *beside, *words])


def test_three_judges_on_fifty_pairs_are_held_against_each_other_people_and_the_line(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask(range(0), range(5), range(3, 28)) == 0
    told = msgspec.json.decode((home / "judges" / "consistency.json").read_bytes())
    (one,) = told["dimensions"]
    # j2 is wrong on 0–4, j3 on 3–27: they differ from each other on 0–2 and on 5–27.
    shares = {(c["first"], c["second"]): c["same"]["value"] for c in (*one["judges"], *one["people"])}
    assert shares == {
        ("j1", "j2"): 0.9, ("j1", "j3"): 0.5, ("j2", "j3"): pytest.approx((50 - 3 - 23) / 50),
        ("j1", "people"): 1.0, ("j2", "people"): 0.9, ("j3", "people"): 0.5,
    }  # fmt: skip
    sides = {c["first"]: c["side"] for c in one["people"]}
    assert sides == {"j1": "above", "j2": "across", "j3": "below"}
    assert one["mean"] == pytest.approx((0.9 + 0.5 + 0.48) / 3) and told["line"] == 0.8
    text = capsys.readouterr().out
    assert "j2 and j3" in text and "j3 and people" in text and "below 80 %" in text
    assert "2 of 3 judges agree with people on at least 80 %; for 1 of them" in " ".join(text.split())
    assert all((home / "judges" / f"j{n}" / "validation.json").is_file() for n in (1, 2, 3))


def test_judges_of_one_name_are_refused_and_one_judge_is_measured_as_ever(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with says(range(0)) as server:
        spec = server.spec("swap=no&label=same")
        words = ["judge", "validate", spec, spec, "--labels", "pairs.csv", "--rubric", "pair"]
        assert main(words) == 2
        assert "two judges have the label 'same'" in capsys.readouterr().err
        assert main([*words[:2], *words[3:], "--out", "mine"]) == 0
    assert (home / "mine" / "validation.json").is_file() and not (home / "mine" / "consistency.json").exists()


def test_recorded_verdicts_stand_beside_a_judge_that_is_asked(home: Path) -> None:
    rows = [f"{n},{'AB'[n % 2] if n >= 10 else 'AB'[1 - n % 2]}" for n in range(PAIRS)]
    (home / "old.csv").write_text("id,preference\n" + "\n".join(rows) + "\n")
    assert ask(range(0), beside=("recorded:old.csv",), out="both") == 0
    (one,) = msgspec.json.decode((home / "both" / "consistency.json").read_bytes())["dimensions"]
    assert [(c["first"], c["second"], c["same"]["value"]) for c in one["judges"]] == [("j1", "recorded:old.csv", 0.8)]


def test_a_judge_without_a_fair_is_found_polarised_and_its_steps_are_ordered(home: Path) -> None:
    steps = ("Poor", "Fair", "Fair", "Fair", "Good")
    lines = ["id,group,context,words,cue,reply,coherence"]
    lines += [f"{n},g{n},At home.,Hi {n}.,neutral,Reply {n} {steps[n % 5]}.,{steps[n % 5]}" for n in range(50)]
    (home / "rated.csv").write_text("\n".join(lines) + "\n")

    def verdict(asked: Asked) -> Verdict:
        found = re.search(r"Reply (\d+) (Poor|Fair|Good)", asked.text)
        assert found
        said = found[2] if found[2] != "Fair" else ("Good", "Poor")[int(found[1]) % 2]
        return {"reliance": "both", "naturalness": 4, "coherence": said, "supportiveness": "Fair"}

    with JudgeServer(verdict=verdict) as server:
        words = ["judge", "validate", server.spec("label=j"), "--labels", "rated.csv", "--rubric", "aeq"]
        assert main(words) == 0
    found = msgspec.json.decode((home / "judges" / "j" / "validation.json").read_bytes())
    (one,) = found["dimensions"]
    assert one["ordered"] and one["agreement"]["exact"]["value"] == 0.4
    assert one["agreement"]["within_one"]["value"] == 1.0
    (polar,) = [f for f in found["findings"] if f["audit"] == "polarisation"]
    assert polar["value"] == pytest.approx(1.0 - 0.4) and "more extreme" in polar["sentence"]


def test_pairs_and_yes_or_no_are_no_steps() -> None:
    dimensions = {d.key: d for name in ("pair", "false-cue", "aeq", "echomind") for d in rubric.load(name).dimensions}
    assert {key for key, d in dimensions.items() if d.ordered} == {
        "naturalness", "coherence", "supportiveness", "cctxfit", "crespnat", "ccolloqdeg", "cspeechrel",
    }  # fmt: skip
