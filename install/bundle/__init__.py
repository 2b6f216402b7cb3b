"""Everything for a machine without a network, in one directory or tar."""
