"""`envcheck install --mode container`, put together from the others."""
