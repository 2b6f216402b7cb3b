"""Which of NVIDIA's and the frameworks' libraries the files of an environment ask for, and what they get.

Only ELF headers are read, and of a few files the constants and symbols: nothing is loaded or imported.
"""

import os
import re
import time

from ..cuda import libraries
from ..cuda.elf_content import Content
from ..facts import unavailable
from . import distributions

_NVIDIA = (
    r"lib(?:cuda|cudart|cublas\w*|cudnn\w*|cufft\w*|curand|cusolver\w*|cusparse\w*|cupti|nvrtc[\w-]*"
    r"|nvJitLink|nvToolsExt|nvjpeg\w*|npp\w+|cufile\w*|nvshmem\w*|nccl|nvinfer\w*|nvonnxparser|nvparsers"
    r"|cutensor\w*)"
)
_FRAMEWORKS = r"lib(?:tensorflow_\w+|torch\w*|c10\w*|jax\w*)"
_WANTED = re.compile(r"(%s|%s)\.so[.\d]*\Z" % (_NVIDIA, _FRAMEWORKS))
_OF_FRAMEWORK = re.compile(_FRAMEWORKS + r"\.so")
# A distribution that brings one of these is a framework: its own probe tells how it gets its libraries.
_IS_FRAMEWORK = re.compile(r"lib(?:torch|torch_python|tensorflow_framework|jax_common)\.so[.\d]*\Z")
_NVIDIAS = re.compile(r"nvidia-|tensorrt")
_NAMED = re.compile(rb"\0(lib\w{3,40}\.so\.\d{1,2}(?:\.\d{1,2})?)(?=\0)")
_PARTS = re.compile(r"lib(cudnn|torch|c10)(?:_\w+)?\Z")
# C++ names in the frameworks' namespaces: c10, at, torch, tensorflow.
_SYMBOL = re.compile(rb"_ZN?[KTIVS]*N?K?(?:3c10|2at|5torch|10tensorflow)")

_FILES = 6000  # that are looked at
_WALKED = 20000  # directory entries outside of any RECORD
_KEPT = 100  # LinkedFiles
_PER_FILE = 40  # libraries
_CONSTANTS = 16 << 20  # bytes of one file's .rodata
_CONSTANTS_IN_ALL = 256 << 20
_SYMBOLS = 3000  # undefined symbols of a file
_SHOWN = 5  # of them
_OTHERS = 3  # files of another version


class Linked(object):
    """Holds what there is: each library's file and distribution. ``facts`` looks at all of them."""

    def __init__(self, sys_path, search, budget):
        """search: a loader_search.Search. budget: seconds for all."""
        self._search = search
        self._until = time.time() + budget
        self._constants = _CONSTANTS_IN_ALL
        self._files = {}  # path: Distribution or None, in RECORD's order
        recorded = set()
        owners = {}
        for one in distributions.find(sys_path, re.compile("")):
            recorded.update(self._list(one))
            owners[one.location, one.normalized] = one
        for entry in sys_path:
            if entry.rstrip("/").endswith("-packages"):
                self._walk(entry, recorded, owners)
        self._places = {}  # file name: paths
        for path in self._files:
            self._places.setdefault(os.path.basename(path), []).append(path)
        self._frameworks = {
            self._files[path].home
            for name, paths in self._places.items()
            if _IS_FRAMEWORK.match(name)
            for path in paths
            if self._files[path] is not None
        }

    def facts(self):
        """A LinkedFile's facts for each file that asks for such a library, those that lack one first."""
        found = []
        for path, distribution in self._files.items():
            if time.time() > self._until:
                break
            if distribution is not None and distribution.home in self._frameworks:
                continue
            if libraries.known(os.path.basename(path)) and self._nvidias(distribution):
                continue
            fact = self._look(path, distribution)
            if fact is not None:
                found.append(fact)
        found.sort(key=_complete)
        return found[:_KEPT]

    def _list(self, distribution):
        """The names at the top of site-packages that its RECORD accounts for; its libraries are noted."""
        tops = set()
        try:
            for name, _hash in distributions.recorded(distribution):
                tops.add(name.split("/", 1)[0])
                if ".so" in name and _is_library(name) and len(self._files) < _FILES:
                    path = os.path.normpath(os.path.join(distribution.location, name))
                    self._files.setdefault(path, distribution)
        except (OSError, ValueError):
            pass  # the packages probe says so
        return {os.path.join(distribution.location, top) for top in tops}

    def _walk(self, entry, recorded, owners):
        """Notes libraries that no RECORD accounts for, as of what setup.py installed."""
        left = _WALKED
        for folder, folders, names in os.walk(entry):
            folders[:] = [
                name
                for name in folders
                if name != "__pycache__"
                and (folder != entry or os.path.join(entry, name) not in recorded)
            ]
            left -= len(names) + 1
            if left < 0 or time.time() > self._until:
                return
            top = os.path.relpath(folder, entry).split(os.sep)[0]
            owner = owners.get((entry, distributions.normalize(top)))
            for name in names:
                if ".so" in name and _is_library(name) and len(self._files) < _FILES:
                    self._files.setdefault(os.path.join(folder, name), owner)

    def _look(self, path, distribution):
        own = self._search.read(path)
        if own is None:
            return None
        needed = [name for name in own.needed if _WANTED.match(name)]
        named = self._named(path, distribution, needed)
        if not needed and not named:
            return None
        wants = [self._want(path, name, "needed") for name in needed[:_PER_FILE]]
        wants += [self._want(path, name, "named") for name in named[:_PER_FILE]]
        fact = {"path": path, "wants": wants}
        if distribution is not None:
            fact["distribution"] = distribution.name
            fact["distribution_version"] = distribution.version
            fact["built_here"] = _built_here(distribution)
        fact["undefined"] = self._undefined(path, distribution, own, wants)
        return fact

    def _want(self, path, soname, how):
        found, origin = self._search.find(path, soname)
        if found is None and soname in self._places:
            # A library that is loaded already counts, whatever its directory: packages load theirs first.
            found, origin = self._places[soname][0], "environment"
        want = {"soname": soname, "how": how}
        if found is None:
            want["path"] = unavailable("absent", "found nowhere")
            want["instead"] = self._others(soname)
        else:
            want.update(path=found, origin=origin)
        return want

    def _others(self, soname):
        """Files of the same library under another version: in the environment, or where the loader looks."""
        stem = _stem(soname)
        found = [
            path for name, paths in self._places.items() if _stem(name) == stem for path in paths
        ]
        return sorted(set(found) | set(self._search.others(stem)))[:_OTHERS]

    def _nvidias(self, distribution):
        return distribution is not None and _NVIDIAS.match(distribution.normalized)

    def _named(self, path, distribution, needed):
        """SONAMEs of NVIDIA's libraries among a library's constants: what it may load when it is used."""
        if not os.path.basename(path).startswith("lib") or self._nvidias(distribution):
            return []
        if self._constants <= 0:
            return []
        try:
            with Content(path) as content:
                constants = content.constants(min(_CONSTANTS, self._constants))
        except (OSError, ValueError):
            return []
        self._constants -= len(constants)
        found = {name.decode("ascii") for name in _NAMED.findall(b"\0" + constants)}
        own = os.path.basename(path)
        names = sorted(found | {libraries.forwards_to(libraries.known(own), own) or ""})
        return [
            name
            for name in names
            if name not in needed and libraries.known(name) and not name.startswith("libcuda.")
        ]

    def _undefined(self, path, distribution, own, wants):
        """Symbols of a framework that neither it nor anything else that the file needs defines."""
        bases = [
            want["path"]
            for want in wants
            if _OF_FRAMEWORK.match(want["soname"]) and isinstance(want["path"], str)
        ]
        if not bases:
            return []
        try:
            with Content(path) as content:
                names = content.undefined(_SYMBOL, _SYMBOLS)
        except (OSError, ValueError):
            return []
        for provider in self._providers(bases, distribution, own, path):
            if not names or time.time() > self._until:
                return []
            try:
                with Content(provider) as content:
                    names = content.lacking(names)
            except (OSError, ValueError):
                continue
        return [name.decode("ascii", "replace")[:300] for name in names[:_SHOWN]]

    def _providers(self, bases, distribution, own, path):
        """The libraries to look in, the likeliest first: each once."""
        found = list(bases)
        for name in own.needed:
            place = self._search.find(path, name)[0] or self._places.get(name, [None])[0]
            found.append(place)
        owners = {self._files[base].home for base in bases if self._files.get(base)}
        if distribution is not None:
            owners.add(distribution.home)
        found += [
            other for other, one in self._files.items() if one is not None and one.home in owners
        ]
        if distribution is None:
            found += [one for one in self._files if os.path.dirname(one) == os.path.dirname(path)]
        return [one for one in dict.fromkeys(found) if one not in (None, path)]


def _complete(fact):
    return not fact["undefined"] and all(isinstance(one["path"], str) for one in fact["wants"])


def _stem(name):
    """What versions of one library have in common. Parts of cuDNN and of PyTorch came and went as one."""
    stem = name.partition(".so")[0]
    parts = _PARTS.match(stem)
    return stem if parts is None else "libcudnn" if parts.group(1) == "cudnn" else "libtorch"


def _is_library(name):
    name = name.rpartition("/")[2]
    return name.endswith(".so") or libraries.known(name) is not None or ".so." in name


def _built_here(distribution):
    """Whether it was compiled on a machine like this one, and not downloaded as a wheel for many."""
    try:
        tags = [
            value
            for key, value in distributions.parse_headers(distribution.file("WHEEL"))
            if key == "tag"
        ]
    except OSError:
        return distribution.home.endswith(".egg-info") or unavailable("absent", "no WHEEL")
    return bool(tags) and all("-linux_" in tag for tag in tags)
