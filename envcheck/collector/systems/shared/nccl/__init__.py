"""The NCCL of the target: its functions, a rank that sums with the others, and what its log says."""
