"""Make the measuring environment: a virtual environment apart, pinned and hashed, for predictors that need torch."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from overtone.errors import EXIT_OK, OvertoneError
from overtone.metrics._helper import Helper, measures_folder

PROOFS = ("dnsmos", "distillmos")  # predictors that come whole: that they start shows that torch and ONNX run here


def lock() -> Path:
    """The file of pins and hashes."""
    return Path(__file__).parents[1] / "workers" / "measures.lock"


def blocks(path: Path) -> dict[str, tuple[str, str]]:
    """Each distribution's pinned version, and its lines of the file."""
    text = path.read_text("utf-8")
    found = re.findall(r"^([A-Za-z0-9._-]+)==(\S+) \\\n(?:    --hash=\S+(?: \\)?\n)+", text, re.M)
    lines = re.split(r"^(?=[a-z])", text, flags=re.M)[1:]
    return {name: (version, block) for (name, version), block in zip(found, lines, strict=True)}


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
        print("nothing to do" if not missing else "would run     pip install --no-deps --require-hashes, there")
        return EXIT_OK
    if not missing:
        print(f"The measuring environment {folder} is complete; nothing to do.")
        return EXIT_OK
    if not python.exists():
        print(f"Making {folder} …", flush=True)
        if subprocess.run([sys.executable, "-P", "-m", "venv", str(folder)], check=False).returncode:
            raise OvertoneError(
                f"{folder} could not be made (the message is above); on Debian: apt install python3-venv"
            )
    print(f"Installing {len(missing)} packages, about 300 MB to download …", flush=True)
    _install(python, missing)
    for name in PROOFS:
        with Helper("quality", {"predictor": name}) as helper:
            print(f"{name:<12} works: {helper.facts['weights']}")
    return EXIT_OK


def installed(python: Path) -> dict[str, str]:
    """What an environment has: name → version without its local part (2.13.0+cpu is 2.13.0)."""
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
        "pip could not install the measuring environment (its message is above). A package index must be reachable, "
        "for Linux one with torch's CPU wheels; where it has no torch with these hashes for your Python, install torch "
        f"2.13.0 yourself with '{python} -m pip install', then run 'overtone setup measures' again: it is kept"
    )
