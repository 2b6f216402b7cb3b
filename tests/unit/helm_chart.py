"""The chart, rendered by Helm's own library. Run as a program, this file writes the plain manifests anew."""

from __future__ import annotations

from pathlib import Path
from typing import Any

KUBERNETES = Path(__file__).resolve().parents[2] / "Dockerfiles" / "kubernetes"
CHART = KUBERNETES / "envcheck"
MANIFESTS = KUBERNETES / "manifests.yaml"

HEAD = """\
# envcheck on every node with GPUs, as the chart beside this file renders it with its own values:
#   kubectl apply -f manifests.yaml     (after putting your registry into the image's name)
apiVersion: v1
kind: Namespace
metadata:
  name: envcheck
"""


def rendered(values: dict[str, Any]) -> str:
    """Helm's text. Raises helm_python's errors, which begin with ValueError for the schema."""
    import helm_python

    with helm_python.Chart.load(CHART) as chart:
        chart.validate_schema(values)
        files = chart.render(values, name="envcheck", namespace="envcheck")
    texts = [text.strip() for name, text in sorted(files.items()) if not name.endswith("NOTES.txt")]
    return "\n---\n".join(text for text in texts if text) + "\n"


def objects(values: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Each object, by its kind."""
    import yaml

    return {one["kind"]: one for one in yaml.safe_load_all(rendered(values))}


if __name__ == "__main__":
    MANIFESTS.write_text(f"{HEAD}---\n{rendered({})}")
