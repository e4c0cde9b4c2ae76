"""How much of a bare aiohttp loop's throughput a whole run keeps: store, limiter, prompts and clips included.

The endpoint answers after a fixed time and is another process on the same cores; a run and the bare loop take turns.
The run is timed from its first request to its last committed reply; planning is timed apart.

    python -m bench.throughput [--connections 64 256] [--seconds-each 20] [--rounds 3] [--inspect PYTHON]
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from pathlib import Path

from bench import data, http_models, inspect_peer
from overtone.runs.engine import Progress
from overtone.runs.session import Hooks, execute
from overtone.runs.settings import resolve
from tests.servers import process


def one_run(base_url: str, folder: Path, out: Path, requests: int, connections: int) -> float:
    """Requests per second of `overtone run`, from its first request to its last reply."""
    flags = {
        "benchmark": "echomind",
        "data": str(folder),
        "model": [f"openai:any?base_url={base_url}"],
        "levels": "1",
        "asr": "target",
        "limit": requests,
        "max_connections": connections,
        "out": str(out),
    }
    (settings,) = resolve(flags, None, {})
    began = 0.0

    def start(*_: object) -> None:
        nonlocal began
        began = time.perf_counter()

    def progress(_: Progress) -> None:
        pass

    outcome = asyncio.run(execute(settings, Hooks(start, progress)))
    took = time.perf_counter() - began
    assert outcome.answered == requests, outcome
    return requests / took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--connections", type=int, nargs="+", default=[64, 256])
    parser.add_argument("--latency", type=float, default=0.2)
    parser.add_argument("--seconds-each", type=float, default=20.0, help="how long each measurement takes, roughly")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--inspect", metavar="PYTHON", help="an interpreter that has inspect_ai, to measure beside")
    args = parser.parse_args()
    most = int(max(args.connections) / args.latency * args.seconds_each)
    with tempfile.TemporaryDirectory() as name, process(latency=args.latency, light=True) as base_url:
        folder = data.make(Path(name) / "data", scripts=100, questions=most)
        for connections in args.connections:
            ideal = connections / args.latency
            requests = int(ideal * args.seconds_each)
            bare_args = argparse.Namespace(seconds=3.0, requests=requests, connections=connections)
            bare, ours = [], []
            for number in range(args.rounds):
                bare.append(asyncio.run(http_models.bare(base_url, bare_args))[0])
                out = Path(name) / f"run-{connections}-{number}"
                ours.append(one_run(base_url, folder, out, requests, connections))
                print(f"  {connections} connections, round {number + 1}: bare {bare[-1]:.0f}/s, run {ours[-1]:.0f}/s")
            middle = statistics.median(bare), statistics.median(ours)
            print(
                f"{connections} connections, {requests} requests of 96 KB: bare {middle[0]:.0f}/s "
                f"({middle[0] / ideal:.1%} of ideal), run {middle[1]:.0f}/s, ratio {middle[1] / middle[0]:.3f}"
            )
            if args.inspect:
                clip = next((folder / "data_synthesis" / "audio").rglob("*.wav"))
                peer = inspect_peer.rate(
                    args.inspect,
                    items=15 * connections,
                    logs=Path(name) / f"logs{connections}",
                    base_url=base_url,
                    clip=str(clip),
                    connections=connections,
                )
                print(
                    f"{connections} connections: inspect_ai {peer:.0f}/s, ratio to the bare loop {peer / middle[0]:.3f}"
                )


if __name__ == "__main__":
    main()
