"""Connect to Ray quietly, and compare what its nodes have with what an actor needs."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import socket
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from overtone.cluster.placement import Placement, amounts
from overtone.errors import MissingExtra, UsageError, install_line

# Ray's own reports: no statistics are sent to its makers, and no advice is printed between our lines.
_QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
LISTENS = 5.0  # seconds that the head of a cluster may take to accept a connection
_connecting = threading.Lock()  # runs at the same time connect from threads of their own
_connected: list[str] = []  # the address that this process has connected to


def import_ray() -> Any:
    """Return the package ray. Raises MissingExtra with the line that installs it."""
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    try:
        import ray
        import ray.exceptions
    except ImportError:
        raise MissingExtra(f"Ray is not installed; run: {install_line('ray')}") from None
    return ray


def connect(address: str) -> Any:
    """Connect this process to a cluster, once, and return the package ray.

    Without an address: RAY_ADDRESS, else the Ray that runs on this machine, else a new one on this machine, which ends
    with this process. Raises UsageError if the cluster cannot be reached or this process uses another one.
    """
    with _connecting:
        return _connect(address)


def _connect(address: str) -> Any:
    ray = import_ray()
    if ray.is_initialized():
        if _connected and address not in ("", *_connected):
            raise UsageError(f"this process is connected to Ray at {_connected[0] or 'auto'}, not at {address}")
        return ray
    logging.getLogger("ray").setLevel(logging.CRITICAL)
    quiet = {"logging_level": logging.CRITICAL, "log_to_driver": False, "configure_logging": False}
    named = address or os.environ.get("RAY_ADDRESS", "")
    if named in ("", "auto"):
        here = _running_here()
        if named and not here:
            raise UsageError("no Ray runs on this machine; start one with 'ray start --head', or name its address")
        named = here or "local"
    if named != "local":
        _check_listens(named)
    try:
        ray.init(address=named, **quiet, **({"include_dashboard": False} if named == "local" else {}))
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        why = str(error).strip().partition("\n")[0]
        raise UsageError(f"Ray cannot be used at {named}: {why}") from None
    _connected[:] = [address]
    return ray


def _running_here() -> str:
    """Return the address of the cluster that `ray start` began on this machine, "" if it has ended."""
    noted = Path(os.environ.get("RAY_TMPDIR", "/tmp")) / "ray" / "ray_current_cluster"
    with contextlib.suppress(OSError, UsageError):
        address = noted.read_text().strip()
        _check_listens(address)
        return address
    return ""


def _check_listens(address: str) -> None:
    """Raise UsageError unless something listens at an address, because Ray itself waits for minutes."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=LISTENS).close()
    except (OSError, ValueError) as error:
        raise UsageError(
            f"no Ray cluster answers at {address}: {error}; start one with 'ray start --head' and give the address "
            "that it prints, or leave the address out to use this machine alone"
        ) from None


class Node(NamedTuple):
    """A node of the cluster. Several nodes on one machine have numbers in their names."""

    id: str
    name: str
    has: dict[str, float]  # all its resources, whether they are free or not


def alive_nodes(ray: Any) -> list[Node]:
    """Return the nodes of the cluster that are alive."""
    nodes = [node for node in ray.nodes() if node["Alive"]]
    named: list[Node] = []
    for node in nodes:
        address = node["NodeManagerAddress"]
        same = [other["NodeID"] for other in nodes if other["NodeManagerAddress"] == address]
        number = f"#{same.index(node['NodeID']) + 1}" if len(same) > 1 else ""
        named.append(Node(node["NodeID"], address + number, node["Resources"]))
    return named


def name_of(ray: Any, node_id: str) -> str:
    """Return the name of a node, for people."""
    return next((node.name for node in alive_nodes(ray) if node.id == node_id), node_id[:8])


def fits(demand: Mapping[str, float], has: Mapping[str, float]) -> bool:
    """Return whether a node that is idle could hold an actor."""
    return all(has.get(name, 0.0) >= amount for name, amount in demand.items())


def default_actors(nodes: Sequence[Node], wanted: Placement) -> int:
    """Return the default number of actors that hold a model: one per node, or one per share of the GPUs."""
    demand = wanted.demand
    able = [has for _, _, has in nodes if fits(demand, has)]
    if not wanted.gpus:
        return max(1, len(able))
    return max(1, sum(min(int(has[name] / demand[name] + 1e-9) for name in demand) for has in able))


def impossible(nodes: Sequence[Node], demand: Mapping[str, float]) -> str:
    """Return why no node could ever hold an actor, "" if one could."""
    if any(fits(demand, has) for _, _, has in nodes):
        return ""
    listed = "; ".join(f"{name} has {_shown(has, demand)}" for _, name, has in nodes[:8])
    more = f"; and {len(nodes) - 8} more" if len(nodes) > 8 else ""
    return f"no node of the Ray cluster has {amounts(demand)} for an actor: {listed or 'it has no node'}{more}"


def busy(ray: Any, demand: Mapping[str, float]) -> str:
    """Return what is free in the whole cluster of what an actor needs."""
    free = ray.available_resources()
    return f"an actor needs {amounts(demand)}; free in the cluster: {_shown(free, demand)}"


def _shown(has: Mapping[str, float], demand: Mapping[str, float]) -> str:
    return amounts({name: has.get(name, 0.0) for name in {"CPU": 0, "GPU": 0, **demand}})


def brief(error: BaseException) -> str:
    """Return one line of Ray's many: the last that names an error, else the first."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    named = [line for line in lines if re.match(r"[\w.]*(Error|Exception)\b.*:", line)]
    return (named[-1] if named else lines[0] if lines else type(error).__name__)[:300]
