"""Measure how far a judge can be trusted: people's labels, agreement, audits, the hearing test and calibration."""
