"""The owner's API: progress, people, flags, agreement, invitations, deletion of a person, the end."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest

from overtone.runs.people_labels import read_labels
from overtone.runs.store import Store as RunStore
from overtone.studio import closing
from overtone.studio.store import Store
from overtone.studio.study import Study
from tests.studio.server.helpers import Rater, Server, questions, served


async def owned(server: Server, path: str, body: Any = None, status: int = 200) -> Any:
    method, more = ("GET", {}) if body is None else ("POST", {"json": body})
    got, _, data = await server.raw(method, f"api/owner/{path}", server.owner, **more)
    assert got == status, data
    return json.loads(data)


def careless(screen: dict[str, Any]) -> dict[str, Any]:
    """The best answer to everything, speech played backwards and five tones included."""
    return {f["key"]: f["high"] if f["type"] == "scale" else list(f["options"])[-1] for f in questions(screen)}


def test_the_owner_sees_progress_time_and_who_did_not_listen(quick: Study) -> None:
    async def main() -> None:
        async with served(quick) as server:
            await server.rater().finish()
            await server.rater().finish(careless)
            server.rater()
            status = await owned(server, "status")
            assert status["status"]["answers"] == 6 and status["sessions"] == 2 and "people" not in status
            assert status["seconds"] is not None and status["flags"].get("gold")
            people = (await owned(server, "people"))["people"]
            assert [row["state"] for row in people] == ["finished", "finished", "invited"]
            assert people[1]["usable"] is False and "gold" in people[1]["flags"] and people[2]["usable"] is None
            assert len((await owned(server, "flags"))["sessions"]) == 2
            assert "questions" in await owned(server, "agreement")

    asyncio.run(main())


def test_invitations_of_the_owner_work_once_revoked_no_more(quick: Study) -> None:
    async def main() -> None:
        async with served(quick) as server:
            made = (await owned(server, "invite", {"count": 2, "role": "rater"}))["invitations"]
            first, second = (Rater(server, one["token"]) for one in made)
            assert (await first.get("api/state"))["step"] == "consent"
            await owned(server, f"person/{made[0]['label']}/revoke", {})
            await first.get("api/state", status=401)
            assert (await second.get("api/state"))["step"] == "consent"
            for wrong in ({"count": 0}, {"count": 5000}, {"count": 1, "role": "owner"}):
                await owned(server, "invite", wrong, 422)
            await owned(server, "person/nobody/revoke", {}, 404)

    asyncio.run(main())


def test_the_owner_can_delete_what_a_person_gave(quick: Study) -> None:
    async def main() -> None:
        async with served(quick) as server:
            rater, other = server.rater(), server.rater()
            label = (await rater.finish())["person"]["label"]
            await other.finish()
            deleted = await owned(server, f"person/{label}/delete", {})
            assert deleted["answers"] > 0
            left = {one.person for one in server.studio.store.answers.history()}
            assert len(left) == 1 and label not in left
            assert (await rater.get("api/state"))["step"] == "withdrawn"

    asyncio.run(main())


def test_closing_ends_the_study_and_writes_the_labels_into_the_runs(quick: Study) -> None:
    async def main() -> None:
        async with served(quick) as server:
            await server.rater().finish()
            closed = await owned(server, "close", {})
            assert closed["status"]["state"] == "closed" and closed["problems"] == 0
            assert len(closed["runs"]) == 2 and any("label" in sentence for sentence in closed["runs"])
            assert await owned(server, "close", {}) | {"runs": ()} == closed | {"runs": ()}  # repeating is harmless

    asyncio.run(main())


def test_answers_are_exported_without_the_ids_of_payments(quick: Study) -> None:
    async def main() -> None:
        async with served(quick) as server:
            await server.rater().finish()
            for form, kind in (("csv", "text/csv"), ("jsonl", "x-ndjson"), ("label-studio", "application/json")):
                status, headers, data = await server.raw("GET", f"api/owner/export?format={form}", server.owner)
                assert status == 200 and kind in headers["Content-Type"] and b"cctxfit" in data
                assert headers["Content-Disposition"].startswith("attachment; filename=")
            await owned(server, "export?format=exe", status=422)

    asyncio.run(main())


def test_labels_are_removed_even_if_the_page_is_closed_during_the_withdrawal(
    quick: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    removed = asyncio.Event()

    async def main() -> None:
        async with served(quick) as server:
            loop, gone = asyncio.get_running_loop(), threading.Event()
            rater = server.rater()
            await rater.enter()
            withdraw = server.studio.store.withdrawals.withdraw

            def slowly(label: str) -> Any:
                assert gone.wait(10)
                return withdraw(label)

            def write_labels(study: Study, store: Store) -> list[Any]:
                loop.call_soon_threadsafe(removed.set)
                return []

            monkeypatch.setattr(server.studio.store.withdrawals, "withdraw", slowly)
            monkeypatch.setattr(closing, "write_labels", write_labels)
            asking = asyncio.create_task(rater.post("api/withdraw", {}))
            await asyncio.sleep(0.3)
            asking.cancel()  # closes the connection
            await asyncio.sleep(0.3)
            gone.set()
            await asyncio.wait_for(removed.wait(), 10)
            assert (await rater.get("api/state"))["step"] == "withdrawn"

    asyncio.run(main())


def test_who_was_sent_by_a_platform_does_not_return_after_the_link_was_revoked(quick: Study) -> None:
    async def main() -> None:
        async with served(quick) as server:
            server.studio.store.log.add("public", sources=["prolific"])
            params = {"params": {"PROLIFIC_PID": "p1", "SESSION_ID": "s1"}}
            tokens = [json.loads((await server.raw("POST", "api/join", json=params))[2])["token"] for _ in range(2)]
            rater = Rater(server, tokens[0])
            label = (await rater.get("api/state"))["person"]["label"]
            await owned(server, f"person/{label}/revoke", {})
            for token in tokens:
                await Rater(server, token).get("api/state", status=401)
            status, _, data = await server.raw("POST", "api/join", json=params)
            assert status == 403 and b"was ended" in data

    asyncio.run(main())


def test_labels_that_a_killed_server_left_in_the_runs_are_removed_at_the_next_start(quick: Study) -> None:
    run = next(quick.folder(one) for one in quick.sources)

    def labels() -> int:
        with RunStore.read(run) as store:
            return sum(1 for _ in read_labels(store))

    async def main() -> None:
        async with served(quick) as server:
            rater = server.rater()
            await rater.finish()
            await asyncio.to_thread(closing.write_labels, quick, server.studio.store)
            server.studio.store.withdrawals.withdraw(rater.state["person"]["label"])  # and killed before the labels
        assert labels()
        async with served(quick):
            async with asyncio.timeout(20):
                while labels():
                    await asyncio.sleep(0.1)

    asyncio.run(main())
