"""URO-Bench: forty sets by track and language, replies judged as heard, and its tables to the printed digit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from overtone.benchmarks import Selection
from overtone.benchmarks.uro_bench import SUITE, load
from overtone.benchmarks.uro_bench.sets import ABILITIES, PUBLISHED, SCORES, SETS, TABLES
from overtone.cli import main
from overtone.embedded import recogniser
from overtone.errors import DataError
from overtone.judges import reply_audio, rubric
from overtone.results.column_values import Scored
from overtone.results.headline import number, suite_tables
from overtone.results.load import open_run
from overtone.schema import Item, Turn
from tests.judges.server import JudgeServer
from tests.servers import Asked, OpenAIServer, tone

MISPRINT = ("URO-Bench, basic track, Chinese", "GLM-4-Voice")  # 66.90 is printed; its own ten sets have a mean of 69.60


def line(wav: str, question: str, target: object = "Right.", **more: object) -> dict[str, object]:
    return {"source_wav": wav, "source_text": question, "target_text": target, **more}


def write(root: Path, track: str, name: str, rows: list[dict[str, object]]) -> Path:
    folder = root / track / name
    folder.mkdir(parents=True)
    (folder / "test.jsonl").write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n")
    rounds = [turn for row in rows for turn in row.get("dialogue", [row])]  # type: ignore[attr-defined]
    for seed, turn in enumerate(rounds):
        path = folder / str(turn["source_wav"])
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(tone(seed, 0.2, 16_000))
    return root


def items(folder: Path) -> list[Item]:
    return list(load(folder).items(Selection()))


def test_there_are_forty_sets_each_with_a_score_and_a_question_that_is_asked_of_it() -> None:
    assert len(SETS) == len({one.name for one in SETS}) == 40
    assert [len(sets) for sets in TABLES.values()] == [10, 10, 12, 8]
    asked = {
        (d.key, name)
        for one in (*SUITE.rubrics, "uro-performance")
        for d in rubric.load(one).dimensions
        for name in d.only["category"]
    }
    judged = {(SCORES[one.mode][0], one.name) for one in SETS if one.mode not in ("ge", "wer")}
    assert asked == judged


def test_a_request_has_its_set_language_references_and_what_is_wanted(tmp_path: Path) -> None:
    write(tmp_path, "basic", "TruthfulEval", [line("wavs/0.wav", "Why?", ["Because.", "So."])])
    write(tmp_path, "basic", "Gsm8kEval", [line("wavs/0.wav", "2 + 3?", 5)])
    write(tmp_path, "basic", "AlpacaEval-zh", [{"source_wav": "wavs/7.wav", "source_text": "你好吗？"}])
    write(tmp_path, "pro", "UnderEmotion-en", [line("wavs/0.wav", "I won!", "Great!", emotion="surprised")])
    write(tmp_path, "pro", "GenEmotion-en", [line("wavs/0.wav", "Say it gladly.", "I won!", emotion="happy")])
    write(tmp_path, "pro", "Multilingual", [line("wavs/0.wav", "In French?", "Oui.", requirement="French")])
    found = {item.category: item for item in items(tmp_path)}
    assert list(found) == [
        "TruthfulEval",
        "Gsm8kEval",
        "AlpacaEval-zh",
        "UnderEmotion-en",
        "GenEmotion-en",
        "Multilingual",
    ]
    one = found["TruthfulEval"]
    assert one.id == "uro-bench/TruthfulEval/wavs/0" and one.references == ("Because.", "So.")
    assert (one.language, one.source, one.task, one.level) == ("en", "basic", "converse", 3)
    assert found["Gsm8kEval"].references == ("5",)
    assert (found["AlpacaEval-zh"].language, found["AlpacaEval-zh"].references) == ("zh", ("你好吗？",))
    told = found["UnderEmotion-en"]
    assert (told.cue, told.cue_text, told.gold) == ("surprise", "surprised", "")
    assert (found["GenEmotion-en"].gold, found["GenEmotion-en"].cue_text) == ("happy", "")
    assert (found["Multilingual"].language, found["Multilingual"].gold) == ("mul", "French")
    assert one.turns[0].clip is not None and one.turns[0].clip.path == "basic/TruthfulEval/wavs/0.wav"


def test_a_dialogue_is_asked_round_by_round_with_the_models_own_replies(tmp_path: Path) -> None:
    rounds = [{"round": n, **line(f"wavs/{n}.wav", f"Question {n}.", f"Answer {n}.")} for n in range(3)]
    write(tmp_path, "pro", "MtBenchEval-en", [{"id": 4, "num_round": 3, "dialogue": rounds}])
    (one,) = items(tmp_path)
    assert one.id == "uro-bench/MtBenchEval-en/4" and [t.reference for t in one.turns] == [
        f"Answer {n}." for n in range(3)
    ]
    assert not any(turn.given for turn in one.turns)


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (line("../../../etc/passwd", "x"), r"line 2: .*leaves its folder"),
        (line("/etc/passwd", "x"), r"line 2: .*absolute"),
        (line("wavs/0.wav", "x"), "is duplicated"),
        ({"source_text": "x"}, "no 'source_wav'"),
        (line("wavs/1.wav", "x", {"a": 1}), "'target_text' holds an object"),
        ({"id": 1, "dialogue": "x"}, "'dialogue' holds text"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(tmp_path: Path, row: dict[str, object], problem: str) -> None:
    write(tmp_path, "basic", "MLC", [line("wavs/0.wav", "x")])
    (tmp_path / "basic" / "MLC" / "wavs" / "1.wav").write_bytes(tone())
    path = tmp_path / "basic" / "MLC" / "test.jsonl"
    path.write_text(path.read_text() + json.dumps(row) + "\n")
    with pytest.raises(DataError, match=problem):
        load(tmp_path)


def test_missing_sounds_unknown_sets_and_packed_archives_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="give the unpacked URO-Bench-data"):
        load(tmp_path)
    (tmp_path / "URO-Bench-data.zip").write_bytes(b"PK")
    with pytest.raises(DataError, match=r"unpack URO-Bench-data\.zip there"):
        load(tmp_path)
    write(tmp_path, "basic", "MLC", [line("wavs/0.wav", "x"), line("wavs/1.wav", "y")])
    write(tmp_path, "basic", "MLC-fr", [line("wavs/0.wav", "x")])
    (tmp_path / "basic" / "MLC" / "wavs" / "1.wav").unlink()
    found = load(tmp_path)
    assert len(list(found.items(Selection()))) == 1
    assert found.warnings == [
        "requests without their recording are left out (1: MLC/wavs/1)",
        "sets of an unknown name are left out (1: MLC-fr)",
    ]
    write(tmp_path / "mini", "basic", "MLC", [line("wavs/0.wav", "x")])
    with pytest.raises(DataError, match="the set MLC is here twice"):
        load(tmp_path)


def test_every_set_belongs_to_the_ability_that_its_script_counts_it_for() -> None:
    counted = {  # sets per table, as evaluate.py of URO-Bench groups them
        ("basic", "en"): (3, 4, 3), ("basic", "zh"): (3, 4, 3), ("pro", "en"): (5, 3, 4), ("pro", "zh"): (3, 2, 3),
    }  # fmt: skip
    assert {
        key: tuple(sum(one.ability == ability for one in sets) for ability in ABILITIES) for key, sets in TABLES.items()
    } == counted
    of = {one.name: one.ability for one in SETS}
    assert (of["GaokaoEval"], of["StoralEval"], of["Wildchat-zh"]) == ("understanding", "reasoning", "oral")
    assert (of["MuChoEval-en"], of["SpeakerAware-zh"], of["Multilingual"]) == ("understanding", "reasoning", "oral")


@pytest.mark.parametrize("table", PUBLISHED, ids=lambda table: table.title)
def test_the_printed_overall_is_the_mean_of_the_printed_sets(table: object) -> None:
    found = next(one for one in PUBLISHED if one is table)
    modes = {one.name: one.mode for one in SETS}
    for model, cells in found.rows:
        values = dict(zip(found.columns, cells, strict=True))
        scored = []
        for name, value in list(values.items())[3:]:
            if value is not None:
                key, scale = SCORES[modes[name]]
                item = Item(name, "uro-bench", 3, "converse", name, name, name, "", (Turn(None),))
                scored.append(Scored(item, "zero/audio", 0, {key: value / scale}))
        overall = number(SUITE.headlines[PUBLISHED.index(found)].columns[0], scored)
        assert overall is not None and overall.value is not None
        mean = overall.value
        if (found.title, model) == MISPRINT:
            assert f"{mean:.2f}" == "69.60" and values["overall"] == 66.90
        else:
            assert abs(mean - float(str(values["overall"]))) < 0.006, (model, mean)


def test_a_run_is_judged_by_what_is_heard_and_shown_by_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, out = tmp_path / "data", tmp_path / "run"
    write(data, "basic", "AlpacaEval", [line("wavs/0.wav", "Open 0?"), line("wavs/1.wav", "Open 1?")])
    write(data, "basic", "MLC", [line("wavs/0.wav", "Right?"), line("wavs/1.wav", "Wrong?")])
    write(data, "basic", "Repeat", [line("wavs/0.wav", "Repeat.", "red blue green gold")])
    write(data, "pro", "UnderEmotion-en", [line("wavs/0.wav", "I won!", "Great!", emotion="happy")])
    monkeypatch.setattr(reply_audio, "transcript", lambda path: "Heard.")
    monkeypatch.setattr(recogniser, "transcribe", lambda samples, rate: "red blue green old")
    given: dict[str, dict[str, int | str]] = {
        "Open 0?": {"uro_open": 4},
        "Open 1?": {"uro_open": 2},
        "Right?": {"uro_correct": "yes"},
        "Wrong?": {"uro_correct": "no"},
        "I won!": {"uro_empathy": 3},
    }

    def verdict(asked: Asked) -> dict[str, int | str]:
        return next(answer for question, answer in given.items() if question in asked.text)

    with OpenAIServer(answer=lambda asked: "Written.") as model, JudgeServer(verdict=verdict) as judge:
        flags = ["--data", str(data), "--out", str(out), "--model", f"openai:any?base_url={model.base_url}"]
        spec = judge.spec("repeats=3&temperature=0.5&top_p=0.95")
        assert main(["run", "uro-bench", *flags, "--prompt", "zero", "-q", "--judge", spec]) == 0
        assert judge.count == 5 * 3, "three draws of each judged reply; none of what is to be repeated"
        assert all("<reply>\nHeard.\n</reply>" in asked.text and "Written" not in asked.text for asked in judge.asked)
        assert {(a.body["temperature"], a.body["top_p"]) for a in judge.asked} == {(0.5, 0.95)}
    tables = {table.headline.key: table for table in suite_tables(open_run(out))}
    cells = dict(zip([c.key for c in SUITE.headlines[0].columns], tables["uro-basic-en"].rows[0].cells, strict=True))
    values = {key: cell.value for key, cell in cells.items() if cell is not None}
    assert values["AlpacaEval"] == 60 and values["MLC"] == 50 and values["Repeat"] == pytest.approx(75)
    assert values["overall"] == pytest.approx((60 + 50 + 75) / 3)
    assert [values[name] for name in ABILITIES] == pytest.approx([75, 50, 60])
    whole = dict(zip([c.key for c in SUITE.headlines[4].columns], tables["uro-abilities"].rows[0].cells, strict=True))
    means = {key: cell.value for key, cell in whole.items() if cell is not None}
    assert means == pytest.approx({"overall": 245 / 4, "understanding": (75 + 60) / 2, "reasoning": 50, "oral": 60})
    pro = dict(zip([c.key for c in SUITE.headlines[2].columns], tables["uro-pro-en"].rows[0].cells, strict=True))
    assert pro["UnderEmotion-en"] is not None and pro["UnderEmotion-en"].value == 60
