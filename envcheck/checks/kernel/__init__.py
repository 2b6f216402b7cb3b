"""Checks on the kernel side of the driver: module, device nodes, log."""
