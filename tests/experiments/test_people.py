"""The experiment on hearing people: folds share no speaker, twins replace recordings, and settings are chosen without
the fold that they are tested on."""

from __future__ import annotations

import csv
import itertools
from collections import Counter
from pathlib import Path

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace

from experiments.echat import jobs, result_tables
from experiments.echat.jobs import Limits
from experiments.people import carried, folds, hearing_tables, packs, rows, twins
from experiments.people.folds import Choice, Shared
from overtone import corpora
from overtone.audio import encode_wav
from overtone.cli import main
from overtone.corpora import Recording
from overtone.echat.data.containers import PACK, Pack, digests
from overtone.echat.data.labels import CUE_OF_LABEL
from overtone.echat.exam import answer_file, counts, exam_scores
from overtone.echat.exam.answer_file import FORMAT, Head, Prediction
from overtone.errors import DataError, UsageError

EMOTIONS = ("angry", "happy", "sad", "neutral")
SOUNDS = ("cough", "crying", "laughter", "sigh", "yawn")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder like the one of the experiment: tones, with the tables that every reader reads."""
    out = tmp_path_factory.mktemp("corpora")
    for name, source in rows.SOURCES.items():
        folder = out / source.folder
        folder.mkdir(parents=True)
        with (folder / "labels.csv").open("w", newline="") as file:
            table = csv.DictWriter(file, carried.COLUMNS, restval="")
            table.writeheader()
            for at in range(18 if source.folded else 4):
                sound = 0.3 * np.sin(2 * np.pi * (150 + 30 * at) * np.arange(6_400) / 16_000)
                (folder / f"{at}.wav").write_bytes(encode_wav(sound.astype(np.float32), 16_000))
                row = {"file": f"{at}.wav", "speaker": f"{at % 18 + 1:02}", "sex": ("female", "male")[at % 2]}
                row |= {
                    "language": source.language,
                    "licence": "CC-BY-4.0" if "speechocean" in name else "CC-BY-NC-4.0",
                }
                if "event" in source.tests:
                    row["event"] = SOUNDS[at % 5]
                else:
                    row |= {"age": str(6 + 20 * (at % 3)), "emotion": EMOTIONS[at % 4]}
                    row["words"] = "The door is open." if source.language else ""
                table.writerow(row)
        assert corpora.read(source.kind, folder).recordings, name
    return out


@pytest.fixture(scope="module")
def packed(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("packs")
    packs.write(rows.read(data, list(rows.SOURCES)), out)
    return out


def speakers(path: Path) -> set[str]:
    return {record.speaker for record in Pack(path).records}


def test_folds_share_no_speaker_and_a_tests_clips_are_those_that_are_learnt_from(packed: Path) -> None:
    for corpus in ("ravdess", "nonverbal", "speechocean"):
        of = [speakers(packed / f"{corpus}-{fold}") for fold in range(rows.FOLDS)]
        assert all(of) and not any(a & b for a, b in itertools.combinations(of, 2))
        for fold in range(rows.FOLDS):
            learnt, tested = Pack(packed / f"{corpus}-{fold}"), Pack(packed / "test" / f"{corpus}-{fold}")
            assert (learnt.folder / PACK[1]).samefile(tested.folder / PACK[1])
            assert {record.part for record in learnt.records} == {"train"}
            assert {record.part for record in tested.records} == {corpus}
    assert speakers(packed / "ravdess-0") == {"ravdess:01", "ravdess:02", "ravdess:03"}
    assert not (packed / "librispeech").exists() and (packed / "test" / "librispeech" / PACK[0]).is_file()


def test_people_are_asked_what_their_corpus_can_tell_and_adults_alone_for_gender_and_words(packed: Path) -> None:
    tested = [r for fold in range(rows.FOLDS) for r in Pack(packed / "test" / f"speechocean-{fold}").records]
    assert {r.task for r in tested} == {"<AGE>", "<TRANSCRIBE> <AGE> <GENDER>"}
    assert all(bool(r.question) == (r.labels.age == "adult") for r in tested)
    learnt = [r for fold in range(rows.FOLDS) for r in Pack(packed / f"speechocean-{fold}").records]
    assert all(r.question for r in learnt) and not any(r.labels.gender for r in learnt if r.labels.age == "child")
    sounds = [r for fold in range(rows.FOLDS) for r in Pack(packed / f"nonverbal-{fold}").records]
    assert {r.labels.event for r in sounds} == set(rows.SOUNDS)
    assert not any(r.question for r in Pack(packed / "emodb").records)  # words of another language


def test_the_manifest_for_weights_that_are_given_away_names_open_recordings_alone(data: Path, packed: Path) -> None:
    told = packs.manifest(rows.read(data, list(rows.SOURCES)), packed)
    assert told["licence"] == "CC-BY-4.0"
    assert told["sha256"] == {
        f"speechocean-{fold}/{PACK[0]}": digests([packed / f"speechocean-{fold}"])[0] for fold in range(rows.FOLDS)
    }


def test_every_recording_has_a_twin_and_every_speaker_a_voice(data: Path) -> None:
    for corpus, recordings in rows.read(data, ["ravdess", "nonverbal", "esc50"]).items():
        plans = [twins.twin_of(corpus, row, ["Good morning."]) for row in recordings]
        voices: dict[str, set[tuple[str, float]]] = {}
        for row, plan in zip(recordings, plans, strict=True):
            voices.setdefault(row.speaker, set()).add((plan.speaker, plan.hertz))
            known = rows.labels_of(row)
            assert plan.text == (row.words or "Good morning.") and (not row.sex or plan.sex == row.sex)
            cues = {CUE_OF_LABEL.get(pair, "") for pair in known.known().items()} - {"", "male", "female", "adult"}
            assert set(plan.cues) == cues
        assert all(len(own) == 1 for own in voices.values())
        assert len(set().union(*voices.values())) == len(voices)
    assert plans == [twins.twin_of(corpus, row, ["Good morning."]) for row in recordings]


def test_a_twin_has_the_words_labels_and_masks_of_its_recording(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(twins, "make", lambda clip: np.full(9_600, 0.1))
    recordings = rows.read(data, ["speechocean", "emodb", "librispeech"])
    packs.write(recordings, tmp_path)
    made = twins.write_twins(recordings, tmp_path, 1)
    assert "twin-emodb" in made and not any("librispeech" in name for name in made)
    for name, count in made.items():
        people, synthetic = Pack(tmp_path / name.removeprefix("twin-")).records, Pack(tmp_path / name).records
        assert len(people) == len(synthetic) == count
        for one, twin in zip(people, synthetic, strict=True):
            assert (one.labels, one.question, one.task, one.part) == (twin.labels, twin.question, twin.task, twin.part)
            assert twin.dataset == f"twin-{one.dataset}" and twin.speaker == f"twin-{one.speaker}"
            assert twin.extra["licence"] == "CC-BY-4.0"


def test_a_sound_that_cannot_be_synthesised_gets_a_twin_with_another() -> None:
    row = Recording(name="a.wav", speaker="1", event="crying baby")
    event = rows.labels_of(twins._synthesisable("esc50", row)).event
    assert ("event", event) in CUE_OF_LABEL and event != "crying baby"


def test_the_small_copy_is_read_like_the_corpora_and_what_is_tested_is_unchanged(data: Path, tmp_path: Path) -> None:
    pytest.importorskip("soundfile")
    carried.main([str(data), str(tmp_path), "--corpora", "nonverbal,savee,speechocean-test"])
    before, after = (rows.read(folder, ["nonverbal", "savee", "speechocean-test"]) for folder in (data, tmp_path))
    for name in before:
        pairs = list(zip(before[name], after[name], strict=True))
        assert [rows.record_of(name, a, test=True).labels for a, _ in pairs] == [
            rows.record_of(name, b, test=True).labels for _, b in pairs
        ]
        assert all((a.speaker, a.words, a.licence) == (b.speaker, b.words, b.licence) for a, b in pairs)
    for a, b in zip(before["nonverbal"], after["nonverbal"], strict=True):
        assert np.allclose(corpora.sound(a, 16_000), corpora.sound(b, 16_000), atol=1e-4)


def learnt_by(job: jobs.Job) -> set[str]:
    return {Path(b).name for a, b in itertools.pairwise(job.training) if a == "--data"}


def asked_of(job: jobs.Job) -> set[str]:
    return {Path(b).name for a, b in itertools.pairwise(job.asking) if a == "--data"}


def test_a_fold_is_never_learnt_from_where_it_is_tested_or_its_settings_are_chosen(
    packed: Path, tmp_path: Path
) -> None:
    shared = Shared(packed, tmp_path)
    inner, outer = folds.inner(shared), folds.outer(shared, dict.fromkeys(range(6), "plain"))
    assert len(inner) == 6 * len(folds.SETTINGS) and len(outer) == 7
    for job in inner:
        fold = int(job.name.rpartition("-")[2])
        left = {f"{corpus}-{n}" for corpus in ("ravdess", "nonverbal", "speechocean") for n in (fold, (fold + 1) % 6)}
        assert not learnt_by(job) & left and asked_of(job) <= left and f"ravdess-{fold}" not in asked_of(job)
    for job in outer[:6]:
        fold = int(job.name.rpartition("-")[2])
        assert f"ravdess-{fold}" in asked_of(job) and not learnt_by(job) & asked_of(job)
        assert {"tess", "savee", "emodb", "esc50"} <= learnt_by(job) and len(learnt_by(job)) == 3 * 5 + 4
        assert {"librispeech", "speechocean-test"} <= asked_of(job)
    alone = outer[-1]
    assert not any("ravdess" in name for name in learnt_by(alone))
    assert asked_of(alone) == {f"ravdess-{fold}" for fold in range(6)}


def answers(part: str, hits: int, of: int = 8, fold: int = 0) -> list[Prediction]:
    return [
        Prediction(
            f"{part}-{fold}-{i}", part, f"{part}:{fold}-{i % 4}", question="open the door",
            heard={"emotion": ("sad", "happy")[i % 2]},
            named={"emotion": "<SAD>" if (i % 2 == 0) == (i < hits) else "<HAPPY>"}, words="open a door",
        )
        for i in range(of)
    ]  # fmt: skip


def write(path: Path, rows_: list[Prediction]) -> None:
    answer_file.write(path, Head(FORMAT, path.name.split(".")[0], 0, ("labels", "words")), rows_)


def test_the_settings_with_the_best_scores_are_chosen_where_all_have_been_tried(tmp_path: Path) -> None:
    for fold, (plain, faster) in enumerate([(8, 4), (2, 6), (5, 0)]):
        write(tmp_path / f"inner-plain-{fold}.jsonl.gz", answers("ravdess", plain))
        if fold < 2:
            write(tmp_path / f"inner-faster-encoder-{fold}.jsonl.gz", answers("ravdess", faster))
    chosen = folds.choose(Shared(Path(), tmp_path))
    assert {fold: choice.settings for fold, choice in chosen.items()} == {0: "plain", 1: "faster-encoder"}
    assert chosen[0].scores == {"plain": 1.0, "faster-encoder": 0.5}
    with pytest.raises(UsageError, match="none of the scores"):
        folds.mean_score([])


def test_the_tables_score_all_folds_together_over_speakers(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no answers of fold 0, 1"):
        hearing_tables.gathered(tmp_path)
    choice = {"0": Choice("plain", {"plain": 0.9})}
    (tmp_path / folds.CHOSEN).write_bytes(msgspec.json.encode(choice))
    for fold in range(6):
        heard = answers("ravdess", 8 if fold < 3 else 4, fold=fold)
        write(tmp_path / f"outer-{fold}.jsonl.gz", heard + answers("librispeech", 8))
    write(tmp_path / "ravdess-left-out.jsonl.gz", [replace(row, mark="speaker") for row in answers("ravdess", 6)])
    with pytest.raises(DataError, match="by a speaker that the run learnt from"):
        hearing_tables.gathered(tmp_path)
    write(tmp_path / "ravdess-left-out.jsonl.gz", [replace(row, mark="corpus") for row in answers("ravdess", 6)])
    kept = tmp_path / "hearing.json"
    page = tmp_path / "page.md"
    page.write_text("<!-- hearing -->\n<!-- /hearing -->\n<!-- settings -->\n<!-- /settings -->\n")
    hearing_tables.main([str(tmp_path), "--out", str(kept)])
    hearing_tables.main([str(kept), "--page", str(page)])
    lines = page.read_text().splitlines()
    emotion = next(line for line in lines if line.startswith("| emotion (7), RAVDESS"))
    assert "| 48 | 24 | 0.50 | 0.75 (" in emotion and emotion.endswith("≥ .60 |")
    words = next(line for line in lines if "LibriSpeech" in line)
    assert "| 48 | 4 |" in words and "0.33" in words  # six models were asked about the same four speakers
    assert any("nobody of RAVDESS" in line and "| 8 | 4 |" in line for line in lines)
    assert "| 0 | 0.900 | plain |" in lines


def scored(seeds: dict[str, int]) -> exam_scores.Scores:
    hits = {"full": 8, "no-people": 4, "frozen": 8}
    runs = [
        (Head(FORMAT, arm, seed, ("labels",)), answers("ravdess", hits[arm]) + answers("seen", 8))
        for arm, n in seeds.items()
        for seed in range(n)
    ]
    embed = lambda texts: np.zeros((len(texts), 4), np.float32)  # noqa: E731
    return exam_scores.score(counts.count(runs, embed=embed), draws=50)


def test_an_arm_with_fewer_than_five_seeds_is_called_exploratory() -> None:
    lookup = result_tables.Lookup(scored({"full": 5, "no-people": 5, "frozen": 4}))
    [head, *lines] = result_tables.holds(lookup)[:1] + result_tables.holds(lookup)[2:]
    assert head == "| full is better in | − people | frozen language model (exploratory) |"
    people, synthetic = "1 of 1 tests of people", "0 of 1 synthetic tests"
    assert lines[0] == f"| emotion | {people}, {synthetic} | {people.replace('1 of', '0 of', 1)}, {synthetic} |"
    assert "frozen language model (exploratory)" in result_tables.people_differences(lookup)[0]
    assert any("| RAVDESS | emotion | **+50.0" in line for line in result_tables.people_differences(lookup))


def test_the_template_of_the_notes_has_a_place_for_every_table() -> None:
    template = (Path(folds.__file__).parent / "ablation.template.md").read_text()
    lookup = result_tables.Lookup(scored({"full": 2, "no-people": 2}))
    assert "exploratory" in result_tables.fill(template, lookup.scores)
    assert all(f"<!-- {name} -->" in template for name in ("holds", "people", "people-differences", "scores"))


@pytest.mark.full
def test_folds_are_trained_chosen_and_asked(packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "call", lambda words, log: main(words))
    preset = Path(folds.__file__).parent / "rehearsal.toml"
    shared = Shared(
        packed, tmp_path, preset=str(preset), scale=0.5, settings=("plain",), training=("--device", "cpu"),
        asking=("--device", "cpu", "--modes", "labels", "--limit", "2"),
    )  # fmt: skip
    assert {result.how for result in jobs.go(folds.inner(shared)[:2], Limits(tmp_path))} == {"done"}
    assert set(folds.choose(shared)) == {0, 1}
    head, found = answer_file.read(tmp_path / "inner-plain-0.jsonl.gz")
    assert head.arm == "inner-plain-0" and Counter(row.part for row in found).keys() >= {"ravdess", "nonverbal"}
