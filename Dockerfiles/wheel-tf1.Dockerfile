# Written by envcheck 0.2.0: nvidia-tf1 23.03.
#   docker build -t nvidia-tf1:23.03 DIRECTORY     (a builder with cache mounts)
# Its packages, each one file that its sha256 names: an index can fail to serve it, and
# cannot serve another. Each package comes from one index, and pip is never given two.
# The host needs NVIDIA's container toolkit and driver 525.60.13 or newer, for CUDA 12.1.0.
#   docker run --rm --gpus all nvidia-tf1:23.03 python -c 'import tensorflow'

# Debian or Ubuntu with Python 3.8 as python3. A tag moves; a digest does not:
#   docker build --build-arg BASE=NAME@sha256:DIGEST …
ARG BASE=docker.io/library/ubuntu:20.04@sha256:8feb4d8ca5354def3d8fce243717141ce31e2c428701f6682bd2fafe15388214

# envcheck needs Python 3.10 or newer, whatever BASE has; this one runs on glibc 2.17 or newer.
FROM ${BASE} AS python
USER root
ARG PYTHON_URL=https://github.com/astral-sh/python-build-standalone/releases/download/20260807/cpython-3.12.13%2B20260807-x86_64-unknown-linux-gnu-install_only_stripped.tar.gz
ARG PYTHON_SHA256=506191be3ee7bd190a8834dcdc1b3bc70aab50608deccc711935aa007239cabd
ADD ${PYTHON_URL} /tmp/python.tar.gz
RUN echo "$PYTHON_SHA256  /tmp/python.tar.gz" | sha256sum -c - \
 && mkdir -p /opt && tar -xzf /tmp/python.tar.gz -C /opt \
 && /opt/python/bin/python3 -c 'import ssl, sys; assert sys.version_info[:2] == (3, 12), sys.version'

FROM ${BASE}

# The public index or a mirror of it; empty: pip's own. An address with a password in it stays in
# the image's history: use one without. PIP_CERT: a file with the mirror's authorities, in BASE or
# mounted while building.
ARG INDEX_URL=
ARG PIP_CERT=
ARG NVIDIA_INDEX_URL=https://pypi.ngc.nvidia.com

# Python by apt, unless BASE brings it: no hash pins that, only the distribution's signature.
RUN python3 -c 'import ensurepip, venv' 2>/dev/null \
 || { apt-get update \
      && apt-get install -y --no-install-recommends python3 python3-venv \
      && rm -rf /var/lib/apt/lists/*; }

# These wheels are for Python 3.8 on x86_64: said now, and not after the downloads.
RUN found="$(python3 -c "import platform, sys; print('%d.%d' % sys.version_info[:2] + ' ' + platform.machine())")" \
 && { [ "$found" = '3.8 x86_64' ] \
      || { echo "BASE has Python $found, and 3.8 x86_64 is needed" >&2; exit 1; }; }

# Every package and its sha256.
COPY requirements-pip.txt requirements.txt requirements-nvidia.txt /opt/lock/

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

# From the index "nvidia".
RUN --mount=type=cache,target=/var/cache/pip \
    /opt/venv/bin/python -m pip install --no-deps --require-hashes --cache-dir /var/cache/pip \
      --only-binary=:all: \
      --index-url "$NVIDIA_INDEX_URL" -r /opt/lock/requirements-nvidia.txt

# envcheck itself, in an environment of its own: `envcheck doctor`.
COPY --from=python /opt/python /opt/python
COPY envcheck-requirements.txt envcheck-itself.txt envcheck_gpu-*.whl /opt/lock/
RUN --mount=type=cache,target=/var/cache/pip \
    /opt/python/bin/python3 -m venv /opt/envcheck \
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
# sha256:… of the lock that the lists are of, as their first lines have it.
ARG LOCK=
LABEL org.opencontainers.image.title="nvidia-tf1" \
      org.opencontainers.image.version="23.03" \
      org.opencontainers.image.description="NVIDIA's TensorFlow 1.15, with Horovod" \
      envcheck.stack="nvidia-tf1" \
      envcheck.release="23.03" \
      envcheck.version="0.2.0" \
      envcheck.lock="$LOCK" \
      envcheck.provided="nvidia-pyindex"
# Unhealthy when NVML has lost the GPUs that it was given. In docker's format only: podman build --format docker
HEALTHCHECK --interval=60s --timeout=20s --start-period=10s --retries=2 \
  CMD ["/opt/envcheck/bin/python", "-I", "/opt/envcheck/envcheck-collector.pyz", "--health"]
RUN useradd --create-home --uid 10001 envcheck
USER 10001
WORKDIR /home/envcheck
CMD ["python"]
