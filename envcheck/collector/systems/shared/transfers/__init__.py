"""A GPU's memory and the ways to it: copies, timed by events; patterns, written and read back."""
