"""Checks on Tensor Cores: did they do the work."""
