"""Installs on many machines, in waves that stop when they should, and verifies each on the machine itself."""
