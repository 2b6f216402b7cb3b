"""Checks on the host: hardware, system, disks, limits."""
