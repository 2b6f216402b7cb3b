"""Checks on pip's configuration."""
