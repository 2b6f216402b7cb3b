"""The NCCL of the target: its functions, and what its log says."""
