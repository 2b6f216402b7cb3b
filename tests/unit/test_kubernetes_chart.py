"""The Helm chart and the plain manifests: valid, and with no more privileges than asked for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import helm_chart
import pytest

from envcheck import __version__
from envcheck.cli.main import build_parser

yaml = pytest.importorskip("yaml")
pytestmark = pytest.mark.fleet

VERSIONS = ("1.27", "1.32", "1.37")
EVERYTHING: dict[str, Any] = {
    "conditions": True,
    "taint": {"enabled": True, "limit": 10},
    "metrics": {"serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}}},
    "hostPID": True,
    "privileged": True,
    "runtimeClassName": "",
    "priorityClassName": "system-node-critical",
    "podAnnotations": {"a": "b"},
    "imagePullSecrets": [{"name": "pull"}],
    "extraEnv": [{"name": "LD_LIBRARY_PATH", "value": "/opt/nvidia"}],
    "extraVolumes": [{"name": "driver", "hostPath": {"path": "/opt/nvidia"}}],
    "extraVolumeMounts": [{"name": "driver", "mountPath": "/opt/nvidia"}],
}
OPTIONS: dict[str, dict[str, Any]] = {
    "default": {},
    "nothing": {"conditions": False, "metrics": {"enabled": False}, "nodeSelector": None},
    "node-problem-detector": {"nodeProblemDetector": {"enabled": True}},
    "everything": EVERYTHING,
}


def objects(values: dict[str, Any]) -> dict[str, dict[str, Any]]:
    pytest.importorskip("helm_python")
    return helm_chart.objects(values)


def pod(values: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The pod's spec, and its container's."""
    spec = objects(values)["DaemonSet"]["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    return spec, container


def verbs(values: dict[str, Any]) -> dict[str, list[str]]:
    rules = objects(values).get("ClusterRole", {}).get("rules", [])
    return {resource: one["verbs"] for one in rules for resource in one["resources"]}


def test_the_plain_manifests_are_the_chart_s() -> None:
    pytest.importorskip("helm_python")
    text = f"{helm_chart.HEAD}---\n{helm_chart.rendered({})}"
    assert helm_chart.MANIFESTS.read_text() == text, "python tests/unit/helm_chart.py"


def test_helm_finds_nothing_wrong_with_it() -> None:
    helm = pytest.importorskip("helm_python")
    for values in OPTIONS.values():
        report = helm.lint(helm_chart.CHART, values, strict=True)
        assert [one for one in report["messages"] if one["severity"] > 1] == []
    chart = yaml.safe_load((helm_chart.CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == __version__


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", OPTIONS)
def test_kubernetes_schemas_take_every_object(name: str, version: str) -> None:
    kubernetes_validate = pytest.importorskip("kubernetes_validate")
    for kind, one in objects(OPTIONS[name]).items():
        if kind == "ServiceMonitor" or (kind.startswith("Validating") and version == "1.27"):
            continue  # of Prometheus' operator; not made before Kubernetes 1.30
        kubernetes_validate.validate(one, version, strict=True)


def test_by_default_it_is_a_pod_without_privileges() -> None:
    """As the Pod Security Standard "restricted" demands."""
    spec, container = pod({})
    assert not {"hostPID", "hostNetwork", "hostIPC"} & {*spec}
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }
    assert all("emptyDir" in volume for volume in spec["volumes"])
    assert "nvidia.com/gpu" not in str(container["resources"])
    assert verbs({}) == {"nodes": ["get"], "nodes/status": ["patch"]}


def test_each_option_adds_what_it_says_and_no_more() -> None:
    assert verbs({"taint": {"enabled": True}})["nodes"] == ["get", "list", "patch"]
    without = {"conditions": False}
    assert verbs(without) == {} and pod(without)[0]["automountServiceAccountToken"] is False
    assert verbs(OPTIONS["node-problem-detector"]) == {}
    spec, container = pod(OPTIONS["node-problem-detector"])
    assert [one["hostPath"]["path"] for one in spec["volumes"] if "hostPath" in one] == [
        "/run/envcheck"
    ]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    spec, container = pod({"hostPID": True})
    assert (
        spec["hostPID"] is True and "shareProcessNamespace" not in spec
    )  # they exclude each other
    assert "privileged" not in container["securityContext"]
    spec, container = pod({"privileged": True})
    assert container["securityContext"]["privileged"] is True and "hostPID" not in spec
    assert "ValidatingAdmissionPolicy" not in objects({"ownNodeOnly": False})


@pytest.mark.parametrize("name", OPTIONS)
def test_the_command_takes_what_the_pod_starts_it_with(name: str) -> None:
    _spec, container = pod(OPTIONS[name])
    arguments = build_parser(container["args"]).parse_args(container["args"])
    assert (arguments.interval, arguments.once) == (3600.0, False)
    assert arguments.taint is (name == "everything")


@pytest.mark.parametrize(
    "values",
    [{"imge": 1}, {"interval": "soon"}, {"taint": {"limit": 0}}, {"metrics": {"port": 80}}],
)
def test_a_wrong_value_is_refused(values: dict[str, Any]) -> None:
    helm = pytest.importorskip("helm_python")
    with pytest.raises(helm.HelmValuesError):
        helm_chart.rendered(values)


@pytest.mark.parametrize(
    ("extra", "may"),
    [
        ({"authentication.kubernetes.io/node-name": ["gpu01"]}, True),
        ({"authentication.kubernetes.io/node-name": ["gpu02"]}, False),
        ({}, False),
    ],
)
def test_the_policy_lets_a_pod_change_its_own_node_alone(
    extra: dict[str, list[str]], may: bool
) -> None:
    """By CEL's implementation in C++, of Google's; the API server's is the one in Go."""
    cel = pytest.importorskip("cel_expr_python.cel")
    optional = pytest.importorskip("cel_expr_python.ext.ext_optional")
    dynamic = {"request": cel.Type.DYN, "object": cel.Type.DYN}
    spec = objects({})["ValidatingAdmissionPolicy"]["spec"]
    (variable,), (validation,) = spec["variables"], spec["validations"]
    text = validation["expression"].replace("variables.ownNode", variable["expression"])
    extensions = [optional.ExtOptional()]
    expression = cel.NewEnv(variables=dynamic, extensions=extensions).compile(text)
    data = {
        "request": {"userInfo": {"extra": extra}},
        "object": {"metadata": {"name": "gpu01"}},
    }
    assert expression.eval(data=data).value() is may


def test_node_problem_detector_takes_its_configuration() -> None:
    """The rules of its pkg/custompluginmonitor/types/config.go."""
    data = objects({"nodeProblemDetector": {"enabled": True, "staleMinutes": 30}})["ConfigMap"][
        "data"
    ]
    config = json.loads(data["envcheck.json"])
    assert config["plugin"] == "custom"
    defaults = {one["type"] for one in config["conditions"]}
    for rule in config["rules"]:
        assert rule["type"] == "permanent" and rule["condition"] in defaults
        assert rule["path"] == "/bin/sh" and rule["args"][1:] == [rule["condition"], "30"]
        assert Path(rule["args"][0]).name in data
    assert config["pluginConfig"]["max_output_length"] > 220  # of envcheck's longest sentence
