"""Samples of GPUs through NVML while something runs on them: in a process of its own, so that a call that
hangs costs the samples and nothing else.
"""
