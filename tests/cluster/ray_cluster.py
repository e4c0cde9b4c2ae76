"""A real Ray cluster of several nodes on one machine, in a process of the peers' environment.

`python -m tests.cluster.ray_cluster SIZE SIZE …` starts a head without CPUs and one node per size, prints the
address, and then obeys one order per line: `kill N` ends the processes of node N with -9, `remove N` takes it out,
`add SIZE` adds one. It answers each line with one line, and ends when its input does. A SIZE is CPUS or CPUS:GPUS;
Ray gives out GPUs that are not there, too.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.peers import BIN

ROOT = Path(__file__).parents[2]


class Cluster:
    """The cluster as the tests see it."""

    def __init__(self, process: subprocess.Popen[str], address: str) -> None:
        self._process = process
        self.address = address

    def tell(self, line: str) -> str:
        """Give an order and return the answer."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()


def environment(*, embedded: bool = False) -> dict[str, str]:
    """Return the environment of the commands that the tests run in the peers' environment. With `embedded`, they borrow
    the packages of the embedded models from the environment of the tests."""
    path = [ROOT / "src", ROOT, *([Path(sysconfig.get_paths()["purelib"])] if embedded else [])]
    return os.environ | {"PYTHONPATH": os.pathsep.join(map(str, path)), "RAY_USAGE_STATS_ENABLED": "0"}


@contextmanager
def cluster(*sizes: str, environ: dict[str, str] | None = None) -> Iterator[Cluster]:
    """Start a cluster with one node per size; all its processes end with the block."""
    command = [str(BIN / "python"), "-m", "tests.cluster.ray_cluster", *sizes]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environ or environment(),
        cwd=ROOT,
    ) as process:
        assert process.stdout and process.stdin
        address = process.stdout.readline().strip()
        assert address, "the cluster did not start"
        try:
            yield Cluster(process, address)
        finally:
            process.stdin.close()
            process.wait(60)


def children(parent: int) -> list[int]:
    """Return the processes that a process has started: a node's are its actors and tasks."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            pid, after = int(stat.parent.name), stat.read_text().rpartition(")")[2].split()
            found += [pid] if int(after[1]) == parent else []
    return found


def main() -> None:
    from ray.cluster_utils import Cluster as RayCluster

    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what Ray prints must not get between the answers
    options = {"include_dashboard": False, "object_store_memory": 120_000_000}
    made = RayCluster(initialize_head=True, head_node_args={"num_cpus": 0, **options})

    def add(size: str) -> Any:
        cpus, _, gpus = size.partition(":")
        return made.add_node(num_cpus=int(cpus), num_gpus=int(gpus or 0), **options)

    nodes = [add(size) for size in sys.argv[1:]]
    made.wait_for_nodes()
    print(made.address, file=out, flush=True)
    for line in sys.stdin:
        order, _, number = line.strip().partition(" ")
        if order == "kill":
            own = [each.process.pid for kind in nodes[int(number)].all_processes.values() for each in kind]
            for pid in [*own, *(child for parent in own for child in children(parent))]:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        elif order == "remove":
            made.remove_node(nodes[int(number)])
        elif order == "add":
            nodes.append(add(number))
        print(f"done: {line.strip()}", file=out, flush=True)
    made.shutdown()


if __name__ == "__main__":
    main()
