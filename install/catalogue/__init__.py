"""What can be installed: stacks and their releases, as data with sources."""
