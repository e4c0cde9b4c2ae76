"""A model that listens before it speaks: OSUM-EChat's architecture, its three stages of training and its data."""
