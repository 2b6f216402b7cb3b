"""Checks on what GPUs reach each other through: the network, RDMA adapters, and NCCL's settings."""
