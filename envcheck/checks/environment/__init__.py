"""Checks on environment variables."""
