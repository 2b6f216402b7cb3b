"""Installed distributions, read from their metadata on disk: what importlib.metadata does not do on 3.6."""

import csv
import io
import os
import re
import time

from .. import files
from ..facts import from_error

# What this field's environments are made of, by PEP 503 name; everything else is nobody's business here.
RELEVANT = re.compile(
    r"(?s)(?:nvidia-.*|.*cuda.*|.*(?:cudnn|cublas|nccl|cupti|nvtx|nvml|tensorrt).*|tensorflow.*|.*-tensorflow"
    r"|tf-nightly.*|tf-estimator.*|tf-keras.*|keras.*|torch.*|pytorch.*|jax.*|horovod.*|ray|pynvml.*|protobuf"
    r"|numpy|ml-dtypes|h5py|gast|tensorboard.*|tb-nightly|triton.*|cupy.*|numba.*|xformers|mxnet.*|apex"
    r"|bitsandbytes|causal-conv1d|detectron2|mamba-ssm|mmcv.*"
    r"|transformer-engine.*|transformers|flash-attn.*|onnxruntime.*|cutensor.*|opencv-.*|faiss-.*"
    r"|scipy|diffusers|huggingface-hub|flax|orbax-checkpoint|torchmetrics|pandas|scikit-learn|setuptools"
    r"|deepspeed|basicsr|dgl|llama-cpp-python|.*-cu1[1-9]|pip)\Z"
)

# Distributions that install the package ``tensorflow``, as envcheck/data/packages.py has them.
TENSORFLOWS = (
    "tensorflow",
    "tensorflow-gpu",
    "tensorflow-cpu",
    "tensorflow-rocm",
    "tensorflow-aarch64",
    "tensorflow-cpu-aws",
    "intel-tensorflow",
    "intel-tensorflow-avx512",
    "nvidia-tensorflow",
    "tf-nightly",
    "tf-nightly-cpu",
    "tf-nightly-gpu",
)

_METADATA_LIMIT = 1 << 20  # bytes
_EGG = re.compile(r"(?P<name>[^-]+)(?:-(?P<version>[^-]+?))?(?:-py\d.*)?\Z")


class Distribution(object):
    """One distribution's metadata. ``home``: its dist-info or egg-info (a directory or a file)."""

    def __init__(self, name, version, location, home):
        self.name = name
        self.version = version
        self.location = location
        self.home = home
        self.headers = []  # [(field, value)]
        self.problem = None  # the OSError that kept the metadata from being read

    @property
    def normalized(self):
        return normalize(self.name)

    def values(self, field):
        return [value for key, value in self.headers if key == field]

    def file(self, name):
        """The text of a file of its metadata directory. Raises OSError."""
        path = os.path.join(self.home, name)
        return files.read(path, _METADATA_LIMIT).decode("utf-8", "replace")


def normalize(name):
    """The PEP 503 form of a project's name."""
    return re.sub(r"[-_.]+", "-", name).lower()


def since(path):
    """When a file or directory was last written, UTC: "2026-11-22T04:33:08Z"."""
    try:
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(os.stat(path).st_mtime))
    except (OSError, ValueError, OverflowError) as error:
        return from_error(error)


EVERY = re.compile(r"(?s).*")
_FRAMEWORKS = TENSORFLOWS + ("torch", "jax")
# By which people use a framework: of what these require the versions are known, too.
ON_TOP = tuple(
    (
        "accelerate bitsandbytes deepspeed diffusers flax lightning numba onnxruntime onnxruntime-gpu peft "
        "pytorch-lightning sentence-transformers tensorflow-probability timm torchaudio torchvision "
        "transformers trl vllm xformers"
    ).split()
)
_REQUIRED = re.compile(r"\s*([A-Za-z0-9][\w.-]*)")


def find(sys_path, relevant=RELEVANT):
    """The relevant Distributions on these directories, in sys.path's order and then by name."""
    found = []
    seen = set()
    for entry in sys_path:
        place = os.path.realpath(entry) if entry else ""
        if not place or place in seen:
            continue
        seen.add(place)
        here = [part for part in _in_directory(entry) if relevant.match(normalize(part.name))]
        for distribution in sorted(here, key=lambda part: (part.normalized, part.version)):
            _read_headers(distribution)
            found.append(distribution)
    return found


def required_by_frameworks(found, roots=_FRAMEWORKS):
    """The sorted names of all that the frameworks among these Distributions require, and theirs in turn.

    Whatever their markers say; extras aside, whose CUDA wheels are RELEVANT anyway. roots: others' names.
    """
    by_name = {}
    for one in found:
        by_name.setdefault(one.normalized, one)
    names = set()
    waiting = [name for name in roots if name in by_name]
    while waiting:
        for name in required_names(by_name[waiting.pop()]):
            if name not in names:
                names.add(name)
                waiting += [name] if name in by_name else []
    return sorted(names)


def hangs_on(distribution, required):
    """Whether it requires a framework, or limits the version of something that one requires."""
    for line in distribution.values("requires-dist"):
        match = _REQUIRED.match(line) if "extra" not in line else None
        name = normalize(match.group(1)) if match else ""
        bounded = re.search("[<>=~!]=|[<>]", line.partition(";")[0])
        if name in _FRAMEWORKS or (name in required and bounded):
            return True
    return False


def required_names(distribution, extras=False):
    """The normalised names of what a distribution requires without its extras, or with them."""
    every = distribution.values("requires-dist")
    lines = [line for line in every if extras or "extra" not in line]
    return [normalize(match.group(1)) for match in map(_REQUIRED.match, lines) if match]


def _in_directory(entry):
    for filename in files.names(entry):  # none in a zip, or a directory that is not there
        home = os.path.join(entry, filename)
        stem, _dot, kind = filename.rpartition(".")
        if filename.startswith("~"):
            continue  # what pip renamed in order to delete it
        if kind == "dist-info":
            name, _dash, version = stem.partition("-")
            yield Distribution(name, version, entry, home)
        elif kind == "egg-info":
            name, version = _split_egg(stem)
            yield Distribution(name, version, entry, home)


def _split_egg(stem):
    match = _EGG.match(stem)
    return (match.group("name"), match.group("version") or "") if match else (stem, "")


def _read_headers(distribution):
    """Name, version and headers from its METADATA or PKG-INFO, where there is one to read."""
    home = distribution.home
    names = ("METADATA", "PKG-INFO") if os.path.isdir(home) else ("",)
    for name in names:
        try:
            path = os.path.join(home, name) if name else home
            text = files.read(path, _METADATA_LIMIT).decode("utf-8", "replace")
        except OSError as error:
            distribution.problem = error
            continue
        distribution.problem = None
        distribution.headers = parse_headers(text)
        break
    stated = distribution.values("name")
    if stated and normalize(stated[0]) == distribution.normalized:
        distribution.name = stated[0]
    stated = distribution.values("version")
    if stated:
        distribution.version = stated[0]


def parse_headers(text):
    """[(field in lower case, value)] of a METADATA file: up to the first empty line."""
    headers = []
    for line in text.splitlines():
        if not line.strip():
            break
        if line[0] in " \t":
            if headers:
                headers[-1] = (headers[-1][0], headers[-1][1] + "\n" + line.strip())
            continue
        field, colon, value = line.partition(":")
        if colon:
            headers.append((field.strip().lower(), value.strip()))
    return headers


def requirements(distribution):
    """Its Requires-Dist, as written. Raises OSError without metadata."""
    if distribution.problem is not None:
        raise distribution.problem
    return distribution.values("requires-dist")


def recorded(distribution, about=None):
    """Yields (path as recorded, its hash or "") for each file of the distribution, from RECORD.

    about: only lines that hold this text. Raises OSError where there is none, ValueError where it is no CSV.
    """
    raw = files.open_regular(os.path.join(distribution.home, "RECORD"))
    with io.TextIOWrapper(raw, encoding="utf-8", errors="surrogateescape", newline="") as file:
        lines = file if about is None else (line for line in file if about in line)
        try:
            for row in csv.reader(lines):
                if row and row[0]:
                    yield row[0], row[1] if len(row) > 1 else ""
        except csv.Error as error:
            raise ValueError("RECORD: %s" % error)
