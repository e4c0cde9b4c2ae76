"""Write a run's replies and scores as JSON lines, CSV or Parquet, or its predictions as the benchmark takes them."""

from __future__ import annotations

import argparse
from pathlib import Path

from overtone.errors import EXIT_OK


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", type=Path, help="a run's folder")
    parser.add_argument("--format", choices=("jsonl", "csv", "parquet", "predictions"), default="jsonl")
    parser.add_argument("-o", "--out", metavar="FILE", type=Path, help="where to (RUN/replies.FORMAT)")
    parser.add_argument("--condition", metavar="NAME", help="of predictions: which, where the run has several")


def main(args: argparse.Namespace) -> int:
    from overtone.errors import StoreError
    from overtone.paths import shown
    from overtone.runs.export import export, export_predictions
    from overtone.runs.store import Store

    suffix = "predictions.json" if args.format == "predictions" else f"replies.{args.format}"
    out = args.out or args.run / suffix
    with Store.read(args.run) as store:
        try:
            if args.format == "predictions":
                count = export_predictions(store, out, args.condition)
            else:
                count = export(store, args.format, out)
        except OSError as error:
            raise StoreError(f"cannot write {out}: {error.strerror}") from None
    print(f"{count} rows → {shown(str(out))}")
    return EXIT_OK
