"""Checks on memory and links: what was written comes back, and as fast as it must."""
