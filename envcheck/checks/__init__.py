"""Judgement: pure functions from a Snapshot to findings, one file an area."""
