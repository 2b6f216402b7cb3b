"""nvidia-ml-py's module, loaded by its path, and its errors as facts."""

import importlib.util
import os
import sys
import types
import zipimport

from ..facts import from_error, unavailable

# nvmlReturn_t (nvml.h): what an answer that is no value means. Every other code is an "error".
REASONS = {
    2: "not-supported",  # INVALID_ARGUMENT: no such link, sensor or field on this GPU
    3: "not-supported",  # NOT_SUPPORTED
    4: "no-permission",  # NO_PERMISSION
    6: "absent",  # NOT_FOUND
    10: "timeout",  # TIMEOUT
    13: "not-supported",  # FUNCTION_NOT_FOUND: libnvidia-ml is older than the function
    15: "lost",  # GPU_IS_LOST
    21: "absent",  # NO_DATA
    22: "not-supported",  # VGPU_ECC_NOT_SUPPORTED
    25: "not-supported",  # ARGUMENT_VERSION_MISMATCH: the structure is newer than the library
    26: "not-supported",  # DEPRECATED
}
_NOT_HERE = (2, 13, 25, 26)  # another version of the same function may know


class NotThere(Exception):
    """The value is not there, for this reason ("not-supported", "absent")."""

    def __init__(self, reason, detail=""):
        Exception.__init__(self, detail or reason)
        self.reason = reason


def load(path):
    """The pynvml module in a file, which may be inside a zip. Raises whatever its import raises."""
    sys.modules.pop("pynvml", None)
    if os.path.exists(path):
        spec = importlib.util.spec_from_file_location("pynvml", path)
        module = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
        sys.modules["pynvml"] = module  # it looks itself up while it is imported
        spec.loader.exec_module(module)
        return module
    folder = os.path.dirname(path)
    archive = folder
    while archive and not os.path.exists(archive) and archive != os.path.dirname(archive):
        archive = os.path.dirname(archive)
    if not os.path.isfile(archive):
        raise FileNotFoundError("no file %s" % path)
    # Of a package inside it ("archive.pyz/envcheck/collector/vendor"), zipimport takes the path too.
    code = zipimport.zipimporter(folder).get_code("pynvml")
    module = types.ModuleType("pynvml")
    module.__file__ = path
    sys.modules["pynvml"] = module
    exec(code, module.__dict__)
    return module


def code_of(error):
    """An NVML error's nvmlReturn_t, or None of another exception."""
    value = getattr(error, "value", None)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def words_of(error):
    """An error in NVML's words."""
    try:
        return str(error) or type(error).__name__
    except Exception:  # the library that knows the words is not loaded
        return type(error).__name__


def reason_fact(error):
    """The unavailable fact that an exception out of pynvml stands for."""
    if isinstance(error, NotThere):
        return unavailable(error.reason, "" if str(error) == error.reason else str(error))
    code = code_of(error)
    if code is not None:
        reason = REASONS.get(code, "error")
        detail = "" if code == 3 else "%s (NVML error %d)" % (words_of(error), code)
        return unavailable(reason, detail, code if reason in ("error", "lost", "timeout") else None)
    if type(error).__name__ == "NVMLLibraryMismatchError":
        return unavailable("not-supported", words_of(error))
    if isinstance(error, TypeError) and "positional argument" in str(error):
        return unavailable("not-supported", "this pynvml takes other arguments: %s" % error)
    return from_error(error)


def text(value):
    """A string of NVML's; NotThere for an empty one."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    value = value.strip()
    if not value:
        raise NotThere("absent")
    return value


class Binding(object):
    """Calls into a pynvml module of any age."""

    def __init__(self, module):
        self.module = module

    def has(self, name):
        return hasattr(self.module, name)

    def constant(self, name, default=None):
        """An integer constant of the module, or ``default`` where it is too old to have it."""
        value = getattr(self.module, name, default)
        return value if isinstance(value, int) else default

    def call(self, name, *arguments):
        """Call a function; NotThere where this pynvml has none of that name."""
        function = getattr(self.module, name, None)
        if function is None:
            raise NotThere("not-supported", "this pynvml has no %s" % name)
        return function(*arguments)

    def first(self, names, *arguments):
        """Call the first of several functions that both the module and the library know."""
        failure = NotThere("not-supported")  # type: Exception
        for place, name in enumerate(names):
            try:
                return self.call(name, *arguments)
            except Exception as error:
                mismatch = type(error).__name__ == "NVMLLibraryMismatchError"
                if not (isinstance(error, NotThere) or mismatch or code_of(error) in _NOT_HERE):
                    raise
                failure = error if place == 0 else failure
        raise failure

    def structure(self, name):
        """A new structure of the module's; NotThere where it has none of that name."""
        return self.call(name)

    def field(self, handle, name):
        """A field value (NVML_FI_*) by the constant's name. Raises the field's own error."""
        number = self.constant(name)
        if number is None:
            raise NotThere("not-supported", "this pynvml has no %s" % name)
        return self.field_number(handle, number)

    def field_number(self, handle, number):
        answer = self.call("nvmlDeviceGetFieldValues", handle, [number])[0]
        if answer.nvmlReturn != 0:
            raise self.module.NVMLError(answer.nvmlReturn)
        # nvmlValueType_t: double, unsigned, unsigned long (long), signed long long, int, short
        member = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")[answer.valueType]
        return getattr(answer.value, member)
