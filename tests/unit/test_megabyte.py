"""A megabyte of hostile text costs each reader of foreign text a few seconds at most, and no traceback.

The bound is a hundredth of what a quadratic reader takes; time is this process's own (regex_attacks.py).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial

import pytest
from regex_attacks import cpu_limit

from envcheck import safe_text
from envcheck.collector import credentials
from envcheck.collector.containers import specs as container_specs
from envcheck.collector.linux import gpu_events as kernel_events
from envcheck.collector.packaging import configuration, toml
from envcheck.collector.redact import Redactor
from envcheck.collector.smi import document
from envcheck.exit_codes import EnvcheckError
from envcheck.install import pylock
from envcheck.install.catalogue import schema
from envcheck.install.engines import client as troubles
from envcheck.install.wheels import uv, uv_compile


def numbered(piece: str, size: int) -> str:
    return "".join(piece.format(number) for number in range(size // len(piece.format(10_000))))


def redact(text: str) -> None:
    Redactor("gpu-box-7.example.org", "alice", "/data/people/alice").redact({text[:90]: [text]})


def smi(before: str, text: str, after: str = "") -> None:
    document.read_document(before + text + after)


def kernel_log(text: str) -> None:
    kernel_events.fold(kernel_events.parse_text(text))
    kernel_events.parse_kmsg(text.encode("utf-8", "replace"), [])


READERS: dict[str, tuple[Callable[[str], object], list[str]]] = {
    "redact": (
        redact,
        ["/home/", "/home/a ", "GPU-abcdef12", "-", "alice", "a@", "https://a:b@c/"],
    ),
    "mask": (credentials.mask, ["eyJ", "eyJaaaaaaaa.", "a.", "://", "&key=", "Bearer ", "token="]),
    "strip": (credentials.strip, ["a:b@", "://", "a=b:c@", "?a=b&", "/a1", "https://a:b@c/ "]),
    "smi": (document.read_document, ["<nvidia_smi_log>", "<!DOCTYPE", "=====", "NVSMI LOG\n"]),
    "smi's XML": (
        partial(smi, "<nvidia_smi_log>", after="</nvidia_smi_log>"),
        ["<gpu>", "<a/>", "<process_name>", "<process_name><</process_name>", "&", "<a b=''/>"],
    ),
    "smi's text": (
        partial(smi, "==============NVSMI LOG==============\n"),
        ["a : b\n", "a\n", " ", "\t", " :", "GPU 00000000:3B:00.0\n", " a\n  b\n"],
    ),
    "kernel log": (
        kernel_log,
        [
            "NVRM: Xid (PCI:0000:3b:00): 79, ",
            "#012 NVRM:",
            "[ 1.0] ",
            "kernel: ",
            "\n NVRM:",
            "NVRM\n",
        ],
    ),
    "pip.conf": (configuration.parse_pip, ["a\n", "[a]\n", "=", "[global]\n a\n"]),
    "TOML before Python 3.11": (
        lambda text: toml.Reader(text).document(),
        ["a.", "[", '"""', "a.a=1\n", "#\n", "\n "],
    ),
    "container specification": (
        lambda text: container_specs.host_paths(container_specs.read_spec(text)),
        ["- ", "a:\n", "-\n", "a: 'b\n", "[", "a=", "a = 'b' # \n", "{"],
    ),
    "text on a line": (safe_text.one_line, ["\x1b[0m", " ", "\u202e", "\n"]),
    "lines": (safe_text.lines, ["\x1b[0m", "\u202e", "\ud800", "\r\n"]),
    "styled": (safe_text.styled, ["\x1b[", "\x1b[0m", "\x1b[0;", "\x1b"]),
    "JSON": (safe_text.json_text, ["\x1b", "\u202e", "\\"]),
    "uv's words": (uv.explanation, ["a\n", "Because ", "And because \n", "x. ", "(1)", "× \n"]),
    "uv's resolution": (
        uv_compile.parse,
        ["a==1 # via ", "# from ", "    # from x", "a==1\n", ","],
    ),
    "uv's hints": (uv.hints, ["hint: ", "hint:\n", "hint: a\n       b", "\n ", " "]),
    "an engine's words": (partial(troubles.explained, "podman"), ["/a ", "error ", "lock"]),
    "lock": (lambda text: pylock.parse(text, "x"), ["a.", "a=[", "[a.", "[[packages]]\n", "#"]),
    "stack": (lambda text: schema.read(text, "x"), ["a.", "a=[", "[a.", "[[releases]]\n", "\n"]),
}

# Longer ones of their own, by their size.
OTHERS: dict[str, Callable[[int], list[str]]] = {
    "redact": lambda size: [numbered("GPU-{:08x} ", size), numbered("/home/u{} ", size)],
    "pip.conf": lambda _size: [
        numbered("[s{}]\ntoken=1\n", 60_000),
        "[DEFAULT]\n" + numbered("key{}=1\n", 30_000) + numbered("[s{}]\n", 30_000),
    ],
    "container specification": lambda size: [
        "- " * 2000 + "x\n" + "x\n" * (size // 2),
        "containerEdits:\n  deviceNodes:\n" + numbered("  - path: /dev/x{}\n", size),
    ],
    "kernel log": lambda size: [
        numbered("[ 1.0] host kernel: NVRM: Xid (PCI:0000:01:00): {}, a\n", size)
    ],
    "stack": lambda size: [
        "requirement='x'\n" + numbered("[[releases]]\nversion='{}x'\npython=['z']\n", size)
    ],
}


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize(
    ("size", "seconds"), [(100_000, 1.0), pytest.param(1_000_000, 5.0, marks=pytest.mark.heavy)]
)
def test_hostile_text_takes_linear_time(name: str, size: int, seconds: float) -> None:
    read, pieces = READERS[name]
    others = OTHERS.get(name, lambda _size: [])(size)
    for text in [*(piece * (size // len(piece)) for piece in pieces), *others]:
        try:
            with contextlib.suppress(ValueError, EnvcheckError), cpu_limit(seconds):
                read(text)
        except TimeoutError:
            pytest.fail(f"{size} characters, {text[:60]!a} …: more than {seconds} s")
