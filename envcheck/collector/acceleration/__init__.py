"""Acceleration systems (AMP, XLA, NCCL, …), memory and links: run, each with a control.

``systems`` has a file for each system and framework. Each runs in a process of its own, after the
micro-kernels, and tells what it saw; what follows from it is for checks to say.
"""
