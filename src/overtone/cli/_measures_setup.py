"""Create the measuring environment: a separate, pinned virtual environment for predictors that need torch."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from overtone.errors import EXIT_OK, OvertoneError
from overtone.metrics._helper import Helper
from overtone.workers.measuring_environment import measures_folder

PROOFS = ("dnsmos", "distillmos")  # their weights are in their packages; if they start, torch and ONNX work here


def lock() -> Path:
    """Return the path of the file with pinned versions and hashes."""
    return Path(__file__).parents[1] / "workers" / "measures.lock"


def blocks(path: Path) -> dict[str, tuple[str, str]]:
    """Return the pinned version and the lines of each distribution in the file."""
    text = path.read_text("utf-8")
    pins = re.findall(r"^([A-Za-z0-9._-]+)==(\S+) \\\n(?:    --hash=\S+(?: \\)?\n)+", text, re.M)
    lines = re.split(r"^(?=[a-z])", text, flags=re.M)[1:]
    return {name: (version, block) for (name, version), block in zip(pins, lines, strict=True)}


def main(dry_run: bool) -> int:
    folder = measures_folder(os.environ)
    python = folder / "bin" / "python"
    pinned = blocks(lock())
    there = installed(python)
    missing = {name: block for name, (version, block) in pinned.items() if there.get(name) != version}
    if dry_run:
        print(f"{'would make' if not there else 'made':<14}{folder}")
        for name, (version, _) in pinned.items():
            print(f"{'would install' if name in missing else 'installed':<14}{name} {version}")
        print("nothing to do" if not missing else "would run     pip install --no-deps --require-hashes in it")
        return EXIT_OK
    if not missing:
        print(f"The measuring environment {folder} is complete; nothing to do.")
        return EXIT_OK
    if not python.exists():
        print(f"Creating {folder} …", flush=True)
        if subprocess.run([sys.executable, "-P", "-m", "venv", str(folder)], check=False).returncode:
            raise OvertoneError(f"cannot create {folder} (see the message above); on Debian: apt install python3-venv")
    print(f"Installing {len(missing)} packages, about 300 MB to download …", flush=True)
    _install(python, missing)
    for name in PROOFS:
        with Helper("quality", {"predictor": name}) as helper:
            print(f"{name:<12} works: {helper.facts['weights']}")
    return EXIT_OK


def installed(python: Path) -> dict[str, str]:
    """Return the installed version of each package, without its local part (2.13.0+cpu is 2.13.0)."""
    if not python.exists():
        return {}
    code = "import json, importlib.metadata as m; print(json.dumps([(d.name, d.version) for d in m.distributions()]))"
    done = subprocess.run([str(python), "-I", "-c", code], capture_output=True, text=True, check=False)
    if done.returncode:
        raise OvertoneError(f"{python} does not run: {done.stderr.strip()}; delete {python.parents[1]} and try again")
    return {re.sub(r"[-_.]+", "-", n).lower(): v.partition("+")[0] for n, v in json.loads(done.stdout)}


def _install(python: Path, missing: dict[str, str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        wanted = Path(folder) / "measures.lock"
        wanted.write_text("".join(missing.values()), "utf-8")
        command = [str(python), "-P", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        if subprocess.run([*command, "--no-deps", "--require-hashes", "-r", str(wanted)], check=False).returncode == 0:
            return
    raise OvertoneError(
        "pip could not install the measuring environment (see its message above). It needs a package index, on Linux "
        "one with torch's CPU wheels. If the index has no torch with these hashes for your Python, install torch "
        f"2.13.0 with '{python} -m pip install', then run 'overtone setup measures' again, which keeps it"
    )
