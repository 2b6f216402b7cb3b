"""The steps that put envcheck into an image: a Python for it, its wheel, what it needs, the health check."""

from __future__ import annotations

from collections.abc import Iterator

from .options import Context
from .packages import CACHE, LISTS, MOUNT, pip_of
from .words import run

HOME = "/opt/envcheck"
NEEDS = "envcheck-requirements.txt"  # what it needs, locked
ITSELF = "envcheck-itself.txt"  # its own wheel's hash
_PYTHON = "/opt/python"
_COLLECTOR = f"{HOME}/envcheck-collector.pyz"


def stage(context: Context) -> Iterator[list[str]]:
    """Before the image itself: the Python that envcheck brings, in a stage whose archive leaves no layer."""
    python = context.standalone
    if python is None:
        return
    yield [
        "# envcheck needs Python 3.10 or newer, whatever BASE has; this one runs on glibc"
        f" {python.glibc} or newer.",
        "FROM ${BASE} AS python",
        "USER root",
        f"ARG PYTHON_URL={python.url}",
        f"ARG PYTHON_SHA256={python.sha256}",
        "ADD ${PYTHON_URL} /tmp/python.tar.gz",
        'RUN echo "$PYTHON_SHA256  /tmp/python.tar.gz" | sha256sum -c - \\',
        " && mkdir -p /opt && tar -xzf /tmp/python.tar.gz -C /opt \\",
        f" && {_PYTHON}/bin/python3 -c 'import ssl, sys;"
        f" assert sys.version_info[:2] == ({python.python.replace('.', ', ')}), sys.version'",
    ]


def steps(context: Context, *, constrained: bool = False) -> Iterator[list[str]]:
    """``envcheck`` on PATH, in an environment of its own beside what the image is for.

    constrained: BASE may set PIP_CONSTRAINT, as NVIDIA's images do, to versions of its own.
    """
    option = '${INDEX_URL:+--index-url "$INDEX_URL"}'
    pip = f"{'PIP_CONSTRAINT= ' if constrained else ''}{pip_of(HOME)}"
    how = f"  --cache-dir {CACHE} --only-binary=:all:"
    python = "python3" if context.standalone is None else f"{_PYTHON}/bin/python3"
    lines = [
        "# envcheck itself, in an environment of its own: `envcheck doctor`.",
        f"COPY {NEEDS} {ITSELF} envcheck_gpu-*.whl {LISTS}/",
        *run(
            [
                [f"{python} -m venv {HOME}"],
                [pip, how, f"  {option} -r {LISTS}/{NEEDS}"],
                [pip, how, f"  --no-index --find-links {LISTS} -r {LISTS}/{ITSELF}"],
                [f"{HOME}/bin/envcheck collector --output {_COLLECTOR}"],
                [f"ln -s {HOME}/bin/envcheck /usr/local/bin/envcheck"],
            ],
            MOUNT,
        ),
    ]
    if context.standalone is not None:
        lines.insert(1, f"COPY --from=python {_PYTHON} {_PYTHON}")
    yield lines


def health() -> list[str]:
    """Docker's image format has it; OCI's does not, and a builder says that it leaves it out."""
    return [
        "# Unhealthy when NVML has lost the GPUs that it was given. In docker's format only:"
        " podman build --format docker",
        "HEALTHCHECK --interval=60s --timeout=20s --start-period=10s --retries=2 \\",
        f'  CMD ["{HOME}/bin/python", "-I", "{_COLLECTOR}", "--health"]',
    ]
