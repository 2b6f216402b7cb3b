"""Checks on the driver: NVML, nvidia-smi, libcuda, and whether they agree."""
