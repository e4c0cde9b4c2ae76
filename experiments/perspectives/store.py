"""Pack the results of single jobs into the repository's, beside those that are there.

    python -m experiments.perspectives.store --data DIR --add DIR [--results DIR]

ADD has the files that `run.py` wrote, one per job. RESULTS (this folder's `results`) has one file per split, seed and
tuning.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from overtone.studies.perspectives import results
from overtone.studies.perspectives.design import Study

from .data import Data

RESULTS = Path(__file__).with_name("results")


def main() -> None:
    parser = argparse.ArgumentParser(description="Pack results of single jobs.")
    parser.add_argument("--data", type=Path, required=True, help="folder with data.json.gz")
    parser.add_argument("--add", type=Path, required=True, help="folder with one file per job, as run.py wrote them")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder to pack into (default: this study's)")
    args = parser.parse_args()
    study, data = Study.read(), Data.read(args.data)
    for path in results.add(results.read(args.add, study, data.sha256).values(), args.results, data.key.answers):
        print(f"{path.name}: {path.stat().st_size} bytes")
    print(f"{len(results.read(args.results, study, data.sha256))} jobs are done")


if __name__ == "__main__":
    main()
