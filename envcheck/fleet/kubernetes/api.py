"""The nodes of a cluster, by Kubernetes' own Python client: conditions and the taint of one node.

Times are the API server's, so that a node's own clock does not matter.
"""

from __future__ import annotations

import os
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import Any

import urllib3

from ... import safe_text
from ...exit_codes import CouldNotLook, UsageError
from ..engines import slurm_drain
from ..engines.slurm_nodes import SlurmNodeState
from .health import OK, PROBLEM, NodeHealth

ANSWER = 15.0  # seconds that the API server has for each answer
TRIES = 5  # where somebody else changes the node meanwhile
PAGE = 500  # nodes of an answer

TAINT = "envcheck/gpu-broken"
_OURS = "envcheck: "  # what slurm_drain's reasons begin with
_RESOURCES = "nvidia.com/"  # once a device plugin has registered, the kubelet keeps it, with 0 too
_LABELS = ("nvidia.com/gpu.present", "feature.node.kubernetes.io/pci-10de.present")
_STATUS = {OK: "False", PROBLEM: "True"}
_HINTS = {
    403: "its ServiceAccount lacks the right: see conditions, taint and ownNodeOnly of the chart",
    404: "--node is the node's name in Kubernetes",
}


class _Conflict(CouldNotLook):
    """Somebody else has changed the node since it was read."""


class KubernetesNodes:
    """Every method raises CouldNotLook where the API server refuses, or gives no answer."""

    def __init__(self, core: Any) -> None:
        self._core = core  # kubernetes.client.CoreV1Api
        self.now = datetime.now(timezone.utc)  # of the latest answer

    def node(self, name: str) -> Any:
        """Of type kubernetes.client.V1Node."""
        return self._ask("read_node", name)

    def set_conditions(self, node: Any, health: NodeHealth) -> None:
        """Kubernetes merges conditions by their type: those of others stay."""
        before = {(one.type, one.status): one for one in node.status.conditions or []}
        conditions = []
        for kind, problem in health.conditions().items():
            status, now = _STATUS.get(problem, "Unknown"), _written(self.now)
            old = before.get((kind, status))
            since = old.last_transition_time if old is not None else None
            condition = {
                "type": kind,
                "status": status,
                "reason": f"Envcheck{health.state.title()}",
                "message": health.sentence,
                "lastHeartbeatTime": now,
                "lastTransitionTime": _written(since) if since else now,
            }
            conditions.append(condition)
        change = {"status": {"conditions": conditions}}
        self._ask("patch_node_status", node.metadata.name, change)

    def set_taint(self, node: Any, health: NodeHealth, percent: float) -> str:
        """Add or remove the taint by slurm_drain's rule; what became of it, in a sentence."""
        name = node.metadata.name
        if health.state == "broken":
            decision = slurm_drain.drain(
                self, name, health.code, percent=percent, now=lambda: self.now
            )
            return decision.sentence.replace(_OURS, "").replace("drained", "tainted")
        if health.state == "silent" or not _row(node).is_drained:
            return ""
        self.update(name, State="RESUME")
        return "no longer tainted"

    def nodes(self) -> dict[str, SlurmNodeState]:
        """As slurm_drain takes them: a node with our taint is a drained one."""
        found: dict[str, SlurmNodeState] = {}
        token = None
        while token != "":
            page = self._ask("list_node", limit=PAGE, _continue=token)
            found |= {row.name: row for row in map(_row, page.items)}
            token = page.metadata._continue or ""
        return found

    def update(self, node: str, **settings: str) -> None:
        """Add the taint (State="DRAIN", Reason=…) or remove it (State="RESUME")."""
        code = settings.get("Reason", "").removeprefix(_OURS)
        for left in reversed(range(TRIES)):
            current = self.node(node)
            taints = [one for one in current.spec.taints or [] if one.key != TAINT]
            if settings["State"] == "DRAIN":
                added = {"timeAdded": _written(self.now), "effect": "NoSchedule"}
                taints.append({"key": TAINT, "value": code, **added})
            change = {
                "metadata": {"resourceVersion": current.metadata.resource_version},
                "spec": {"taints": taints},
            }
            try:
                self._ask("patch_node", node, change)
                return
            except _Conflict:
                if not left:
                    raise

    def _ask(self, verb: str, *arguments: Any, **options: Any) -> Any:
        from kubernetes.client.exceptions import ApiException

        ask = getattr(self._core, f"{verb}_with_http_info")
        try:
            answer, _, headers = ask(*arguments, _request_timeout=ANSWER, **options)
            self.now = parsedate_to_datetime(headers["Date"])
            return answer
        except ApiException as error:
            refusal = _Conflict if error.status == 409 else CouldNotLook
            words = f"{error.status} {safe_text.one_line(str(error.reason))[:100]}"
            what = verb.replace("_", " ")
            sentence = f"Kubernetes' API server refuses a request of envcheck's ({what}): {words}"
            raise refusal(sentence, _HINTS.get(error.status, "")) from None
        except (urllib3.exceptions.HTTPError, OSError) as error:
            words = safe_text.one_line(str(error))[:200]
            raise CouldNotLook(f"Kubernetes' API server gives no answer: {words}") from None
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise CouldNotLook("what answers is no API server of Kubernetes") from None


def connect() -> KubernetesNodes:
    """Of the file that KUBECONFIG names, else of this pod's ServiceAccount. Raises UsageError."""
    try:
        from kubernetes import client, config
    except ImportError:
        hint = "pip install 'envcheck-gpu[kubernetes]'"
        raise UsageError("Kubernetes' Python client is not installed", hint) from None
    file = os.environ.get("KUBECONFIG")
    try:
        config.load_kube_config(file) if file else config.load_incluster_config()
    except Exception as error:  # noqa: BLE001 - of YAML, of files, of whatever is in them
        words = safe_text.one_line(str(error))[:200]
        raise UsageError(f"no way to Kubernetes' API server: {words}") from None
    return KubernetesNodes(client.CoreV1Api())


def has_gpus(node: Any) -> bool:
    """Whether Kubernetes knows of GPUs on a node, working or not."""
    labels, capacity = node.metadata.labels or {}, node.status.capacity or {}
    offered = any(name.startswith(_RESOURCES) for name in capacity)
    return offered or any(labels.get(name) == "true" for name in _LABELS)


def _row(node: Any) -> SlurmNodeState:
    ours = next((one for one in node.spec.taints or [] if one.key == TAINT), None)
    state, since, reason = "IDLE", None, ""
    if ours is not None:
        state, since, reason = "DRAINED", ours.time_added, f"{_OURS}{ours.value}"
    return SlurmNodeState(node.metadata.name, state, reason, gpus=int(has_gpus(node)), since=since)


def _written(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
