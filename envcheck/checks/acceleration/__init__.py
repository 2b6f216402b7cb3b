"""Checks on acceleration systems: whether each, once switched on, does anything."""
