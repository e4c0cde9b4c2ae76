"""AEQ-Bench: the built set held to its fields, a release read by near keys, its tables to the hand-computed digit."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from overtone.audio import encode_wav
from overtone.benchmarks import Selection, selected
from overtone.benchmarks.aeq import load
from overtone.benchmarks.aeq.judge_items import HEARD
from overtone.benchmarks.aeq.suite_tables import SUITE
from overtone.cli import main
from overtone.errors import DataError
from overtone.results.column_values import Scored, counted_replies
from overtone.results.headline import cases_by_key, number, suite_tables
from overtone.results.load import open_run
from overtone.schema import Item, Turn
from overtone.stats.kappa import cohen
from overtone.suite import Column
from tests.judges.server import JudgeServer, keys_asked
from tests.servers import Asked, OpenAIServer, tone


def row(group: str, variant: int, setting: str = "context", said: str = "", **more: object) -> dict[str, object]:
    """One instance as `overtone build aeq` writes it."""
    return {
        "instance_id": f"{group}_{variant}", "group_id": group, "setting": setting, "source": "overtone",
        "context": f"Situation {variant} of {group}." if setting == "context" else f"The situation of {group}.",
        "utterance_audio": said or f"audio/{group}.wav", "utterance_text": "Could you give him some money?",
        "recognised": "could you give him some money", "variant_index": variant, "n_variants": 3, "tone": None,
        "tone_text": "", "wants": "Help.", "reference": f"Reply {variant}.",
        "reference_audio": f"audio/{group}_{variant}_reply.wav", "topic": "family", **more,
    }  # fmt: skip


def sounds(folder: Path, rows: list[dict[str, object]]) -> None:
    for seed, one in enumerate(rows):
        for place, key in enumerate(("utterance_audio", "reference_audio", "audio", "reply_audio")):
            named = one.get(key)
            if isinstance(named, str) and named:
                path = folder / named
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(tone(5 * seed + place, 0.2, 16_000))


def write(folder: Path, rows: list[dict[str, object]], name: str = "aeq.json") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    text = "\n".join(map(json.dumps, rows)) if name.endswith(".jsonl") else json.dumps(rows)
    (folder / name).write_text(text)
    sounds(folder, rows)
    return folder


def built(folder: Path) -> Path:
    rows = [row("context-01", n) for n in (1, 2, 3)]
    for n, (slug, told) in enumerate((("neutral", "neutral"), ("sad", "a sad voice"), ("tired", "worn out")), 1):
        rows.append(row("tone-01", n, "tone", f"audio/tone-01_{n}.wav", tone=slug, tone_text=told))
    return write(folder, rows)


def items(folder: Path) -> list[Item]:
    return list(load(folder).items(Selection()))


def test_an_instance_of_the_built_set_has_its_group_context_words_and_reference(tmp_path: Path) -> None:
    found = {item.id: item for item in items(built(tmp_path))}
    one = found["aeq/context-01_2"]
    assert (one.task, one.level, one.category, one.group) == ("converse", 3, "context", "context-01")
    assert (one.context, one.topic, one.source) == ("Situation 2 of context-01.", "family", "overtone")
    assert one.turns[0].words == "Could you give him some money?"
    assert one.turns[0].heard == "could you give him some money"
    assert one.references == ("Reply 2.",) and one.reference_audio == "audio/context-01_2_reply.wav"
    assert (one.cue, one.cue_text) == ("", "")
    tones = {i.cue_text: (i.cue, i.turns[0].cue) for i in found.values() if i.category == "tone"}
    assert tones == {"neutral": ("", ""), "a sad voice": ("sad", "sad"), "worn out": ("tired", "tired")}
    assert {i.turns[0].clip.path for i in found.values() if i.group == "context-01" and i.turns[0].clip} == {
        "audio/context-01.wav"
    }


def test_items_are_asked_at_their_levels_alone(tmp_path: Path) -> None:
    found = load(built(tmp_path))
    assert list(selected(found, Selection(levels=frozenset({1, 2})))) == []
    assert len(list(selected(found, Selection(levels=frozenset({3}))))) == 6


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"group_id": ""}, "'group_id' is missing"),
        ({"setting": "voice"}, "context or tone is expected"),
        ({"n_variants": 1}, "a number of at least 2"),
        ({"n_variants": "3"}, "a number of at least 2"),
        ({"tone": "grumpy"}, "not a known cue"),
        ({"context": ["a"]}, "a list"),
        ({"utterance_audio": "audio/none.wav"}, "does not exist; build the set again"),
        ({"utterance_audio": "../../etc/passwd"}, "leaves its folder"),
        ({"instance_id": "g_1"}, "is duplicated"),
        ({"group_id": "h"}, "group g has 2 of its 3 variants"),
    ],
)
def test_a_wrong_field_of_the_built_set_is_an_error_that_says_what(
    tmp_path: Path, change: dict[str, object], says: str
) -> None:
    rows = [row("g", 1), row("g", 2), row("g", 3)]
    write(tmp_path, rows)
    (tmp_path / "aeq.json").write_text(json.dumps([rows[0], rows[1], {**rows[2], **change}]))
    with pytest.raises(DataError, match=says):
        load(tmp_path)


def test_an_empty_sound_a_wrong_folder_and_a_folder_of_other_things_are_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such folder"):
        load(tmp_path / "none")
    (tmp_path / "notes.json").write_text('[{"title": "nothing"}]')
    with pytest.raises(DataError, match=r"(?s)neither aeq\.json.*without a context.*overtone build aeq"):
        load(tmp_path)
    write(tmp_path / "set", [row("g", 1), row("g", 2)])
    (tmp_path / "set/audio/g.wav").write_bytes(b"")
    with pytest.raises(DataError, match="is empty"):
        load(tmp_path / "set")


def test_a_recordings_corpus_is_named_by_its_source_its_file_or_else_by_what_varies(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"id": "a", "context": "c", "audio": "wavs/sam/anger_1-28_0001.wav", "tone": "anger", "transcript": "So."},
        {"id": "b", "context": "c", "audio": "wavs/dia3_utt1.wav", "setting": "context", "transcript": "So."},
        {"id": "c", "context": "c", "audio": "wavs/x.wav", "source": "GigaSpeech", "transcript": "So."},
        {"id": "d", "context": "c", "audio": "wavs/y.wav", "setting": "context", "transcript": "So."},
    ]
    write(tmp_path / "release", rows, "test.jsonl")
    loaded = load(tmp_path / "release")
    found = {item.id: next(loaded.origins(item)) for item in items(tmp_path / "release")}
    assert {name[-1]: (one.corpus, one.speaker) for name, one in found.items()} == {
        "a": ("EmoV-DB", "sam"), "b": ("MELD", ""), "c": ("GigaSpeech", ""), "d": ("MELD", ""),
    }  # fmt: skip
    built_set = load(built(tmp_path / "built"))
    assert [list(built_set.origins(item)) for item in built_set.items(Selection())] == [[]] * len(
        items(tmp_path / "built")
    )


def test_a_release_we_have_not_seen_is_read_by_the_specs_keys_and_near_ones(tmp_path: Path) -> None:
    tones: list[dict[str, object]] = [
        {"instance_id": f"emovdb_12_e{n}", "group_id": "emovdb_12", "setting": "tone", "source": "emovdb",
         "context": "On the bus.", "utterance_audio": f"wavs/e{n}.wav", "utterance_text": "So it is.",
         "variant_index": n, "tone": word, "n_variants": 4}
        for n, word in enumerate(("amused", "Sleepy", "Neutral", "disgust"))
    ]  # fmt: skip
    contexts: list[dict[str, object]] = [
        {"id": f"meld_7_{n}", "background": f"b{n}", "audio": "x/clip.wav", "transcript": "Give him some money.",
         "response": "Sure."}
        for n in (1, 2)
    ]  # fmt: skip
    write(tmp_path / "tone", tones, "test.jsonl")
    write(tmp_path / "context", contexts, "meld.json")
    found = {item.id: item for item in items(tmp_path)}
    assert {i.cue_text: i.cue for i in found.values() if i.category == "tone"} == {
        "amused": "laughter", "Sleepy": "tired", "Neutral": "", "disgust": "disgust",
    }  # fmt: skip
    loaded = load(tmp_path)
    origins = {name: next(loaded.origins(item)) for name, item in found.items()}
    assert {(o.corpus, o.clip) for name, o in origins.items() if "meld" in name} == {("MELD", "context/x/clip.wav")}
    assert {o.corpus for name, o in origins.items() if "emovdb" in name} == {"EmoV-DB"}
    one = found["aeq/meld_7_1"]
    assert (one.category, one.group, one.context, one.references) == ("context", "meld_7", "b1", ("Sure.",))
    assert one.turns[0].clip is not None and one.turns[0].clip.path == "context/x/clip.wav"
    assert one.turns[0].words == "Give him some money."


def test_rows_of_a_release_that_cannot_be_used_are_lines_of_the_warnings(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"id": "a_1", "context": "c", "audio": "a.wav"},
        {"id": "a_2", "context": "d", "audio": "a.wav"},
        {"id": "b_1", "context": "c"},
    ]
    write(tmp_path, rows, "part.json")
    (tmp_path / "dataset_info.json").write_text('{"licence": "MIT", "splits": {"test": 3}}')
    (tmp_path / "more.jsonl").write_text(json.dumps({"id": "c_1", "context": "c", "audio": "gone.wav"}))
    found = load(tmp_path)
    assert [i.group for i in found.items(Selection())] == ["a", "a"]
    told = "\n".join(found.warnings)
    assert "recording does not exist are left out (1: gone.wav)" in told and "without a context" in told
    assert "do not say what varies" in told and "dataset_info.json" in told


def test_a_hubs_folder_of_sounds_with_its_metadata_is_read(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"file_name": f"e{n}.wav", "context": "On the bus.", "sentence": "So it is.", "emotion": word, "group": "s1"}
        for n, word in enumerate(("amused", "angry"))
    ]
    write(tmp_path, rows, "metadata.jsonl")
    for n in (0, 1):
        (tmp_path / f"e{n}.wav").write_bytes(tone(n, 0.2, 16_000))
    found = items(tmp_path)
    assert [(i.category, i.cue, i.group) for i in found] == [("tone", "laughter", "s1"), ("tone", "angry", "s1")]
    assert len({i.id for i in found}) == 2 and found == items(tmp_path)


def test_people_rated_replies_are_questions_with_three_steps_and_the_reply_is_heard_last(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"id": "r_1", "context": "At home.", "audio": "u.wav", "reply_audio": "r.wav", "coherence": "Fair",
         "delivery": 1},
        {"id": "r_2", "context": "At home.", "audio": "u.wav", "reply_audio": "gone.wav", "human_label": "Good"},
        {"id": "r_3", "context": "At home.", "audio": "u.wav", "options": {"opt-A": "u.wav", "opt-B": "r.wav"},
         "answer": "opt-B"},
    ]  # fmt: skip
    write(tmp_path, rows, "context_ratings.json")
    (tmp_path / "gone.wav").unlink()
    found = load(tmp_path)
    by_id = {i.id: i for i in found.items(Selection())}
    assert set(by_id) == {"aeq/judge/rate-coherence/r_1", "aeq/judge/rate-delivery/r_1", "aeq/judge/choice/r_3"}
    one = by_id["aeq/judge/rate-coherence/r_1"]
    assert (one.level, one.task, one.gold, one.part) == (2, "choose", "B", "")
    assert [o.text for o in one.options] == ["Good", "Fair", "Poor"]
    assert [(t.clip.path, t.given) for t in one.turns if t.clip] == [("u.wav", HEARD), ("r.wav", "")]
    assert by_id["aeq/judge/rate-delivery/r_1"].gold == "C"
    choice = by_id["aeq/judge/choice/r_3"]
    assert choice.gold == "B" and [o.clip.path for o in choice.options if o.clip] == ["u.wav", "r.wav"]
    assert "missing recording are left out (1: r_2)" in found.warnings[0]


# ── the tables, by hand ─────────────────────────────────────────────────────────────────────────────────────────────


def reply(
    group: str,
    variant: int,
    category: str = "context",
    cue: str = "",
    said: str = "",
    values: dict[str, float] | None = None,
) -> Scored:
    name = f"{group}_{variant}"
    item = Item(f"aeq/{name}", "aeq", 3, "converse", category, name, group, "", (Turn(None),), cue=cue)
    told = {"reliance@j.values": said} if said else {}
    return Scored(item, "enhance/audio", 0, values or {}, told)


def column(headline: str, key: str) -> Column:
    found = next(h for h in SUITE.headlines if h.key == headline)
    return next(c for c in found.columns if c.key == key)


@pytest.mark.parametrize(
    ("headline", "key", "value", "shown"),
    [
        ("aeq", "naturalness", 2.0, 1 / 3),
        ("aeq", "naturalness", 2.38, 0.46),
        ("aeq", "discrimination", 4.85, 0.77),
        ("aeq", "coherence", 3.0, 1.0),
        ("aeq", "delivery", 1.0, 0.0),
        ("aeq-ratio", "naturalness", 1.84, 0.46),
        ("aeq-ratio", "discrimination", 4.62, 0.77),
        ("aeq-ratio", "discrimination", 1.0, 1 / 6),
        ("aeq-raw", "raw_supportiveness", 2.5, 2.5),
    ],
)
def test_a_score_comes_to_the_unit_scale_both_ways(headline: str, key: str, value: float, shown: float) -> None:
    """The printed 0.46 and 0.77 of Qwen-Audio would be these means, by either reading of the paper's scale."""
    one = column(headline, key)
    found = number(one, [reply("g", n, values={one.score: value}) for n in (1, 2)])
    assert found is not None and found.value == pytest.approx(shown)


@pytest.mark.parametrize("row", [0, 1])
def test_the_printed_integration_is_the_share_of_replies_that_go_by_both(row: int) -> None:
    model, (printed, *_) = SUITE.published[0].rows[row]
    assert printed is not None
    both = [reply("g", n, values={"reliance": float(n < round(100 * printed))}) for n in range(100)]
    found = number(column("aeq", "integration"), both)
    assert found is not None and found.value == pytest.approx(printed), model


def test_a_group_counts_once_however_many_variants_it_has() -> None:
    many = [reply("big", n, values={"discrimination": 6.0}) for n in (1, 2, 3, 4)]
    few = [reply("small", n, values={"discrimination": 1.0}) for n in (1, 2)]
    found = number(column("aeq", "discrimination"), [*many, *few])
    assert found is not None and found.value == pytest.approx((1.0 + 0.0) / 2)
    assert (found.scored, found.asked) == (2, 2)
    missing = number(column("aeq", "discrimination"), [*many, reply("small", 1), reply("small", 2)])
    assert missing is not None and (missing.value, missing.scored, missing.asked) == (1.0, 1, 2)


def mean(key: str, replies: list[Scored]) -> tuple[float | None, int]:
    one = column("aeq-reliance", key)
    found = number(one, counted_replies(one, replies))
    return (None, 0) if found is None else (found.value, found.asked)


def test_all_four_kinds_of_reliance_are_told_and_a_reply_counts_once() -> None:
    said = ("both", "both,neither", "audio only", "context only")
    replies = [reply("g", n, said=word) for n, word in enumerate(said)]
    kinds = ("both", "audio_only", "context_only", "neither")
    assert [mean(f"reliance_{kind}", replies) for kind in kinds] == [(0.375, 4), (0.25, 4), (0.25, 4), (0.125, 4)]
    assert mean("reliance_both", [reply("g", 1)]) == (None, 1)


def test_a_conflict_failure_is_neither_or_the_modality_that_lacks_what_varies() -> None:
    context = [reply("c", n, said=word) for n, word in enumerate(("both", "audio only", "context only", "neither"))]
    words = ("audio only", "context only", "both", "neither", "context only")
    tones = [reply("t", n, "tone", "sad", word) for n, word in enumerate(words)]
    plain = [reply("t", 9, "tone", "", "context only")]  # an ordinary voice tells nothing
    assert mean("conflict", context) == (0.5, 4)  # audio only and neither
    assert mean("conflict", [*tones, *plain]) == (0.6, 5)  # context only, twice, and neither


# ── from files to tables ────────────────────────────────────────────────────────────────────────────────────────────


def speak(asked: Asked) -> str:
    """A model that goes by the situation where it is told one, and says the same to everybody where it is not."""
    told = re.search(r"Situation (\d) of (\S+)\.|The situation of (\S+)\.", asked.text)
    return f"Reply to {told[0]}" if told else "Oh dear, that is good to hear."


def rate(asked: Asked) -> dict[str, int | str]:
    keys = keys_asked(asked.text)
    if keys == ("discrimination",):
        situations = re.findall(r"<context_\d>\n(.*)\n", asked.text)
        replies = re.findall(r"<reply_\d>\n(.*)\n", asked.text)
        right = [reply == f"Reply to {one}" for one, reply in zip(situations, replies, strict=True)]
        return {"discrimination": 6 if all(right) and len(set(replies)) > 1 else 1}
    good = "<reply>\nReply to" in asked.text
    return {
        "reliance": "both" if good else "audio only",
        "naturalness": 4 if good else 2,
        "coherence": "Good" if good else "Poor",
        "supportiveness": "Fair",
    }


def cells(folder: Path, headline: str) -> dict[str, dict[str, float | None]]:
    """condition (and row) → column → value."""
    table = next(t for t in suite_tables(open_run(folder)) if t.headline.key == headline)
    keys = [c.key for c in table.headline.columns]
    return {
        f"{row.condition} {row.name}".strip(): {
            key: None if cell is None or cell.value is None else round(cell.value, 6)
            for key, cell in zip(keys, row.cells, strict=True)
        }
        for row in table.rows
    }


def test_an_ablation_is_run_judged_and_compared_cell_by_cell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [row("big", n) for n in (1, 2, 3)] + [row("small", n, n_variants=2) for n in (1, 2)]
    rows += [
        row("tone", n, "tone", f"audio/tone_{n}.wav", tone=t) for n, t in ((1, "neutral"), (2, "sad"), (3, "tired"))
    ]
    data = write(tmp_path / "data", rows)
    out = tmp_path / "run"
    with OpenAIServer() as server, JudgeServer(verdict=rate) as judge:
        server.answer = speak
        words = [
            "run",
            "aeq",
            "--data",
            str(data),
            "--model",
            f"openai:m?base_url={server.base_url}&speech=no",
            "--out",
            str(out),
        ]
        words += ["--input", "audio,alone,recognised,context", "--judge", judge.spec("label=j"), "-q"]
        assert main(words) == 0
        assert len(server.asked) == 8 * 4
        assert {len(asked.sounds) for asked in server.asked} == {0, 1}
        # For each cell 8 replies by aeq, 3 groups twice by aeq-discrimination, none by ear: there is no audio to hear.
        assert judge.count == 4 * (8 + 6)
        assert main(["score", str(out), "--judge", judge.spec("label=j"), "-q"]) == 0
        assert judge.count == 4 * (8 + 6), "what was judged beside the run is not paid again"
    found = cells(out, "aeq")
    told = {"integration": 1.0, "naturalness": 1.0, "coherence": 1.0, "supportiveness": 0.5, "delivery": None}
    # Two groups of three are told apart; the tone group gets the same reply for each tone.
    for cell in ("audio", "recognised", "context"):
        assert found[f"enhance/{cell}"] == {**told, "discrimination": round(2 / 3, 6)}
    assert found["enhance/alone"] == {
        "integration": 0.0, "naturalness": round(1 / 3, 6), "coherence": 0.0, "supportiveness": 0.5, "delivery": None,
        "discrimination": 0.0,
    }  # fmt: skip
    gaps = cells(out, "aeq-differences")
    assert gaps["enhance/audio − enhance/alone"] == {
        "integration": 1.0, "naturalness": round(2 / 3, 6), "coherence": 1.0, "supportiveness": 0.0, "delivery": None,
        "discrimination": round(2 / 3, 6),
    }  # fmt: skip
    assert gaps["enhance/audio − enhance/context"]["integration"] == 0.0
    by_setting = cells(out, "aeq-settings")
    assert by_setting["enhance/audio context"]["discrimination"] == 1.0
    assert by_setting["enhance/audio tone"]["discrimination"] == 0.0
    raw = cells(out, "aeq-raw")
    assert (raw["enhance/audio context"]["raw_discrimination"], raw["enhance/audio context"]["raw_shuffled"]) == (6, 1)
    assert (raw["enhance/audio context"]["raw_seen"], raw["enhance/audio tone"]["raw_seen"]) == (5, 0)
    assert raw["enhance/audio tone"]["raw_discrimination"] == 1 and raw["enhance/alone tone"]["raw_naturalness"] == 2
    assert cells(out, "aeq-ratio")["enhance/alone"]["naturalness"] == 0.5
    wrong = cells(out, "aeq-reliance")
    assert wrong["enhance/alone context"]["reliance_audio_only"] == wrong["enhance/alone context"]["conflict"] == 1.0
    assert wrong["enhance/alone tone"]["conflict"] == 0.0, "a tone is heard, so audio only does not miss what varies"
    assert wrong["enhance/audio context"]["analytic"] == 0.0 and wrong["enhance/audio context"]["flat"] is None
    ends = cells(out, "aeq-ends")
    assert ends["enhance/audio"] == {
        "ends_naturalness": 1.0, "ends_coherence": 1.0, "ends_supportiveness": 0.0, "ends_delivery": None,
        "ends_discrimination": 1.0,
    }  # fmt: skip
    assert ends["enhance/alone"]["ends_naturalness"] == 0.0
    capsys.readouterr()
    assert main(["case", str(out), "big_1"]) == 0
    assert "big_1 · no cue · family\ncontext: Situation 1 of big.\n" in capsys.readouterr().out
    shown = dict(cases_by_key(open_run(out)))
    assert len(shown["suite/aeq-differences/enhance/audio − enhance/alone/integration"]) == 8


class Voiced(OpenAIServer):
    """A model whose voice is higher where its words are warm."""

    def reply(self, text: str, wav: bytes | None, cut: int = 0) -> dict[str, Any]:
        return super().reply(text, voiced(140 if text == "Warm." else 120) if wav else None, cut)


def voiced(hertz: float) -> bytes:
    """Two seconds of syllables, four a second, on one pitch."""
    time = np.arange(2 * 16_000) / 16_000
    wave = sum(np.sin(2 * np.pi * hertz * k * time) / k for k in range(1, 6))
    return encode_wav((0.2 * wave * np.sin(np.pi * 4 * time) ** 2).astype(np.float32), 16_000)


def test_whether_a_voice_follows_its_instruction_is_measured_without_a_judge(tmp_path: Path) -> None:
    data = write(tmp_path / "data", [row("g", n) for n in (1, 2, 3)])
    out = tmp_path / "run"
    with Voiced() as server:
        server.answer = lambda asked: "Warm." if "in a warm voice" in asked.text else "Plain."
        words = [
            "run",
            "aeq",
            "--data",
            str(data),
            "--model",
            f"openai:m?base_url={server.base_url}",
            "--out",
            str(out),
        ]
        assert main([*words, "--prompt", "warm,plain", "-q"]) == 0
    found = cells(out, "aeq-voice")
    assert found["warm/audio"]["voice_f0_hz"] == pytest.approx(140, abs=2)
    assert found["plain/audio"]["voice_f0_hz"] == pytest.approx(120, abs=2)
    gap = cells(out, "aeq-voice-differences")["warm/audio − plain/audio"]
    assert gap["voice_f0_hz"] == pytest.approx(20, abs=3) and gap["voice_level_dbfs"] == pytest.approx(0, abs=0.5)


def test_a_model_as_a_judge_hears_the_user_then_the_reply_and_is_held_to_people(tmp_path: Path) -> None:
    labels = ("Good", "Fair", "Poor", "Fair")
    rows: list[dict[str, object]] = [
        {"id": f"r_{n}", "context": "At home.", "audio": f"u{n}.wav", "reply_audio": f"r{n}.wav", "delivery": label}
        for n, label in enumerate(labels)
    ]
    data = write(tmp_path / "data", rows, "context_ratings.json")
    out = tmp_path / "run"
    with OpenAIServer(keep_audio=True) as server:
        server.answer = lambda asked: "The answer is: [A]" if len(server.asked) % 2 else "The answer is: [B]"
        spec = f"openai:m?base_url={server.base_url}&speech=no&seed=1"
        words = ["run", "aeq", "--data", str(data), "--model", spec, "--out", str(out), "--max-connections", "1", "-q"]
        assert main(words) == 0
        assert len(server.asked) == 4 and {len(asked.sounds) for asked in server.asked} == {2}
        first = server.asked[0]
        assert first.wavs[0] != first.wavs[1] and "A. Good" in first.text and HEARD in first.text
        assert first.text.index("At home.") < first.text.index(HEARD) < first.text.index("A. Good")
    # It says Good, Fair, Good, Fair: right on the first, second and fourth; at an end of the scale twice.
    found = cells(out, "aeq-judging")["task/audio judge-rate-delivery"]
    said, people = [3.0, 2.0, 3.0, 2.0], [3.0, 2.0, 1.0, 2.0]
    weighted = cohen(np.array(said), np.array(people), "quadratic")
    assert found == {"consistency": 0.75, "kappa": pytest.approx(weighted, abs=1e-6), "extreme": 0.5}
