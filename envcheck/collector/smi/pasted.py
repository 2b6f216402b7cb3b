"""What mail programs, browsers, terminals and editors add to a text that is pasted, taken off again."""

import html
import re

_ANSI = re.compile(
    r"\x1b(?:\[[0-9;?]{0,32}[ -/]{0,4}[@-~]|\][^\x07\x1b]{0,256}(?:\x07|\x1b\\)|[@-Z\\-_])"
)
# Blanks that are none, and what takes no room at all.
_BLANKS = dict.fromkeys((0x00A0, 0x2007, 0x2009, 0x202F, 0x3000), " ")
_BLANKS.update(dict.fromkeys((0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF), None))
_ESCAPED = re.compile(r"&lt;nvidia_smi_log|&nbsp;|&#160;")
_OF_SMI = re.compile(
    r"NVSMI LOG|<nvidia_smi_log|NVIDIA-SMI|initialize NVML|determine the device handle|devices were found"
    r"|\bGPU \d{1,3}: "
)
_QUOTE = re.compile(r"[ \t]{0,8}(?:>[ \t]?){1,9}")


def clean(text):
    """The text in plain lines: without escapes, colours, odd blanks and marks of quoting."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").translate(_BLANKS)
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    if _ESCAPED.search(text):
        text = html.unescape(text).translate(_BLANKS)
    return _unquoted(text)


def _unquoted(text):
    found = _OF_SMI.search(text)
    if found is None:
        return text
    begin = text.rfind("\n", 0, found.start()) + 1
    quote = _QUOTE.match(text, begin, found.start())
    if quote is None:
        return text
    depth = quote.group().count(">")
    mark = re.compile(r"^[ \t]{0,8}(?:>[ \t]?){1,%d}" % depth, re.MULTILINE)
    return mark.sub("", text)
