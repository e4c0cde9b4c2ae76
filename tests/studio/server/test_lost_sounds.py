"""Sounds that are missing or have changed: another unit for the rater, a line and an event for the owner."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from overtone.studio.study import Study
from tests.studio.server.helpers import served


def test_a_lost_sound_is_replaced_by_another_unit_and_the_owner_is_told_the_file(
    quick: Study, capfd: pytest.CaptureFixture[str]
) -> None:
    replies = sorted((quick.path.parent / "zebra-voice" / "audio").rglob("*.wav"))

    async def first() -> None:
        async with served(quick) as server:
            rater = server.rater()
            await rater.enter()  # the units are frozen while all is well

    asyncio.run(first())
    shutil.rmtree(quick.path.with_name("study-sounds"))
    lost, kept = replies[0], replies[0].read_bytes()
    lost.unlink()

    async def second() -> None:
        async with served(quick) as server:
            for _ in range(3):
                rater = server.rater()
                assert (await rater.finish())["step"] == "done"
            blocked = server.studio.store.sessions.blocked()
            assert blocked and all(lost.name in reason for reason in blocked.values())
            events = server.studio.store.log.events("blocked")
            assert {event.detail["unit"] for event in events} == set(blocked)
            answered = server.studio.store.answers.all(("real", "gold", "training"))
            assert len(answered) == 18 and not {one.unit for one in answered} & set(blocked)
            _, _, data = await server.raw("GET", "api/owner/status", server.owner)
            assert lost.name.encode() in data

    asyncio.run(second())
    assert f"{lost.name}: there is no such file" in capfd.readouterr().err
    lost.write_bytes(kept)

    async def third() -> None:
        async with served(quick) as server:
            for _ in range(100):
                if not server.studio.store.sessions.blocked():
                    return
                await asyncio.sleep(0.05)
            raise AssertionError("the restored sound is still left out")

    asyncio.run(third())


def test_a_sound_that_is_lost_between_two_screens_is_replaced_too(quick: Study) -> None:
    async def main() -> None:
        async with served(quick) as server:
            rater = server.rater()
            screen = (await rater.enter())["screen"]
            await asyncio.sleep(0.3)  # all sounds are rendered meanwhile
            server.studio.sounds._recent.clear()
            slot = server.studio.store.sessions.slot(rater.state["person"]["label"], screen["slot"])
            for file in (*quick.path.parent.rglob("*.flac"), *quick.path.parent.rglob("audio/*/*.wav")):
                Path(file).unlink()
            told = await rater.get(screen["sounds"][0]["url"], status=409)
            assert told["error"]["code"] == "lost" and "wav" not in told["error"]["message"]
            assert slot.unit in server.studio.store.sessions.blocked()
            state = await rater.get("api/state")
            assert state["screen"] is None or state["screen"]["slot"] != slot.id

    asyncio.run(main())
