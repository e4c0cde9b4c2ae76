"""The nginx example of docs/how-to/studio-deploy.md with a real nginx: TLS, sounds with ranges, uploads, no logs."""

from __future__ import annotations

import asyncio
import contextlib
import re
import secrets
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from overtone.server_guard import Guard, bound
from overtone.studio.server import app
from overtone.studio.server.open_study import Studio
from overtone.studio.store import Store
from tests.needs import REPOSITORY
from tests.studio.server.conftest import MakeStudy
from tests.studio.server.test_sessions import body

PAGE = REPOSITORY / "docs/how-to/studio-deploy.md"
NAME = "study.example.org"
MAIN = "daemon off; pid {folder}/pid; error_log {folder}/error.log crit;\nevents {{ worker_connections 256; }}\n"
HTTP = "http {{ access_log {folder}/access.log;\n{temporary}\n{site}\n}}\n"
TEMPORARY = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


def example() -> str:
    """The configuration on the page."""
    found = re.search(r"```nginx\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    assert found is not None
    return found[1]


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@contextlib.contextmanager
def nginx(folder: Path, upstream: int) -> Iterator[tuple[int, int]]:
    """The page's nginx with a self-signed certificate, on free ports; gives those of https and http."""
    key, cert, secure, plain = folder / "key.pem", folder / "cert.pem", free_port(), free_port()
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={NAME}",
         "-addext", f"subjectAltName=DNS:{NAME}", "-keyout", str(key), "-out", str(cert)],
        check=True, capture_output=True,
    )  # fmt: skip
    site = example()
    for old, new in (
        ("127.0.0.1:8080", f"127.0.0.1:{upstream}"), ("listen 443 ssl", f"listen 127.0.0.1:{secure} ssl"),
        ("listen 80", f"listen 127.0.0.1:{plain}"), ("/var/log/nginx", str(folder)),
        ("/etc/letsencrypt/live/study.example.org/fullchain.pem", str(cert)),
        ("/etc/letsencrypt/live/study.example.org/privkey.pem", str(key)),
    ):  # fmt: skip
        assert old in site, old
        site = site.replace(old, new)
    temporary = " ".join(f"{name}_temp_path {folder}/{name};" for name in TEMPORARY)
    config = folder / "nginx.conf"
    config.write_text(MAIN.format(folder=folder) + HTTP.format(folder=folder, temporary=temporary, site=site))
    process = subprocess.Popen(["nginx", "-p", str(folder), "-c", str(config)], stderr=subprocess.PIPE, text=True)
    try:
        for _ in range(100):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", secure)):
                break
            assert process.poll() is None, process.stderr.read() if process.stderr else ""
            time.sleep(0.05)
        yield secure, plain
    finally:
        process.terminate()
        process.communicate(timeout=10)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder that nginx's workers, which are another user, can enter."""
    import tempfile

    made = Path(tempfile.mkdtemp(prefix="nginx-"))
    made.chmod(0o755)
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


@pytest.mark.nginx
def test_the_example_of_the_page_serves_a_study_over_tls(make_study: MakeStudy, folder: Path) -> None:
    study = make_study("acr", ("headphones = true", "headphones = false"), ("remark = false", "remark = true"))

    async def main() -> None:
        store = Store.open(study)
        token = store.people.invite(1)[0].token
        studio = Studio(study, store)
        taken = bound("127.0.0.1", 0)
        with nginx(folder, taken.getsockname()[1]) as (secure, plain):
            async with app.serving(studio, taken, Guard([NAME], command="overtone studio serve")):
                await app.prepare(studio)
                trusted = ssl.create_default_context(cafile=str(folder / "cert.pem"))
                connector = aiohttp.TCPConnector(ssl=trusted, resolver=Here())
                async with aiohttp.ClientSession(f"https://{NAME}:{secure}", connector=connector) as session:
                    await through(session, studio, token)
                    await upload(session, token)
                    await redirected(plain)
        logs = b"".join(path.read_bytes() for path in folder.glob("*.log"))
        assert token.encode() not in logs and b"PROLIFIC" not in logs and b"127.0.0.1" not in logs

    asyncio.run(main())


async def through(session: aiohttp.ClientSession, studio: Studio, token: str) -> None:
    """A rater behind the proxy: page, steps, sounds in parts, an answer."""
    headers = {"Authorization": f"Bearer {token}"}

    async def ask(path: str, sent: Any = None) -> Any:
        method = "GET" if sent is None else "POST"
        async with session.request(
            method, path, headers=headers, **({"json": sent} if sent is not None else {})
        ) as got:
            assert got.status == 200, await got.text()
            return await got.json()

    async with session.get("/join?PROLIFIC_PID=secret") as page:
        assert page.status == 200 and page.headers["Strict-Transport-Security"].startswith("max-age")
        assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    sha = (await ask("/api/state"))["study"]["texts"]["consent_sha"]
    await ask("/api/consent", {"consent_sha": sha, "agree": True})
    screen = (await ask("/api/setup", {"device": {"a": 1}, "level": 0.5}))["screen"]
    url = f"/{screen['sounds'][0]['url']}"
    async with session.get(url, headers=headers) as whole:
        data = await whole.read()
        assert data.startswith(b"fLaC") and whole.headers["Accept-Ranges"] == "bytes"
    async with session.get(url, headers={**headers, "Range": "bytes=10-19"}) as part:
        assert part.status == 206 and await part.read() == data[10:20]
    given = body(screen, values={"remark": "x" * 4000})
    assert await ask("/api/answer", given) == {"saved": True}
    saved = studio.store.answers.of_slot(screen["slot"])
    assert saved is not None and saved.values["remark"] == "x" * 4000


async def upload(session: aiohttp.ClientSession, token: str) -> None:
    """A body as large as a recording passes the proxy and reaches the studio's own limit."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    async with session.post("/api/answer", data=secrets.token_bytes(8 << 20), headers=headers) as got:
        assert got.status == 413 and (await got.json())["error"]["code"] == "too_large"


async def redirected(port: int) -> None:
    """Plain http leads to https and is not forwarded."""
    url, host = f"http://127.0.0.1:{port}/", {"Host": NAME}
    async with aiohttp.ClientSession() as one, one.get(url, allow_redirects=False, headers=host) as got:
        assert got.status == 301 and got.headers["Location"] == f"https://{NAME}/"


class Here(aiohttp.abc.AbstractResolver):
    """Every name is this machine."""

    async def resolve(self, host: str, port: int = 0, family: Any = 0) -> Any:
        return [{"hostname": host, "host": "127.0.0.1", "port": port, "family": socket.AF_INET, "proto": 0, "flags": 0}]

    async def close(self) -> None:
        pass
