"""No byte that a rater gets names a run, a model, a cue or the kind of a screen, and no screen looks different."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import pytest

from overtone.studio.server import app
from tests.arena.helpers import CUES
from tests.studio.server.conftest import NAMES, MakeStudy
from tests.studio.server.helpers import served

KINDS = ("gold", "trap", "training", "anchor", "repeat")
STYLES = ("target", "neutral", "alternative")
ITEMS = ("toy/", "synthesis", "enhance", "s0-", "monday", "wav")


@pytest.mark.parametrize("design", ["acr", "ab"])
def test_no_byte_names_a_run_a_model_a_cue_or_a_kind(make_study: MakeStudy, design: str) -> None:
    async def main() -> None:
        async with served(make_study(design)) as server:
            rater = server.rater()
            await rater.finish()
            store = server.studio.store
            slots = [one.slot for one in store.answers.all(("gold", "trap", "training", "real"))]
            assert len(slots) == 7 and len(rater.seen) > 60
            shas = [reply.sound.sha256 for name in store.units() for reply in server.studio.unit(name).replies]
            seen = b"\n".join(rater.seen).lower()
            for name in (*NAMES, *shas, *ITEMS):
                assert name.encode() not in seen, name
            texts = b"\n".join(data for data in rater.seen if not data.startswith(b"fLaC")).decode()
            texts = re.sub(r'"(question|anchors|label|text|consent|options)":("[^"]*"|\{[^}]*\})', "", texts)
            for word in (*CUES, *KINDS, *STYLES, "clip-", "reversed", "backwards"):
                assert not re.search(rf"\b{word}\b", texts, re.I), word

    asyncio.run(main())


def test_all_sounds_of_a_session_are_rendered_before_its_first_screen(
    make_study: MakeStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that the time until a sound comes does not tell that it had to be turned round."""

    async def main() -> None:
        monkeypatch.setattr(app, "render_all", lambda studio, units: None)
        async with served(make_study("ab", ("headphones = true", "headphones = false"))) as server:
            rater = server.rater()
            await rater.enter()
            made = list(server.studio.sounds._index)
            await rater.finish()
            assert any(one.backwards for one in server.studio.sounds._index.values())  # of the gold question
            assert list(server.studio.sounds._index) == made

    asyncio.run(main())


def shape(value: Any) -> Any:
    """The structure of a JSON value without its contents."""
    if isinstance(value, dict):
        return {key: shape(one) for key, one in value.items()}
    return [shape(one) for one in value] if isinstance(value, list) else type(value).__name__


def test_gold_training_and_real_screens_have_the_same_form(make_study: MakeStudy) -> None:
    async def main() -> None:
        study = make_study("acr", ("headphones = true", "headphones = false"))
        async with served(study) as server:
            rater = server.rater()
            await rater.enter()
            forms = {}
            while rater.state["step"] == "rating":
                copy = rater.state["screen"]
                screen = json.loads(json.dumps(copy))
                slot = server.studio.store.sessions.slot(rater.state["person"]["label"], screen["slot"])
                sounds = await rater.play(screen)
                assert all(data.startswith(b"fLaC") for data in sounds.values())
                for stage in screen["stages"]:  # how many questions there are depends on the clip's style, as always
                    stage["fields"] = stage["fields"][:1]
                forms[slot.kind] = shape(screen)
                rater.state["screen"] = copy
                await rater.answer()
            assert forms["gold"] == forms["real"] == forms["training"]
            assert set(forms["trap"]) == set(forms["real"])

    asyncio.run(main())


def test_sounds_carry_no_tags_and_no_cacheable_names(make_study: MakeStudy) -> None:
    async def main() -> None:
        study = make_study("ab", ("headphones = true", "headphones = false"))
        async with served(study) as server:
            rater = server.rater()
            screen = (await rater.enter())["screen"]
            for link in screen["sounds"]:
                assert re.fullmatch(r"api/sound/[0-9a-f]{32}", link["url"])
                status, headers, data = await server.raw("GET", link["url"], rater.token)
                assert status == 200 and headers["Content-Type"] == "audio/flac"
                assert not {"ETag", "Last-Modified", "Content-Disposition"} & set(headers)
                assert "no-store" in headers["Cache-Control"]
                assert tags(data) == [0, 4]  # stream information, and a comment that names the encoder alone
                part = await server.raw("GET", link["url"], rater.token, headers={"Range": "bytes=4-9"})
                assert part[0] == 206 and part[2] == data[4:10]
                assert part[1]["Content-Range"] == f"bytes 4-9/{len(data)}"
                past = await server.raw("GET", link["url"], rater.token, headers={"Range": "bytes=9999999-"})
                assert past[0] == 416

    asyncio.run(main())


def tags(flac: bytes) -> list[int]:
    """The types of the metadata blocks of a FLAC file."""
    at, found = 4, []
    while True:
        head = flac[at]
        size = int.from_bytes(flac[at + 1 : at + 4], "big")
        if head & 0x7F == 4:
            assert b"=" not in flac[at + 4 : at + 4 + size]  # NAME=VALUE
        if head & 0x7F != 1:  # padding
            found.append(head & 0x7F)
        at += 4 + size
        if head & 0x80:
            return found
