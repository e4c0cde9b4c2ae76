"""How long a command takes to start, warm, beside a Python that does nothing and (where installed) inspect_ai.

python -m bench.startup [--rounds 15]
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path

BIN = Path(sys.executable).parent
COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "overtone --help": [str(BIN / "overtone"), "--help"],
    "overtone list": [str(BIN / "overtone"), "list"],
    "overtone run --help": [str(BIN / "overtone"), "run", "--help"],
    "inspect --help": [str(BIN / "inspect"), "--help"],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    args = parser.parse_args()
    for name, command in COMMANDS.items():
        if not Path(command[0]).exists():
            continue
        times = []
        for _ in range(args.rounds + 1):
            began = time.perf_counter()
            subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
            times.append(time.perf_counter() - began)
        print(f"{name:<20} median {statistics.median(times[1:]):.3f} s, slowest {max(times[1:]):.3f} s")


if __name__ == "__main__":
    main()
