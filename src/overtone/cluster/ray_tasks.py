"""Jobs on a Ray cluster: an executor whose jobs run in tasks, each on one core of any node.

A job gives the same result on every node, because all nodes must have the versions of the packages that this process
has. Files are not sent: the folders of a build or a run must be shared, and every node proves that it sees them.
"""

from __future__ import annotations

import contextlib
import logging
import pickle
import uuid
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from overtone import pool
from overtone.cluster import node_setup, ray_nodes
from overtone.cluster.node_setup import Setup, setup_of
from overtone.errors import OvertoneError, UsageError, raised

LOST = 3  # times that a job whose process or node has died is repeated
CHECK_SECONDS = 120.0  # for a node to answer the first job
_THREADS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
log = logging.getLogger("overtone")


class RayTasks(pool.Cluster):
    """Runs each job as a task. `folders` are those that the jobs read or write."""

    def __init__(self, address: str, folders: Iterable[Path] = (), variables: Iterable[str] = ()) -> None:
        self._ray = ray_nodes.connect(address)
        self._setup = self._ray.put(setup_of(variables))
        remote = self._ray.remote(_run)
        environment = {"env_vars": _THREADS}
        self._task = remote.options(num_cpus=1, max_retries=LOST, scheduling_strategy="SPREAD", runtime_env=environment)
        nodes = [node for node in ray_nodes.alive_nodes(self._ray) if node.has.get("CPU", 0) >= 1]
        if not nodes:
            raise UsageError("no node of the Ray cluster has a CPU for a job; start one with 'ray start --address=…'")
        self.cores = sum(int(node.has["CPU"]) for node in nodes)
        self._check(nodes, folders)
        log.info("jobs run on Ray, %d cores: %s", self.cores, ", ".join(node.name for node in nodes))

    def submit(self, work: Callable[..., Any], /, *given: Any, **named: Any) -> Future[Any]:
        """Run a job. Its exception is raised as it was; a job that was lost too often raises OvertoneError."""
        reference = self._task.remote(self._setup, pickle.dumps((work, given, named)))
        future = _Job(self._ray, reference)
        reference.future().add_done_callback(lambda done: _settle(future, done))
        return future

    def _check(self, nodes: list[ray_nodes.Node], folders: Iterable[Path]) -> None:
        """Raise UsageError for a node with other versions, or that does not see a folder."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        marks = []
        try:
            for folder in folders:
                there = next(one for one in (folder.absolute(), *folder.absolute().parents) if one.is_dir())
                mark = there / f".overtone-shared-{uuid.uuid4().hex}"
                mark.touch()
                marks.append(mark)
            at = {node.name: NodeAffinitySchedulingStrategy(node.id, soft=False) for node in nodes}
            probe = self._ray.remote(_probe)
            answers = {
                name: probe.options(num_cpus=0, max_retries=0, scheduling_strategy=where).remote(self._setup, marks)
                for name, where in at.items()
            }
            for name, answer in answers.items():
                self._judge(name, answer)
        finally:
            for mark in marks:
                mark.unlink(missing_ok=True)

    def _judge(self, name: str, answer: Any) -> None:
        errors = self._ray.exceptions
        try:
            different, unseen = self._ray.get(answer, timeout=CHECK_SECONDS)
        except errors.GetTimeoutError:
            raise UsageError(f"node {name} of the Ray cluster did not answer in {CHECK_SECONDS:g} s") from None
        except errors.RayError as error:
            raise UsageError(f"node {name} of the Ray cluster cannot run a job: {ray_nodes.brief(error)}") from None
        if different:
            raise UsageError(f"node {name} would not make the same bytes: {different}; install the same versions")
        if unseen:
            raise UsageError(
                f"node {name} does not see {Path(unseen).parent}; put the folder on a file system that all nodes mount "
                "at the same path"
            )


class _Job(Future[Any]):
    """The future of a task. Cancelling it cancels the task."""

    def __init__(self, ray: Any, reference: Any) -> None:
        super().__init__()
        self._ray = ray
        self._reference = reference

    def cancel(self) -> bool:
        if not super().cancel():
            return False
        with contextlib.suppress(self._ray.exceptions.RayError):
            self._ray.cancel(self._reference)
        return True


def _settle(future: Future[Any], done: Future[Any]) -> None:
    """Give a task's result to the future that its caller waits for."""
    if not future.set_running_or_notify_cancel():
        return
    if error := done.exception():
        lost = f"a job was lost {LOST + 1} times: {ray_nodes.brief(error)}; the same command resumes"
        future.set_exception(OvertoneError(lost))
        return
    try:
        packed, failed = done.result()
        value = pickle.loads(packed)
    except Exception as error:  # noqa: BLE001 - a class of a plug-in may not be known here
        future.set_exception(OvertoneError(f"the result of a job cannot be read: {raised(error)}"))
        return
    if failed:
        future.set_exception(value)
    else:
        future.set_result(value)


def asked_for(wanted: bool | None, address: str | None) -> bool:
    """Return whether the flags --ray, --no-ray and --ray-address ask for Ray."""
    return wanted is True or (wanted is None and bool(address))


@contextmanager
def jobs_on_ray(
    wanted: bool | None, address: str | None, folders: Iterable[Path], variables: Iterable[str] = ()
) -> Iterator[None]:
    """Spread the jobs of this block over a Ray cluster if the user asked for one, with a flag or an address."""
    if not asked_for(wanted, address):
        yield
        return
    with pool.use(RayTasks(address or "", folders, variables)):
        yield


# ── in a process of a node ────────────────────────────────────────────────────────────────────────────────────────────
def _run(setup: Setup, packed: bytes) -> tuple[bytes, bool]:
    """Run a job; return its pickled result, or its exception and True."""
    node_setup.apply(setup)
    try:
        work, given, named = pickle.loads(packed)
        return pickle.dumps(work(*given, **named)), False
    except Exception as error:  # noqa: BLE001 - the driver raises it again
        try:
            return pickle.dumps(error), True
        except Exception:  # noqa: BLE001 - an exception of a plug-in may refuse to be copied
            return pickle.dumps(RuntimeError(raised(error))), True


def _probe(setup: Setup, marks: list[Path]) -> tuple[str, str]:
    """Return how this node's versions differ, and the first mark that it does not see."""
    unseen = next((str(mark) for mark in marks if not mark.exists()), "")
    return node_setup.difference(setup, packages=True), unseen
