"""Checks on NVIDIA's libraries as the target really loads them."""
