"""Kept takes become a human set: who is used, with which licence, and what a run on it is compared with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from overtone import audio, registry
from overtone.build.manifest import read_manifest
from overtone.build.voices import Cast, How, VoiceError
from overtone.cli import main
from overtone.errors import UsageError
from overtone.models.python import add
from overtone.spec import parse_spec
from overtone.studio import contents
from overtone.studio.designs.record import ScriptUnit
from overtone.studio.recorded_voice import StudyRecordings
from overtone.studio.store import Store
from overtone.studio.study import Study
from tests.studio.desk_helpers import SPEAKER, desk, some_scripts
from tests.studio.speech import RATE

SCRIPTS = some_scripts("sad", "rain", each=2)
ALL = {"analysis": True, "publication": True, "training": True, "cloning": False}


def sound(pitch: float, seconds: float = 2.0) -> bytes:
    at = np.arange(int(seconds * RATE)) / RATE
    voice = 0.2 * np.sin(2 * np.pi * pitch * at) * (0.6 + 0.4 * np.sin(2 * np.pi * 4 * at))
    quiet = np.zeros(RATE, np.float32)
    return audio.encode_wav(np.concatenate([quiet, voice, quiet]).astype(np.float32) + 0.01, RATE)


def opened(study: Study) -> Store:
    store = Store.open(study)
    if store.state() == "new":
        store.freeze(contents.read(study).units, sides=0)
    return store


def speak(
    store: Store, pitch: float, *, consents: dict[str, bool] | None = None, leave: str = "", **device: Any
) -> str:
    """Record a whole session; `leave`: the delivery that is not kept. Returns the speaker's name."""
    label = store.people.invite(1)[0].label
    store.people.consent(label, store.study.consent_sha, True, consents or ALL)
    store.people.set_up(label, {**SPEAKER, **device}, None)
    for slot in store.sessions.enter(label):
        unit = msgspec.json.decode(store.units()[slot.unit].content, type=ScriptUnit)
        for number, part in enumerate(unit.parts):
            take = store.takes.add(
                label, slot.id, f"{slot.id}-{part.key}", sound(pitch + 20 * number), part=part.key, seconds=4.0,
                settings={}, checks={"may_keep": True}, verdict="good",
            )  # fmt: skip
            store.takes.decide(label, take.id, part.key != leave)
        store.answers.add(label, slot.id, f"{slot.id}-done", {}, plays={}, ms=1, done=True)
    return label


def voice(study: Study, more: str = "") -> StudyRecordings:
    spec = parse_spec(f"recordings:{study.path}{more}")
    engine = registry.find("voices", spec.kind).load(spec)
    assert isinstance(engine, StudyRecordings)
    return engine


def hertz(samples: audio.Samples, rate: int) -> float:
    return float(np.abs(np.fft.rfft(samples)).argmax() * rate / len(samples))


def test_one_speaker_speaks_all_styles_of_a_script_and_a_scene_gets_the_plain_take(tmp_path: Path) -> None:
    study = desk(tmp_path, "record", SCRIPTS)
    with opened(study) as store:
        label = speak(store, 200)
    engine = voice(study)
    (speaker,) = engine.speakers()
    assert (speaker.name, speaker.sex) == (label, "female")
    sad, rain = SCRIPTS[0], SCRIPTS[2]
    plain = engine.speak(rain.words, speaker, How(rain.id, "neutral"))
    target = engine.speak(rain.words, speaker, How(rain.id, "target"))
    assert np.array_equal(plain[0], target[0]) and hertz(*plain) == pytest.approx(200, abs=1)
    samples, rate = engine.speak(sad.words, speaker, How(sad.id, "target"))
    assert hertz(samples, rate) > 210 and abs(float(samples.mean())) < 1e-4
    assert len(samples) / rate == pytest.approx(2.5, abs=0.1)  # the waiting before and after is cut
    cast = Cast({speaker.engine: engine})
    assert {cast.of(script.voice, script.id).name for script in SCRIPTS} == {label}  # whatever sex a role suggests
    with pytest.raises(VoiceError, match="words have changed"):
        engine.speak("Other words.", speaker, How(sad.id, "target"))


def test_only_complete_scripts_of_people_who_agreed_are_used(tmp_path: Path) -> None:
    study = desk(tmp_path, "record", SCRIPTS, "--votes", "3")
    with opened(study) as store:
        speak(store, 200, leave="sad")
        with pytest.raises(UsageError, match="no speaker has kept"):
            voice(study, "?consent=cloning")
        agreed = speak(store, 300)
        only = speak(store, 400, consents={"analysis": True})
        engine = voice(study)
        assert {one.name for one in engine.speakers_of(SCRIPTS[0].id)} == {agreed, only}
        assert engine.licence == "not for publication"
        public = voice(study, "?consent=publication")
        assert {one.name for one in public.speakers_of(SCRIPTS[0].id)} == {agreed}
        assert public.licence == "CC-BY-4.0" and public.identity() != engine.identity()
        assert any("did not agree" in line for line in public.report())
        store.withdrawals.withdraw(agreed)
    with pytest.raises(VoiceError, match="restore it"):
        public.speak(SCRIPTS[0].words, public.speakers_of(SCRIPTS[0].id)[0], How(SCRIPTS[0].id, "neutral"))
    assert agreed not in {one.name for one in voice(study).speakers()}
    with pytest.raises(UsageError, match="unknown consent 'publications'; did you mean 'publication'"):
        voice(study, "?consent=publications")


@pytest.mark.local
def test_a_human_set_is_compared_with_a_synthetic_one_by_one_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = desk(tmp_path, "record", SCRIPTS)
    with opened(study) as store:
        label = speak(store, 200)
    scripts = str(tmp_path / "desk-scripts.jsonl")
    common = ["--no-gates", "--jobs", "1", "--licence", "CC-BY-4.0"]
    human, synthetic = tmp_path / "human", tmp_path / "synthetic"
    assert main(["build", scripts, "--out", str(human), "--voice", f"recordings:{study.path}", *common]) == 0
    assert "4 of 4 scripts recorded, by 1 speakers" in capsys.readouterr().out
    with Store.open(study) as store:  # so that a withdrawal names the set, which still has the voice
        assert [event.detail["place"] for event in store.log.events("exported")] == [str(human)]
    assert main(["build", scripts, "--out", str(synthetic), *common]) == 0
    manifest = read_manifest(human)
    assert manifest.licence == "CC-BY-4.0" and {made.voice for made in manifest.clips if not made.reply} == {label}
    (about,) = manifest.speakers
    assert (about.name, about.consents, about.licence) == (label, ALL, "CC-BY-4.0") and about.consent_sha
    assert (human / "data_human" / "script_info_human.json").is_file() and not (human / "data_synthesis").exists()

    add("always-a", lambda request: "A")
    runs = []
    for data in (human, synthetic):
        runs.append(str(tmp_path / f"run-{data.name}"))
        command = ["run", "open", "--data", str(data), "--model", "python:always-a", "--out", runs[-1]]
        assert main([*command, "--levels", "1,2", "--styles", "target", "-q"]) == 0
    capsys.readouterr()
    assert main(["analyze", *runs, "--finding", "source"]) == 0
    said = capsys.readouterr().out
    assert "Synthesis against human" in said and "reasoning" in said.lower()


def test_a_set_with_a_speaker_who_did_not_agree_to_publication_has_no_licence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from overtone.build.licence import Ingredient, derive

    study = desk(tmp_path, "record", SCRIPTS)
    with opened(study) as store:
        speak(store, 200, consents={"analysis": True}, guardian=True, adult=False)
    engine = voice(study)
    verdict = derive([Ingredient("voice", engine.identity(), engine.licence)])
    assert verdict.licence == "none" and "?consent=publication" in verdict.conflicts[0]
    assert engine.about_speakers()[0].guardian
