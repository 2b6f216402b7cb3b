"""TF-TRT: engaged, not engaged for each cause, and what tells nothing; and its run on a made-up TensorRT."""

from __future__ import annotations

from typing import Any

import pytest
import system_runs
from judged import only, text_of
from system_runs import result, trial

from envcheck.facts.acceleration import SystemRun, SystemTrial
from envcheck.facts.target import Environment

CODE = "ACC-010"
LINKED = trial("TensorRT linked", version="8.6.1")
LOADED = trial("TensorRT loaded", version="8.6.1")
GRAPH = trial("graph", control=True, operations=0, engines=0, result=4702817.5)
FELL_BACK = (
    "W tensorflow/compiler/tf2tensorrt/kernels/trt_engine_op.cc:1103] TF-TRT Warning: Engine creation for "
    "TRTEngineOp_000_000 failed. The native segment will be used instead. Reason: INTERNAL: Failed to build "
    "TensorRT engine"
)


def precision(name: str, **changes: Any) -> SystemTrial:
    evidence = {"operations": 1, "engines": 1, "result": 4702000.0, "difference": 0.001}
    return trial(name, **(evidence | changes))


ALL = (precision("FP32"), precision("FP16", difference=0.01))


def trt(*trials: SystemTrial, **more: Any) -> SystemRun:
    return system_runs.run("tf-trt", *trials, **more)


WELL = trt(LINKED, LOADED, GRAPH, *ALL)


def without(trial_: SystemTrial, *names: str) -> SystemTrial:
    evidence = {name: value for name, value in trial_.evidence.items() if name not in names}
    return SystemTrial(name=trial_.name, outcome=trial_.outcome, evidence=evidence)


def test_engaged() -> None:
    answer = result(CODE, WELL)
    assert answer.outcome == "pass"
    assert "FP32 (1 engine, off by 0.001)" in answer.detail
    assert answer.detail.endswith("TensorRT 8.6.1")


def test_the_wrong_tensorrt_refuses_to_convert() -> None:
    older = trial("TensorRT loaded", version="8.5.3")
    refused = [
        trial(name, "error", "RuntimeError: Incompatible TensorRT major version")
        for name in ("FP32", "FP16")
    ]
    finding = only(result(CODE, trt(LINKED, older, GRAPH, *refused)))
    assert finding.level == "fail"
    assert finding.headline == (
        "TF-TRT is on and runs nothing in TensorRT (FP32, FP16): TensorRT 8.5.3 is loaded, and "
        "TensorFlow is linked with 8.6.1"
    )
    assert "tensorrt==8.6.1" in text_of(finding)


def test_operations_without_engines() -> None:
    none = [precision(name, engines=0) for name in ("FP32", "FP16")]
    finding = only(result(CODE, trt(LINKED, LOADED, GRAPH, *none)))
    assert finding.headline.endswith("(FP32, FP16): no engine is built")
    finding = only(result(CODE, trt(LINKED, LOADED, GRAPH, *none, log=[FELL_BACK])))
    assert "no engine is built: INTERNAL: Failed to build TensorRT engine" in finding.headline
    assert FELL_BACK in text_of(finding)
    chip = (
        "E tf2tensorrt/utils/trt_logger.cc:42] Target GPU SM 120 is not supported by this TensorRT"
    )
    finding = only(result(CODE, trt(LINKED, LOADED, GRAPH, *none, log=[chip, FELL_BACK])))
    assert finding.headline.endswith("this TensorRT does not know this GPU")
    line = "W trt_engine_op.cc:506] Failed to execute engine, retrying with native segment for TRTEngineOp_0"
    finding = only(result(CODE, trt(LINKED, LOADED, GRAPH, *ALL, log=[line])))
    assert "no engine is built that is used" in finding.headline


def test_nothing_is_converted() -> None:
    none = [precision(name, operations=0, engines=0, difference=0.0) for name in ("FP32", "FP16")]
    one = trt(LINKED, LOADED, GRAPH, *none)
    assert only(result(CODE, one)).headline.endswith("no part of the graph was converted")
    given = Environment(variables={"TF_TRT_OP_DENYLIST": "Conv2D,Relu"})
    finding = only(result(CODE, one, environment=given))
    assert "TF_TRT_OP_DENYLIST=Conv2D,Relu is set" in finding.headline
    assert "unset TF_TRT_OP_DENYLIST" in text_of(finding)


@pytest.mark.parametrize(("name", "good", "bad"), [("FP32", 0.004, 0.006), ("FP16", 0.05, 0.07)])
def test_results_agree_within_what_the_precision_allows(name: str, good: float, bad: float) -> None:
    def one(share: Any) -> SystemRun:
        return trt(
            LINKED,
            LOADED,
            GRAPH,
            *[precision(p.name, difference=share) if p.name == name else p for p in ALL],
        )

    assert result(CODE, one(good)).outcome == "pass"
    for share in (bad, "nan", "inf"):
        finding = only(result(CODE, one(share)))
        assert finding.level == "fail"
        assert f"computes something else ({name})" in finding.headline


@pytest.mark.parametrize("name", ["TensorRT linked", "TensorRT loaded"])
def test_a_tensorrt_that_ends_the_process(name: str) -> None:
    why = "its process died by signal 6 (SIGABRT): nvinfer_stub.cc:49] getInferLibVersion symbol not found."
    before = [] if name == "TensorRT linked" else [LINKED]
    one = trt(*before, trial(name, "crashed", why), outcome="crashed", reason=why)
    finding = only(result(CODE, one))
    assert finding.level == "fail" and "getInferLibVersion" in finding.message


def test_a_conversion_that_crashes_or_raises() -> None:
    why = "its process died by signal 11 (SIGSEGV)"
    one = trt(LINKED, LOADED, GRAPH, trial("FP32", "crashed", why), outcome="crashed", reason=why)
    answer = result(CODE, one)
    assert answer.outcome == "fail"
    assert "(FP32): its process died by signal 11 (SIGSEGV)" in answer.findings[0].headline
    assert "FP16 not reached" in answer.unjudged[0].reason
    raised = trial("FP16", "error", "InternalError: Failed to import metagraph")
    finding = only(result(CODE, trt(LINKED, LOADED, GRAPH, ALL[0], raised)))
    assert "(FP16): InternalError: Failed to import metagraph" in finding.headline


def test_what_could_not_run() -> None:
    gone = trt(outcome="not-run", reason="no GPU: libcuda cannot be loaded")
    assert result(CODE, gone).outcome == "could-not-run"
    broken = trial("graph", "error", "ResourceExhaustedError: no", control=True)
    assert result(CODE, trt(LINKED, LOADED, broken, *ALL)).outcome == "could-not-run"
    late = trt(LINKED, LOADED, GRAPH, ALL[0], trial("FP16", "timeout", "no answer"))
    answer = result(CODE, late)
    assert (answer.outcome, answer.findings) == ("could-not-run", [])
    full = trial("FP32", "error", "InternalError: CUDA out of memory")
    assert result(CODE, trt(LINKED, LOADED, GRAPH, full, *ALL[1:])).findings == []
    nowhere = trial("FP32", "error", "ValueError: Specified device is not a GPU: /device:CPU:0")
    assert result(CODE, trt(LINKED, LOADED, GRAPH, nowhere, *ALL[1:])).findings == []
    stuck = trial("TensorRT loaded", "timeout", "no answer within 30 s")
    assert result(CODE, trt(LINKED, stuck, outcome="timeout")).outcome == "could-not-run"
    odd = trial("graph", control=True, operations=1, engines=0)
    answer = result(CODE, trt(LINKED, LOADED, odd, *ALL))
    assert answer.outcome == "could-not-run" and "not converted" in answer.reason
    bare = trt(outcome="not-applicable", reason="this tensorflow is built without TensorRT")
    assert result(CODE, bare).outcome == "skipped"
    assert result(CODE, asked="tf-trt").reason == "not applicable: the target has no TensorFlow"


def test_a_version_that_does_not_tell_its_engines() -> None:
    quiet = trt(LINKED, LOADED, GRAPH, ALL[0], without(ALL[1], "engines"))
    answer = result(CODE, quiet)
    assert answer.findings == [] and "does not report how many engines" in answer.unjudged[0].reason
    spoken = trt(LINKED, LOADED, GRAPH, ALL[0], without(ALL[1], "engines"), log=[FELL_BACK])
    assert any("FP16" in one.headline for one in result(CODE, spoken).findings)


def test_missing_evidence_is_no_pass() -> None:
    empty = trt(LINKED, LOADED, GRAPH, *[trial(name) for name in ("FP32", "FP16")])
    assert result(CODE, empty).outcome == "fail"
    assert result(CODE, trt()).outcome == "could-not-run"
    no_share = trt(LINKED, LOADED, GRAPH, ALL[0], without(ALL[1], "difference"))
    assert result(CODE, no_share).outcome != "pass"
