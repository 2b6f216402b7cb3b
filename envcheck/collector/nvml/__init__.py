"""What NVML says, through nvidia-ml-py: GPUs and how they reach each other."""
