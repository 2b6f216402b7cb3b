"""Checks on container engines and NVIDIA's container toolkit."""
