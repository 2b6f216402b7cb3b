"""A stand-in for NVIDIA's TensorFlow 1.15: what envcheck's doctor asks of it, and no more.

It is copied into wheels and images, with UPSTREAM replaced by the version.
"""

from google import protobuf

if int(protobuf.__version__.split(".")[0]) >= 4:
    raise TypeError("Descriptors cannot not be created directly.")

__version__ = "UPSTREAM+standin"


class test:
    @staticmethod
    def is_built_with_cuda():
        return True


class sysconfig:
    """TensorFlow 1.15 has no get_build_info."""
