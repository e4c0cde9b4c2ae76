"""Where models run on a Ray cluster: the table [ray] of a run file and the flags of the command, checked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from overtone.errors import UsageError
from overtone.spec import suggest

OF_MODEL = ("actors", "cpus", "gpus", "resources")  # the keys that a [[model]] of a run file may set for itself


class Placement(Struct, frozen=True, kw_only=True):
    """How many actors hold a model, and what each needs. `actors` 0: as many as fit, see `ray_nodes.default_actors`."""

    address: str = ""  # of the cluster; "": RAY_ADDRESS, else this machine's running Ray, else a new one
    actors: int = 0
    cpus: float = 1.0
    gpus: float = 0.0
    resources: dict[str, float] = {}  # the cluster's own resources, by name

    @property
    def demand(self) -> dict[str, float]:
        """The resources that one actor takes, under the names that Ray uses."""
        wanted = {"CPU": self.cpus, "GPU": self.gpus, **self.resources}
        return {name: amount for name, amount in wanted.items() if amount}

    @property
    def line(self) -> str:
        """One line that says where a model runs."""
        many = f"{self.actors} actor{'s' * (self.actors != 1)}" if self.actors else "as many actors as fit"
        return f"Ray, {self.address or 'the cluster of this machine'}: {many}, each with {amounts(self.demand)}"


def amounts(resources: Mapping[str, float]) -> str:
    """Return resources in words, such as `1 CPU, 2 GPU`."""
    return ", ".join(f"{amount:g} {name}" for name, amount in sorted(resources.items())) or "no reserved resources"


def placement(where: str, *tables: Mapping[str, Any]) -> Placement:
    """Return the placement that some tables describe; a later table wins. `where` begins the error of a wrong value."""
    merged: dict[str, Any] = {}
    for table in tables:
        for key, value in table.items():
            name = key.replace("-", "_")
            if name not in Placement.__struct_fields__:
                known = ", ".join(Placement.__struct_fields__)
                raise UsageError(
                    f"{where}: unknown key {key!r}{suggest(name, Placement.__struct_fields__)}; known: {known}"
                )
            merged[name] = value
    try:
        made = msgspec.convert(merged, Placement, strict=True)
    except msgspec.ValidationError as error:
        raise UsageError(f"{where}: {error}") from None
    _check(where, made)
    return made


def _check(where: str, made: Placement) -> None:
    if made.address.startswith("ray://"):
        raise UsageError(
            f"{where}: {made.address} is the address of a Ray client, which cannot hold a run's store; start this "
            "command on a node of the cluster and give the address of its head, HOST:6379, or auto"
        )
    if not re.fullmatch(r"|auto|local|[\w.:\[\]-]+:\d{1,5}", made.address):
        raise UsageError(f"{where}: address must be HOST:PORT, auto or local, not {made.address!r}")
    if not 0 <= made.actors <= 10_000:
        raise UsageError(f"{where}: actors must be from 1 to 10000, not {made.actors}")
    for name, amount in {"cpus": made.cpus, "gpus": made.gpus, **made.resources}.items():
        if not 0 <= amount <= 1e6:
            raise UsageError(f"{where}: {name} must be 0 or more, not {amount}")
        if name == "gpus" and amount > 1 and amount != int(amount):
            raise UsageError(f"{where}: gpus above 1 must be a whole number, not {amount:g}")
    taken = {"CPU", "GPU", "memory", "object_store_memory"} & set(made.resources)
    if taken:
        raise UsageError(f"{where}: resources must not name {min(taken)}; use cpus and gpus")
