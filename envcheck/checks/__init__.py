"""Judgement: pure functions from a Snapshot to findings; a package an area, walked."""
