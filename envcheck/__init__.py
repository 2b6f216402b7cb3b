"""envcheck: from a bare machine with NVIDIA GPUs to a TensorFlow environment that provably runs."""

from .collector.version import VERSION as __version__

__all__ = ["__version__"]
