"""The rooms of the house: who may import whom, that a plug-in is one file, and that the core stays light."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "overtone"
ANYTHING = {"*"}
MAY: dict[str, set[str]] = {  # room → the rooms it may import; every room may import the ground floor
    "audio": set(),
    "benchmarks": {"audio", "build"},
    "tasks": set(),
    "embedded": {"audio"},
    "models": {"audio", "embedded", "workers"},
    "runs": {"audio", "models", "tasks", "benchmarks"},
    "metrics": {"audio", "embedded", "stats", "tasks", "workers"},
    "stats": set(),
    "judges": {"audio", "embedded", "stats", "labels", "runs", "models", "tasks"},
    "labels": set(),  # what people said: judges and analysis read it
    "analysis": {"stats", "runs", "labels"},
    "report": {"analysis", "arena", "audio", "runs", "benchmarks"},
    "build": {"audio", "embedded", "stats", "metrics"},  # its gates measure word errors as a run does
    "workers": set(),
    "echat": {"audio", "embedded", "build", "metrics"},  # counts word errors as a run does
    "arena": {"runs", "judges", "labels", "stats", "analysis"},
    "cli": ANYTHING,
}
ECHAT_MAY: dict[str, set[str]] = {  # and within echat, room by room
    "data": set(),
    "speech": {"data"},
    "making": {"data", "speech"},
    "net": {"data"},
    "learn": {"data", "speech", "net"},
    "exam": {"data", "speech", "net", "learn"},
    "talk": {"data", "speech", "net", "learn"},
}
GROUND = {
    "cues",
    "schema",
    "errors",
    "languages",
    "paths",
    "spec",
    "version",
    "registry",
    "safety",
    "suite",
    "guard",
    "trust",
}
GROUND_MAY = {
    "suite": {"schema"},
    "registry": {"errors", "spec"},
    "spec": {"errors"},
    "paths": {"errors"},
    "safety": {"errors", "paths"},
    "trust": {"errors", "paths"},
    "guard": {"errors", "paths", "safety"},
}
EXCEPTIONS = {
    ("models/replay.py", "runs"),  # a stored run as a model reads the store
    ("echat/talk/worker.py", "workers"),  # it speaks their protocol
}
COMPOSERS = {"api", "scoring", "solving", "__init__", "__main__"}  # what joins the rooms


def imports(path: Path, below: str = "overtone") -> set[str]:
    """The first name below a package of everything a file imports, inside functions too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names = [node.module]
            if node.module == below:
                names = [f"{below}.{alias.name}" for alias in node.names]
        found |= {name.removeprefix(f"{below}.").split(".")[0] for name in names if name.startswith(f"{below}.")}
    return found


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda p: str(p.relative_to(SOURCE)))
def test_a_file_imports_only_what_its_room_may(path: Path) -> None:
    relative = path.relative_to(SOURCE)
    room = relative.parts[0] if len(relative.parts) > 1 else relative.stem
    if room in COMPOSERS:
        return
    if room in GROUND:
        allowed = GROUND_MAY.get(room, set())
    elif MAY[room] == ANYTHING:
        return
    else:
        allowed = MAY[room] | GROUND | {room}
    extra = {name for name in imports(path) - allowed if (str(relative), name) not in EXCEPTIONS}
    assert not extra, f"{relative} must not import {sorted(extra)}"


@pytest.mark.parametrize("room", ECHAT_MAY)
def test_a_room_of_echat_imports_only_what_it_may(room: str) -> None:
    found = {
        (path.name, name) for path in (SOURCE / "echat" / room).glob("*.py") for name in imports(path, "overtone.echat")
    }
    assert not {(file, name) for file, name in found if name not in ECHAT_MAY[room] | {room}}


def test_every_room_has_a_rule() -> None:
    for folder, rules in ((SOURCE, MAY), (SOURCE / "echat", ECHAT_MAY)):
        assert {p.name for p in folder.iterdir() if p.is_dir() and any(p.glob("*.py"))} == set(rules)


def test_no_file_is_too_long_to_read_in_one_sitting() -> None:
    long = {str(p.relative_to(SOURCE)): n for p in SOURCE.rglob("*.py") if (n := len(p.read_text().splitlines())) > 500}
    assert not long


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_importing_overtone_imports_nothing_heavy() -> None:
    heavy = "{'torch', 'scipy', 'pandas', 'numpy', 'aiohttp', 'rich', 'jinja2'}"
    assert run(f"import sys, overtone; print(sorted({heavy} & set(sys.modules)))").strip() == "[]"


def test_a_run_imports_neither_torch_nor_scipy_nor_pandas() -> None:
    code = "import sys, overtone.api, overtone.models.openai, overtone.report.html, overtone.scoring; "
    assert run(code + "print(sorted({'torch', 'scipy', 'pandas'} & set(sys.modules)))").strip() == "[]"


def _needed(name: str, found: dict[str, str]) -> None:
    """Every distribution the core install brings, with its version, from the installed metadata."""
    plain = re.sub(r"[-_.]+", "-", name).lower()
    if plain in found:
        return
    found[plain] = importlib.metadata.version(name)
    for requirement in importlib.metadata.requires(name) or ():
        text, _, marker = requirement.partition(";")
        if "extra" in marker or ("python_version" in marker and "<" in marker) or "platform" in marker:
            continue
        _needed(re.match(r"[A-Za-z0-9._-]+", text.strip())[0], found)  # type: ignore[index]


def test_the_core_install_is_at_most_thirty_packages() -> None:
    found: dict[str, str] = {}
    _needed("overtone", found)
    assert len(found) <= 30, sorted(found)


@pytest.mark.timeout(180)
def test_the_pinned_core_installs_by_its_hashes_and_is_at_most_forty_megabytes_of_wheels(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--require-hashes", "--dest", str(tmp_path)]
    lock = Path(__file__).parent.parent / "constraints.txt"
    done = subprocess.run([*command, "-r", str(lock)], capture_output=True, text=True, check=False)
    assert not re.search(r"HASHES|require-hashes mode", done.stderr), done.stderr
    if done.returncode:
        pytest.skip("no package index to weigh wheels from")
    size = sum(path.stat().st_size for path in tmp_path.iterdir()) / 1e6
    assert size <= 40, size


def test_no_cuda_package_is_installed() -> None:
    worker = Path(__file__).parent.parent / ".venv-worker"
    folders = [Path(p) for p in sys.path if p.endswith("site-packages")] + list(worker.glob("lib/*/site-packages"))
    assert folders
    assert not [d.name for folder in folders for d in folder.glob("nvidia*")]


def test_the_public_interface_is_what_it_was() -> None:
    names = run("import overtone; print(*sorted(overtone.__all__))").split()
    assert names == ["Item", "OvertoneError", "Reply", "Run", "Score", "__version__", "open_run", "run", "score"]
    assert run("import overtone; print(all(getattr(overtone, n) for n in overtone.__all__))").strip() == "True"


def test_every_test_file_is_collected() -> None:
    here = Path(__file__).parent
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=here.parent)
    collected = {line.partition("::")[0] for line in done.stdout.splitlines() if "::" in line}
    assert collected == {str(path.relative_to(here.parent)) for path in here.rglob("test_*.py")}
