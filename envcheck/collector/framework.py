"""What the framework probes share: the import, what it mapped, and what it logged about GPUs."""

import contextlib
import importlib
import os
import re
import sys
import time

from .facts import Facts, from_error, unavailable
from .packaging import loaded
from .runtime import cpu_wait

LOG_LINES = 60
# What a framework's package keeps beside it: TensorFlow 1.15 to 2.1, and JAX.
_BESIDE = {"tensorflow": "tensorflow_core", "jax": "jaxlib"}
_LINE_LIMIT = 600  # characters
_DEADLINE = 90.0  # of the framework probes
_ASKING = 12.0  # seconds for the versions of all mapped libraries

# The user's own values of these are the environment probe's business.
_SETTINGS = {
    "TF_CPP_MIN_LOG_LEVEL": "0",  # say why there is no GPU
    "TF_FORCE_GPU_ALLOW_GROWTH": "true",  # leave the GPU's memory to those who need it
    "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
}
_FLOODING = ("TF_CPP_MAX_VLOG_LEVEL", "TF_CPP_MIN_VLOG_LEVEL", "TF_CPP_VMODULE")

_ABOUT_GPUS = re.compile(
    r"(?i)\b(?:cuda|cu[dD]?nn|gpus?|tensorrt|tf-?trt|nvidia|nvml|ptxas?|sm_\d\d|compute capability|dlerror"
    r"|libdevice|driver)\b|cuda|cudnn|cublas|cufft|cusolver|cusparse|curand|nvinfer|nccl|nvrtc|libnv"
    r"|dynamic library|dlopen|gpu_device|kernel driver|LD_LIBRARY_PATH|TF-TRT|TRTEngineOp"
    r"|this version of numpy|compiled using NumPy|_ARRAY_API|undefined symbol"
)


def collect(context, name, describe):
    """A Framework's facts. ``describe(module, facts)`` adds what only this framework can tell."""
    facts = Facts(source="%s, imported by the target's interpreter" % name)
    facts.put("name", name, "envcheck")
    started = time.monotonic()
    errors = []
    module, problem = load(name, errors.append)
    facts.put("import_seconds", round(time.monotonic() - started, 3))
    facts.put("imported", module is not None)
    facts.put("import_error", problem or unavailable("absent", "it was imported"))
    _put_files(context, name, facts, errors)
    if module is not None:
        file = getattr(module, "__file__", None)
        facts.put("file", file if isinstance(file, str) else unavailable("absent"))
        facts.put("version", ask(version_of, module))
        describe(module, facts)
        if name in _BESIDE:
            facts.put(
                "compiler_tools", _compiler_tools(context, homes(module)), "files, ptxas --version"
            )
        if facts.get("gpus"):
            _try(context, name, facts, started)
    facts.put("libraries", _libraries(context), "/proc/self/maps and the libraries' own functions")
    facts.put("log", [], "its standard error")
    _flush()
    return facts


def _put_files(context, name, facts, errors):
    """The files that the import's errors name, and those that come before the installed ones."""
    cwd = context.params.get("cwd", "")
    with contextlib.suppress(Exception):  # they explain an import, and may not cost its facts
        found = loaded.shadows(name, cwd, context.environ, facts.get("imported"))
        facts.put("shadows", found, "the directories of sys.path")
    with contextlib.suppress(Exception):
        found = [one for error in errors for one in loaded.of_error(error, context.environ)]
        facts.put("error_files", found, "the import's traceback")


def load(name, failed=None):
    """Import a framework so that it leaves the GPU's memory alone: (module, None), or (None, why not).

    failed(error): gets the exception.
    """
    os.environ.update(_SETTINGS)
    for variable in _FLOODING:
        os.environ.pop(variable, None)
    try:
        module = importlib.import_module(name)
    except (
        BaseException
    ) as error:  # SystemExit too: some packages end the process that imports them
        if failed is not None:
            failed(error)
        return None, "%s: %s" % (type(error).__name__, str(error)[:1800])
    if getattr(module, "__file__", None) is None and not hasattr(module, "__version__"):
        places = ", ".join(list(getattr(module, "__path__", []))[:3])
        return None, "ImportError: no module, only a directory of that name is there: %s" % places
    return module, None


def homes(module):
    """The directories of a framework's packages."""
    file = getattr(module, "__file__", None)
    if not isinstance(file, str):
        return []
    home = os.path.dirname(os.path.abspath(file))
    beside = _BESIDE.get(os.path.basename(home))
    return [home] + ([os.path.join(os.path.dirname(home), beside)] if beside else [])


def _compiler_tools(context, folders):
    try:
        from .cuda import compiler_tools

        return compiler_tools.find(context, folders, sys.path, sys.prefix)
    except BaseException as error:
        return from_error(error)


def _try(context, name, facts, started):
    """What the framework does on its GPU, in the time that is left once its libraries have been asked."""
    from . import trials

    took = time.monotonic() - started
    if "deadline" not in context.params:  # as the parent counts it
        took -= cpu_wait.of_process(os.getpid())
    remaining = context.params.get("deadline", _DEADLINE) - took - _ASKING
    made, stderr = trials.run(context, name, remaining)
    if made:
        facts.put("trials", made, "a second process of the target's interpreter")
        facts.put("trial_log", about_gpus(stderr), "its standard error")


def _flush():
    # Before 3.9 Python keeps stderr back while it is no terminal, and the probe leaves by os._exit.
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # a framework may have put something of its own there
            stream.flush()


def version_of(module):
    version = getattr(module, "__version__", None)
    return str(version) if version is not None else unavailable("absent", "it has no __version__")


def ask(function, *arguments):
    """What the function returns, or the unavailable fact of why it failed in whatever way."""
    try:
        return function(*arguments)
    except AttributeError as error:
        return unavailable("not-supported", "AttributeError: %s" % error)
    except BaseException as error:
        return from_error(error)


def say(words):
    """Put a reason that a framework raises, instead of logging it, where its log goes."""
    _flush()
    with contextlib.suppress(OSError):  # closed by the framework
        os.write(2, ("%s\n" % words).encode("utf-8", "replace"))


def text(value):
    """A setting's value as a word."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def put_settings(facts, **functions):
    """Fill ``settings`` with what each function returns; one that fails or returns None is left out."""
    settings = {}
    for name, function in functions.items():
        try:
            value = function()
        except BaseException:
            continue
        if value is not None:
            settings[name] = text(value)
    facts.put("settings", settings)


def _libraries(context):
    try:
        from .cuda import library_loads as loading
        from .packaging import origins

        wheels = origins.wheel_libraries(sys.path)
        whence = origins.Origins(context, wheels, (sys.prefix, sys.base_prefix))
        return loading.mapped(whence, _ASKING)
    except BaseException as error:
        say("envcheck could not list the libraries: %s: %s" % (type(error).__name__, error))
        return []


def about_gpus(stderr):
    """The lines about GPUs of what a framework wrote to stderr (text)."""
    lines = []
    for line in stderr.splitlines():
        line = line.rstrip()[:_LINE_LIMIT]
        if _ABOUT_GPUS.search(line) and line not in lines[-3:]:
            lines.append(line)
    return lines[:LOG_LINES]
