"""For other machines: bundles, from which images can be built, too."""
