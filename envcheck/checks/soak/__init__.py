"""Checks on a soak: results that stayed the same, and GPUs that stayed as fast and cool as at first."""
