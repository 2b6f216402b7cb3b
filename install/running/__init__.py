"""`envcheck install`, put together from the other packages."""
