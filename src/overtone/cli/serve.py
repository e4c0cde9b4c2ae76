"""Serve a trained checkpoint as an OpenAI-compatible endpoint for speech: chat, realtime sessions, reading aloud."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from pathlib import Path

from overtone.errors import EXIT_OK, MissingExtra, install_line
from overtone.paths import shown

EXAMPLES = ("overtone serve runs/mini", "overtone serve runs/mini --host 0.0.0.0 --token-file token.txt")


def add(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    flag = parser.add_argument
    flag("checkpoint", metavar="CHECKPOINT", help="folder of a checkpoint or of a training run, or mini "
                                                  "(see 'overtone setup mini')")  # fmt: skip
    flag("--name", default="echat", help="name of the model in the API (default: echat)")
    flag = parser.add_argument_group("network").add_argument
    flag("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1, this machine only)")
    flag("--port", metavar="N", type=int, default=8000, help="port; 0 picks a free one (default: 8000)")
    flag("--allow-host", metavar="NAME", action="append", default=[],
                        help="name that clients may use for this server, besides addresses; repeatable")  # fmt: skip
    flag("--token-file", metavar="FILE", type=Path,
                        help="file with the token that clients must send (default: OVERTONE_TOKEN)")  # fmt: skip
    flag = parser.add_argument_group("how it computes").add_argument
    flag("--device", default="auto", help="device: auto, cpu, cuda or cuda:N (default: auto)")
    flag("--dtype", choices=("float32", "bfloat16", "float16"), default="",
                        help="number type of the language model; float16 is fast on a CPU "
                             "(default: bfloat16 on a GPU, else as trained)")  # fmt: skip
    flag("--batch", metavar="N", type=int, default=8, help="maximum number of requests per batch (default: 8)")
    flag("--threads", metavar="N", type=int, help="number of CPU threads (default: all)")
    flag = parser.add_argument_group("replies").add_argument
    flag(
        "--think",
        choices=("label", "natural", "none"),
        default="",
        help="form of the thought before a reply (default: as trained)",
    )
    flag("--system", choices=("own", "given"), default="own",
                        help="system prompt: own (of training) or given (by the request) (default: own)")  # fmt: skip
    flag("--temperature", metavar="X", type=float, help="sampling temperature of text (default: greedy decoding)")
    flag("--speech-temperature", metavar="X", type=float, help="sampling temperature of speech tokens (default: 1.2)")
    flag(
        "--max-tokens",
        metavar="N",
        type=int,
        help="maximum text tokens per reply, including its thought (default: 220)",
    )
    flag("--max-speech", metavar="S", type=float, help="maximum seconds of a spoken reply (default: 20)")


def main(args: argparse.Namespace) -> int:
    """Serve until stopped."""
    from overtone.models.echat import check_numbers, named_checkpoint
    from overtone.workers.measuring_environment import borrow_torch

    folder = named_checkpoint(args.checkpoint)
    check_numbers(vars(args), lambda key: f"--{key.replace('_', '-')}")
    borrow_torch()
    try:
        import torch
    except ModuleNotFoundError:
        raise MissingExtra(
            f"torch is not installed; run: overtone setup mini, or, for a GPU, {install_line('train')}"
        ) from None
    from overtone.echat.talk.answer import open_answerer
    from overtone.echat.talk.http_server import serve
    from overtone.echat.talk.reply_settings import reply_settings
    from overtone.server_guard import TOKEN_VARIABLE, Guard, bound, exposure, read_token

    if args.threads:
        torch.set_num_threads(args.threads)
    token = read_token(args.token_file)
    guard = Guard([args.host, *args.allow_host], token)
    taken = bound(args.host, args.port)
    if warning := exposure(taken, token):
        print(f"overtone: warning: {warning}", file=sys.stderr)
    print(f"loading {shown(str(folder))} …", flush=True)
    answerer = open_answerer(folder, reply_settings(vars(args)), device=args.device, dtype=args.dtype)
    answerer.check_speech()

    def ready(url: str) -> None:
        print(f"{args.name} answers at {url}; stop it with Ctrl-C. For example:", flush=True)
        key = f"&api_key_env={TOKEN_VARIABLE}" if token else ""
        here = url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")
        print(f"  overtone run echomind --model 'openai:{args.name}?base_url={here}{key}'", flush=True)

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # close the connections after SIGTERM as after Ctrl-C
    try:
        asyncio.run(serve(answerer, taken, args.name, args.batch, ready, guard))
    except KeyboardInterrupt:
        print("stopped", flush=True)
    return EXIT_OK
