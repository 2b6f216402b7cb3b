"""One file a probe. Each has DEADLINE, in seconds, and ``collect(context)``, which returns Facts.

A probe runs in a process of its own. It may fail in any way it likes: what it raises, how it dies, or
that it never answers becomes the probe's outcome.
"""

# The Snapshot's field for each probe, and the module that fills it.
MACHINE = {
    "host": "host",
    "pci": "pci",
    "kernel": "kernel",
    "nvml": "nvml",
    "nvidia_smi": "nvidia_smi",
    "cuda": "cuda",
    "containers": "containers",
}
TARGET = {
    "environment": "environment",
    "packages": "packages",
    "packaging_config": "packaging_config",
    "lock": "lock",
    "loader": "loader",
}
FRAMEWORKS = {
    "tensorflow": "tensorflow",
    "torch": "torch",
    "jax": "jax",
}
