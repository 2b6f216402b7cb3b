"""What of a machine can be held against another's: attributes, which are equal or not, and rates. Pure."""
