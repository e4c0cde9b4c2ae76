"""What a Ray cluster costs and gains, on a cluster of two nodes on this machine: `python -m bench.ray_cluster`.

Each round measures, in this order: a model without latency through one actor and in this process, with 32 requests at
once and with one (items per second), and a model of 50 ms with four slots per actor on one node, on two nodes, and in
this process (seconds). A run counts from its first request to its last reply, with the store on disk, as `overtone run`
writes it. Ratios are formed within a round, so the load of the machine matters less. Needs the extra `ray`.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from pathlib import Path

from bench.data import make
from overtone import registry
from overtone.cluster.ray_nodes import import_ray
from overtone.runs.asker import Outcome
from overtone.runs.session import Hooks, execute
from overtone.runs.settings import resolve

PLACES = 4


def seconds(data: Path, out: Path, model: str, items: int, connections: int, ray: dict[str, object] | None) -> float:
    """Run a model and return the seconds from the first request to the last reply."""
    flags = {"benchmark": "echomind", "data": str(data), "model": [model], "out": str(out), "levels": "3"}
    (settings,) = resolve({**flags, "limit": items, "max_connections": connections, "ray": ray}, None, {})
    began = 0.0

    def start(*_: object) -> None:
        nonlocal began
        began = time.perf_counter()

    ended = 0.0

    async def run() -> Outcome:
        nonlocal ended
        return await execute(settings, Hooks(on_start=start, on_progress=lambda _: mark()))

    def mark() -> None:
        nonlocal ended
        ended = time.perf_counter()

    outcome = asyncio.run(run())
    assert outcome.answered == items, outcome
    return ended - began


def summary(values: list[float]) -> str:
    """Return the median and the range."""
    return f"{statistics.median(values):.3g} [{min(values):.3g} to {max(values):.3g}]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2.0, help="of sound in each request")
    args = parser.parse_args()
    ray = import_ray()
    from ray.cluster_utils import Cluster

    registry.load_plugin(Path(__file__).with_name("ray_model.py"))
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    for _ in range(2):
        cluster.add_node(num_cpus=1, include_dashboard=False)
    cluster.wait_for_nodes()
    rows: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        data = make(Path(folder) / "data", scripts=args.items // 3 + 1, questions=1, seconds=args.seconds)
        at = {"address": cluster.address}
        for number in range(args.rounds):
            cases = (
                ("zero, one actor", "ray-model:any?places=32", 32, at | {"actors": 1}),
                ("zero, this process", "ray-model:any?places=32", 32, None),
                ("one at a time, one actor", "ray-model:any?places=1", 1, at | {"actors": 1}),
                ("one at a time, this process", "ray-model:any?places=1", 1, None),
                ("50 ms, one node", f"ray-model:any?delay=0.05&places={PLACES}", PLACES, at | {"actors": 1}),
                ("50 ms, two nodes", f"ray-model:any?delay=0.05&places={PLACES}", 2 * PLACES, at | {"actors": 2}),
                ("50 ms, this process", f"ray-model:any?delay=0.05&places={PLACES}", PLACES, None),
            )
            for at_case, (name, model, connections, where) in enumerate(cases):
                out = Path(folder) / f"run-{number}-{at_case}"
                rows.setdefault(name, []).append(seconds(data, out, model, args.items, connections, where))
        ray.shutdown()
        cluster.shutdown()
    print(f"{args.items} items of {args.seconds:g} s of sound, {args.rounds} rounds; median [lowest to highest]")
    for name in ("zero, one actor", "zero, this process"):
        print(f"{name}: {summary([args.items / taken for taken in rows[name]])} items/s")
    for name in ("one at a time, one actor", "one at a time, this process"):
        print(f"{name}: {summary([1000 * taken / args.items for taken in rows[name]])} ms per item")
    for name in ("50 ms, one node", "50 ms, two nodes", "50 ms, this process"):
        print(f"{name}: {summary(rows[name])} s (ideal {args.items * 0.05 / PLACES / (2 if 'two' in name else 1):.3g})")
    pairs = zip(rows["50 ms, one node"], rows["50 ms, two nodes"], strict=True)
    print(f"two nodes: {summary([one / two for one, two in pairs])} times one")


if __name__ == "__main__":
    main()
