"""Judgement: pure functions from a Snapshot to findings. A package an area; `registry` imports them all."""
