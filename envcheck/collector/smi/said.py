"""nvidia-smi's own words, where it has no document to print: an error is what people send most."""

import re

from ..facts import unavailable

NO_DEVICES = "No devices were found"
OF_A_DOCUMENT = ("driver_version", "cuda_version", "gpu_count", "gpus")
# How they begin; a quote's mark, or what ends a prompt or the prefix of a log, may stand before them.
_WORDS = re.compile(
    r"(?:^[> \t]{0,20}|[]:$#>] )((?:NVIDIA-SMI (?:has failed|couldn't|could not)|Failed to initialize NVML"
    r"|Unable to determine the device handle|Unable to (?:initialize|load) NVML)[^\n]{0,300})"
    r"|^[> \t]{0,20}(No devices were found[^\n]{0,300})",
    re.MULTILINE,
)
_NOT_THERE = re.compile(
    r"(?:nvidia-smi: (?:command )?not found|command not found: nvidia-smi"
    r"|[Cc]ommand '?nvidia-smi'? not found|'nvidia-smi' is not recognized|nvidia-smi: No such file)"
)
# What the next lines add to it.
_MORE = re.compile(r"\n[ \t>]{0,9}(NVML library version: [^\n]{1,40})")


def read(text):
    """The facts in these words, or None where there are none."""
    found = _WORDS.search(text)
    if found is None:
        missing = _NOT_THERE.search(text)
        if missing is None:
            return None
        facts = without_document(missing.group(), "nvidia-smi is not there")
        facts["path"] = unavailable("absent", missing.group())
        return facts
    words = (found.group(1) or found.group(2)).strip()
    more = _MORE.match(text, found.end())
    if NO_DEVICES in words:
        return without_devices(words)
    said = words + ("\n" + more.group(1) if more else "")
    return without_document(said, "nvidia-smi said: " + words)


def without_document(said, detail):
    """The facts of a run that printed its own words and no document; detail: why the rest is not known."""
    facts = {name: unavailable("error", detail) for name in OF_A_DOCUMENT}
    facts["message"] = said
    return facts


def without_devices(said):
    """The same where it found no GPU, and said so."""
    return {"gpu_count": 0, "gpus": [], "message": said}
