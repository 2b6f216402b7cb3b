"""Checks on pip's and uv's configuration."""
