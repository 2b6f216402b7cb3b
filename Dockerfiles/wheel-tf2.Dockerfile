# Written by envcheck 0.2.0: tensorflow 2.21.0, locked 2026-11-21T20:57:15Z.
#   docker build -t tensorflow:2.21.0 DIRECTORY     (a builder with cache mounts)
# Its packages, each one file that its sha256 names: an index can fail to serve it, and
# cannot serve another. Each package comes from one index, and pip is never given two.
# The host needs NVIDIA's container toolkit and driver 525.60.13 or newer, for CUDA 12.5.1.
#   docker run --rm --gpus all tensorflow:2.21.0 python -c 'import tensorflow'

# Debian or Ubuntu with Python 3.12 as python3. A tag moves; a digest does not:
#   docker build --build-arg BASE=NAME@sha256:DIGEST …
ARG BASE=docker.io/library/ubuntu:24.04@sha256:786a8b558f7be160c6c8c4a54f9a57274f3b4fb1491cf65146521ae77ff1dc54

FROM ${BASE}

# The public index or a mirror of it; empty: pip's own. An address with a password in it stays in
# the image's history: use one without. PIP_CERT: a file with the mirror's authorities, in BASE or
# mounted while building.
ARG INDEX_URL=
ARG PIP_CERT=

# Python by apt, unless BASE brings it: no hash pins that, only the distribution's signature.
RUN python3 -c 'import ensurepip, venv' 2>/dev/null \
 || { apt-get update \
      && apt-get install -y --no-install-recommends python3 python3-venv \
      && rm -rf /var/lib/apt/lists/*; }

# These wheels are for Python 3.12 on x86_64: said now, and not after the downloads.
RUN found="$(python3 -c "import platform, sys; print('%d.%d' % sys.version_info[:2] + ' ' + platform.machine())")" \
 && { [ "$found" = '3.12 x86_64' ] \
      || { echo "BASE has Python $found, and 3.12 x86_64 is needed" >&2; exit 1; }; }

# Every package and its sha256.
COPY requirements-pip.txt requirements.txt /opt/lock/

# The environment, and its own pip: the one that came with Python may be too old for the wheels.
RUN --mount=type=cache,target=/var/cache/pip \
    python3 -m venv /opt/venv \
 && /opt/venv/bin/python -m pip install --no-deps --require-hashes --cache-dir /var/cache/pip \
      --only-binary=:all: \
      ${INDEX_URL:+--index-url "$INDEX_URL"} -r /opt/lock/requirements-pip.txt

# From the public index.
RUN --mount=type=cache,target=/var/cache/pip \
    /opt/venv/bin/python -m pip install --no-deps --require-hashes --cache-dir /var/cache/pip \
      --only-binary=:all: \
      ${INDEX_URL:+--index-url "$INDEX_URL"} -r /opt/lock/requirements.txt

# envcheck itself, in an environment of its own: `envcheck doctor`.
COPY envcheck-requirements.txt envcheck-itself.txt envcheck_gpu-*.whl /opt/lock/
RUN --mount=type=cache,target=/var/cache/pip \
    python3 -m venv /opt/envcheck \
 && /opt/envcheck/bin/python -m pip install --no-deps --require-hashes \
      --cache-dir /var/cache/pip --only-binary=:all: \
      ${INDEX_URL:+--index-url "$INDEX_URL"} -r /opt/lock/envcheck-requirements.txt \
 && /opt/envcheck/bin/python -m pip install --no-deps --require-hashes \
      --cache-dir /var/cache/pip --only-binary=:all: \
      --no-index --find-links /opt/lock -r /opt/lock/envcheck-itself.txt \
 && /opt/envcheck/bin/envcheck collector --output /opt/envcheck/envcheck-collector.pyz \
 && ln -s /opt/envcheck/bin/envcheck /usr/local/bin/envcheck

# As activation would set it, and nothing else.
ENV VIRTUAL_ENV="/opt/venv"
ENV PATH=/opt/venv/bin:$PATH
LABEL org.opencontainers.image.title="tensorflow" \
      org.opencontainers.image.version="2.21.0" \
      org.opencontainers.image.description="TensorFlow for NVIDIA GPUs from the public index" \
      envcheck.stack="tensorflow" \
      envcheck.release="2.21.0" \
      envcheck.version="0.2.0" \
      envcheck.lock="sha256:7a00ec2887a253aaf10ba091155120b5c84a355a2addd8fcdcdf84114da5ef1b"
# Unhealthy when NVML has lost the GPUs that it was given. In docker's format only: podman build --format docker
HEALTHCHECK --interval=60s --timeout=20s --start-period=10s --retries=2 \
  CMD ["/opt/envcheck/bin/python", "-I", "/opt/envcheck/envcheck-collector.pyz", "--health"]
RUN useradd --create-home --uid 10001 envcheck
USER 10001
WORKDIR /home/envcheck
CMD ["python"]
