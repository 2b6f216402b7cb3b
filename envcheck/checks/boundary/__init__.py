"""Checks on a container seen from both sides: what the host has, and what came through."""
