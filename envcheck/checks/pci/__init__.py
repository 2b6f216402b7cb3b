"""Checks on the PCI bus: is there a GPU, who drives it, does it answer."""
