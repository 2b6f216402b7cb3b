"""Machines that do not exist, with a fault below the product: libraries, files, processes, mounts."""
