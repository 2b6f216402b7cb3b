"""Loopback servers that show files to installers and engines while they are still fetched."""
