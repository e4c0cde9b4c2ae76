"""Serve a study: people listen and answer in a browser."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from overtone.cli.studio import _study
from overtone.errors import EXIT_OK, UsageError
from overtone.paths import shown
from overtone.safety import is_loopback

if TYPE_CHECKING:
    import socket

    from overtone.studio.server.open_study import Studio
    from overtone.studio.store import Store
    from overtone.studio.study import Study

PATIENCE = 1.0  # seconds until a server that is not ready says why
SUMMARY = "open a study to people with a browser"
EXAMPLES = (
    "overtone studio serve study.toml",
    "overtone studio serve study.toml --token-file token.txt --allow-host study.example.org",
)


def add(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    _study.add(parser)
    add_network(parser)


def add_network(parser: argparse.ArgumentParser) -> None:
    """Add the flags about the address."""
    flag = parser.add_argument_group("network").add_argument
    flag("--host", default=_study.HOST, help="address to listen on (default: 127.0.0.1, this machine only)")
    flag("--port", metavar="N", type=int, default=_study.PORT, help="port; 0 picks a free one (default: 8080)")
    flag("--allow-host", metavar="NAME", action="append", default=[],
         help="name that people use for this server, e.g. that of a proxy; repeatable")  # fmt: skip
    flag("--token-file", metavar="FILE", type=Path, help="file with the owner's token (default: OVERTONE_TOKEN)")


def main(args: argparse.Namespace) -> int:
    """Serve until stopped."""
    return serve(args, _study.read(args))


def serve(args: argparse.Namespace, study: Study, *, public: bool = False) -> int:
    """Serve a study until Ctrl-C or SIGTERM. With `public`, print the link with which everyone can take part."""
    from overtone.server_guard import bound, read_token
    from overtone.studio.serving_lock import serving_alone

    token = read_token(args.token_file)
    check_exposure(args, study, token)
    with serving_alone(study) as note_address, contextlib.closing(bound(args.host, args.port)) as taken:
        return _serve(args, study, taken, token, public, note_address)


def _serve(
    args: argparse.Namespace, study: Study, taken: socket.socket, token: str, public: bool,
    note_address: Callable[[str], None],
) -> int:  # fmt: skip
    import asyncio
    import signal

    from overtone.server_guard import Guard
    from overtone.studio.server import app
    from overtone.studio.server.open_study import Studio
    from overtone.studio.store import Store

    guard = Guard([args.host, *args.allow_host], command="overtone studio serve")
    store = Store.open(study, args.db)

    def ready(url: str) -> None:
        here = url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")
        address = public_address(args, here)
        note_address(here)
        store.set_address(address)
        owner = store.people.own(token).token
        lines = greeting(args, study, here, address, "" if token else owner)
        print("\n".join([*lines, *([f"take part:      {here}join"] if public else [])]), flush=True)

    async def run() -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        # as asyncio does for Ctrl-C: an exception from the signal could end up in any background task
        signal.signal(signal.SIGTERM, lambda *_: loop.call_soon_threadsafe(task.cancel))
        studio = Studio(study, store)
        loop.call_later(PATIENCE, tell_reading, studio)
        await app.serve(studio, taken, guard, ready)

    warn_of_lost_sources(study, store)

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # until the server runs
    try:
        asyncio.run(run())
    except (KeyboardInterrupt, asyncio.CancelledError):
        print("stopped; every answer that a page has confirmed is stored", flush=True)
    finally:
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # the other handler needs the loop, which is closed
    return EXIT_OK


def tell_reading(studio: Studio) -> None:
    """Say why a server is not ready yet."""
    if not studio.prepared.is_set():
        print("reading the runs …", file=sys.stderr, flush=True)


def warn_of_lost_sources(study: Study, store: Store) -> None:
    """Warn about runs and sets that are not where the study file says. Before the first start they are errors."""
    if store.state() == "new":
        return
    for source in study.sources:
        folder = study.folder(source)
        if source.kind == "scripts" or (folder / "run.db" if source.kind == "run" else folder).exists():
            continue
        lost = "'overtone studio sync' will fail, and " if source.kind == "run" else ""
        print(
            f"overtone: warning: {shown(str(study.path))}: the {source.kind} {shown(source.name)} is not at "
            f"{shown(str(folder))}; {lost}its sounds that are not rendered yet cannot be played. Restore the folder, "
            f"or correct path = {shown(source.path)!r} under [[source]]; the path may change at any time",
            file=sys.stderr,
        )


def check_exposure(args: argparse.Namespace, study: Study, token: str) -> None:
    """Refuse people elsewhere without a token or notices, and warn about what needs https.

    They come directly, or through a proxy on this machine whose name --allow-host gives.
    """
    beyond = [name for name in (args.host, *args.allow_host) if not is_loopback(name)]
    if not beyond:
        return
    if not token:
        raise UsageError(
            f"people elsewhere can reach {shown(beyond[0])}; set the owner's token with --token-file FILE, "
            "e.g. from 'openssl rand -hex 32'"
        )
    if missing := study.missing_notices:
        raise UsageError(
            f"{shown(str(args.study))}: people elsewhere must be able to read who is responsible; fill in "
            f"{', '.join(missing)} in its section [people]"
        )
    if is_loopback(args.host):
        return
    lines = [
        "put a proxy with TLS in front (nginx or Caddy, see docs/how-to/studio-deploy.md) and listen on 127.0.0.1: "
        "tokens and answers would cross the network readably"
    ]
    if needs_microphone(study):
        lines.append("the study records: browsers allow a microphone only at https:// addresses and at localhost")
    for line in lines:
        print(f"overtone: warning: {line}", file=sys.stderr)


def needs_microphone(study: Study) -> bool:
    """Return whether people record in this study."""
    from overtone.studio import designs

    return designs.find(study.design).layout == "record"


def public_address(args: argparse.Namespace, url: str) -> str:
    """Return the address at which people reach the server: that of a proxy if --allow-host names it, or `url`."""
    outside = next((name for name in args.allow_host if not is_loopback(name)), "")
    return f"https://{outside}/" if outside else url


def greeting(args: argparse.Namespace, study: Study, url: str, address: str, owner: str) -> list[str]:
    """Return what the owner reads when the server listens. Without `owner`, the owner set the token."""
    file = shown(str(args.study))
    page = f"{shown(address)}owner#"
    own = (
        [f"your page:      {page}{owner}", "                (this link ends when the server stops; keep one with "
         "--token-file FILE)"]
        if owner
        else [f"your page:      {page}TOKEN (the token that you set)"]
    )  # fmt: skip
    return [
        f"{shown(study.title)} is open at {url} (stop it with Ctrl-C)",
        *own,
        f"invite people:  overtone studio invite {file} --people 20",
        f"how it goes:    overtone studio status {file}",
    ]
