"""Processes: the one place that starts any, with a deadline, an end, and what is left of it named."""
