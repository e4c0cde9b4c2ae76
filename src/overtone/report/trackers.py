"""Send a run's headline numbers, its tables and its report to an experiment tracker: Weights & Biases or MLflow.

A run has the same id in the tracker each time, so that logging it again updates it instead of adding another.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec
from msgspec import Struct

from overtone.errors import MissingExtra, UsageError, install_line
from overtone.paths import write_whole
from overtone.report.named_tables import named_tables
from overtone.report.page import run_labels, write_report
from overtone.report.run_summary import headline_numbers
from overtone.report.table_formats import csv_text
from overtone.results.headline import has_own_tables
from overtone.results.load import Reading, open_run
from overtone.version import __version__

LOCAL = "mlruns"  # the folder of an MLflow store without a server


class Logged(Struct, frozen=True):
    """The data that a tracker receives about one run."""

    id: str
    name: str
    config: dict[str, str]
    numbers: dict[str, float]  # headline numbers, with `_low` and `_high` for the ends of their intervals
    files: tuple[Path, ...]  # tables as CSV, and the report


def log_run(folder: Path, tracker: str, *, project: str, to: str, offline: bool, report: bool) -> str:
    """Log a run, and return where it is now.

    Raises UsageError if the tracker refuses, and MissingExtra if its package is not installed.
    """
    send = TRACKERS[tracker]
    reading = open_run(folder, light=True)
    with tempfile.TemporaryDirectory() as work:
        return send(_logged(reading, Path(work), report), project, to, offline)


def _logged(reading: Reading, work: Path, report: bool) -> Logged:
    numbers: dict[str, float] = {}
    for number in headline_numbers(reading):
        e = number.estimate
        for ending, value in (("", e.value), ("_low", e.low), ("_high", e.high)):
            if value is not None:
                numbers[f"{_key(number.name)}{ending}"] = value
    answered = sum(answer.answered for answer in reading.answers)
    failed = sum(answer.failed for answer in reading.answers)
    numbers |= {"asked": len(reading.answers), "answered": answered, "failed": failed}
    name = "headline" if has_own_tables(reading) else "results"
    table = work / f"{name}.csv"
    write_whole(table, csv_text(named_tables(name, [reading]), run_labels([reading])).encode())
    files = (table, write_report([reading.folder], work / "report.html")) if report else (table,)
    meta = reading.meta
    identity = (meta.get("benchmark", ""), meta.get("model", ""), meta.get("created", ""), meta.get("label", ""))
    config = {
        "benchmark": reading.benchmark, "model": meta.get("model", ""), "seed": meta.get("seed", ""),
        "prompts": meta.get("prompts", ""), "answers": meta.get("answers", ""), "overtone": __version__,
    }  # fmt: skip
    return Logged(hashlib.sha256(msgspec.json.encode(identity)).hexdigest()[:16], reading.name, config, numbers, files)


def _key(name: str) -> str:
    """Return the name of a number as trackers allow it: letters, digits, `_`, `.`, `-` and `/`."""
    return re.sub(r"_?\._?", ".", re.sub(r"[^a-z0-9./-]+", "_", name.lower().replace(" · ", "."))).strip("_.")


def _wandb(logged: Logged, project: str, to: str, offline: bool) -> str:
    """Log to Weights & Biases; `to` is the folder of its files."""
    try:
        import wandb
    except ImportError:
        raise MissingExtra(f"wandb is not installed; run: {install_line('wandb')}") from None
    # Nothing about this machine or the folder's code is sent.
    quiet = wandb.Settings(silent=True, console="off", disable_git=True, save_code=False, x_disable_meta=True)
    try:
        if to:
            Path(to).mkdir(parents=True, exist_ok=True)
        run = wandb.init(
            project=project, name=logged.name, id=logged.id, config=logged.config, dir=to or None,
            mode="offline" if offline else "online", resume="allow", settings=quiet,
        )  # fmt: skip
        try:
            run.summary.update(logged.numbers)
            artefact = wandb.Artifact(f"overtone-{logged.id}", type="overtone-run", metadata=logged.config)
            for file in logged.files:
                artefact.add_file(str(file), name=file.name)
            run.log_artifact(artefact)
        finally:
            run.finish()
    except (wandb.Error, OSError) as error:
        raise UsageError(f"wandb: {error}; 'wandb login' sets a key, and --offline needs none") from None
    return str(Path(run.dir).parent) if offline else str(run.url)


def _mlflow(logged: Logged, project: str, to: str, offline: bool) -> str:
    """Log to MLflow; `to` is the address of a server or a folder."""
    if offline and "://" in to:
        raise UsageError(f"--offline writes to a folder, but --to is {to}; leave out one of them")
    if "://" not in to:  # MLflow keeps folders for tools like this one, but wants to hear that they are meant
        os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
    try:
        from mlflow.exceptions import MlflowException
        from mlflow.tracking import MlflowClient
    except ImportError:
        raise MissingExtra(f"MLflow is not installed; run: {install_line('mlflow')}") from None
    address = to if "://" in to else Path(to or LOCAL).resolve().as_uri()
    try:
        client = MlflowClient(tracking_uri=address)
        known = client.get_experiment_by_name(project)
        experiment = known.experiment_id if known else client.create_experiment(project)
        earlier = client.search_runs([experiment], f"tags.overtone_id = '{logged.id}'")
        if earlier:
            run_id = earlier[0].info.run_id
        else:
            tags = {"overtone_id": logged.id}
            run_id = client.create_run(experiment, run_name=logged.name, tags=tags).info.run_id
        for key, value in logged.config.items():
            client.set_tag(run_id, key, value)  # a parameter of MLflow cannot change, and is cut at 6,000 characters
        for key, number in logged.numbers.items():
            client.log_metric(run_id, key, number)
        for file in logged.files:
            client.log_artifact(run_id, str(file))
        client.set_terminated(run_id)
    except (MlflowException, OSError) as error:
        raise UsageError(f"MLflow at {address}: {error}") from None
    return f"{address} (experiment {project}, run {run_id})"


TRACKERS: dict[str, Callable[[Logged, str, str, bool], str]] = {"wandb": _wandb, "mlflow": _mlflow}
