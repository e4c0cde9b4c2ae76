"""The card and the metadata of a built set, which Hugging Face's `datasets` reads (tests/report/test_hf_dataset.py)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from overtone.build.dataset_card import write_card
from overtone.build.licence import RESEARCH, Verdict
from overtone.build.manifest import Made
from overtone.build.sound_plan import Group, Job


def made(path: str, reply: str = "") -> Made:
    return Made(path, "0" * 64, 1.5, -26.0, 0.5, "s1", "target", "en-us+m1", "f" * 16, cue="sad", reply=reply)


@pytest.mark.parametrize(
    ("licence", "head"), [("CC-BY-4.0", "license: cc-by-4.0"), (RESEARCH, 'license_name: "research-only"')]
)
def test_a_card_says_licence_languages_and_where_the_sounds_are(tmp_path: Path, licence: str, head: str) -> None:
    clips = [made("data_synthesis/audio/a.wav"), made("audio_response/b.wav", reply="warm")]
    group = Group("s1", "sad", (Job("data_synthesis/audio/a.wav", "s1", "target", "It's fine."),))
    write_card(tmp_path, "mine", clips, [group], Verdict(licence), {"sad": "validated"}, ["en", "de"])
    card = (tmp_path / "README.md").read_text()
    assert head in card and "language: [en, de]" in card and "size_categories: [n<1K]" in card
    assert "path: [metadata.jsonl, audio_response/**/*.wav, data_synthesis/**/*.wav]" in card
    assert "1 clips and 1 reference replies" in card
    rows = [json.loads(line) for line in (tmp_path / "metadata.jsonl").read_text().splitlines()]
    assert [(row["file_name"], row["text"], row["kind"]) for row in rows] == [
        ("data_synthesis/audio/a.wav", "It's fine.", "clip"),
        ("audio_response/b.wav", "", "reply"),
    ]
    assert rows[0]["status"] == "validated"
