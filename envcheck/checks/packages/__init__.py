"""Checks on the target's installed packages."""
