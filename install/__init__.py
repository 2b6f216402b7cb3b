"""From a machine's Snapshot to an environment that the doctor calls well.

Fit (what can work here) → resolve → lock → plan → fetch → build → verify → swap. What fits and what is
planned are pure functions; what touches the machine is written down in a journal first.
"""
