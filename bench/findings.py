"""Make runs of made-up models with known abilities, and measure how long the findings of ten full ones take.

`python -m bench.findings make DIR --runs N --scripts S [--seed K]` writes run folders;
`python -m bench.findings` measures.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from bench.findings_items import SCRIPTS
from bench.findings_runs import make_runs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    make = commands.add_parser("make", help="write run folders of made-up models")
    make.add_argument("folder", type=Path)
    make.add_argument("--runs", type=int, default=3)
    make.add_argument("--scripts", type=int, default=SCRIPTS)
    make.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    for folder in make_runs(given.folder, runs=given.runs, scripts=given.scripts, seed=given.seed):
        print(folder)


if __name__ == "__main__":
    main()
