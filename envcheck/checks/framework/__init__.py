"""Checks on the frameworks in the target."""
