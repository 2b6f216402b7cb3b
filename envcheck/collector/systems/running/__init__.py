"""Starts systems, each in a process of its own, and takes what they report."""
