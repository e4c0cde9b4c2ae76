"""Builds the documentation site: pages of docs/, pages generated from the code, and Zensical's strict build."""
