"""Products and memory patterns on all GPUs for hours, each result compared to the bit (facts/soak.py)."""
