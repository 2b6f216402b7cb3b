"""What XLA makes one kernel of, with functions of libdevice, in every framework."""

import importlib


def data():
    numpy = importlib.import_module("numpy")
    return numpy.arange(2048, dtype="float32").reshape(64, 32) / 2048


def step(math, x):
    """math: the framework's module of functions."""
    y = math.tanh(x * 2.0 + 1.0)
    z = math.exp(-y) * math.sin(y) + math.log1p(math.abs(y))
    return z * z + y
