"""Checks that compare a machine with a profile (`envcheck doctor --expect FILE`)."""
