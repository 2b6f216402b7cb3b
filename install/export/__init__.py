"""For other machines: bundles, and directories that an image is built from."""
