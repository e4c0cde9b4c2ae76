"""From answers to labels: what people said is collected from the study, written into its runs, and read from there.

given     one person's answers about one unit, with the verdict of the study's rules
collect   all of them, from the study's store
rows      answers as labels of the runs' replies
run_sync  labels written into the runs under their locks; withdrawn people removed there
reading   labels of a study as judges' validation, calibration and the arena read them
"""

from overtone.studio.labels.given import Given
from overtone.studio.labels.run_sync import Synced, sync

__all__ = ["Given", "Synced", "sync"]
