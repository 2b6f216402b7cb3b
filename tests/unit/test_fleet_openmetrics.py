"""A fleet's metrics: each machine by the name that the inventory has for it, and by no other."""

from __future__ import annotations

from test_openmetrics import samples

from envcheck.fleet.model import (
    AttributeOutlier,
    FleetCounts,
    FleetResult,
    JudgedMachine,
    MachineProblem,
    RateOutlier,
    SharedFault,
)
from envcheck.fleet.reports import openmetrics


def fleet(name: str = "gpu07") -> FleetResult:
    problem = MachineProblem(
        code="GPU-008",
        level="fail",
        title="Heat",
        headline="is too hot",
        message="GPU 3 is too hot.",
    )
    place = {"machine": name, "product": "8 × H100", "devices": ["GPU 3"], "words": "it", "of": 80}
    return FleetResult(
        schema=1,
        envcheck="0",
        counts=FleetCounts(machines=2, healthy=0, problems=1, could_not_look=0, unanswered=1),
        groups=[],
        attribute_outliers=[
            AttributeOutlier(**place, key="gpus.vbios", value="1", usual="2", agree=79)  # type: ignore[arg-type]
        ],
        rate_outliers=[
            RateOutlier(
                **place,  # type: ignore[arg-type]
                key="kernels.L0.fp16",
                device="GPU 3",
                value=900,
                unit="TFLOP/s",
                median=1000,
                below=0.1,
                deviations=9,
            )
        ],
        splits=[],
        shared=[
            SharedFault(
                kind="rack",
                name="r7",
                code="GPU-008",
                words="is too hot",
                machines=[name],
                hosts=name,
                of=4,
            )
        ],
        unanswered=[],
        machines=[
            JudgedMachine(name=name, state="problems", product="8 × H100", problems=[problem]),
            JudgedMachine(name="dead", state="unanswered", answer="unreachable"),
        ],
    )


def value(name: str, **labels: str) -> float | None:
    return samples(openmetrics.render(fleet())).get(
        (f"envcheck_fleet_{name}", frozenset(labels.items()))
    )


def test_states_problems_and_odd_ones_out() -> None:
    assert value("machines", state="problems") == 1 and value("machines", state="healthy") == 0
    assert value("machine", machine="dead", state="unanswered") == 1
    assert value("problem", machine="gpu07", code="GPU-008", level="fail") == 1
    odd = {"machine": "gpu07", "device": "GPU 3"}
    assert value("odd_attribute", **odd, key="gpus.vbios") == 1
    assert value("odd_rate_below_ratio", **odd, key="kernels.L0.fp16") == 0.1
    assert value("shared_fault_machines", kind="rack", place="r7", code="GPU-008") == 1
