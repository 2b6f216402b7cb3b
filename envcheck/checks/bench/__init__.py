"""Checks on a bench: whether rows engaged, ran to their end, and were as fast as they should be."""
