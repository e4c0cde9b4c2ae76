"""Results of runs: load, summarise, compare and check them. This package never writes to a run."""
