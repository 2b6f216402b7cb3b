"""Finding and loading the cuBLAS that a target uses: by the files it mapped, else as the loader finds it."""

import ctypes
import os
import re

from ..cuda import dl

_MAJORS = (13, 12, 11, 10)
_PROPERTIES = (0, 1, 2)  # libraryPropertyType: major, minor, patch

# Switches of cuBLAS 12.9 and later that compute FP32 and FP64 products on Tensor Cores: they would make
# the control no control.
_EMULATION = re.compile(r"CUBLAS(LT)?_.*EMULAT")
_REPORTED = re.compile(r"CUBLAS|NVIDIA_TF32_OVERRIDE\Z")


class NoLibrary(Exception):
    """There is no cuBLAS to be loaded: the loader's words."""


class Library(object):
    """A loaded libcublas: ``cublas`` and ``lt`` (None where there is none), ``path``, ``version``."""

    def __init__(self, cublas, lt, path):
        self.cublas = cublas
        self.lt = lt
        self.path = path  # of the file that was mapped
        self.version = _version(cublas)  # (12, 9, 1); () where it does not tell

    @property
    def major(self):
        return self.version[0] if self.version else 11


def scrub(environ):
    """Take cuBLAS's emulation switches out of an environment; the variables to record.

    They are those that are about cuBLAS's arithmetic, with their values; what was taken out is noted so.
    """
    noted = {}
    for name in sorted(environ):
        if _EMULATION.match(name):
            noted[name] = "(taken out for this run; it was %r)" % environ.pop(name)
        elif _REPORTED.match(name):
            noted[name] = environ[name]
    return noted


def load(cublas_path, lt_path, driver_major=None):
    """The Library of the files given; without one, the newest by SONAME that this driver can serve.

    cublas_path, lt_path: files that the target's framework mapped, or None. Raises NoLibrary.
    """
    lt_path = lt_path or _beside(cublas_path)
    lt = (
        _open(lt_path) if lt_path else None
    )  # first: libcublas needs it, and a wheel's does not find it
    if cublas_path:
        cublas = _open(cublas_path)
    else:
        beside = os.path.dirname(lt_path) if lt_path else None
        cublas = _by_soname(_MAJORS, driver_major, beside)
    try:
        found = dl.where(cublas._handle)[1]
    except dl.LoadError:
        found = None
    library = Library(cublas, lt, found.path if found else (cublas_path or cublas._name))
    if lt is None:
        library.lt = _lt(library.major)
    return library


def _beside(cublas_path):
    """The libcublasLt that lies beside a libcublas, or None."""
    if not cublas_path:
        return None
    folder, name = os.path.split(cublas_path)
    path = os.path.join(folder, name.replace("libcublas", "libcublasLt", 1))
    return path if os.path.exists(path) else None


def _open(path):
    try:
        return ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
    except OSError as error:
        raise NoLibrary(str(error))


def _by_soname(majors, driver_major, beside):
    """The first that can be loaded; newer than the driver would only fail at the first call."""
    words = ""
    for major in majors:
        if driver_major is not None and major > driver_major:
            continue
        name = "libcublas.so.%d" % major
        candidates = [name] if beside is None else [os.path.join(beside, name), name]
        for candidate in candidates:
            try:
                return _open(candidate)
            except NoLibrary as error:
                words = words or str(error)
    raise NoLibrary(words or "no libcublas is old enough for a driver of CUDA %s" % driver_major)


def _lt(major):
    """libcublas has loaded its own by now; None where this cuBLAS is of before it (10.0)."""
    try:
        return _open("libcublasLt.so.%d" % major)
    except NoLibrary:
        return None


def _version(cublas):
    number = ctypes.c_int()
    found = []
    for part in _PROPERTIES:
        try:
            if cublas.cublasGetProperty(part, ctypes.byref(number)) != 0:
                return ()
        except AttributeError:
            return ()
        found.append(number.value)
    return tuple(found)
