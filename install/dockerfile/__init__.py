"""A directory that an image is built from: its Dockerfile, and everything beside it."""
