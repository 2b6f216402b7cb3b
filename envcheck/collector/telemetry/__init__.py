"""Samples of GPUs through NVML while something runs on them, by a process of its own, which may hang."""
