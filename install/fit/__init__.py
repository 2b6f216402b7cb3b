"""What can work on a machine, and why the rest cannot."""
