"""Speak with a model in the browser and rate its replies. The conversation is stored as a run."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import secrets
import signal
import sys
import time
from pathlib import Path
from typing import Any

from overtone.errors import EXIT_OK, MissingExtra
from overtone.paths import shown

EXAMPLES = (
    "overtone talk cascade",
    "overtone talk 'openai:NAME?base_url=http://localhost:8000/v1' --prompt basic",
    "overtone talk echat:runs/mini --out runs/talk-with-mini",
)


def add(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    flag = parser.add_argument
    flag("model", metavar="MODEL", help="SPEC of a model that hears, e.g. cascade, openai:NAME?base_url=URL, echat:DIR")
    flag("--out", metavar="RUN", type=Path, help="folder of the run (default: runs/talk-MODEL-TIME)")
    flag(
        "--prompt",
        choices=("zero", "basic", "enhance", "warm", "plain"),
        default="basic",
        help="system prompt of the conversation, as in 'overtone run' (default: basic)",
    )
    flag("--no-transcript", action="store_true", help="do not recognise the user's words for the page")
    flag = parser.add_argument_group("network").add_argument
    flag("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1, this machine only)")
    flag("--port", metavar="N", type=int, default=0, help="port (default: a free one)")
    flag("--allow-host", metavar="NAME", action="append", default=[],
         help="name that browsers may use for this server, besides addresses; repeatable")  # fmt: skip
    flag("--token-file", metavar="FILE", type=Path, help="file with the token of the page's link (default: random)")


def main(args: argparse.Namespace) -> int:
    """Serve the page until stopped."""
    from overtone.benchmarks.talk import BENCHMARK
    from overtone.runs.settings import model_label, resolve
    from overtone.server_guard import bound
    from overtone.spec import parse_spec

    spec = parse_spec(args.model)
    folder = args.out or Path("runs") / f"talk-{model_label(spec)}-{time.strftime('%Y%m%d-%H%M%S')}"
    flags: dict[str, Any] = {
        "benchmark": BENCHMARK, "data": str(folder), "model": [args.model], "out": str(folder), "prompt": [args.prompt]
    }  # fmt: skip
    (settings,) = resolve(flags, None, os.environ)
    taken = bound(args.host, args.port)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_talk(args, settings, taken))
    if not (folder / "run.db").exists():
        return EXIT_OK
    print(f"\nThe conversations are the run {shown(str(folder))}. Next:")
    print(f"  overtone score {shown(str(folder))} && overtone report {shown(str(folder))}")
    print(f"  overtone run {BENCHMARK} --data {shown(str(folder))} --model ANOTHER   # the same utterances again")
    return EXIT_OK


async def _talk(args: argparse.Namespace, settings: Any, taken: Any) -> None:
    from overtone import registry
    from overtone.errors import foreign
    from overtone.runs.session import check_key, identify
    from overtone.runs.settings import identity
    from overtone.runs.store import Store
    from overtone.schema import Condition
    from overtone.server_guard import Guard, exposure, read_token
    from overtone.talk.conversations import Conversations, Recorded
    from overtone.talk.server import PAGES, TalkServer, serve
    from overtone.tasks import load_prompts

    spec = settings.model
    with foreign(f"{spec} cannot be loaded"):
        model = registry.find("models", spec.kind).load(spec)
    check_key(spec)
    print(f"opening {spec} …", flush=True)
    with Store.create(settings.folder) as store:
        if hasattr(model, "log_folder"):
            model.log_folder = settings.folder / "workers"
        with foreign(f"{spec} cannot be opened"):
            await model.open()
        try:
            prompts = load_prompts(f"{spec.kind}:{spec.name}", {})
            identify(store, settings, Recorded(settings.folder), model, prompts)
            transcribe = None if args.no_transcript else _recogniser()
            conversations = Conversations(
                store, model, prompts, condition=Condition(args.prompt), speech=spec.typed_speech() != "no",
                transcribe=transcribe, audio_rate=spec.typed_audio_rate(),
            )  # fmt: skip
            token = read_token(args.token_file, {}) or secrets.token_urlsafe(24)
            guard = Guard([args.host, *args.allow_host], token, "overtone talk", PAGES)
            about = {
                "model": identity(spec), "run": str(settings.folder), "streams": hasattr(model, "stream"),
                "speech": conversations.speech, "transcript": transcribe is not None,
            }  # fmt: skip
            if warning := exposure(taken, token) or _insecure(args.host):
                print(f"overtone: warning: {warning}", file=sys.stderr)

            def ready(url: str) -> None:
                print(f"Open this page and speak: {url}/#{token}", flush=True)
                print(f"The conversation is stored in {shown(str(settings.folder))}. Stop with Ctrl-C.", flush=True)

            await serve(TalkServer(conversations, guard, about), taken, ready)
        finally:
            await model.close()


def _insecure(host: str) -> str:
    from overtone.safety import is_loopback

    if is_loopback(host):
        return ""
    return (
        "browsers give the microphone only to https pages and to localhost; put a TLS proxy (nginx, Caddy) in front "
        "of this address"
    )


def _recogniser() -> Any:
    """Return the embedded recogniser, or None with a note if it is not installed."""
    from overtone.embedded import recogniser, require

    try:
        require("moonshine_voice")
    except MissingExtra as error:
        print(f"note: your words are not shown on the page: {error}", file=sys.stderr)
        return None
    return recogniser.transcribe
