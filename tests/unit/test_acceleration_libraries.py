"""Which of the target's libraries a system gets, and which one it does not run without."""

from __future__ import annotations

from typing import Any

from envcheck.collector import systems
from envcheck.collector.systems.running import jobs


def _system(**said: Any) -> systems.System:
    told = {"SYSTEM": "nccl", "DEADLINE": 5, "LIBRARIES": ("libnccl",), "run": lambda *_: None}
    return systems.System("nccl", {**told, **said})


def _library(path: Any, how: str, name: str = "libnccl") -> dict[str, Any]:
    return {"name": name, "path": path, "how": how}


_WHEEL, _SYSTEM = "/w/nvidia/nccl/lib/libnccl.so.2", "/usr/lib/libnccl.so.2"


def test_what_a_framework_mapped_comes_first_then_wheels_each_file_once() -> None:
    loaded = [
        _library(_SYSTEM, "dlopen"),
        _library(_WHEEL, "wheel"),
        _library({"unavailable": "absent"}, "dlopen"),
    ]
    document = {"loader": {"facts": {"libraries": loaded}}}
    assert jobs.libraries(_system(), document) == {"libnccl": [_WHEEL, _SYSTEM]}
    mapped = [_library(_SYSTEM, "framework"), _library("/x/libcudnn.so.9", "framework", "libcudnn")]
    document["torch"] = {"facts": {"libraries": mapped}}
    assert jobs.libraries(_system(), document) == {"libnccl": [_SYSTEM, _WHEEL]}
    assert jobs.libraries(_system(LIBRARIES=()), document) == {}


def test_a_target_without_the_library_has_no_use_for_the_system() -> None:
    document: dict[str, Any] = {"loader": {"facts": {"libraries": []}}}
    planned = jobs.plan([_system()], ["nccl"], ([], "none"), {"target": document})
    assert [(one.outcome, one.reason) for one in planned] == [
        ("not-applicable", "the target has no libnccl")
    ]
    planned = jobs.plan([_system()], ["nccl"], ([], "none"), {"target": {}})  # nobody asked
    assert [one.outcome for one in planned] == [""]
