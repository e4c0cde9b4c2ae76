"""Speaking any set: several cues in one clip, a user's recordings as clips, speakers in turn, what is written when."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from overtone import audio
from overtone.build.acceptance import GateReport, record
from overtone.build.datasheet import About
from overtone.build.gates.facts import ClipRecord
from overtone.build.manifest import Made
from overtone.build.recipes import NEUTRAL, recipe_of, together
from overtone.build.render import Renderer
from overtone.build.sound_plan import Group, Job, Options, how, settled
from overtone.build.speak_set import Built, Source, speak_set
from overtone.build.voices import cast
from overtone.errors import DataError, MissingExtra, UsageError

pytestmark = pytest.mark.local
WORDS = "The letter from the school came this morning."
ABOUT = About("mine", "Why.", "Things.", "Texts.", "Chain;", "more.")


def _job(path: str, *cues: str, **rest: object) -> Job:
    speaker = cast().turn(0, "g-1")
    return Job(path, "g-1", path, WORDS, speaker, cues[0] if cues else "", also=cues[1:], **rest)  # type: ignore[arg-type]


def _spoken(out: Path, jobs: tuple[Job, ...], **rest: object) -> Built:
    source = Source("mine", "CC0-1.0", frozenset({"g-1"}))
    given = {"file": "mine.json", "options": Options(), "jobs": 1, "gates": False} | rest
    return speak_set(out, source, lambda _: settled([Group("g-1", "", jobs)], Options()), lambda _: ABOUT, **given)  # type: ignore[arg-type]


def test_deliveries_laid_together_multiply_factors_and_add_amounts() -> None:
    sad, old = recipe_of("sad"), recipe_of("elderly")
    both = together([old, sad])
    assert both.rate == pytest.approx(0.84 * 0.84) and both.gain == -7 and both.halts == pytest.approx(0.55)
    assert both.breath == pytest.approx(1 - 0.86 * 0.82)
    assert together([sad]) is sad and together([NEUTRAL, NEUTRAL]) == NEUTRAL
    child = together([recipe_of("child"), recipe_of("cough")])
    assert (child.become, child.hertz, child.throat) == (1, 265, 1.3) and len(child.events) == 2
    assert together([recipe_of("whisper"), sad]).breath == 1


def test_a_scene_is_laid_under_the_very_voice_of_the_step_before() -> None:
    step = _job("steps/a.wav", "male", "angry")
    clip = _job("a.wav", "male", "angry", "rain", twin=step.path, drawn_as=step.path)
    made = Renderer(Group("g-1", "", (step, clip)), Options())
    dry, wet = made.make(step).samples, made.make(clip).samples
    assert len(dry) == len(wet)
    gain = float(dry @ wet) / float(dry @ dry)
    rest = wet - gain * dry
    assert 10 * np.log10(gain**2 * float(dry @ dry) / float(rest @ rest)) == pytest.approx(10, abs=0.5)
    assert clip.scene == "rain" and step.scene == ""


def test_the_gates_measure_the_last_cue_and_an_actor_is_told_all_that_the_voice_does() -> None:
    clip = _job("a.wav", "female", "child", "happy", "dog")
    told = how(clip).instructions
    assert "child of about seven" in told and "open happiness" in told and "woman" not in told
    made = _spoken_one(clip)
    assert (made.cue, made.scene) == ("dog", "dog")
    assert (_spoken_one(_job("b.wav", "female", "child", "happy"))).cue == "happy"


def _spoken_one(job: Job) -> ClipRecord:
    return record(job, Made(job.path, "", 1.0, -26.0, 0.5, "g-1", "s", "v", ""), Options())


def test_speakers_take_turns() -> None:
    players = cast()
    turns = [players.turn(place, f"g-{place}") for place in range(40)]
    assert Counter(s.sex for s in turns) == {"male": 20, "female": 20}
    assert set(Counter(s.name for s in turns).values()) == {4}
    assert players.turn(3, "g", take=1) != players.turn(3, "g") and players.turn(3, "g", take=1).sex == turns[3].sex


def test_recordings_become_clips_and_keep_their_loudness_among_each_other(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    for name, loud in (("soft", 0.02), ("hard", 0.2)):
        said = np.concatenate([np.zeros(32_000), rng.standard_normal(16_000) * loud, np.zeros(32_000)])
        (tmp_path / f"{name}.wav").write_bytes(audio.encode_wav(said, 16_000))
    jobs = tuple(
        Job(f"audio/{n}.wav", "g-1", n, WORDS, file=str(tmp_path / f"{n}.wav"), file_sha256=n, recorded_by="speaker 1")
        for n in ("soft", "hard")
    )
    out = tmp_path / "out"
    built = _spoken(out, jobs)
    soft, hard = (audio.read(out / j.path) for j in jobs)
    assert soft[1] == hard[1] == 24_000 and abs(len(soft[0]) - 1.5 * 24_000) < 100
    levels = [20 * np.log10(np.sqrt(np.mean(x**2))) for x, _ in (soft, hard)]
    assert levels[1] - levels[0] == pytest.approx(20, abs=0.5)
    assert {m.voice for m in built.clips} == {"speaker 1"} and built.verdict.licence == "none"
    assert built.verdict.conflicts == ("takes  (): its licence is not known; state it",)
    assert "Takes of people" in (out / "DATASHEET.md").read_text("utf-8")
    assert _spoken(out, jobs).made == 0
    assert _spoken(out, tuple(replace(j, file_sha256="other") for j in jobs)).made == 2


def test_a_full_disk_is_told_and_the_build_goes_on_from_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = (_job("audio/a.wav"), _job("audio/b.wav", "fast"))
    real = Path.open

    def full(self: Path, *args: Any, **options: Any) -> Any:
        if "b.wav" in self.name:
            raise OSError(28, "No space left on device")
        return real(self, *args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", full)
        with pytest.raises(DataError, match="No space left on device; free some space"):
            _spoken(tmp_path, jobs)
    assert not list(tmp_path.rglob(".*.part"))
    assert (tmp_path / "audio/a.wav").is_file() and not (tmp_path / "audio/b.wav").exists()
    _spoken(tmp_path, jobs)
    assert (tmp_path / "audio/b.wav").is_file()


def test_a_missing_engine_is_named_before_anything_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"
    with pytest.raises(UsageError, match="did you mean 'espeak'"):
        _spoken(out, (), options=Options(voices=("espeek",)))
    monkeypatch.setattr("overtone.embedded.present", lambda name: name != "moonshine_voice")
    with pytest.raises(MissingExtra, match="moonshine_voice"):
        _spoken(out, (), gates=True)
    assert not out.exists()


def test_a_folder_with_another_set_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text("[]")
    with pytest.raises(UsageError, match="not built here"):
        _spoken(tmp_path, ())


def test_what_is_heard_can_be_written_down_without_gates(tmp_path: Path) -> None:
    heard: list[GateReport] = []

    def texts(checked: GateReport) -> About:
        heard.append(checked)
        return ABOUT

    job = _job("audio/a.wav")
    source = Source("mine", "CC0-1.0", frozenset({"g-1"}))
    speak_set(
        tmp_path, source, lambda _: settled([Group("g-1", "", (job,))], Options()), texts, file="mine.json",
        options=Options(), jobs=1, gates=False, recognise=True,
    )  # fmt: skip
    assert not heard[0].ran and "letter" in heard[0].transcripts["audio/a.wav"].lower()
