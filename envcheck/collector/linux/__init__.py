"""What the kernel says: limits, mounts, modules, logs, devices, and the driver in it."""
