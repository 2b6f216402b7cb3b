"""Checks on single GPUs, and what joins them."""
