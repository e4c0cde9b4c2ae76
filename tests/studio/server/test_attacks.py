"""The server attacked: other sites, other people's data, guessed tokens, paths, scripts in texts, oversized bodies."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import aiohttp
import pytest

from overtone.studio.study import Study
from tests.studio.server.helpers import Server, sensible, served
from tests.studio.server.test_sessions import body

ROUTES = ["/", "/join", "/mturk", "/owner", "/api/state", "/api/sound/x", "/nothing", "/pages/none.js"]
SCRIPT = '<script>alert("x")</script><img src=x onerror=alert(1)>'


def run(study: Study, attack: Any) -> None:
    async def main() -> None:
        async with served(study) as server:
            await attack(server)

    asyncio.run(main())


def test_every_answer_has_the_security_headers_and_sets_no_cookie(quick: Study) -> None:
    async def attack(server: Server) -> None:
        for path in ROUTES:
            _, headers, _ = await server.raw("GET", path)
            policy = headers["Content-Security-Policy"]
            assert "default-src 'none'" in policy and "script-src 'self'" in policy and "unsafe" not in policy
            framed = "https://www.mturk.com" if path == "/mturk" else "'none'"
            assert f"frame-ancestors {framed}" in policy
            assert headers["Referrer-Policy"] == "no-referrer" and headers["X-Content-Type-Options"] == "nosniff"
            assert headers["Permissions-Policy"].startswith("microphone=(self)")
            assert "camera=()" in headers["Permissions-Policy"] and headers["Cache-Control"]
            assert headers["Server"] == "overtone"  # not the version of Python and aiohttp
            assert not {"Set-Cookie", "Access-Control-Allow-Origin"} & set(headers)

    run(quick, attack)


def test_pages_are_the_same_bytes_for_everybody_and_are_cached_by_their_content(quick: Study) -> None:
    async def attack(server: Server) -> None:
        status, headers, page = await server.raw("GET", "/")
        assert status == 200 and headers["Content-Type"].startswith("text/html")
        assert (await server.raw("GET", "/join?PROLIFIC_PID=1"))[2] == page
        again = await server.raw("GET", "/", headers={"If-None-Match": headers["ETag"]})
        assert again[0] == 304 and again[2] == b""

    run(quick, attack)


def test_nothing_is_answered_without_a_token(quick: Study) -> None:
    async def attack(server: Server) -> None:
        server.studio.guesses.seconds = 0.0
        for path in ("api/state", "api/calibration", "api/owner/status", "api/owner/people"):
            for given in ("", "Basic abc", "Bearer", "Bearer " + "x" * 300, f"Token {server.owner}"):
                headers = {"Authorization": given} if given else {}
                async with aiohttp.ClientSession() as one, one.get(server.url + path, headers=headers) as answer:
                    assert answer.status == 401, (path, given)

    run(quick, attack)


def test_guessing_tokens_is_slowed_and_valid_tokens_are_not(quick: Study) -> None:
    async def attack(server: Server) -> None:
        server.studio.guesses.seconds = 0.0
        rater = server.rater()
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=1)) as one:
            statuses = []
            for number in range(6):
                bearer = {"Authorization": f"Bearer guess-{number}"}
                async with one.get(server.url + "api/state", headers=bearer) as answer:
                    await answer.read()
                    statuses.append(answer.status)
        assert statuses == [401] * 5 + [429]  # and the connection is closed

        async def guess(number: int) -> int:
            bearer = {"Authorization": f"Bearer guess-{number}"}
            url = server.url + "api/state"
            async with aiohttp.ClientSession() as one, one.get(url, headers=bearer) as answer:
                return answer.status

        many = await asyncio.gather(*(guess(number) for number in range(150)))
        assert many.count(429) > 20  # from many connections too
        assert (await rater.get("api/state"))["step"] == "consent"

    run(quick, attack)


def test_a_rater_never_gets_what_belongs_to_another(quick: Study) -> None:
    async def attack(server: Server) -> None:
        victim, thief = server.rater(), server.rater()
        screen = (await victim.enter())["screen"]
        await thief.enter()
        for link in [*screen["sounds"], *screen["context"]["sounds"]]:
            other = await thief.call("GET", link["url"], status=404)
            assert other == await thief.call("GET", "api/sound/" + "0" * 32, status=404)  # like an unknown one
        stolen = body(screen, values=sensible(screen), done=True)
        assert (await thief.post("api/answer", stolen, status=404))["error"]["code"] == "slot"
        skipped = {"slot": screen["slot"], "client_key": "0" * 16, "reason": ""}
        await thief.post("api/skip", skipped, status=404)
        assert server.studio.store.answers.history() == []
        for path in ("status", "people", "flags", "events"):
            await thief.get(f"api/owner/{path}", status=404)
        label = (await victim.get("api/state"))["person"]["label"]
        for path in (f"person/{label}/delete", f"person/{label}/revoke", "close", "invite"):
            await thief.post(f"api/owner/{path}", {}, status=404)
        assert (await victim.get("api/state"))["step"] == "rating"

    run(quick, attack)


def test_the_owner_is_no_rater_and_cannot_be_deleted(quick: Study) -> None:
    async def attack(server: Server) -> None:
        label = server.studio.store.people.all("owner")[0].label
        assert (await server.raw("POST", f"api/owner/person/{label}/delete", server.owner, json={}))[0] == 422
        assert (await server.raw("GET", "api/owner/status", server.owner))[0] == 200
        assert (await server.raw("GET", "api/state", server.owner))[0] == 404

    run(quick, attack)


def test_a_page_of_another_site_can_neither_write_nor_read(quick: Study) -> None:
    async def attack(server: Server) -> None:
        rater = server.rater()
        screen = (await rater.enter())["screen"]
        forged = json.dumps(body(screen, values=sensible(screen), done=True))
        plain = {"Content-Type": "text/plain", "Origin": "https://evil.example"}  # a form, without permission by CORS
        assert (await server.raw("POST", "api/answer", data=forged, headers=plain))[0] == 401  # no cookie signs it
        assert (await server.raw("POST", "api/answer", rater.token, data=forged, headers=plain))[0] == 415
        foreign = {"Sec-Fetch-Site": "cross-site"}
        assert (await server.raw("POST", "api/withdraw", rater.token, json={}, headers=foreign))[0] == 403
        asked = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
        status, headers, _ = await server.raw("OPTIONS", "api/answer", headers=asked)
        assert status == 405 and not [name for name in headers if name.startswith("Access-Control")]
        assert server.studio.store.answers.history() == []

    run(quick, attack)


def test_another_domain_that_points_here_is_refused(quick: Study) -> None:
    async def attack(server: Server) -> None:
        for host in ("evil.example", "evil.example:8080", "127.0.0.1.evil.example"):
            status, _, data = await server.raw("GET", "/", headers={"Host": host})
            assert status == 403 and b"overtone studio serve" in data
        assert (await server.raw("GET", "/", headers={"Host": "localhost:1"}))[0] == 200

    run(quick, attack)


PATHS = (
    "/pages/../server/app.py", "/pages/..%2fserver%2fapp.py", "/pages/%2e%2e/study.py", "/pages//etc/passwd",
    "/pages/..%5c..%5cstudy.py", "/pages/rater.html%00.js", "/../../etc/passwd", "/pages/__init__.py",
    "/api/sound/..%2f..%2fstudy.db", "/api/headphones/..%2fstudy.toml", "/study.toml", "/study.db",
)  # fmt: skip


def test_no_path_leads_out_of_the_pages(quick: Study) -> None:
    async def attack(server: Server) -> None:
        token = server.rater().token
        for path in PATHS:
            reader, writer = await asyncio.open_connection("127.0.0.1", int(server.url.split(":")[2].strip("/")))
            head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
            writer.write(f"{head}Connection: close\r\n\r\n".encode())
            answer = await asyncio.wait_for(reader.read(), 5)
            writer.close()
            assert answer.split(b" ")[1] in (b"404", b"400"), (path, answer[:300])

    run(quick, attack)


def test_texts_of_people_come_back_as_json_only(make_study: Any) -> None:
    study = make_study(
        "acr", ("headphones = true", "headphones = false"), ("remark = false", "remark = true"),
        ('title = "A listening test"', f"title = '{SCRIPT}'"),
    )  # fmt: skip

    async def attack(server: Server) -> None:
        rater = server.rater()
        screen = (await rater.enter())["screen"]
        await rater.post("api/answer", body(screen, values={"remark": SCRIPT}))
        _, headers, data = await server.raw("GET", "api/state", rater.token)
        assert headers["Content-Type"].startswith("application/json")
        state = json.loads(data)
        assert state["screen"]["answers"]["remark"] == SCRIPT and state["study"]["title"] == SCRIPT
        assert SCRIPT.encode() not in (await server.raw("GET", "/"))[2]

    run(study, attack)


BODIES = (
    ("api/answer", b"{" + b" " * (300 << 10), 413),
    ("api/answer", b"not json", 400),
    ("api/answer", b'{"slot": 1}', 400),
    ("api/answer", b"[" * 100_000, 400),
    ("api/setup", json.dumps({"device": {"a": "x" * 300}}).encode(), 422),
    ("api/setup", json.dumps({"device": {str(n): 1 for n in range(50)}}).encode(), 422),
    ("api/setup", b'{"device": {}, "level": 2}', 422),
    ("api/join", json.dumps({"params": {"PROLIFIC_PID": "x" * 300}}).encode(), 422),
    ("api/join", json.dumps({"params": {"PROLIFIC_PID": "x"}}).encode(), 403),
    ("api/headphones", b'{"test": "woods", "answers": [1]}', 422),
    ("api/consent", b'{"consent_sha": "old", "agree": true}', 409),
)


def test_bad_bodies_are_refused_with_a_reason(quick: Study) -> None:
    async def attack(server: Server) -> None:
        headers = {"Content-Type": "application/json"}
        token = server.rater().token
        for path, sent, status in BODIES:
            got, _, data = await server.raw("POST", path, token, data=sent, headers=headers)
            assert got == status and len(json.loads(data)["error"]["message"]) > 10, (path, data)

    run(quick, attack)


def test_no_address_is_stored_anywhere(quick: Study, capfd: pytest.CaptureFixture[str]) -> None:
    async def attack(server: Server) -> None:
        rater = server.rater()
        await rater.enter()
        await rater.answer()
        await server.raw("GET", "/nothing")

    run(quick, attack)
    stored = b"".join(path.read_bytes() for path in quick.path.parent.glob("study.db*"))
    assert b"127.0.0.1" not in stored and b"127.0.0.1" not in "".join(capfd.readouterr()).encode()
