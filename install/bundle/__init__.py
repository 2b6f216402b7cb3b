"""A bundle for a machine without a network: its index, writing one, reading one."""
