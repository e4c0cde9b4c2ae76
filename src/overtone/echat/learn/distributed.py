"""Run the training loop in one process, or under torchrun in several.

With several processes, parameters, gradients and optimiser state are sharded (FSDP2). Intermediate checkpoints are
sharded too and written atomically.
"""

from __future__ import annotations

import contextlib
import gc
import io
import os
import pickle
import shutil
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.metadata import Metadata, StorageMeta
from torch.distributed.checkpoint.planner import ReadItem
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_state_dict,
    set_state_dict,
)

from overtone.echat.net.device import choose_device
from overtone.errors import StoreError
from overtone.paths import shown


@dataclass
class World:
    """The group of training processes, as seen by one process."""

    rank: int
    size: int
    device: torch.device
    counting: Any = None  # a CPU group for counts, to avoid waiting for a GPU

    @property
    def first(self) -> bool:
        """Whether this is the process that writes files."""
        return self.rank == 0

    def total(self, number: float) -> float:
        """Return the sum of a number over all processes."""
        if self.size == 1:
            return number
        tensor = torch.tensor(number, dtype=torch.float64)
        dist.all_reduce(tensor, group=self.counting)
        return float(tensor)

    def sum(self, tensor: torch.Tensor) -> torch.Tensor:
        """Sum a tensor on the device over all processes."""
        if self.size > 1:
            dist.all_reduce(tensor)
        return tensor

    def agree(self, wish: bool) -> bool:
        """Return whether `wish` is true on any process. All processes get the same answer."""
        return self.total(float(wish)) > 0

    def wait(self) -> None:
        """Wait for all processes."""
        if self.size > 1:
            dist.barrier(group=self.counting)

    def leave(self) -> None:
        """Destroy the process groups. If they still exist when the interpreter ends, the process aborts."""
        if self.size > 1:
            self.counting = None
            gc.collect()  # including references of a sharded model
            dist.destroy_process_group()


def enter(device: str = "auto", timeout_s: float = 600.0) -> World:
    """Join the processes that torchrun started, or run alone. `device` is auto, cpu or cuda."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    place = choose_device(device)
    if place.type == "cuda":
        place = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
        torch.cuda.set_device(place)
        torch.set_float32_matmul_precision("high")  # operations outside bf16 may use TF32
    if size == 1:
        return World(0, 1, place)
    patience = timedelta(seconds=timeout_s)
    dist.init_process_group("nccl" if place.type == "cuda" else "gloo", timeout=patience)
    counting = dist.new_group(backend="gloo", timeout=patience) if place.type == "cuda" else dist.group.WORLD
    return World(dist.get_rank(), size, place, counting)


def spread(
    model: nn.Module, world: World, layers: Callable[[nn.Module], list[nn.Module]], called: str = ""
) -> nn.Module:
    """Shard a model over the processes. Each of `layers(model)` is gathered when needed, the rest at the root.

    `called` names a method that is called in place of the model's `forward`. On GPUs, forward and backward run in bf16;
    gradients are summed and parameters stored in float32.
    """
    if world.size == 1:
        return model.to(world.device)
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard, register_fsdp_forward_method

    mesh = init_device_mesh(world.device.type, (world.size,))
    policy = MixedPrecisionPolicy()
    if world.device.type == "cuda":
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32, cast_forward_inputs=False)
    model.to(world.device)
    for layer in layers(model):
        fully_shard(layer, mesh=mesh, mp_policy=policy)
    fully_shard(model, mesh=mesh, mp_policy=policy)
    if called:
        register_fsdp_forward_method(model, called)
    return model


def whole_state(model: nn.Module, world: World) -> dict[str, torch.Tensor]:
    """Return all parameters on the first process, and {} on the others."""
    if world.size == 1:
        return dict(model.state_dict())
    state: dict[str, torch.Tensor] = get_model_state_dict(
        model, options=StateDictOptions(full_state_dict=True, cpu_offload=True)
    )
    return state


# ── intermediate checkpoints ────────────────────────────────────────────────────────────────────────────────────────
class Progress(msgspec.Struct, frozen=True):
    """The progress of a stage. Random numbers are derived from (seed, step), so there is no generator state."""

    step: int = 0
    targets: int = 0  # target tokens used so far
    batch: int = 0  # index of the next batch
    seconds: float = 0.0  # elapsed so far
    positions: int = 0


def save(folder: Path, model: nn.Module, optimiser: torch.optim.Optimizer, progress: Progress, world: World) -> None:
    """Write `folder/step-N` and remove older checkpoints. A kill at any moment leaves a complete checkpoint."""
    name = f"step-{progress.step:08d}"
    part = folder / f".{name}.part"
    if world.first:
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
    world.wait()
    weights, moments = get_state_dict(model, optimiser)
    writer = dcp.FileSystemWriter(part / "state", sync_files=True)
    with _alone(world):
        dcp.save({"model": weights, "optimiser": moments}, storage_writer=writer, no_dist=world.size == 1)
    world.wait()
    if world.first:
        with (part / "progress.json").open("wb") as file:
            file.write(msgspec.json.encode(progress))
            file.flush()
            os.fsync(file.fileno())
        shutil.rmtree(folder / name, ignore_errors=True)
        part.rename(folder / name)  # from here on it exists
        for old in folder.glob("step-*"):
            if old.name != name and old.is_dir():
                shutil.rmtree(old, ignore_errors=True)
    world.wait()


@contextlib.contextmanager
def _alone(world: World) -> Iterator[None]:
    """Suppress torch's warning about saving in one process, which is intended."""
    with warnings.catch_warnings():
        if world.size == 1:
            warnings.filterwarnings("ignore", message="torch.distributed is disabled")
        yield


def newest(folder: Path) -> Path | None:
    """Return the newest checkpoint in a folder, or None. Removes leftovers of a killed save."""
    for left in folder.glob(".step-*.part"):
        shutil.rmtree(left, ignore_errors=True)
    complete = sorted(path for path in folder.glob("step-*") if (path / "progress.json").is_file())
    return complete[-1] if complete else None


def forget(folder: Path) -> None:
    """Remove the intermediate checkpoints of a finished stage."""
    for path in (*folder.glob("step-*"), *folder.glob(".step-*.part")):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)


def load(checkpoint: Path, model: nn.Module, optimiser: torch.optim.Optimizer, world: World) -> Progress:
    """Load a checkpoint's weights and optimiser state. The number of processes may have changed. Raises StoreError."""
    weights, moments = get_state_dict(model, optimiser)
    state = {"model": weights, "optimiser": moments}
    try:
        with _alone(world):
            dcp.load(state, storage_reader=_Reader(checkpoint / "state"), planner=_Planner(), no_dist=world.size == 1)
        progress = msgspec.json.decode((checkpoint / "progress.json").read_bytes(), type=Progress)
    except torch.OutOfMemoryError:  # a problem of the device, not of the checkpoint
        raise
    except (
        *(OSError, msgspec.DecodeError, dcp.api.CheckpointException, RuntimeError, KeyError, ValueError),
        *(pickle.UnpicklingError, EOFError, AttributeError),
    ) as error:
        why = (str(error).strip() or type(error).__name__).splitlines()[-1]  # torch reports the problem last
        raise StoreError(
            f"{shown(str(checkpoint))}: cannot resume: {shown(why)[-300:]}; "
            "if the checkpoint is damaged, remove it to restart the stage"
        ) from None
    set_state_dict(model, optimiser, model_state_dict=state["model"], optim_state_dict=state["optimiser"])
    return progress


# torch stores a checkpoint's metadata and non-tensor values as pickles, and a pickle may call anything. A run may be
# untrusted, so only the names that occur in such metadata are allowed.
_NAMES = {
    *(("torch.distributed.checkpoint.metadata", name) for name in (
        "BytesStorageMetadata", "ChunkStorageMetadata", "Metadata", "MetadataIndex", "StorageMeta", "TensorProperties",
        "TensorStorageMetadata", "_MEM_FORMAT_ENCODING",
    )),
    ("torch.distributed.checkpoint.filesystem", "_StorageInfo"),
    *((home, name) for home in ("pathlib", "pathlib._local") for name in ("PosixPath", "WindowsPath")),
    ("torch", "Size"),
    ("torch.serialization", "_get_layout"),
}  # fmt: skip


class _Contents(pickle.Unpickler):
    """An unpickler that accepts only a checkpoint's metadata."""

    def find_class(self, module: str, name: str) -> Any:
        kind = getattr(torch, name, None) if module == "torch" else None
        if (module, name) not in _NAMES and not isinstance(kind, torch.dtype):
            raise pickle.UnpicklingError(
                f"it contains {module}.{name}, which Overtone's checkpoints do not: do not trust it"
            )
        return super().find_class(module, name)


class _Reader(dcp.FileSystemReader):
    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        rank = kwargs.get("rank")
        with (Path(self.path) / (".metadata" if rank is None else f"__{rank}.metadata")).open("rb") as file:
            metadata: Metadata = _Contents(file).load()
        metadata.storage_meta = getattr(metadata, "storage_meta", None) or StorageMeta()
        metadata.storage_meta.load_id = self.load_id
        return metadata


class _Planner(dcp.DefaultLoadPlanner):
    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        torch.load(value, weights_only=True)  # raises for anything but plain values
        value.seek(0)
        super().load_bytes(read_item, value)
