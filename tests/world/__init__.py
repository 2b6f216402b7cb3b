"""A described machine (machine.py, gpus.py), and its faces: files, libraries in C, nvidia-smi."""
